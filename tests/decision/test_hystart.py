# SPDX-License-Identifier: Apache-2.0
"""HyStart of the paper and of Linux: exact cases of both signs, at their limits and one microsecond or tick beside."""

from __future__ import annotations

import pytest

from tests.decision.conftest import Start
from tests.decision.runner import INFINITE, Connection, State

RTT_US = 100_000


def train(connection: Connection, spacing_us: list[int], rtt_us: int = RTT_US) -> State:
    """A flight is sent, and acknowledged packet by packet with these spacings, until slow start ends."""
    connection.send()
    state = connection.ack(1, wait_us=rtt_us, rtt_us=rtt_us)
    for gap_us in spacing_us:
        state = connection.ack(1, wait_us=gap_us, rtt_us=rtt_us)
        if state.exits:
            break
    return state


def flight(connection: Connection, rtt_us: int) -> list[State]:
    """An RTT later every packet that is out is acknowledged alone, all at once, and each ACK lets others go."""
    out = connection.send().packets_out
    connection.runner.wait(rtt_us)
    states = []
    for _ in range(out):
        states.append(connection.ack(1, rtt_us=rtt_us))
        connection.send()
    return states


def exits(states: list[State]) -> list[int]:
    """Which ACKs ended slow start."""
    return [index for index, state in enumerate(states) if state.exits]


# Linux: more than half the smallest RTT, ACKs at most 2 ms apart.


def test_linux_a_train_of_more_than_half_the_rtt(start: Start) -> None:
    connection = start("hystartl", train_allowance=0).open(cwnd=200)
    state = train(connection, [1000] * 100)
    (event,) = state.exits
    assert (event.reason, event.quantity, event.threshold) == ("ack-train", 51_000, 50_000)
    # 52 ACKs have come; cwnd was 251 when the last of them was looked at.
    assert event.cwnd == 251
    assert state.ssthresh == 251


def test_linux_a_train_of_half_the_rtt_is_none(start: Start) -> None:
    state = train(start("hystartl", train_allowance=0).open(cwnd=200), [2000] * 25)
    assert state.ssthresh == INFINITE


def test_linux_an_ack_after_a_gap_does_not_belong_to_the_train(start: Start) -> None:
    state = train(start("hystartl", train_allowance=0).open(cwnd=200), [2000] * 10 + [2001] + [1000] * 80)
    assert state.ssthresh == INFINITE


def test_linux_a_train_may_be_spread_by_a_sender_that_paces(start: Start) -> None:
    connection = start("hystartl", train_allowance=0).open(cwnd=400)
    connection.set("pacing", 1)
    state = train(connection, [1000] * 200)
    (event,) = state.exits
    assert (event.quantity, event.threshold) == (101_000, 100_000)


def test_linux_before_5_6_pacing_makes_no_difference(start: Start) -> None:
    connection = start("hystartl", train_allowance=0, train_paced=0).open(cwnd=400)
    connection.set("pacing", 1)
    (event,) = train(connection, [1000] * 200).exits
    assert event.threshold == 50_000


def test_linux_trains_have_at_most_a_millisecond_more(start: Start) -> None:
    (event,) = train(start("hystartl").open(cwnd=200), [1000] * 100).exits
    assert 50_000 <= event.threshold <= 50_500


# Linux: an eighth of the smallest RTT, between 4 and 16 ms, after more than eight samples.


@pytest.mark.parametrize(
    ("rtt_us", "allowed_us"), [(10_000, 4_000), (31_000, 4_000), (64_000, 8_000), (100_000, 12_500), (200_000, 16_000)]
)
def test_linux_a_delay_of_more_than_an_eighth(start: Start, rtt_us: int, allowed_us: int) -> None:
    runner = start("hystartl", detect=2)
    calm, late = runner.open(cwnd=20), runner.open(cwnd=20)
    for connection in (calm, late):
        assert not exits(flight(connection, rtt_us))
    assert not exits(flight(calm, rtt_us + allowed_us))
    states = flight(late, rtt_us + allowed_us + 1)
    assert exits(states) == [8]  # the ninth sample: eight only count
    (event,) = states[8].exits
    assert (event.reason, event.quantity, event.threshold) == (
        "delay",
        rtt_us + allowed_us + 1,
        rtt_us + allowed_us,
    )
    assert states[8].ssthresh == event.cwnd


def test_linux_a_sixteenth_in_early_kernels(start: Start) -> None:
    connection = start("hystartl", detect=2, delay_shift=4).open(cwnd=20)
    flight(connection, RTT_US)
    (event,) = flight(connection, RTT_US + 6_251)[8].exits
    assert event.threshold == RTT_US + 6_250


@pytest.mark.parametrize(("whole_round", "late_us"), [(1, 0), (0, 30_000)])
def test_linux_a_low_sample_after_the_first_eight(start: Start, whole_round: int, late_us: int) -> None:
    """The minimum of the whole round forgives a late beginning; that of the first samples does not."""
    connection = start("hystartl", detect=2, whole_round=whole_round).open(cwnd=20)
    flight(connection, RTT_US)
    connection.send()
    connection.ack(1, wait_us=RTT_US, rtt_us=RTT_US + 30_000)
    for _ in range(7):
        connection.ack(1, rtt_us=RTT_US + 30_000)
    state = connection.ack(1, rtt_us=RTT_US)
    assert [event.quantity for event in state.exits] == ([RTT_US + late_us] if late_us else [])


def test_linux_nothing_below_16_packets(start: Start) -> None:
    connection = start("hystartl").open(cwnd=4)
    flight(connection, RTT_US)
    assert not exits(flight(connection, 2 * RTT_US))  # 8 to 16 packets
    connection = start("hystartl", low_window=8).open(cwnd=4)
    flight(connection, RTT_US)
    flight(connection, 2 * RTT_US)
    assert flight(connection, 2 * RTT_US)[8].ssthresh == 24


def test_linux_looks_again_after_a_timeout_only(start: Start) -> None:
    connection = start("hystartl", detect=2).open(cwnd=20)
    flight(connection, RTT_US)
    assert exits(flight(connection, 2 * RTT_US))
    assert not exits(flight(connection, 3 * RTT_US))
    connection.timeout()
    # The smallest RTT is forgotten too: what was late before is normal now, but not what is later still.
    for _ in range(5):
        found = [state.exits[0].reason for state in flight(connection, 2 * RTT_US) if state.exits]
        assert "delay" not in found


# The paper, in ticks of 1 ms: eta of the RTT of the round before.


@pytest.mark.parametrize(("rtt_ms", "eta_ms"), [(10, 2), (33, 3), (50, 4), (102, 7), (112, 7), (113, 8), (250, 8)])
def test_paper_eta(start: Start, rtt_ms: int, eta_ms: int) -> None:
    runner = start("hystartp", detect=2)
    calm, late = runner.open(cwnd=20), runner.open(cwnd=20)
    for connection in (calm, late):
        assert not exits(flight(connection, rtt_ms * 1000))
    assert not exits(flight(calm, (rtt_ms + eta_ms - 1) * 1000))
    states = flight(late, (rtt_ms + eta_ms) * 1000)
    assert exits(states) == [7]
    (event,) = states[7].exits
    assert (event.reason, event.quantity, event.threshold) == (
        "delay",
        (rtt_ms + eta_ms) * 1000,
        (rtt_ms + eta_ms) * 1000,
    )


def test_paper_compares_with_the_round_before_not_with_the_smallest(start: Start) -> None:
    """A queue that grows by less than eta each round is never seen."""
    connection = start("hystartp", detect=2).open(cwnd=20)
    for extra_ms in range(0, 30, 5):
        assert not exits(flight(connection, RTT_US + extra_ms * 1000))
    connection = start("hystartl", detect=2).open(cwnd=20)
    assert any(exits(flight(connection, RTT_US + extra_ms * 1000)) for extra_ms in range(0, 30, 5))


def test_paper_a_train_of_half_the_rtt(start: Start) -> None:
    (event,) = train(start("hystartp", clock_us=1).open(cwnd=200), [1000] * 100).exits
    assert (event.reason, event.quantity, event.threshold) == ("ack-train", 50_000, 50_000)
    assert event.cwnd == 250


def test_paper_a_sign_below_16_packets_is_remembered(start: Start) -> None:
    connection = start("hystartp").open(cwnd=4)
    flight(connection, RTT_US)
    late = [state for _ in range(3) for state in flight(connection, 3 * RTT_US)]
    first = exits(late)[0]
    assert late[first].exits[0].cwnd == 16
    assert late[first].exits[0].reason == "delay"


def test_paper_an_rtt_of_no_round_is_no_delay(start: Start) -> None:
    connection = start("hystartp", detect=2).open(cwnd=20, handshake_rtt_us=1000)
    assert not exits(flight(connection, RTT_US))


@pytest.mark.parametrize(
    ("name", "parameter", "value"),
    [
        ("hystartp", "clock_us", 0),
        ("hystartp", "eta_divisor", 0),
        ("hystartp", "samples", 256),
        ("hystartl", "detect", 0),
        ("hystartl", "delay_shift", 32),
        ("hystartl", "clock_us", 0),
        ("hystartpp", "css_growth_divisor", 1),
        ("hystartpp", "css_rounds", 0),
        ("hystartpp", "min_rtt_divisor", 0),
        ("vstart", "exit_window", 3),
    ],
)
def test_values_that_make_no_sense_are_refused(start: Start, name: str, parameter: str, value: int) -> None:
    assert start(name, load=False).try_set(parameter, str(value)).error != 0


def test_paper_grows_by_packets_or_by_acks(start: Start) -> None:
    """abc_limit=1: one packet an ACK, as Linux 2.6.23; what is over at the threshold goes to congestion avoidance."""
    for limit, window in ((0, 24), (1, 21)):
        connection = start("hystartp", abc_limit=limit).open(cwnd=20)
        connection.send()
        assert connection.ack(4, wait_us=RTT_US, rtt_us=RTT_US).cwnd == window
    connection = start("hystartp", abc_limit=1).open(ssthresh=11)
    connection.send()
    state = connection.ack(7, wait_us=RTT_US)
    assert (state.cwnd, state["cwnd_count"]) == (11, 6)
