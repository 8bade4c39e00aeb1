# SPDX-License-Identifier: Apache-2.0
"""Goodput measures on hand-made traces: 20 Mbit/s, 40 ms, so a full pipe moves 66.05 segments a round trip."""

from __future__ import annotations

import pytest

from howdah.measure import throughput
from howdah.measure.capacity import FairCapacity
from howdah.measure.trace import FlowTrace
from tests.unit.trace_factory import MS, MSS, make_trace

# One segment of goodput a millisecond.
CAPACITY = MSS * 8 * 1000.0


def capacity(*spans_ms: tuple[int, int]) -> FairCapacity:
    return FairCapacity(CAPACITY, [(start * MS, stop * MS) for start, stop in spans_ms])


def steady(
    from_ms: int, until_ms: int, per_ms: float = 1.0, silence: tuple[int, int] = (0, 0), stop_ms: int | None = None
) -> FlowTrace:
    """One ACK a millisecond for ``per_ms`` segments; none arrive in ``silence``."""
    times = [time for time in range(from_ms, until_ms + 1) if not silence[0] <= time < silence[1]]
    una = [int(index * per_ms) for index in range(len(times))]
    return make_trace(
        [float(time) for time in times], una, [value + 40 for value in una], stop_ms=stop_ms or until_ms, srtt_ms=40
    )


def test_fair_capacity_is_shared_by_the_flows_active_at_each_instant() -> None:
    shared = capacity((0, 1000), (500, 1000))
    assert shared.fair_bytes(0, 500 * MS) == pytest.approx(500 * MSS)
    assert shared.fair_bytes(500 * MS, 1000 * MS) == pytest.approx(250 * MSS)
    assert shared.fair_bytes(400 * MS, 600 * MS) == pytest.approx(150 * MSS)
    assert shared.whole_bytes(0, 1000 * MS) == pytest.approx(1000 * MSS)


def test_outside_all_flows_the_whole_capacity_counts() -> None:
    alone = capacity((100, 200))
    assert alone.fair_bytes(0, 100 * MS) == pytest.approx(100 * MSS)
    assert alone.fair_bytes(200 * MS, 300 * MS) == pytest.approx(100 * MSS)
    assert FairCapacity(CAPACITY, []).fair_bytes(0, MS) == pytest.approx(MSS)


def test_time_to_90_percent_is_the_start_of_the_first_full_window() -> None:
    # Half the capacity until 400 ms, all of it afterwards. A window of 40 ms from t holds 20 + (t + 40 - 400) / 2 above
    # half while it straddles: 36 segments are first reached by the window that begins at 392 ms.
    slow = [float(time) for time in range(400)]
    fast = [float(time) for time in range(400, 1000)]
    una = [int(time / 2) for time in slow] + [200 + int(time) - 400 for time in fast]
    trace = make_trace(slow + fast, una, [value + 40 for value in una], stop_ms=1000)
    assert throughput.time_to_share_s(trace, capacity((0, 1000))) == pytest.approx(0.392, abs=0.003)
    assert throughput.time_to_share_s(trace, capacity((0, 1000)), share=0.45) == pytest.approx(0.0, abs=0.002)


def test_the_window_is_the_rtt_in_effect_not_the_bare_one() -> None:
    """With 80 ms of RTT a flight comes in bursts of 40 ms; a window of 40 ms would call every burst full speed."""
    times = [float(time) for cycle in range(0, 800, 80) for time in range(cycle, cycle + 40)]
    una = list(range(len(times)))
    trace = make_trace(times, una, [value + 40 for value in una], srtt_ms=80, stop_ms=800)
    assert throughput.time_to_share_s(trace, capacity((0, 800))) is None
    assert throughput.blackout_s(trace, capacity((0, 800))) == 0


def test_a_flow_that_never_gets_there_has_no_time() -> None:
    half = steady(40, 1000, per_ms=0.5)
    assert throughput.time_to_share_s(half, capacity((0, 1000))) is None
    # Half the capacity is all of a fair share of two flows.
    assert throughput.time_to_share_s(half, capacity((0, 1000), (0, 1000))) is not None
    assert throughput.time_to_share_s(make_trace([], [], []), capacity((0, 1000))) is None


def test_blackouts_are_windows_without_goodput() -> None:
    assert throughput.blackout_s(steady(40, 1000), capacity((0, 1000))) == 0
    # Windows begin at 40 ms and every 40 ms; 10 of them lie in the silence from 200 to 601 ms.
    assert throughput.blackout_s(steady(40, 1000, silence=(200, 601)), capacity((0, 1000))) == pytest.approx(0.4)


def test_the_end_of_the_flow_ends_the_blackout() -> None:
    stopped = steady(40, 400, stop_ms=400)
    assert throughput.blackout_s(stopped, capacity((0, 1000))) == 0
    silent = steady(40, 400, stop_ms=1000)
    # The last ACK comes at 400 ms; 14 whole windows of 40 ms lie between 440 and 1000 ms.
    assert throughput.blackout_s(silent, capacity((0, 1000))) == pytest.approx(14 * 0.04, abs=0.041)


def test_a_flow_that_never_got_going_has_no_blackouts_to_tell() -> None:
    slow = make_trace([40, 80, 120, 160], una=[0, 0, 0, 0], nxt=[1, 1, 1, 1], stop_ms=400)
    assert throughput.blackout_s(slow, capacity((0, 1000))) is None
    assert throughput.blackout_s(make_trace([], [], []), capacity((0, 1000))) is None


def test_the_ramp_is_no_blackout() -> None:
    """One segment every second window of 40 ms, then full speed: the empty windows at the beginning do not count."""
    ramp = [40.0 + 80 * index for index in range(5)]
    fast = [float(time) for time in range(440, 1000)]
    una = list(range(5)) + [5 + index for index in range(len(fast))]
    trace = make_trace(ramp + fast, una, [value + 40 for value in una], stop_ms=1000)
    assert throughput.blackout_s(trace, capacity((0, 1000))) == 0


def test_goodput_and_utilisation_count_acknowledged_bytes() -> None:
    trace = steady(0, 1000)
    assert throughput.goodput_bits_per_second(trace, 100 * MS, 600 * MS) == pytest.approx(CAPACITY)
    assert throughput.goodput_bits_per_second(trace, 5, 5) is None
    half = steady(0, 1000, per_ms=0.5)
    assert throughput.utilisation([half, half], capacity((0, 1000)), 100 * MS, 600 * MS) == pytest.approx(1.0)
    assert throughput.utilisation([half], capacity((0, 1000)), 100 * MS, 600 * MS) == pytest.approx(0.5)
    assert throughput.utilisation([half], capacity((0, 1000)), 600 * MS, 600 * MS) is None


def test_completion_is_the_ack_of_the_last_byte() -> None:
    trace = make_trace([140, 180, 220, 260], una=[0, 10, 30, 70], nxt=[10, 30, 70, 70], start_ms=100)
    assert throughput.completion_time_s(trace, 70 * MSS) == pytest.approx(0.12)
    assert throughput.completion_time_s(trace, 71 * MSS) is None
    assert throughput.completion_time_s(make_trace([], [], []), 1) is None


@pytest.mark.parametrize(
    ("shares", "index"),
    [
        ([1.0, 1.0], 1.0),
        ([1.0, 0.0], 0.5),
        ([3.0, 1.0], 0.8),
        ([1.0, 1.0, 1.0, 1.0], 1.0),
        ([5.0], None),
        ([0.0, 0.0], None),
    ],
)
def test_jain_index(shares: list[float], index: float | None) -> None:
    found = throughput.jain_index(shares)
    assert found is None if index is None else found == pytest.approx(index)


def test_the_common_span_is_when_all_are_active() -> None:
    first = make_trace([40], [0], [1], start_ms=0, stop_ms=1000)
    second = make_trace([540], [0], [1], start_ms=500, stop_ms=800)
    third = make_trace([940], [0], [1], start_ms=900, stop_ms=1000)
    assert throughput.common_span_ns([first, second]) == (500 * MS, 800 * MS)
    assert throughput.common_span_ns([second, third]) is None
