# SPDX-License-Identifier: Apache-2.0
"""The decision to leave slow start: one definition of its window, whoever wrote the algorithm."""

from __future__ import annotations

import dataclasses
import math
from typing import Any

import pytest

from howdah.measure.event import SlowStartEvent
from howdah.measure.exit_rows import exit_rows, find_startup
from howdah.measure.row import Sheet
from howdah.measure.trace import FlowTrace
from tests.unit.event_factory import told
from tests.unit.trace_factory import make_counters, make_flow, make_info, make_measured, make_trace

INF = math.inf
WHEN = ("exit_time_s", "decision_time_s")
DRAIN_END = ("drain_end_time_s", "drain_end_cwnd_packets", "drain_end_cause")
WINDOWS = ("exit_cwnd_packets", "decision_cwnd_packets", "rollback_packets")


def trace_of(cwnd: list[int], ssthresh: list[float], algorithm: str = "search_reno") -> FlowTrace:
    """Records at 40, 42, 44 … ms, each ACK acknowledges two segments."""
    count = len(cwnd)
    return make_trace(
        [40.0 + 2 * number for number in range(count)],
        una=[2 * number for number in range(count)],
        nxt=[2 * number + 60 for number in range(count)],
        cwnd=cwnd,
        ssthresh=ssthresh,
        flow=make_flow(kernel_algorithm=algorithm),
    )


ROLLS_BACK = ([30, 32, 34, 20, 20, 20], [INF, INF, INF, 20, 20, 20])  # by the ACK at 44 ms
DRAINS = ([30, 34, 34, 30, 26, 20, 20], [INF, INF, INF, INF, INF, 20, 20])  # from the ACK at 44 ms to that at 48 ms
LOSES = ([30, 34, 34, 30, 26, 24, 22], [INF, INF, INF, INF, INF, 18, 18])  # by the ACK at 48 ms, in the drain
STAYS = ([30, 32, 34, 35, 35], [INF, INF, INF, 34, 34])


def measure(
    trace: FlowTrace, events: list[SlowStartEvent] | None = None, **info: list[int]
) -> tuple[dict[str, Any], Sheet]:
    readings = make_info([41, 51, 61], ca_state=[0, 0, 0]) if not info else make_info([41, 51, 61], **info)
    counters = make_counters([(time, "s1", "TcpExtTCPTimeouts", 0) for time in (0, 500)])
    data = make_measured([trace], events={1: events or []}, info=readings, counters=counters)
    data = dataclasses.replace(data, plan=dataclasses.replace(data.plan, required_modules=["ss_search"]))
    sheet = Sheet({})
    exit_rows(sheet, data, trace, find_startup(data, trace))
    return {row.metric: row for row in sheet.rows}, sheet


def numbers(rows: dict[str, Any], names: tuple[str, ...]) -> tuple[Any, ...]:
    return tuple(rows[name].value for name in names)


PLUG_IN = [
    told(44, "exit", "delivery-rate", 34, ssthresh_packets=20),
    told(44, "roll-back", "delivery-rate", 20),
]


@pytest.mark.parametrize(
    ("algorithm", "events"), [("search_reno", PLUG_IN), ("theirs", [])], ids=["plug-in", "outside"]
)
def test_the_window_of_an_exit_is_the_one_before_the_roll_back(algorithm: str, events: list[SlowStartEvent]) -> None:
    rows, sheet = measure(trace_of(*ROLLS_BACK, algorithm), events)
    assert numbers(rows, WHEN) == (0.044, 0.044)
    assert numbers(rows, WINDOWS) == (34, 34, 14)
    assert rows["exit_cause"].value == ("delivery-rate" if events else "own-cut")
    assert all(check.agree for check in sheet.cross_checks)


def test_a_module_that_tells_of_its_exit_after_the_cut_is_reported() -> None:
    rows, sheet = measure(trace_of(*ROLLS_BACK), [told(44, "exit", "delivery-rate", 20)])
    assert rows["exit_cwnd_packets"].value == 20
    (found,) = [check for check in sheet.cross_checks if check.metric == "exit_cwnd_packets"]
    assert not found.agree
    assert "cut already" in found.message


DRAIN = [
    told(44, "phase", "delivery-rate", 34),
    told(48, "drain-end", "delivery-rate", 20),
    told(48, "exit", "delivery-rate", 20),
]


@pytest.mark.parametrize(("algorithm", "events"), [("search_reno", DRAIN), ("theirs", [])], ids=["plug-in", "outside"])
def test_a_drain_was_decided_when_it_began(algorithm: str, events: list[SlowStartEvent]) -> None:
    rows, sheet = measure(trace_of(*DRAINS, algorithm), events)
    assert numbers(rows, WHEN) == (0.044, 0.044)
    assert numbers(rows, WINDOWS) == (34, 34, 14)
    assert numbers(rows, DRAIN_END) == (0.048, 20, "delivery-rate" if events else "own-cut")
    assert all(check.agree for check in sheet.cross_checks)


@pytest.mark.parametrize("told_of", [True, False], ids=["plug-in", "outside"])
def test_a_loss_that_ends_a_drain_does_not_move_its_decision(told_of: bool) -> None:
    """The window falls from 34 to 26 from the ACK at 44 ms on; that at 48 ms begins a recovery."""
    events = [told(44, "phase", "delivery-rate", 34), told(48, "exit", "loss", 26, ssthresh_packets=18)]
    trace = trace_of(*LOSES, "search_reno" if told_of else "theirs")
    rows, _ = measure(trace, events if told_of else [], ca_state=[0, 3, 3])
    assert rows["exit_cause"].value == ("delivery-rate" if told_of else "own-cut")
    assert numbers(rows, WHEN) == (0.044, 0.044)
    assert numbers(rows, WINDOWS) == (34, 34, 8)
    assert numbers(rows, DRAIN_END) == (0.048, 26, "loss")
    assert rows["startup_left"].value == 1
    if told_of:
        assert rows["exit_quantity"].value is not None, "the number that decided, not the loss's, which has none"


def test_a_phase_in_which_nothing_is_drained_is_no_decision() -> None:
    events = [told(40, "phase", "delay", 30), told(44, "exit", "css-rounds", 34)]
    rows, _ = measure(trace_of(*STAYS), events)
    assert numbers(rows, WHEN) == (0.044, 0.044)
    assert numbers(rows, WINDOWS) == (34, 34, 0)


def test_a_loss_in_a_phase_that_may_be_taken_back_is_the_exit() -> None:
    """HyStart++ in CSS grows on and may resume: a loss in it decides."""
    events = [told(42, "phase", "delay", 32), told(44, "exit", "loss", 34, ssthresh_packets=20)]
    rows, _ = measure(trace_of(*ROLLS_BACK), events)
    assert rows["exit_cause"].value == "loss"
    assert numbers(rows, (*WHEN, *WINDOWS)) == (0.044, 0.044, 34, 34, None)
    assert "drain_end_time_s" not in rows


def test_a_window_that_tcp_lowers_for_its_application_is_no_drain() -> None:
    """tcp_cwnd_application_limited() takes it down in slow start; then a loss ends slow start."""
    idle: dict[str, Any] = {
        "busy_time_us": [0, 0, 0],
        "app_limited": [1, 1, 1],
        "state": [1, 1, 1],
        "notsent_bytes": [0, 0, 0],
    }
    rows, _ = measure(trace_of(*LOSES, "theirs"), ca_state=[0, 3, 3], **idle)
    assert rows["exit_cause"].value == "loss"
    assert numbers(rows, WHEN) == (0.048, 0.048)
    assert "drain_end_time_s" not in rows


def test_the_windows_of_a_start_up_like_bbrs_are_no_drain() -> None:
    """A loss takes its window down before it enters Drain."""
    windows = [30, 34, 34, 30, 26, 26, 26]
    info: dict[str, Any] = {"bbr_pacing_gain_256ths": [739, 88, 88], "ca_state": [0, 3, 3]}
    rows, _ = measure(trace_of(windows, [INF] * 5 + [12.0] * 2, "theirs"), **info)
    assert numbers(rows, WHEN) == (0.048, 0.048)
    assert "drain_end_time_s" not in rows


def test_the_roll_back_of_a_later_exit_is_not_that_of_the_first() -> None:
    events = [told(44, "exit", "delay", 34), *(dataclasses.replace(each, time_ns=90_000_000) for each in PLUG_IN)]
    rows, _ = measure(trace_of(*STAYS), events)
    assert rows["rollback_packets"].value == 0


@pytest.mark.parametrize("events", [[told(44, "exit", "delay", 34)], []], ids=["plug-in", "in-tree"])
def test_an_exit_that_keeps_the_window_takes_nothing_back(events: list[SlowStartEvent]) -> None:
    rows, _ = measure(trace_of(*STAYS), events)
    assert rows["decision_time_s"].value == rows["exit_time_s"].value
    assert rows["decision_cwnd_packets"].value == rows["exit_cwnd_packets"].value
    assert rows["rollback_packets"].value == 0


def test_a_cut_by_a_loss_is_no_roll_back() -> None:
    rows, _ = measure(trace_of(*ROLLS_BACK), [told(44, "exit", "loss", 34, ssthresh_packets=20)])
    assert numbers(rows, WINDOWS) == (34, 34, None)
    assert "TCP cut the window" in rows["rollback_packets"].why
    rows, _ = measure(trace_of(*ROLLS_BACK, "theirs"), ca_state=[0, 3, 3])
    assert rows["exit_cause"].value == "loss"
    assert rows["rollback_packets"].value is None


def test_a_flow_that_stays_decides_nothing() -> None:
    rows, _ = measure(trace_of([30, 32, 34], [INF, INF, INF]))
    assert numbers(rows, (*WHEN, *WINDOWS)) == (None,) * 5
