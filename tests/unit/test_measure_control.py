# SPDX-License-Identifier: Apache-2.0
"""Start-ups like BBR's, and controls that never set ssthresh: hand-made traces and readings, every way out."""

from __future__ import annotations

import dataclasses
import math
from typing import Any

import pytest

from howdah.measure.control import gains_of, is_bbr, paces_itself
from howdah.measure.exit import find_exit
from howdah.measure.exit_rows import exit_rows, find_startup
from howdah.measure.growth import growth_end, in_window
from howdah.measure.row import Sheet
from howdah.measure.sampled import Samples
from howdah.measure.trace import FlowTrace
from tests.unit.trace_factory import MSS, make_counters, make_flow, make_info, make_measured, make_trace

INF = math.inf
HIGH, DRAIN, CRUISE, UP = 739, 88, 256, 320  # gains of BBR in 256ths


def rounds_of(cwnd: list[int], ssthresh: list[float] | None = None, **flow: Any) -> FlowTrace:
    """One ACK a round trip of 40 ms, from 40 ms on; each flight is the window."""
    una = [sum(cwnd[:number]) for number in range(len(cwnd))]
    return make_trace(
        [40.0 * (number + 1) for number in range(len(cwnd))],
        una=una,
        nxt=[begin + window for begin, window in zip(una, cwnd, strict=True)],
        cwnd=cwnd,
        ssthresh=ssthresh,
        flow=make_flow(**{"kernel_algorithm": "mine", **flow}),
        stop_ms=40.0 * (len(cwnd) + 1),
    )


def told(gains: list[int]) -> Samples:
    """A reading 10 ms before each ACK: what it shows is the state that the record of that ACK has."""
    return make_info([40.0 * (number + 1) - 10 for number in range(len(gains))], bbr_pacing_gain_256ths=gains)


def rates(pacing: list[int], delivered: list[int], cwnd: list[int], rtt_us: int = 40_000) -> Samples:
    """The same without an answer of the socket: rates in segments a round trip."""
    a_segment = MSS * 1_000_000 // rtt_us
    return make_info(
        [40.0 * (number + 1) - 10 for number in range(len(pacing))],
        pacing_rate_bytes_per_second=[rate * a_segment for rate in pacing],
        delivery_rate_bytes_per_second=[rate * a_segment for rate in delivered],
        cwnd_packets=cwnd,
        unacked_packets=cwnd,
        mss_bytes=[MSS] * len(pacing),
        rtt_us=[rtt_us] * len(pacing),
    )


WINDOWS = [10, 20, 40, 80, 160, 230, 230, 230, 160, 160]
DRAINED = [INF] * 8 + [80.0] * 2
GAINS = [HIGH] * 8 + [DRAIN, CRUISE]


@pytest.mark.parametrize("name", ["mybbr", "bbrx", "nobody", "bbr"])
def test_the_socket_says_what_it_is_whatever_it_is_called(name: str) -> None:
    trace = rounds_of(WINDOWS, DRAINED, kernel_algorithm=name)
    assert is_bbr(trace, told(GAINS))
    found = find_exit(trace, told(GAINS))
    assert found is not None
    assert (found.record, found.time_ns, found.paced) == (8, 320_000_000, True)
    assert found.cwnd_packets == 160, "the window after the ACK that entered Drain"


def test_a_name_alone_says_nothing_but_the_kernels_own_and_what_a_profile_calls_like_it() -> None:
    nothing = make_info([])
    assert not is_bbr(rounds_of(WINDOWS, DRAINED, kernel_algorithm="bbrx"), nothing)
    assert is_bbr(rounds_of(WINDOWS, DRAINED, kernel_algorithm="bbr"), nothing)
    assert is_bbr(rounds_of(WINDOWS, DRAINED, kernel_algorithm="other", like="bbr"), nothing)
    assert not is_bbr(rounds_of(WINDOWS, DRAINED, kernel_algorithm="bbr", like="cubic"), nothing)


def test_a_loss_that_sets_ssthresh_in_the_start_up_is_not_its_end() -> None:
    """A derivative whose ssthresh() is finite: the edge at record 3 lies between two readings of the start-up."""
    trace = rounds_of(WINDOWS, [INF] * 3 + [30.0, INF, INF, INF, INF, 80.0, 80.0])
    found = find_exit(trace, told(GAINS))
    assert found is not None
    assert found.record == 8


PROBES = [10, 20, 40, 80, 160, 230, 230, 4, 4, 160]


def test_a_start_up_is_left_through_probe_rtt() -> None:
    """The threshold stays infinite; the window is cut to four packets."""
    trace = rounds_of(PROBES)
    found = find_exit(trace, told([HIGH] * 7 + [CRUISE, CRUISE, UP]))
    assert found is not None
    assert (found.record, found.time_ns, found.cwnd_packets, found.fell) == (7, 280_000_000, 230, True)


def test_between_two_readings_far_apart_the_fall_of_the_window_is_the_exit() -> None:
    info = make_info([70.0, 190.0, 390.0], bbr_pacing_gain_256ths=[HIGH, HIGH, CRUISE])
    found = find_exit(rounds_of(PROBES), info)
    assert found is not None
    assert (found.record, found.cwnd_packets) == (7, 230)


def test_a_probe_rtt_from_which_it_returns_to_the_start_up_is_no_exit() -> None:
    windows = [10, 20, 40, 4, 40, 80, 160, 230, 230, 160]
    trace = rounds_of(windows, [INF] * 9 + [80.0])
    found = find_exit(trace, told([HIGH] * 3 + [CRUISE] + [HIGH] * 5 + [DRAIN]))
    assert found is not None
    assert found.record == 9
    assert find_exit(rounds_of(windows), told([HIGH] * 3 + [CRUISE] + [HIGH] * 6)) is None


def test_without_an_edge_and_without_a_fall_it_is_where_the_gain_was_lower() -> None:
    found = find_exit(rounds_of([10, 20, 40, 80, 160, 160, 160]), told([HIGH] * 5 + [DRAIN, CRUISE]))
    assert found is not None
    assert 160_000_000 <= found.time_ns <= 240_000_000


PACED = [29, 58, 116, 231, 231, 231, 28, 80, 100, 80]
DELIVERED = [10, 20, 40, 80, 80, 80, 80, 80, 80, 80]


def test_pacing_shows_a_start_up_that_the_socket_does_not_tell() -> None:
    windows = [10, 20, 40, 80, 160, 230, 230, 160, 160, 160]
    info = rates(PACED, DELIVERED, windows)
    trace = rounds_of(windows)
    assert paces_itself(info)
    assert gains_of(info).gain.max() == pytest.approx(2.9)
    assert is_bbr(trace, info)
    found = find_exit(trace, info)
    assert found is not None
    assert 240_000_000 - 40_000_000 <= found.time_ns <= 280_000_000


@pytest.mark.parametrize("share", [2.0, 1.2])
def test_pacing_that_tcp_sets_from_its_window_is_no_start_up_of_bbrs(share: float) -> None:
    windows = [10, 20, 40, 80, 160, 230, 230, 160, 160, 160]
    info = rates([round(share * window) for window in windows], DELIVERED, windows)
    assert not paces_itself(info)
    assert not is_bbr(rounds_of(windows), info)


@pytest.mark.parametrize("own", [2, 3])
def test_three_quarters_of_pacing_that_tcp_explains_are_its_own(own: int) -> None:
    """The gain falls from 2.9 to below 1.5, as of BBR; of ten readings two, or three, are not twice the window."""
    pacing = [29, 58, 116, 231, 231, 231, 100, 100, 100, 100]
    explained = [round(rate / 2) for rate in pacing[: 10 - own]]
    windows = explained + [pacing[-1]] * own
    info = rates(pacing, DELIVERED, windows)
    trace = rounds_of(windows)
    gain = gains_of(info).gain
    assert (gain[:6].min(), gain[6:].max()) == (pytest.approx(2.9, rel=0.01), 1.25)
    assert paces_itself(info) is (own == 3)
    assert is_bbr(trace, info) is (own == 3)


def test_a_rate_that_stays_is_no_start_up_of_bbrs() -> None:
    info = rates([50] * 10, [50] * 10, [2000] * 10)
    assert paces_itself(info)
    assert not is_bbr(rounds_of([2000] * 10), info)


def measure(trace: FlowTrace, info: Samples | None = None, **plan: Any) -> dict[str, Any]:
    """The rows of its exit."""
    data = make_measured([trace], info=info, counters=make_counters([]))
    data = dataclasses.replace(data, plan=dataclasses.replace(data.plan, **plan))
    sheet = Sheet({})
    exit_rows(sheet, data, trace, find_startup(data, trace))
    return {row.metric: row for row in sheet.rows}


def outcome(trace: FlowTrace, info: Samples | None = None, **plan: Any) -> tuple[Any, str]:
    """``startup_left`` and why there is no exit."""
    rows = measure(trace, info, **plan)
    assert rows["exit_time_s"].value is None
    return rows["startup_left"].value, rows["exit_time_s"].why


STAYED = (0, "the flow did not leave slow start")
UNKNOWN = (None, "end of start-up unknown: ssthresh stayed infinite")


def test_an_infinite_threshold_is_slow_start_of_those_that_leave_by_it() -> None:
    """The kernel's own, and what the profile calls like them; not a module with the name of one."""
    still = [10] * 6
    assert outcome(rounds_of(still, kernel_algorithm="cubic")) == STAYED
    assert outcome(rounds_of(still, kernel_algorithm="mine", like="reno")) == STAYED
    assert outcome(rounds_of(still, kernel_algorithm="search_reno"), required_modules=["ss_search"]) == STAYED
    assert outcome(rounds_of(still, kernel_algorithm="cubic"), own_algorithms={"cubic": "tcp_cubic"}) == UNKNOWN


@pytest.mark.parametrize(
    ("windows", "expected"),
    [
        ([10, 20, 40, 80], STAYED),
        ([10, 10, 20, 20, 40, 40], STAYED),
        ([10, 10, 10, 10], UNKNOWN),
        ([10, 20, 40, 80, 80, 80], UNKNOWN),
        ([10, 20, 40, 80, 20, 26], UNKNOWN),
        ([10, 20, 40, 30, 60], UNKNOWN),
        ([100, 110, 120, 130], UNKNOWN),
    ],
    ids=["doubles", "every other round", "fixed", "stops", "fell", "fell and grew", "linear"],
)
def test_of_others_only_a_window_that_still_grows_is_in_slow_start(windows: list[int], expected: Any) -> None:
    assert outcome(rounds_of(windows)) == expected


def test_what_held_it_back_is_said_beside_either() -> None:
    held = {"busy_time_us": [0, 240_000], "rwnd_limited_us": [0, 200_000]}
    for name, (left, why) in (("cubic", STAYED), ("mine", UNKNOWN)):
        said = outcome(rounds_of([10] * 6, kernel_algorithm=name), make_info([0.0, 280.0], **held))
        assert said == (left, f"{why}; it was held back by the receive window")


def test_a_control_like_bbr_stays_as_long_as_its_gain() -> None:
    trace = rounds_of([10, 20, 40, 80])
    assert outcome(trace, told([HIGH] * 4)) == (0, "the flow did not leave its start-up")
    named = rounds_of([10, 20, 40, 80], kernel_algorithm="bbr")
    assert outcome(named) == UNKNOWN, "nobody read a gain"


def test_growth_ends_with_the_last_round_that_three_others_do_not_exceed() -> None:
    trace = rounds_of([10, 20, 20, 40, 44, 48, 49, 30])
    end = growth_end(trace, in_window(trace), 3)
    assert end is not None
    assert (end.time_ns, end.packets, end.begin, end.following, end.end) == (160_000_000, 40, 3, 4, 7)
    early = growth_end(trace, in_window(trace), 1)
    assert early is not None and early.packets == 20
    short = rounds_of([10, 20, 40, 40, 40])
    assert growth_end(short, in_window(short), 3) is None, "two rounds do not tell"


def test_what_a_window_does_not_hold_is_not_in_flight() -> None:
    """In a recovery snd_nxt runs ahead of snd_una: what lies between has arrived, and the window has the rest."""
    trace = dataclasses.replace(rounds_of([10, 20, 40]), snd_nxt=rounds_of([10, 200, 400]).snd_nxt)
    assert in_window(trace).tolist() == [10, 20, 40]
