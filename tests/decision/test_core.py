# SPDX-License-Identifier: Apache-2.0
"""What the core promises plug-ins: which function is called when. A plug-in that tells of each call is asked."""

from __future__ import annotations

from collections.abc import Iterator

import pytest

from tests.decision.build import HERE
from tests.decision.conftest import Start
from tests.decision.runner import INFINITE, Connection, State

START, STOP, ACK, ROUND, SAMPLE, CONGESTION, RECOVERED, UNDO, RESTART = range(9)
TX_START, IDLE, AFTER_RTO = range(3)
PROBE = HERE / "probe" / "ss_probe.c"


def calls(state: State) -> list[int]:
    return [event.quantity for event in state.events if event.event == "phase"]


def details(state: State, call: int) -> list[int]:
    return [event.threshold for event in state.events if event.event == "phase" and event.quantity == call]


@pytest.fixture
def connection(start: Start) -> Iterator[Connection]:
    yield start(PROBE).open(cwnd=20)


@pytest.mark.parametrize(("late", "order"), [(0, [ACK, SAMPLE]), (1, [SAMPLE, ACK])])
def test_order_of_one_ack(start: Start, late: int, order: list[int]) -> None:
    connection = start(PROBE).open(late_ack_event=late)
    connection.send()
    connection.ack(1)
    assert calls(connection.ack(1)) == order


def test_a_round_ends_behind_what_was_sent_at_its_start(connection: Connection) -> None:
    connection.send(5)
    # Nothing had been sent when the first one began; five packets when the second did.
    rounds = [ROUND in calls(connection.ack(1)) for _ in range(5)]
    assert rounds == [True, False, False, False, False]
    connection.send(3)
    assert ROUND in calls(connection.ack(1))


def test_a_sending_start_and_a_timeout_begin_anew(connection: Connection) -> None:
    assert details(connection.send(), RESTART) == [TX_START]
    state = connection.timeout()
    assert (details(state, RESTART), details(state, CONGESTION)) == ([AFTER_RTO], [4])


def test_idleness_is_told_before_the_sending_start(start: Start) -> None:
    connection = start(PROBE).open(unsent_packets=5)
    connection.send()
    connection.ack(5, wait_us=100_000)
    connection.set("unsent_packets", 5)
    connection.runner.wait(60_000_000)
    assert details(connection.send(), RESTART) == [IDLE, TX_START]


def test_a_recovery_ends_once(connection: Connection) -> None:
    connection.send()
    assert CONGESTION in calls(connection.lose())
    assert RECOVERED not in calls(connection.ack(19))
    assert RECOVERED in calls(connection.ack(1))


def test_a_probe_that_repaired_a_loss_is_a_recovery(connection: Connection) -> None:
    connection.send()
    told = calls(connection.probe_loss())
    assert (told.count(CONGESTION), told.count(RECOVERED)) == (1, 1)


@pytest.mark.parametrize("at_end", [False, True])
def test_what_was_undone_is_not_recovered_from(connection: Connection, at_end: bool) -> None:
    connection.send()
    connection.lose()
    assert calls(connection.undo(at_end=at_end)) == [UNDO]


def test_stop_follows_start_once_however_often_tcp_releases(connection: Connection) -> None:
    switched = connection.switch("standard_reno")
    assert calls(switched) == [STOP]
    assert calls(connection.switch("probe_cubic")) == [START]
    assert calls(connection.close()) == [STOP]
    assert connection.runner.command("modules")["allocations"] == 0


def test_without_memory_nothing_is_called(start: Start) -> None:
    runner = start(PROBE)
    runner.fail_allocations()
    connection = runner.open()
    connection.send()
    told = [*calls(connection.ack(5)), *calls(connection.lose()), *calls(connection.undo()), *calls(connection.close())]
    assert told == []


@pytest.mark.parametrize("plug_in", ["standard", "limited", "hystartpp", "search", "smooth", "astart"])
def test_an_ack_counts_as_one_packet_in_every_plug_in(start: Start, plug_in: str) -> None:
    """packets_per_ack=1: what Linux did before it counted packets. An ACK of three packets grows the window by one."""
    grown = {}
    for most in (0, 1):
        connection = start(plug_in, core={"packets_per_ack": most}).open(cwnd=20, ssthresh=INFINITE)
        connection.send()
        grown[most] = connection.ack(3, wait_us=100_000).cwnd - 20
    assert grown == {0: 3, 1: 1}


def test_an_ack_counts_as_one_packet_in_reno_too(start: Start) -> None:
    """Congestion avoidance: one packet for cwnd ACKs, not for cwnd packets. CUBIC counts packets, as it did then."""
    for base, expected in (("reno", {0: 2, 1: 1}), ("cubic", None)):
        grown = {}
        for most in (0, 1):
            connection = start("standard", core={"packets_per_ack": most}).open(
                f"standard_{base}", cwnd=20, ssthresh=10
            )
            connection.send()
            for _ in range(22):
                connection.ack(2, wait_us=5000)
                state = connection.send()
            grown[most] = state.cwnd - 20
        if expected is not None:
            assert grown == expected
        else:
            assert grown[0] == grown[1]


@pytest.mark.parametrize(("first_acks", "share"), [(0, 0.05), (50, 0.02)])
def test_cubic_before_the_first_congestion(start: Start, first_acks: int, share: float) -> None:
    """At least 5 % a round today, 2 % a round up to 2.6.2x, as long as Reno's own growth is slower."""
    connection = start("standard", core={"first_acks_per_packet": first_acks}).open(
        "standard_cubic", cwnd=1000, ssthresh=1000
    )
    state = connection.state()
    connection.send()
    for _ in range(1000):
        state = connection.ack(1, wait_us=100)
        connection.send()
    assert state.cwnd - 1000 == pytest.approx(1000 * share, abs=3)
