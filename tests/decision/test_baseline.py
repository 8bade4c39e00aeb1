# SPDX-License-Identifier: Apache-2.0
"""Exact cases of the baselines: large initial window, limited, smooth, gradual and cached starts."""

from __future__ import annotations

import pytest

from tests.decision.conftest import Start
from tests.decision.runner import INFINITE, OPEN, RECOVERY, Runner

RTT_US = 100_000


def test_standard_leaves_what_an_abc_limit_does_not_count_to_congestion_avoidance(start: Start) -> None:
    connection = start("standard", abc_limit=1).open(ssthresh=11)
    connection.send()
    state = connection.ack(7, wait_us=RTT_US)
    assert (state.cwnd, state["cwnd_count"]) == (11, 6)


@pytest.mark.parametrize(
    ("name", "parameter", "value"),
    [
        ("standard", "init_cwnd", "1000001"),
        ("standard", "init_ssthresh", "-1"),
        ("standard", "abc_limit", "many"),
        ("liw", "bytes", "0"),
        ("liw", "slow_start", "2"),
        ("limited", "max_ssthresh", "1"),
        ("smooth", "depth", "17"),
        ("gradual", "queue_divisor", "0"),
        ("gradual", "max_divisor", "0"),
        ("cached", "max_window", "0"),
        ("cached", "prefix_ipv4", "33"),
    ],
)
def test_a_parameter_that_makes_no_sense_is_refused(start: Start, name: str, parameter: str, value: str) -> None:
    assert start(name, load=False).try_set(parameter, value).error != 0


# --- large initial window


@pytest.mark.parametrize(("mss_bytes", "packets"), [(1460, 44), (1448, 45), (536, 122), (65535, 1), (9000, 7)])
def test_64_kilobytes_are_whole_segments(start: Start, mss_bytes: int, packets: int) -> None:
    state = start("liw").open(mss_bytes=mss_bytes).state()
    assert (state.cwnd, state.ssthresh) == (packets, INFINITE)


def test_a_window_below_one_segment_is_one(start: Start) -> None:
    assert start("liw", bytes=100).open().state().cwnd == 1


def test_without_slow_start_the_threshold_is_the_initial_window(start: Start) -> None:
    runner = start("liw", slow_start=0)
    (left,) = runner.command("open 200 liw_reno").exits
    assert (left.reason, left.quantity, left.threshold) == ("initial-ssthresh", 45, 45)
    connection = runner.open()
    assert (connection.state().cwnd, connection.state().ssthresh) == (45, 45)
    for expected in (46, 47, 48):
        connection.round(rtt_us=RTT_US)
        assert connection.state().cwnd == expected


def test_a_switch_in_mid_connection_leaves_the_window(start: Start) -> None:
    connection = start("liw", slow_start=0).open("standard_reno")
    connection.round(rtt_us=RTT_US)
    connection.switch("liw_reno")
    state = connection.state()
    assert (state.cwnd, state.ssthresh) == (20, INFINITE)


# --- limited (RFC 3742, section 2)


@pytest.mark.parametrize(
    ("cwnd", "divisor"),
    [(101, 2), (149, 2), (150, 3), (199, 3), (200, 4), (250, 5), (1000, 20), (5000, 100)],
)
def test_one_packet_for_k_acknowledged(start: Start, cwnd: int, divisor: int) -> None:
    connection = start("limited").open(cwnd=cwnd)
    connection.send()
    for _ in range(divisor - 1):
        assert connection.ack(1, wait_us=RTT_US if _ == 0 else 0).cwnd == cwnd
    assert connection.ack(1).cwnd == cwnd + 1


def test_up_to_max_ssthresh_included_each_packet_is_one_more(start: Start) -> None:
    connection = start("limited").open(cwnd=99)
    connection.send()
    states = [connection.ack(1, wait_us=RTT_US), *(connection.ack(1) for _ in range(3))]
    assert [state.cwnd for state in states] == [100, 101, 101, 102]
    (crossed,) = [each for state in states for each in state.events]
    assert crossed.event == "phase"
    assert (crossed.quantity, crossed.threshold) == (101, 100)


def test_a_stretch_ack_counts_as_its_packets_do_one_by_one(start: Start) -> None:
    """K changes twice on the way; nothing is lost or won at the changes."""
    runner = start("limited")
    at_once, singly = runner.open(cwnd=90), runner.open(cwnd=90)
    at_once.send()
    singly.send()
    together = at_once.ack(90, wait_us=RTT_US)
    for number in range(90):
        singly.ack(1, wait_us=RTT_US if number == 0 else 0)
    one_by_one = singly.state()
    assert (together.cwnd, together["cwnd_count"]) == (one_by_one.cwnd, one_by_one["cwnd_count"]) == (140, 1)


@pytest.mark.parametrize("most", [2, 3, 100, 101, 1_000_000])
def test_a_round_adds_at_most_half_of_max_ssthresh(start: Start, most: int) -> None:
    connection = start("limited", max_ssthresh=most).open(cwnd=max(most + 1, 10))
    for _ in range(3):
        before = connection.state().cwnd
        if before > 10_000:
            break
        connection.round(rtt_us=RTT_US)
        assert connection.state().cwnd - before <= most / 2 + 1


def test_it_stops_at_the_threshold_and_at_the_clamp(start: Start) -> None:
    runner = start("limited")
    connection = runner.open(cwnd=98, ssthresh=103)
    connection.send()
    state = connection.ack(98, wait_us=RTT_US)
    # 3 to 101, 2 + 2 to 103: seven of 98 are used.
    assert (state.cwnd, state["cwnd_count"]) == (103, 91)
    clamped = runner.open(cwnd=98, clamp=102)
    clamped.send()
    assert clamped.ack(98, wait_us=RTT_US).cwnd == 102


# --- smooth


@pytest.mark.parametrize(("cwnd", "divisor"), [(399, 1), (400, 2), (599, 2), (600, 4), (699, 4), (700, 8), (799, 8)])
def test_steps_of_smooth_start(start: Start, cwnd: int, divisor: int) -> None:
    """ssthresh 800, depth 3: steps begin at 400, 600 and 700 packets."""
    connection = start("smooth", init_ssthresh=800).open(cwnd=cwnd)
    connection.send()
    for _ in range(divisor - 1):
        assert connection.ack(1, wait_us=RTT_US if _ == 0 else 0).cwnd == cwnd
    assert connection.ack(1).cwnd == cwnd + 1


def test_smooth_start_without_a_threshold_is_standard(start: Start) -> None:
    connection = start("smooth").open()
    for expected in (20, 40, 80, 160):
        connection.round(rtt_us=RTT_US)
        assert connection.state().cwnd == expected


def test_smooth_start_of_depth_0_is_standard(start: Start) -> None:
    connection = start("smooth", depth=0, init_ssthresh=100).open(cwnd=60)
    connection.round(rtt_us=RTT_US)
    assert connection.state().cwnd == 100


# --- gradual


@pytest.mark.parametrize(
    ("rtt_us", "divisor"),
    [(106_250, 1), (106_251, 2), (112_500, 2), (112_501, 4), (125_000, 4), (125_001, 8), (500_000, 8)],
)
def test_the_divisor_follows_the_round_trip_time(start: Start, rtt_us: int, divisor: int) -> None:
    """base 100 ms, queue_divisor 16: rises of 6.25, 12.5 and 25 ms."""
    connection = start("gradual").open(cwnd=64)
    connection.send()
    for number in range(8):
        connection.ack(1, wait_us=0 if number else RTT_US, rtt_us=RTT_US)
    for _ in range(8):
        before = connection.ack(1, rtt_us=rtt_us)
    after = connection.ack(8, rtt_us=rtt_us)
    assert after.cwnd - before.cwnd == 8 // divisor


def test_seven_samples_do_not_judge_and_the_least_of_eight_counts(start: Start) -> None:
    connection = start("gradual").open(cwnd=64)
    connection.send()
    connection.ack(1, wait_us=RTT_US, rtt_us=RTT_US)
    for _ in range(6):
        connection.ack(1, rtt_us=200_000)
    assert not connection.state().events
    connection.ack(1, rtt_us=200_000)  # the eighth; the first of them was 100 ms
    assert not connection.state().events
    for _ in range(8):
        state = connection.ack(1, rtt_us=200_000)
    assert [(each.event, each.quantity, each.threshold) for each in state.events] == [("phase", 200_000, 125_000)]


def test_a_round_that_ends_in_recovery_does_not_lower_the_threshold(start: Start) -> None:
    """Most of a flight is lost: PRR holds cwnd below ssthresh, which is no slow start."""
    connection = start("gradual").open(cwnd=64)
    connection.send()
    for number in range(62):
        connection.ack(1, wait_us=0 if number else RTT_US, rtt_us=RTT_US if number < 8 else 500_000)
    connection.send()
    threshold = connection.lose(connection.state().packets_out - 4).ssthresh
    before = connection.ack(1, rtt_us=500_000)
    after = connection.ack(3, rtt_us=500_000)
    assert (before["round"], after["round"], after.state) == (1, 2, RECOVERY)
    assert after.cwnd < threshold
    assert (after.ssthresh, after.exits) == (threshold, [])


# --- cached


def _learn(start: Start, **parameters: int) -> tuple[Runner, int]:
    runner = start("cached", **parameters)
    first = runner.open(ssthresh=50)
    for _ in range(6):
        first.round(rtt_us=RTT_US)
    cwnd = first.state().cwnd
    first.close()
    return runner, cwnd


def test_a_later_connection_starts_with_what_the_first_learnt(start: Start) -> None:
    runner, cwnd = _learn(start)
    state = runner.open().state()
    assert cwnd > 50
    assert (state.cwnd, state.ssthresh) == (cwnd, 50)


def test_it_is_known_of_one_destination_of_one_name_space(start: Start) -> None:
    runner, _ = _learn(start)
    for state in (runner.open(net=1).state(), runner.open(peer=77).state()):
        assert (state.cwnd, state.ssthresh) == (10, INFINITE)


def test_neighbours_share_where_a_prefix_makes_the_destination(start: Start) -> None:
    runner, cwnd = _learn(start, prefix_ipv4=24)
    assert runner.open(peer=77).state().cwnd == cwnd


def test_only_the_threshold_with_window_0(start: Start) -> None:
    runner, _ = _learn(start, window=0)
    state = runner.open().state()
    assert (state.cwnd, state.ssthresh) == (10, 50)


def test_it_is_forgotten_after_its_lifetime(start: Start) -> None:
    runner, cwnd = _learn(start, lifetime_s=10)
    runner.wait(9_000_000)
    assert runner.open().state().cwnd == cwnd
    runner.wait(2_000_000)
    assert runner.open().state().cwnd == 10


def test_it_starts_with_no_more_than_max_window(start: Start) -> None:
    runner, _ = _learn(start, max_window=20)
    assert runner.open().state().cwnd == 20


def test_half_of_a_slow_start_is_remembered(start: Start) -> None:
    runner = start("cached")
    first = runner.open()
    for _ in range(4):
        first.round(rtt_us=RTT_US)
    assert first.state().cwnd == 160
    first.close()
    state = runner.open().state()
    assert (state.cwnd, state.ssthresh) == (80, INFINITE)


def test_a_loss_in_the_first_flight_forgets_and_begins_anew(start: Start) -> None:
    runner, cwnd = _learn(start)
    connection = runner.open()
    connection.send()
    connection.runner.wait(RTT_US)
    state = connection.lose(1)
    assert state.ssthresh == 10
    assert [(each.event, each.quantity, each.threshold) for each in state.events] == [("retreat", cwnd, 10)]
    while connection.state().state != OPEN:
        connection.round(rtt_us=RTT_US)
    assert connection.state().ssthresh == cwnd // 2
    assert runner.open().state().cwnd == 10


def test_running_connections_share_and_the_sum_stays(start: Start) -> None:
    runner = start("cached", share=1)
    connections = [runner.open(ssthresh=40)]
    for _ in range(5):
        connections[0].round(rtt_us=RTT_US)
    total = connections[0].state().cwnd
    for number in (2, 3, 4):
        connections.append(runner.open())
        taken = connections[-1].state().cwnd
        assert abs(taken - total / number) <= number
        for each in connections[:-1]:
            each.send()
            each.ack(1, wait_us=RTT_US)
        grown = sum(each.state().cwnd for each in connections)
        assert total - number <= grown <= total + number  # an ACK may have added a packet
        total = grown


def test_a_table_of_many_destinations_takes_no_more_memory(start: Start) -> None:
    runner = start("cached")
    watched = runner.open(peer=250)
    before = watched.state()["allocated_bytes"]
    for number in range(250):
        connection = runner.open(peer=number)
        for _ in range(3):
            connection.round(rtt_us=RTT_US)
        connection.close()
    assert watched.state()["allocated_bytes"] == before
    assert runner.open(peer=249).state().cwnd == 40


@pytest.mark.parametrize(("name", "cwnd"), [("liw", 45), ("standard", 10)])
def test_after_an_idle_time_the_large_window_is_there_again(start: Start, name: str, cwnd: int) -> None:
    """RFC 5681, section 4.1: the restart window is the smaller of the initial window and cwnd."""
    connection = start(name).open(slow_start_after_idle=1)
    for _ in range(3):
        connection.round(rtt_us=RTT_US)
    connection.runner.wait(60_000_000)
    connection.send(1)
    assert connection.state().cwnd == cwnd
