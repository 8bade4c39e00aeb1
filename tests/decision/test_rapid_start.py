# SPDX-License-Identifier: Apache-2.0
"""Rapid Start: growth and recovery against the formulas of the draft, in exact fractions."""

from __future__ import annotations

from fractions import Fraction

import pytest

from tests.decision.conftest import Start
from tests.decision.runner import INFINITE, LOSS, OPEN, RECOVERY

RTT_US = 100_000
MSS_BYTES = 1448


def test_the_first_flight_is_twice_the_initial_window_over_one_rtt(start: Start) -> None:
    connection = start("rapid").open()
    state = connection.send()
    assert (state.cwnd, state["sent"]) == (20, 20)
    assert state["max_pacing_rate"] == 20 * MSS_BYTES * 10
    assert connection.ack(1, wait_us=RTT_US)["pacing"] == 0


def test_the_initial_window_is_a_parameter(start: Start) -> None:
    assert start("rapid", initial_window=14).open().state().cwnd == 14


def test_each_round_triples(start: Start) -> None:
    connection = start("rapid").open()
    windows = []
    for _ in range(6):
        windows.append(connection.state().cwnd)
        connection.round(rtt_us=RTT_US)
    assert windows == [20, 60, 180, 540, 1620, 4860]
    assert connection.state().ssthresh == INFINITE


@pytest.mark.parametrize(
    ("least_us", "rtt_us", "growth"),
    [
        (100_000, 104_000, 2),  # 4 ms
        (100_000, 104_001, 1),
        (20_000, 22_000, 2),  # 10 %
        (20_000, 22_001, 1),
        (40_000, 44_000, 2),  # both
        (40_000, 44_001, 1),
    ],
)
def test_tripling_ends_when_a_queue_builds_up(start: Start, least_us: int, rtt_us: int, growth: int) -> None:
    connection = start("rapid").open()
    connection.round(rtt_us=least_us)
    connection.send()
    before = connection.state().cwnd
    assert connection.ack(1, wait_us=rtt_us, rtt_us=rtt_us).cwnd == before + growth


def test_both_limits_are_parameters(start: Start) -> None:
    connection = start("rapid", delay_us=50_000, delay_percent=20).open()
    connection.round(rtt_us=RTT_US)
    connection.send()
    assert connection.ack(1, wait_us=120_000, rtt_us=120_000).cwnd == 62
    connection = connection.runner.open()
    connection.round(rtt_us=RTT_US)
    connection.send()
    assert connection.ack(1, wait_us=120_001, rtt_us=120_001).cwnd == 61


def test_the_smallest_rtt_of_the_round_counts(start: Start) -> None:
    connection = start("rapid").open()
    connection.round(rtt_us=RTT_US)
    connection.send()
    connection.ack(1, wait_us=RTT_US, rtt_us=RTT_US)
    before = connection.state().cwnd
    # A queue behind the first packet of the round says nothing yet.
    assert connection.ack(1, rtt_us=2 * RTT_US).cwnd == before + 2


# (revision, base, beta): K is 2/3 in revision 02 of the draft and 11/18 before.
FACTORS = [(1, "reno", Fraction(1, 2)), (2, "reno", Fraction(1, 2)), (1, "cubic", None), (2, "cubic", None)]
K = {1: Fraction(11, 18), 2: Fraction(2, 3)}


def test_the_factors_of_the_draft() -> None:
    """The formula below gives the numbers that the draft prints."""

    def factors(beta: Fraction, k: Fraction) -> tuple[Fraction, Fraction]:
        return beta + k * (1 - beta), k * (1 - beta)

    half, cubic = Fraction(1, 2), Fraction(7, 10)
    assert factors(half, K[1]) == (Fraction(29, 36), Fraction(11, 36))
    assert factors(cubic, K[1]) == (Fraction(53, 60), Fraction(11, 60))
    assert factors(half, K[2]) == (Fraction(5, 6), Fraction(1, 3))
    assert factors(cubic, K[2]) == (Fraction(9, 10), Fraction(1, 5))


@pytest.mark.parametrize(("revision", "base", "beta"), FACTORS)
@pytest.mark.parametrize("flight", [36, 1000, 600_000])
def test_recovery_follows_deliveries_and_losses(
    start: Start, revision: int, base: str, beta: Fraction | None, flight: int
) -> None:
    connection = start("rapid", revision=revision, initial_window=flight).open(algorithm=f"rapid_{base}")
    connection.send()
    threshold = flight // 2 if beta else flight * 717 // 1024
    exact = Fraction(threshold, flight)
    silence, acked = exact + K[revision] * (1 - exact), K[revision] * (1 - exact)
    delivered, lost, before = 0, 0, 0
    # Every second packet is missing; an ACK tells of one more each time.
    for sacked in range(1, flight if flight < 2000 else 2000, 2):
        state = connection.ack(0, wait_us=RTT_US if sacked == 1 else 0, sacked_after=sacked, sacked=1)
        delivered += 1
        lost = state["lost_out"]
        if state.state != RECOVERY:
            continue
        # Nothing was delivered or lost in recovery before it began, but for the three duplicates.
        before = before or delivered - 1
        window = flight * silence - (delivered - before) * acked - lost * silence
        floor = max(threshold // 3, 2)
        assert state.cwnd == max(int(window), floor), (delivered, lost)
    assert connection.state().state == RECOVERY


@pytest.mark.parametrize("base", ["reno", "cubic"])
@pytest.mark.parametrize("buffer_bdp", [1, 1.5, 1.9])
def test_it_ends_at_beta_times_what_the_path_holds(start: Start, base: str, buffer_bdp: float) -> None:
    """As the draft derives it, for a path that was full; a smaller buffer overflows before that."""
    buffer = int(842 * buffer_bdp)
    connection = start("rapid").open(algorithm=f"rapid_{base}", handshake_rtt_us=102_000)
    course = connection.path(buffer_packets=buffer, duration_us=2_500_000, quick_acks=1_000_000)
    (end,) = [event for event in course.events if event.event == "drain-end"]
    beta = Fraction(1, 2) if base == "reno" else Fraction(717, 1024)
    # Three duplicates pass before recovery counts; the queue holds one packet more than the buffer.
    assert end.quantity == pytest.approx(float(beta * (842 + buffer)), abs=6)
    assert end.threshold > 2 * (842 + buffer)


def test_a_second_recovery_is_proportional(start: Start) -> None:
    connection = start("rapid", initial_window=100).open()
    connection.send()
    connection.runner.wait(RTT_US)
    connection.ack(0, sacked_after=1, sacked=4)
    connection.send()
    state = connection.ack(100, wait_us=RTT_US)
    assert [event.event for event in state.events] == ["drain-end"]
    connection.round(rtt_us=RTT_US)
    connection.send()
    before = connection.state().cwnd
    state = connection.ack(0, wait_us=RTT_US, sacked_after=1, sacked=4)
    assert (state.state, state.ssthresh) == (RECOVERY, before // 2)
    # Half of the four that arrived, the retransmission first; five have left the flight.
    assert (connection.send()["sent"], state.cwnd) == (2, before - 5 + 2)
    state = connection.ack(before, wait_us=RTT_US)
    assert (state.state, state.ssthresh) == (OPEN, before // 2)
    assert state.cwnd == before // 2 + 1  # congestion avoidance, by the same ACK


def test_an_undo_goes_on_starting(start: Start) -> None:
    connection = start("rapid").open()
    connection.send()
    connection.lose()
    state = connection.undo()
    assert (state.cwnd, state.ssthresh) == (20, INFINITE)
    assert connection.ack(1, wait_us=RTT_US, rtt_us=RTT_US).cwnd == 22


def test_after_a_timeout_it_doubles(start: Start) -> None:
    connection = start("rapid").open()
    connection.round(rtt_us=RTT_US)
    connection.send()
    state = connection.timeout()
    assert (state.state, state.cwnd) == (LOSS, 1)
    connection.send()
    assert connection.ack(1, wait_us=RTT_US).cwnd == 2


def test_after_idleness_the_window_is_cut(start: Start) -> None:
    runner = start("rapid")
    connection = runner.open(unsent_packets=20 + 60 + 180)
    for _ in range(3):
        connection.round(rtt_us=RTT_US)
    assert connection.state().cwnd == 540
    runner.wait(60_000_000)
    connection.set("unsent_packets", 1000)
    connection.send(1)
    assert connection.state().cwnd == 10


def test_a_running_connection_joins_without_a_jump(start: Start) -> None:
    connection = start("rapid").open(algorithm="standard_reno")
    connection.round(rtt_us=RTT_US)
    connection.switch("rapid_reno")
    connection.send()
    assert connection.ack(1, wait_us=RTT_US, rtt_us=RTT_US).cwnd == 21
