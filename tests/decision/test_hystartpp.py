# SPDX-License-Identifier: Apache-2.0
"""HyStart++: the numbers of RFC 9406, section 4.2, at their limits."""

from __future__ import annotations

import pytest

from tests.decision.conftest import Start
from tests.decision.runner import INFINITE, Connection, State
from tests.decision.test_hystart import flight

RTT_US = 100_000


def events(states: list[State], name: str) -> list[int]:
    """Which ACKs reported an event of that name."""
    return [index for index, state in enumerate(states) if any(event.event == name for event in state.events)]


@pytest.mark.parametrize(
    ("rtt_us", "threshold_us"),
    [(10_000, 4_000), (32_000, 4_000), (64_000, 8_000), (100_000, 12_500), (128_000, 16_000), (600_000, 16_000)],
)
def test_css_begins_when_the_rtt_has_grown_by_the_threshold(start: Start, rtt_us: int, threshold_us: int) -> None:
    runner = start("hystartpp")
    calm, late = runner.open(cwnd=20), runner.open(cwnd=20)
    for connection in (calm, late):
        flight(connection, rtt_us)
    assert not events(flight(calm, rtt_us + threshold_us - 1), "phase")
    states = flight(late, rtt_us + threshold_us)
    assert events(states, "phase") == [7]  # the eighth sample
    (event,) = states[7].events
    assert (event.reason, event.quantity, event.threshold) == ("delay", rtt_us + threshold_us, rtt_us + threshold_us)
    assert states[-1].ssthresh == INFINITE


def test_it_compares_with_the_round_before(start: Start) -> None:
    connection = start("hystartpp").open(cwnd=20)
    for extra_us in range(0, 60_000, 12_000):
        assert not events(flight(connection, RTT_US + extra_us), "phase")


def conservative(start: Start, **parameters: int) -> Connection:
    connection = start("hystartpp", **parameters).open(cwnd=20)
    flight(connection, RTT_US)
    assert events(flight(connection, RTT_US + 20_000), "phase")
    return connection


def test_css_grows_by_a_quarter(start: Start) -> None:
    connection = conservative(start)
    before = connection.state().cwnd
    after = flight(connection, RTT_US + 20_000)[-1].cwnd
    assert abs(after - before - before // 4) <= 1


def test_five_rounds_of_css_end_slow_start(start: Start) -> None:
    """The round it began in counts: four more, and the ACK that ends the last of them."""
    connection = conservative(start)
    for _ in range(4):
        assert not events(flight(connection, RTT_US + 20_000), "exit")
    states = flight(connection, RTT_US + 20_000)
    assert events(states, "exit") == [0]
    (event,) = states[0].exits
    assert (event.reason, event.quantity, event.threshold) == ("css-rounds", 5, 5)
    assert states[0].ssthresh == event.cwnd


def test_an_rtt_below_the_baseline_resumes_slow_start(start: Start) -> None:
    connection = conservative(start)
    same = flight(connection, RTT_US + 20_000)
    assert not events(same, "resume")
    states = flight(connection, RTT_US + 19_999)
    assert events(states, "resume") == [7]
    assert states[7].events[0].threshold == RTT_US + 20_000
    before = connection.state().cwnd
    assert flight(connection, RTT_US + 19_999)[-1].cwnd == 2 * before


def test_rounds_of_css_are_counted_anew_after_a_false_alarm(start: Start) -> None:
    connection = conservative(start)
    for _ in range(3):
        flight(connection, RTT_US + 20_000)
    assert events(flight(connection, RTT_US), "resume")
    assert events(flight(connection, RTT_US + 20_000), "phase")
    for _ in range(4):
        assert not events(flight(connection, RTT_US + 20_000), "exit")


@pytest.mark.parametrize(("limit", "paced", "grown"), [(8, 0, 8), (1, 0, 1), (0, 0, 12), (8, 1, 12)])
def test_an_ack_counts_for_l_packets_unless_the_connection_paces(
    start: Start, limit: int, paced: int, grown: int
) -> None:
    connection = start("hystartpp", ack_limit=limit).open(cwnd=20)
    connection.set("pacing", paced)
    connection.send()
    assert connection.ack(12, wait_us=RTT_US).cwnd == 20 + grown


def test_a_fraction_is_carried_to_the_next_ack(start: Start) -> None:
    connection = conservative(start)
    begun = connection.send()
    for _ in range(8):
        state = connection.ack(1, rtt_us=RTT_US + 20_000)
    assert state.cwnd == begun.cwnd + 2


def test_only_the_first_slow_start(start: Start) -> None:
    connection = start("hystartpp").open(cwnd=20)
    flight(connection, RTT_US)
    connection.send()
    connection.timeout()
    for _ in range(3):
        assert not events(flight(connection, RTT_US), "phase")
    assert not events(flight(connection, 2 * RTT_US), "phase")


def test_a_loss_leaves_slow_start_as_ever(start: Start) -> None:
    connection = conservative(start)
    connection.send()
    before = connection.state().cwnd
    state = connection.lose(1)
    assert state.exits[0].reason == "loss"
    assert state.ssthresh == before // 2
