# SPDX-License-Identifier: Apache-2.0
"""SEARCH: the normalised difference of a doubling that meets a capacity, and what versions do with it."""

from __future__ import annotations

import dataclasses
import math

import pytest

from tests.decision.conftest import Lived, Start
from tests.decision.runner import INFINITE, Connection, Course, State

RTT_US = 100_000
TICK_US = 1000
BIN_RTT = 0.35
WINDOW_RTT = 3.5
FIRST = 100  # packets in flight at time 0
CAPACITY_RTT = 6.0  # when deliveries stop doubling
THRESHOLDS = {2: 35, 3: 35, 4: 26}


def delivered(rtts: float) -> float:
    """Packets delivered since time 0, in units of FIRST: doubling every RTT, then at a constant rate."""
    doubling = 2 ** min(rtts, CAPACITY_RTT) - 1
    return doubling + max(rtts - CAPACITY_RTT, 0) * math.log(2) * 2**CAPACITY_RTT


def difference(rtts: float, rtt: float = 1.0) -> float:
    """Normalised difference at a time; twice what was delivered is what was sent then."""
    old = 2 * (delivered(rtts - rtt) - delivered(rtts - rtt - WINDOW_RTT))
    return 1 - (delivered(rtts) - delivered(rtts - WINDOW_RTT)) / old


def follow(
    connection: Connection, until_rtt: float, *, start_rtt: float = 0, done: int = 0, rtt_us: int = RTT_US
) -> tuple[State, int]:
    """Acknowledge what ``delivered`` says, every millisecond, until slow start's first event; RTT samples are constant.

    Returns the last state, and how many packets are acknowledged.
    """
    state = connection.send()
    waited_us = 0
    for tick in range(round(start_rtt * RTT_US / TICK_US) + 1, round(until_rtt * RTT_US / TICK_US) + 1):
        waited_us += TICK_US
        packets = int(FIRST * delivered(tick * TICK_US / RTT_US)) - done
        if packets <= 0:
            continue
        state = connection.ack(packets, wait_us=waited_us, rtt_us=rtt_us)
        done += packets
        waited_us = 0
        if state.events:
            break
        connection.send()
    return state, done


@pytest.mark.parametrize(("rtts", "published"), [(1, 0.168), (1.5, 0.267), (2, 0.330), (2.5, 0.376)])
def test_the_theory_is_that_of_the_specification(rtts: float, published: float) -> None:
    assert difference(CAPACITY_RTT + rtts) == pytest.approx(published, abs=0.001)
    assert difference(CAPACITY_RTT) == pytest.approx(0, abs=1e-9)


@pytest.mark.parametrize("version", [2, 3, 4])
@pytest.mark.parametrize("threshold", [0, 10, 17, 22, 26, 30, 35, 40, 45])
def test_it_fires_where_the_theory_of_a_constant_rtt_says(start: Start, version: int, threshold: int) -> None:
    runner = start("search", version=version, threshold=threshold, drain=1)
    begin_us = runner.wait(0)
    state, _ = follow(runner.open(cwnd=FIRST), CAPACITY_RTT + 8)
    [event] = state.events
    rtts = (event.time_us - begin_us) / RTT_US
    wanted = threshold or THRESHOLDS[version]
    assert (event.event, event.reason, event.threshold) == ("exit", "delivery-rate", wanted * 10)
    assert event.quantity >= wanted * 10
    # Sixteen bits keep a few thousandths, ticks as many.
    assert event.quantity / 1000 == pytest.approx(difference(rtts), abs=0.012)
    # It is the first bin at which the theory has passed the threshold.
    assert difference(rtts) > wanted / 100 - 0.012
    assert difference(rtts - BIN_RTT - TICK_US / RTT_US) < wanted / 100 + 0.012
    assert state.ssthresh == state.cwnd


@pytest.mark.parametrize(("version", "after_rtt"), [(4, 1.45), (2, 2.2), (3, 2.2)])
def test_the_published_delays(start: Start, version: int, after_rtt: float) -> None:
    """26 % is passed 1.45 RTTs after the capacity, 35 % after 2.2; a bin is 0.35 RTT."""
    runner = start("search", version=version)
    begin_us = runner.wait(0)
    state, _ = follow(runner.open(cwnd=FIRST), CAPACITY_RTT + 8)
    late = (state.events[0].time_us - begin_us) / RTT_US - CAPACITY_RTT
    assert after_rtt - 0.05 <= late <= after_rtt + BIN_RTT + 0.05


def test_standard_slow_start_sees_nothing(start: Start) -> None:
    state, _ = follow(start("standard").open(cwnd=FIRST), CAPACITY_RTT + 8)
    assert state.events == []


@pytest.mark.parametrize("version", [2, 3, 4])
def test_doubling_alone_ends_nothing(start: Start, version: int) -> None:
    state, _ = follow(start("search", version=version, threshold=5).open(cwnd=FIRST), CAPACITY_RTT)
    assert (state.events, state.ssthresh) == ([], INFINITE)


@pytest.mark.parametrize(("bins", "blind"), [(15, False), (7, True)])
def test_an_rtt_beyond_the_extra_bins_blinds_it(start: Start, bins: int, blind: bool) -> None:
    """RTT samples are 2.6 initial RTTs from the capacity on: eight bins."""
    runner = start("search", version=4, extra_bins=bins, drain=1)
    connection = runner.open(cwnd=FIRST)
    state, done = follow(connection, CAPACITY_RTT)
    assert state.events == []
    state, _ = follow(connection, CAPACITY_RTT + 8, start_rtt=CAPACITY_RTT, done=done, rtt_us=RTT_US * 26 // 10)
    assert (state.events == []) is blind


def test_drain_sends_one_packet_for_sixteen(start: Start) -> None:
    runner = start("search", version=4)
    connection = runner.open(cwnd=FIRST)
    state, _ = follow(connection, CAPACITY_RTT + 8)
    assert [(event.event, event.reason) for event in state.events] == [("phase", "delivery-rate")]
    assert state.ssthresh == INFINITE
    before = connection.state()
    sent = delivered_packets = 0
    while not state.exits:
        state = connection.ack(10, wait_us=TICK_US, rtt_us=RTT_US)
        delivered_packets += 10
        sent += connection.send()["sent"]
    assert sent == pytest.approx(delivered_packets / 16, abs=2)
    assert [event.event for event in state.events] == ["drain-end", "exit"]
    # What three bins (1.05 RTTs) deliver at the capacity.
    target = FIRST * math.log(2) * 2**CAPACITY_RTT * 3 * BIN_RTT
    assert state.cwnd == state.ssthresh == pytest.approx(target, rel=0.03)
    assert before.cwnd > 2 * state.cwnd


@pytest.mark.parametrize("version", [2, 3, 4])
def test_roll_back_takes_what_the_whole_bins_of_two_rtts_delivered(start: Start, version: int) -> None:
    """Two RTTs are 5.71 bins. As in the draft and in the authors' modules that is five: 1.75 RTTs at the capacity."""
    stayed, rolled = (
        follow(start("search", version=version, drain=drain).open(cwnd=FIRST), CAPACITY_RTT + 8)[0] for drain in (1, 2)
    )
    expected = FIRST * math.log(2) * 2**CAPACITY_RTT * 5 * BIN_RTT
    assert stayed.cwnd - rolled.cwnd == pytest.approx(expected, rel=0.01)
    assert rolled.ssthresh == rolled.cwnd


@pytest.mark.parametrize("version", [2, 3, 4])
def test_the_exit_is_told_with_the_window_at_the_decision(start: Start, version: int) -> None:
    """Whether the window is kept or rolled back, the exit is the same; what is left is told by an event of its own."""
    stayed, rolled = (
        follow(start("search", version=version, drain=drain).open(cwnd=FIRST), CAPACITY_RTT + 8)[0] for drain in (1, 2)
    )
    [exit_] = stayed.events
    assert [event.event for event in rolled.events] == ["exit", "roll-back"]
    assert dataclasses.replace(rolled.events[0], ssthresh=exit_.ssthresh) == exit_
    assert rolled.events[0].ssthresh == rolled.ssthresh
    assert exit_.cwnd == stayed.cwnd > rolled.cwnd == rolled.events[1].cwnd
    assert rolled.events[1].quantity == exit_.quantity


def test_a_roll_back_leaves_an_initial_window(start: Start) -> None:
    """With a clamp on the window, two RTTs deliver more than it holds."""
    connection = start("search", version=2, threshold=1).open(cwnd=FIRST, clamp=60)
    state, _ = follow(connection, CAPACITY_RTT + 8)
    assert [(event.event, event.cwnd) for event in state.events] == [("exit", 60), ("roll-back", 10)]
    assert state.ssthresh == 10


def test_drain_ends_when_something_is_lost(start: Start) -> None:
    connection = start("search", version=4).open(cwnd=FIRST)
    follow(connection, CAPACITY_RTT + 8)
    state = connection.lose()
    assert [(event.event, event.reason) for event in state.events] == [("exit", "loss")]
    assert state.ssthresh < INFINITE


@pytest.mark.parametrize(("version", "pause_rtt", "begins_anew"), [(3, 0.6, False), (3, 1.5, True), (4, 1.5, False)])
def test_missed_bins(start: Start, version: int, pause_rtt: float, begins_anew: bool) -> None:
    """Before the capacity no ACK arrives for a while. Version 3 forgets if more than two bins pass at once."""
    runner = start("search", version=version, threshold=20, drain=1)
    connection = runner.open(cwnd=FIRST)
    _, done = follow(connection, CAPACITY_RTT)
    runner.wait(round(pause_rtt * RTT_US))
    pause_us = runner.wait(0)
    state, _ = follow(connection, CAPACITY_RTT + 8, start_rtt=CAPACITY_RTT, done=done)
    late = (state.events[0].time_us - pause_us) / RTT_US
    # Anew: thirteen bins of history, 4.55 RTTs, before anything can be decided.
    assert (late > 4.5) is begins_anew


@pytest.mark.parametrize("version", [2, 3, 4])
def test_a_timeout_begins_anew(start: Start, version: int) -> None:
    """What was delivered before says nothing: a constant rate after it is no exit until 4.55 RTTs are known."""
    connection = start("search", version=version, drain=1).open(cwnd=FIRST)
    follow(connection, CAPACITY_RTT + 1)
    connection.timeout()
    begin_us = connection.set("ssthresh", INFINITE).now_us
    for _ in range(300):
        connection.send()
        state = connection.ack(1, wait_us=RTT_US // 20, rtt_us=RTT_US)
        if state.events:
            break
    [event] = state.events
    assert (event.event, event.reason) == ("exit", "delivery-rate")
    assert event.time_us - begin_us > 4.55 * RTT_US


def test_without_memory_it_is_standard_slow_start(start: Start) -> None:
    runner = start("search")
    runner.fail_allocations()
    connection = runner.open(cwnd=FIRST)
    runner.fail_allocations(False)
    state, _ = follow(connection, CAPACITY_RTT + 4)
    assert (state.events, state.ssthresh) == ([], INFINITE)


@pytest.mark.parametrize(
    ("name", "value"),
    [("version", "1"), ("version", "5"), ("threshold", "101"), ("drain", "4"), ("extra_bins", "1"), ("version", "x")],
)
def test_nonsense_is_refused(start: Start, name: str, value: str) -> None:
    state = start("search").try_set(name, value)
    assert state.error < 0
    assert any(name in message for message in state.messages)


def fast(start: Start, version: int, rtt_us: int) -> Course:
    connection = start("search", version=version, drain=1).open(handshake_rtt_us=rtt_us)
    return connection.path(
        bits_per_second=10_000_000_000,
        interface_bits_per_second=0,
        rtt_us=rtt_us,
        buffer_packets=4_000_000,
        duration_us=14_000_000,
        until_exit=1,
    )


@pytest.mark.parametrize("version", [2, 3, 4])
def test_a_fast_long_path(lived: Lived, version: int) -> None:
    """10 Gbit/s and 300 ms: windows of more than a million packets, and bytes beyond 32 bits."""

    def life(start: Start) -> None:
        [event] = fast(start, version, 300_000).exits
        assert event.reason == "delivery-rate"
        assert event.cwnd > 10_000_000_000 * 0.3 / 8 / 1514

    lived("search", life)


def test_a_receiver_that_stops_the_doubling_is_no_capacity_for_version_4(lived: Lived) -> None:
    """At 600 ms the harness' window of 2 GiB is full before the queue is long: what is sent doubles no more either."""

    def life(start: Start) -> None:
        assert [event.reason for event in fast(start, 2, 600_000).exits] == ["delivery-rate"]
        assert [event.reason for event in fast(start, 3, 600_000).exits] == ["delivery-rate"]
        assert fast(start, 4, 600_000).exits == []

    lived("search", life)


def test_a_pause_of_half_the_clock_does_not_blind_it(start: Start) -> None:
    """The low half of the clock wraps after 71 minutes; 40 later the end of a bin seems to lie ahead."""
    connection = start("search").open(slow_start_after_idle=0)
    connection.round(rtt_us=102_000)
    connection.runner.wait(40 * 60 * 1_000_000)
    course = connection.path(until_exit=1, buffer_packets=8000)
    assert [each.reason for each in course.exits] == ["delivery-rate"]
