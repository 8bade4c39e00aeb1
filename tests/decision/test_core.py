# SPDX-License-Identifier: Apache-2.0
"""What the core promises plug-ins: which function is called when. A plug-in that tells of each call is asked."""

from __future__ import annotations

from collections.abc import Iterator

import pytest

from tests.decision.build import HERE
from tests.decision.conftest import Start
from tests.decision.runner import Connection, State

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
