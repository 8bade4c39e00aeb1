# SPDX-License-Identifier: Apache-2.0
"""Where and why a flow leaves slow start, on hand-made traces."""

from __future__ import annotations

import dataclasses
import math

import pytest

from howdah.measure import exit as leaving
from howdah.measure.exit import Detection, Exit, detection, exit_cause, find_exit
from howdah.measure.trace import FlowTrace
from tests.unit.trace_factory import make_counters, make_flow, make_info, make_trace

INF = math.inf


def hystart_trace(kernel_algorithm: str = "cubic") -> FlowTrace:
    """The ACK at 42 ms makes HyStart set ssthresh to the window of 16; the record at 43 ms shows it."""
    return make_trace(
        [40, 41, 42, 43, 44],
        una=[0, 2, 4, 6, 8],
        nxt=[10, 14, 18, 22, 24],
        cwnd=[10, 14, 16, 17, 17],
        ssthresh=[INF, INF, INF, 16, 16],
        flow=make_flow(kernel_algorithm=kernel_algorithm),
    )


def loss_trace(cwnd_after: int = 40) -> FlowTrace:
    """Slow start to 40 segments; the ACK at 43 ms enters recovery with ssthresh 28."""
    return make_trace(
        [40, 41, 42, 43, 44, 45],
        una=[0, 20, 20, 20, 20, 20],
        nxt=[40, 60, 60, 60, 60, 61],
        cwnd=[20, 40, 40, 40, cwnd_after, 39],
        ssthresh=[INF, INF, INF, INF, 28, 28],
    )


def counters_at_exit(**growth: int) -> list[tuple[float, str | None, str, int]]:
    names = {
        "train": "TcpExtTCPHystartTrainDetect",
        "train_cwnd": "TcpExtTCPHystartTrainCwnd",
        "delay": "TcpExtTCPHystartDelayDetect",
        "delay_cwnd": "TcpExtTCPHystartDelayCwnd",
        "timeouts": "TcpExtTCPTimeouts",
        "retransmitted": "TcpRetransSegs",
    }
    readings: list[tuple[float, str | None, str, int]] = [(0, "s1", name, 0) for name in names.values()]
    return readings + [(500, "s1", name, growth.get(key, 0)) for key, name in names.items()]


def cause(trace: FlowTrace, readings: list[tuple[float, str | None, str, int]], **info: list[int]) -> str:
    counters = make_counters(readings)
    found = find_exit(trace)
    assert found is not None
    detected = detection(counters, "s1", found.time_ns, int(trace.time_ns[found.record]))
    times = [0.0, 1000.0]
    return exit_cause(trace, found, detected, counters, make_info(times if info else [], **info))


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
    """Packet pair: infinite ssthresh becomes a finite estimate while the flow goes on in slow start."""
    trace = make_trace(
        [40, 41, 42, 43],
        una=[0, 10, 30, 40],
        nxt=[10, 30, 60, 80],
        cwnd=[10, 20, 40, 64],
        ssthresh=[INF, 64, 64, 64],
    )
    found = find_exit(trace)
    assert found is not None
    assert (found.record, found.cwnd_packets, found.from_initial_ssthresh) == (3, 64, True)


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


def test_the_ack_train_counter_names_the_cause() -> None:
    assert cause(hystart_trace(), counters_at_exit(train=1, train_cwnd=16)) == leaving.ACK_TRAIN


def test_the_delay_counter_names_the_cause() -> None:
    assert cause(hystart_trace(), counters_at_exit(delay=1, delay_cwnd=16)) == leaving.DELAY


@pytest.mark.parametrize(
    ("growth", "expected"),
    [
        ({"train": 1, "train_cwnd": 16, "delay": 1, "delay_cwnd": 900}, leaving.ACK_TRAIN),
        ({"train": 1, "train_cwnd": 900, "delay": 1, "delay_cwnd": 17}, leaving.DELAY),
        ({"train": 1, "train_cwnd": 900, "delay": 1, "delay_cwnd": 800}, leaving.UNKNOWN),
    ],
)
def test_two_flows_of_one_host_are_told_apart_by_their_windows(growth: dict[str, int], expected: str) -> None:
    assert cause(hystart_trace(), counters_at_exit(**growth)) == expected


def test_a_counter_that_moved_at_another_time_says_nothing() -> None:
    late = [(time + 1000, node, name, value) for time, node, name, value in counters_at_exit(train=1, train_cwnd=16)]
    early = counters_at_exit()
    assert cause(hystart_trace(), early + late) == leaving.UNKNOWN


def test_retransmissions_make_it_a_loss() -> None:
    assert cause(loss_trace(), counters_at_exit(retransmitted=5)) == leaving.LOSS
    assert cause(loss_trace(), counters_at_exit(), total_retrans_packets=[0, 3]) == leaving.LOSS


def test_a_cut_without_retransmission_is_a_congestion_signal() -> None:
    assert cause(loss_trace(), counters_at_exit(), total_retrans_packets=[0, 0]) == leaving.CONGESTION_SIGNAL


def test_vegas_cuts_its_window_by_what_it_thinks_is_queued() -> None:
    cut = loss_trace()
    vegas = dataclasses.replace(cut, flow=dataclasses.replace(cut.flow, kernel_algorithm="vegas"))
    assert cause(vegas, counters_at_exit(), total_retrans_packets=[0, 0]) == leaving.QUEUE_ESTIMATE
    assert cause(vegas, counters_at_exit(), total_retrans_packets=[0, 3]) == leaving.LOSS


def test_a_collapsed_window_and_a_timeout_are_an_rto() -> None:
    assert cause(loss_trace(cwnd_after=1), counters_at_exit(timeouts=1, retransmitted=9)) == leaving.RTO
    # The timer of another moment does not make a fast retransmission an RTO.
    assert cause(loss_trace(), counters_at_exit(timeouts=1, retransmitted=9)) == leaving.LOSS


def test_bbr_leaves_by_entering_drain() -> None:
    assert cause(hystart_trace("bbr"), counters_at_exit()) == leaving.BBR_DRAIN


def test_bbr_that_was_held_back_left_for_another_reason() -> None:
    window = cause(hystart_trace("bbr"), counters_at_exit(), busy_time_us=[0, 1000], rwnd_limited_us=[0, 600])
    assert window == leaving.RECEIVE_WINDOW


def test_an_exit_nobody_explains_is_unknown() -> None:
    assert cause(hystart_trace("mine"), counters_at_exit()) == leaving.UNKNOWN


def test_limits_need_more_than_a_tenth_of_the_busy_time() -> None:
    little = make_info([0, 100], busy_time_us=[0, 1000], rwnd_limited_us=[0, 100])
    much = make_info([0, 100], busy_time_us=[0, 1000], rwnd_limited_us=[0, 101])
    application = make_info([10, 20, 30], app_limited=[0, 1, 1])
    assert leaving.limit_of(little, 0, 10**9) is None
    assert leaving.limit_of(much, 0, 10**9) == leaving.RECEIVE_WINDOW
    assert leaving.limit_of(application, 0, 10**9) == leaving.APPLICATION
    assert leaving.limit_of(make_info([]), 0, 10**9) is None
