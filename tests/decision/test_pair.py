# SPDX-License-Identifier: Apache-2.0
"""Packet pair and Swift-Start: slopes through three ACKs, exactly."""

from __future__ import annotations

import pytest

from tests.decision.conftest import Start
from tests.decision.runner import INFINITE, Connection, State

RTT_US = 100_000
MSS = 1000


def window(connection: Connection, gaps_us: list[int], packets: list[int] | None = None) -> State:
    """The first window: its first ACK after an RTT, then one after each gap. Returns the last state with an event."""
    connection.send()
    found = state = connection.ack((packets or [1])[0], wait_us=RTT_US, rtt_us=RTT_US)
    for index, gap_us in enumerate(gaps_us):
        state = connection.ack(packets[index + 1] if packets else 1, wait_us=gap_us, rtt_us=RTT_US)
        if state.events:
            found = state
    return found if found.events else state


def test_ten_equal_gaps(start: Start) -> None:
    """1000 bytes every 100 us are 80 Mbit/s, and 1000 packets of them an RTT of 100 ms."""
    state = window(start("pair").open(cwnd=10, mss_bytes=MSS), [100] * 9)
    [event] = state.events
    assert (event.event, event.reason, event.quantity, event.threshold) == ("estimate", "packet-pair", 80_000, 8)
    assert (event.ssthresh, state.ssthresh, state.cwnd) == (1000, 1000, 20)


@pytest.mark.parametrize(
    ("gaps_us", "kbits"),
    [
        ([300, 300, 100, 100, 300, 300, 300, 300, 300], 80_000),  # the closest three, in the middle
        ([100, 300, 300, 300, 300, 300, 300, 100, 100], 80_000),  # at the end
        # x = 0, 50, 250: slope = (3*(50*1 + 250*2) - 300*3) / (3*(2500 + 62500) - 90000) = 750 / 105000 bytes/ns
        ([50, 200, 400, 400, 400, 400, 400, 400, 400], 57_142),
    ],
)
def test_the_closest_three_decide(start: Start, gaps_us: list[int], kbits: int) -> None:
    [event] = window(start("pair").open(cwnd=10, mss_bytes=MSS), gaps_us).events
    assert event.quantity == pytest.approx(kbits, abs=8)


def test_delayed_acks_count_what_they_acknowledge(start: Start) -> None:
    state = window(start("pair").open(cwnd=10, mss_bytes=MSS), [200] * 4, [2] * 5)
    assert [(event.quantity, event.threshold) for event in state.events] == [(80_000, 3)]


def test_the_mean_of_all(start: Start) -> None:
    """Slopes of 80, 80 and 40 Mbit/s (and what lies between them)."""
    state = window(start("pair", average=1).open(cwnd=5, mss_bytes=MSS), [100, 100, 100, 100])
    assert [event.quantity for event in state.events] == [80_000]
    mixed = window(start("pair", average=1).open(cwnd=4, mss_bytes=MSS), [100, 100, 200])
    # Two sets: 80 000, and x = 0, 100, 300: 3*(100 + 600) - 400*3 over 3*(10000 + 90000) - 160000.
    assert mixed.events[0].quantity == pytest.approx((80_000 + 900 / 140_000 * 8_000_000) / 2, abs=8)


def test_compressed_acks_are_left_out(start: Start) -> None:
    gaps = [1, 1, 100, 100, 100, 100, 100, 100, 100]
    default, patient = (
        window(start("pair", min_span_us=span).open(cwnd=10, mss_bytes=MSS), gaps).events[0] for span in (1, 150)
    )
    assert default.quantity == 8_000_000
    assert patient.quantity == 80_000


def test_the_first_acks_of_a_window_can_be_left_out(start: Start) -> None:
    """An idle token bucket lets the second packet pass with the first: gaps of 0, 200 and 200 us."""
    gaps = [0, 200, 200]
    deceived, patient = (
        window(start("pair", skip=skip).open(cwnd=4, mss_bytes=MSS), gaps).events[0] for skip in (0, 1)
    )
    assert deceived.quantity == 60_000  # x = 0, 0, 200: half as much again
    assert (patient.quantity, patient.threshold) == (40_000, 1)


def test_each_window_is_skipped_anew(start: Start) -> None:
    connection = start("pair", skip=1).open(cwnd=3, mss_bytes=MSS)
    assert window(connection, [100, 100]).events == []  # two count: too few
    state = window(connection, [0, 100, 100, 100, 100])  # six packets
    assert [event.quantity for event in state.events] == [80_000]


def test_acks_at_the_same_time_are_no_pair(start: Start) -> None:
    state = window(start("pair").open(cwnd=10, mss_bytes=MSS), [0] * 9)
    assert (state.events, state.ssthresh) == ([], INFINITE)


def test_the_estimate_has_a_cap_and_a_floor(start: Start) -> None:
    assert window(start("pair", max_ssthresh=300).open(cwnd=10, mss_bytes=MSS), [100] * 9).ssthresh == 300
    assert window(start("pair").open(cwnd=3, mss_bytes=MSS), [900_000] * 2).ssthresh == 2


def test_a_window_of_two_acks_is_not_enough_and_the_next_is_asked(start: Start) -> None:
    connection = start("pair").open(cwnd=2, mss_bytes=MSS)
    assert window(connection, [100]).events == []
    state = window(connection, [100] * 3)
    assert [event.event for event in state.events] == ["estimate"]


def test_it_estimates_once(start: Start) -> None:
    connection = start("pair").open(cwnd=10, mss_bytes=MSS)
    assert window(connection, [100] * 9).events
    assert window(connection, [10] * 19).events == []
    connection.send()
    state = connection.timeout()
    assert [event.reason for event in state.events] == ["rto"]
    assert state.ssthresh == 20
    assert window(connection, []).events == []


def test_standard_slow_start_estimates_nothing(start: Start) -> None:
    state = window(start("standard").open(cwnd=10, mss_bytes=MSS), [100] * 9)
    assert (state.events, state.ssthresh) == ([], INFINITE)


def test_a_known_threshold_is_replaced(start: Start) -> None:
    connection = start("pair").open(cwnd=10, mss_bytes=MSS, ssthresh=500)
    assert window(connection, [100] * 9).ssthresh == 1000


def test_a_volley_of_four_decides_the_window(start: Start) -> None:
    connection = start("pair", volley=4).open(cwnd=10, mss_bytes=MSS)
    assert connection.state().cwnd == 4
    unpaced = connection.state()["max_pacing_rate"]
    state = window(connection, [100] * 3)
    assert [(event.event, event.reason, event.cwnd) for event in state.events] == [
        ("estimate", "packet-pair", 7),
        ("jump", "packet-pair", 1000),
        ("exit", "packet-pair", 1000),
    ]
    assert (state.cwnd, state.ssthresh) == (1000, 1000)
    assert state["max_pacing_rate"] == 10_000_000
    connection.send()
    # The first of the flight is acknowledged: it is out, and ACKs set the pace.
    assert connection.ack(1, wait_us=RTT_US, rtt_us=RTT_US)["max_pacing_rate"] == unpaced


def test_a_loss_ends_the_pacing(start: Start) -> None:
    connection = start("pair", volley=4).open(cwnd=10, mss_bytes=MSS)
    unpaced = connection.state()["max_pacing_rate"]
    window(connection, [100] * 3)
    connection.send()
    assert connection.lose()["max_pacing_rate"] == unpaced


def test_a_connection_that_joins_is_left_alone(start: Start) -> None:
    connection = start("pair", volley=4).open("standard_reno", cwnd=10, mss_bytes=MSS)
    connection.round(rtt_us=RTT_US)
    state = connection.switch("pair_reno")
    assert (state.cwnd, state["joined"]) == (20, 1)
    assert window(connection, [100] * 19).events == []


@pytest.mark.parametrize(
    ("name", "value"), [("volley", "65"), ("average", "2"), ("min_span_us", "0"), ("skip", "65"), ("paced", "-1")]
)
def test_nonsense_is_refused(start: Start, name: str, value: str) -> None:
    assert start("pair").try_set(name, value).error < 0


@pytest.mark.parametrize(
    ("clock_us", "kbits"),
    [
        (1, 80_000),
        (1000, 12_000),  # one tick between the ninth and the tenth ACK: x = 0, 0, 1000 and 0, 1000, 1000
        (10_000, None),  # all within a tick
    ],
)
def test_a_coarse_clock(start: Start, clock_us: int, kbits: int | None) -> None:
    """1000 bytes every 100 us, of which a clock of a millisecond sees groups of ten."""
    runner = start("pair", clock_us=clock_us)
    runner.clock(1_000_000 - RTT_US + 150)
    state = window(runner.open(cwnd=10, mss_bytes=MSS), [100] * 9)
    estimates = [event.quantity for event in state.events if event.event == "estimate"]
    assert estimates == ([] if kbits is None else [pytest.approx(kbits, rel=0.01)])


def test_a_coarse_clock_measures_whole_ticks_of_rtt(start: Start) -> None:
    runner = start("pair", clock_us=10_000, min_span_us=1)
    runner.clock(1_000_000)
    connection = runner.open(cwnd=4, mss_bytes=MSS)
    state = window(connection, [10_000] * 3)
    [event] = state.events
    # 1000 bytes in 10 ms, over an RTT of 100 ms: ten packets.
    assert (event.quantity, event.ssthresh) == (800, 10)
