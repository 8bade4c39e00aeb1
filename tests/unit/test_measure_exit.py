# SPDX-License-Identifier: Apache-2.0
"""When and with which window a flow leaves slow start, on hand-made traces."""

from __future__ import annotations

import math

import pytest

from howdah.measure.cause import Detection, exit_cause
from howdah.measure.exit import Exit, find_exit
from howdah.measure.trace import FlowTrace
from tests.unit.test_measure_cause import hystart_trace
from tests.unit.trace_factory import make_counters, make_info, make_trace

INF = math.inf


def loss_trace(cwnd_after: int = 40) -> FlowTrace:
    """Slow start to 40 segments; the ACK at 43 ms enters recovery with ssthresh 28."""
    return make_trace(
        [40, 41, 42, 43, 44, 45],
        una=[0, 20, 20, 20, 20, 20],
        nxt=[40, 60, 60, 60, 60, 61],
        cwnd=[20, 40, 40, 40, cwnd_after, 39],
        ssthresh=[INF, INF, INF, INF, 28, 28],
    )


def test_exit_is_the_ack_before_the_first_finite_ssthresh_and_cwnd_the_state_after_it() -> None:
    assert find_exit(hystart_trace()) == Exit(
        record=3,
        time_ns=42_000_000,
        cwnd_packets=17,
        ssthresh_packets=16,
        reduced=False,
        from_initial_ssthresh=False,
    )


def test_after_a_loss_the_window_is_the_one_before_it_was_cut() -> None:
    found = find_exit(loss_trace())
    assert found is not None
    assert (found.time_ns, found.cwnd_packets, found.ssthresh_packets, found.reduced) == (43_000_000, 40, 28, True)


@pytest.mark.parametrize(
    "trace",
    [
        make_trace([], [], []),
        make_trace([40], [0], [10]),
        make_trace([40, 41, 42], [0, 2, 4], [10, 14, 18]),
    ],
)
def test_no_exit_without_records_or_while_ssthresh_is_infinite(trace: FlowTrace) -> None:
    assert find_exit(trace) is None


def test_a_finite_initial_ssthresh_is_left_when_cwnd_reaches_it() -> None:
    # tcp_probe shows max(ssthresh, 3/4 cwnd), so the threshold drifts up once the window is above it.
    trace = make_trace(
        [40, 41, 42, 43],
        una=[0, 10, 30, 40],
        nxt=[10, 30, 60, 80],
        cwnd=[10, 20, 32, 48],
        ssthresh=[32, 32, 32, 36],
    )
    found = find_exit(trace)
    assert found is not None
    assert (found.record, found.cwnd_packets, found.from_initial_ssthresh) == (2, 32, True)
    assert exit_cause(trace, found, Detection(0, 0, 0, 0), make_counters([]), make_info([])) == "initial-ssthresh"


def test_a_threshold_that_keeps_ahead_of_the_window_is_no_exit_until_the_window_reaches_it_for_good() -> None:
    """Adaptive Start: ssthresh starts finite and is raised from an estimate, twice after the window had reached it."""
    trace = make_trace(
        [40, 41, 42, 43, 44, 45, 46],
        una=[0, 10, 30, 40, 60, 80, 90],
        nxt=[10, 30, 60, 80, 90, 99, 99],
        cwnd=[20, 32, 33, 50, 51, 60, 61],
        ssthresh=[32, 32, 50, 50, 60, 60, 60],
    )
    found = find_exit(trace)
    assert found is not None
    assert (found.record, found.cwnd_packets, found.ssthresh_packets, found.reduced) == (5, 60, 60, False)


def test_a_threshold_that_rises_with_the_window_is_a_startup_and_its_shadow_is_not() -> None:
    """Each ACK raises ssthresh to the window, up to 60; then ssthresh is shown as 3/4 of a window that grows on."""
    trace = make_trace(
        [40, 41, 42, 43, 44, 45],
        una=[0, 10, 30, 40, 60, 80],
        nxt=[10, 30, 60, 80, 90, 99],
        cwnd=[20, 32, 40, 60, 88, 100],
        ssthresh=[32, 32, 40, 60, 66, 75],
    )
    found = find_exit(trace)
    assert found is not None
    assert (found.record, found.cwnd_packets) == (3, 60)


def test_a_raised_threshold_takes_the_exit_back() -> None:
    trace = make_trace([40, 41, 42], una=[0, 10, 30], nxt=[10, 30, 60], cwnd=[20, 32, 33], ssthresh=[32, 32, 100])
    assert find_exit(trace) is None


def test_a_loss_after_the_threshold_was_raised_is_where_the_startup_ends() -> None:
    trace = make_trace(
        [40, 41, 42, 43],
        una=[0, 10, 30, 30],
        nxt=[10, 30, 60, 60],
        cwnd=[20, 32, 40, 40],
        ssthresh=[32, 32, 100, 20],
    )
    found = find_exit(trace)
    assert found is not None
    assert (found.record, found.cwnd_packets, found.reduced, found.from_initial_ssthresh) == (3, 40, True, False)


def test_a_threshold_set_above_the_window_is_reached_later() -> None:
    """Packet pair: infinite ssthresh becomes a finite estimate while the flow goes on in slow start. It is not the
    threshold that the connection began with."""
    trace = make_trace(
        [40, 41, 42, 43],
        una=[0, 10, 30, 40],
        nxt=[10, 30, 60, 80],
        cwnd=[10, 20, 40, 64],
        ssthresh=[INF, 64, 64, 64],
    )
    found = find_exit(trace)
    assert found is not None
    assert (found.record, found.cwnd_packets) == (3, 64)
    assert (found.from_initial_ssthresh, found.from_own_threshold) == (False, True)
    assert exit_cause(trace, found, Detection(0, 0, 0, 0), make_counters([]), make_info([])) == "own-threshold"


def test_a_threshold_raised_again_after_a_loss_changes_no_exit() -> None:
    trace = make_trace(
        [40, 41, 42, 43, 44],
        una=[0, 20, 20, 40, 60],
        nxt=[40, 60, 60, 80, 90],
        cwnd=[40, 40, 20, 21, 60],
        ssthresh=[INF, 28, 28, 60, 60],
    )
    found = find_exit(trace)
    assert found is not None
    assert (found.record, found.cwnd_packets, found.reduced) == (1, 40, True)


@pytest.mark.parametrize(("record", "cause_ms"), [(0, 40), (1, 40), (2, 41)])
def test_the_ack_that_caused_the_exit_is_the_one_before_where_there_is_one(record: int, cause_ms: int) -> None:
    trace = make_trace(
        [40, 41, 42],
        una=[0, 10, 20],
        nxt=[10, 20, 30],
        cwnd=[10, 11, 12],
        ssthresh=[INF] * record + [10.0] * (3 - record),
    )
    found = find_exit(trace)
    assert found is not None
    assert (found.record, found.time_ns) == (record, cause_ms * 1_000_000)


def test_linear_growth_beyond_a_limit_is_still_slow_start() -> None:
    """Limited slow start: max_ssthresh bends growth, the threshold stays infinite until a loss."""
    trace = make_trace(
        [40, 41, 42, 43], una=[0, 10, 30, 40], nxt=[10, 30, 60, 80], cwnd=[50, 100, 150, 200], ssthresh=[INF] * 4
    )
    assert find_exit(trace) is None


def test_a_loss_below_a_finite_initial_ssthresh_is_a_loss() -> None:
    trace = make_trace(
        [40, 41, 42],
        una=[0, 10, 10],
        nxt=[20, 40, 40],
        cwnd=[20, 40, 40],
        ssthresh=[100, 100, 28],
    )
    found = find_exit(trace)
    assert found is not None
    assert (found.record, found.from_initial_ssthresh, found.reduced) == (2, False, True)
