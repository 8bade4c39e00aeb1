# SPDX-License-Identifier: Apache-2.0
"""Vegas slow start: which rounds grow, and the queue that ends it."""

from __future__ import annotations

import pytest

from tests.decision.conftest import Start
from tests.decision.runner import INFINITE, Connection, State

RTT_US = 100_000


def whole_round(connection: Connection, rtt_us: int = RTT_US) -> State:
    """An RTT later every packet that is out is acknowledged alone, all at once, and each ACK lets others go."""
    out = connection.send().packets_out
    connection.runner.wait(rtt_us)
    state = connection.state()
    for _ in range(out):
        state = connection.ack(1, rtt_us=rtt_us)
        connection.send()
    return state


def test_every_other_round_doubles(start: Start) -> None:
    connection = start("vstart").open(cwnd=10)
    windows = [whole_round(connection).cwnd for _ in range(6)]
    assert windows == [10, 20, 20, 40, 40, 80]


def held(connection: Connection, rtt_us: int) -> State:
    """The second held round, of 20 packets; the first ACK after it tells."""
    for _ in range(2):
        whole_round(connection)
    assert whole_round(connection, rtt_us).cwnd == 20
    return connection.ack(1, wait_us=RTT_US, rtt_us=RTT_US)


@pytest.mark.parametrize(("rtt_us", "queue"), [(101_000, 0), (105_000, 0), (105_010, 1002), (110_000, 2000)])
def test_more_than_one_packet_of_queue_ends_it(start: Start, rtt_us: int, queue: int) -> None:
    """cwnd (RTT - base) / base: 20 packets of which one waits at an RTT a twentieth above the base."""
    state = held(start("vstart").open(cwnd=10), rtt_us)
    if queue:
        (event,) = state.exits
        assert (event.reason, event.quantity, event.threshold) == ("queue-estimate", queue, 1000)
        assert state.ssthresh == state.cwnd == 20
    else:
        assert not state.exits
        assert state.ssthresh == INFINITE


@pytest.mark.parametrize(("rtt_us", "queue"), [(105_010, 0), (107_490, 0), (107_510, 2000), (112_400, 2000)])
def test_rounded_to_whole_packets_one_and_a_half_end_it(start: Start, rtt_us: int, queue: int) -> None:
    """ns-2 compares the nearest whole number: 20 packets of which 1.498 wait stay, 1.502 leave."""
    state = held(start("vstart", whole_packets=1).open(cwnd=10), rtt_us)
    assert [event.quantity for event in state.exits] == ([queue] if queue else [])


@pytest.mark.parametrize(("exit_window", "cwnd"), [(0, 20), (1, 11), (2, 18)])
def test_window_of_the_end(start: Start, exit_window: int, cwnd: int) -> None:
    """At twice the base half the window waits: a target of 20 / 2 and one; an eighth of 20 is 2."""
    state = held(start("vstart", exit_window=exit_window).open(cwnd=10), 2 * RTT_US)
    (event,) = state.exits
    assert event.cwnd == 20, "the window at the decision"
    assert state.cwnd == state.ssthresh == cwnd
    assert [other.cwnd for other in state.events if other.event == "roll-back"] == ([cwnd] if cwnd < 20 else [])


@pytest.mark.parametrize(("rtt_of_round", "leaves"), [(0, True), (1, False), (2, False)])
def test_rtt_of_a_round(start: Start, rtt_of_round: int, leaves: bool) -> None:
    """A queue in the middle of a round: neither the smallest RTT sees it nor the last."""
    connection = start("vstart", rtt_of_round=rtt_of_round).open(cwnd=10)
    for _ in range(2):
        whole_round(connection)
    connection.runner.wait(RTT_US)
    for packet in range(20):
        connection.ack(1, rtt_us=RTT_US + 20_000 if 5 <= packet < 15 else RTT_US)
        connection.send()
    assert bool(connection.ack(1, rtt_us=RTT_US).exits) == leaves


def test_a_pause_ends_a_round(start: Start) -> None:
    """An application that sends a window, waits, and sends the next: rounds are held and doubled all the same."""
    connection = start("vstart").open(cwnd=10)
    windows = [connection.round(rtt_us=RTT_US)[-1].cwnd for _ in range(4)]
    assert windows == [10, 20, 20, 40]


def test_an_ack_counts_for_each_packet_it_acknowledges(start: Start) -> None:
    """19 packets a little above the base and a lone one, 60 ms late: 3 ms on average, not the 30 ms of two ACKs."""
    connection = start("vstart").open(cwnd=10)
    for _ in range(2):
        whole_round(connection)
    connection.ack(19, wait_us=RTT_US, rtt_us=RTT_US)
    connection.send()
    connection.ack(1, rtt_us=RTT_US + 60_000)
    assert not connection.ack(1, rtt_us=RTT_US).exits


def test_a_timeout_begins_with_a_held_round(start: Start) -> None:
    connection = start("vstart").open(cwnd=10)
    whole_round(connection)
    connection.send()
    begun = connection.timeout()
    assert begun.cwnd < begun.ssthresh
    assert whole_round(connection).cwnd == begun.cwnd
