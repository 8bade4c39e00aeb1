# SPDX-License-Identifier: Apache-2.0
"""Rows and cross-checks of a flow's exit from slow start: told by its module, or found in the per-ACK trace."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from howdah.measure import exit as leaving
from howdah.measure.event import Event, count, tells, told_cause, told_exit
from howdah.measure.exit import Detection, Exit
from howdah.measure.measured import Measured
from howdah.measure.rounds import rounds
from howdah.measure.row import Sheet, Value
from howdah.measure.trace import SECOND_NS, FlowTrace
from howdah.tables.event import CONGESTION, reason

NO_ACKS = "no ACK of this flow was traced"
_STAYED = "the flow did not leave slow start"
_ROUNDS_BETWEEN_ESTIMATES = 3  # a round lasts up to the full queue's RTT
_COUNTERS_NAME = (leaving.ACK_TRAIN, leaving.DELAY)


@dataclass(frozen=True)
class Startup:
    """``found`` is the exit that counts: the module's own (``told``) where it told of one, else the trace's."""

    found: Exit | None
    told: Event | None
    traced: Exit | None


def find_startup(data: Measured, trace: FlowTrace) -> Startup:
    """The exit of a flow from both sources."""
    traced = leaving.find_exit(trace)
    told = told_exit(data.events.get(trace.flow.id, []), trace)
    return Startup(leaving.exit_of_event(told, trace) if told else traced, told, traced)


def exit_rows(sheet: Sheet, data: Measured, trace: FlowTrace, startup: Startup) -> None:
    """The exit's rows, those of its module's events, and where two sources speak of it, their comparison."""
    flow = trace.flow
    name = {"algorithm": flow.algorithm}
    found = startup.found
    if found is None:
        why = _stayed(data, trace)
        for metric, unit in (
            ("exit_time_s", "s"),
            ("exit_cwnd_packets", "packets"),
            ("exit_cwnd_bdp", "ratio"),
            ("exit_round", "rounds"),
            ("exit_cause", ""),
        ):
            sheet.add(flow.id, metric, None, unit, why, **name)
    else:
        path = data.plan.path
        bdp_packets = path.rate_bits_per_second * flow.rtt_us / 8_000_000 / path.frame_bytes
        detected = _detection(data, trace, found)
        sheet.add(flow.id, "exit_time_s", (found.time_ns - trace.start_ns) / SECOND_NS, "s", **name)
        sheet.add(flow.id, "exit_cwnd_packets", found.cwnd_packets, "packets", **name)
        sheet.add(flow.id, "exit_cwnd_bdp", found.cwnd_packets / bdp_packets, "ratio", **name)
        number = startup.told.round if startup.told and not len(trace) else _round(trace, found)
        sheet.add(flow.id, "exit_round", number, "rounds", **name)
        if startup.told is not None:
            cause = told_cause(data.events[flow.id], startup.told)
        else:
            cause = leaving.exit_cause(trace, found, detected, data.counters, data.info[flow.id])
        sheet.add(flow.id, "exit_cause", cause, "", **name)
        _detection_cross_check(sheet, trace, found, detected, cause)
    if tells(data.plan, flow) or data.events.get(flow.id):
        _event_rows(sheet, data, trace, startup)
        _told_cross_checks(sheet, data, trace, startup)


def _stayed(data: Measured, trace: FlowTrace) -> str:
    if not len(trace):
        return NO_ACKS
    limit = leaving.limit_of(data.info[trace.flow.id], trace.start_ns, trace.stop_ns)
    return _STAYED if limit is None else f"{_STAYED}; it was held back by the {limit.replace('-', ' ')}"


def _detection(data: Measured, trace: FlowTrace, found: Exit) -> Detection:
    until = int(trace.time_ns[found.record]) if len(trace) else found.time_ns
    return leaving.detection(data.counters, trace.flow.sender, found.time_ns, max(until, found.time_ns))


def _round(trace: FlowTrace, found: Exit) -> int:
    return int(np.searchsorted(rounds(trace), max(found.record - 1, 0), side="right"))


def _detection_cross_check(sheet: Sheet, trace: FlowTrace, found: Exit, detected: Detection, cause: str) -> None:
    """HyStart's counter holds the window when the ACK came in, the next record the one after it was processed."""
    if detected.cwnd_packets is None or cause not in _COUNTERS_NAME or not len(trace):
        return
    before, after = int(trace.cwnd[max(found.record - 1, 0)]), int(trace.cwnd[found.record])
    sheet.cross_check(
        trace.flow.id,
        "exit_cwnd_packets",
        {"tcp_probe": after, "mib": detected.cwnd_packets},
        before <= detected.cwnd_packets <= after,
        "the trace and HyStart's counter name different windows: another flow of the host, or a lost record",
    )


def _event_rows(sheet: Sheet, data: Measured, trace: FlowTrace, startup: Startup) -> None:
    """What the deciding number was, and how often the module told of what."""
    flow = trace.flow
    name = {"algorithm": flow.algorithm}
    events = data.events.get(flow.id, [])
    told = startup.told
    if told is None:
        why = "the module told of no exit" if startup.traced else _STAYED
        sheet.add(flow.id, "exit_quantity", None, "", why, **name)
        sheet.add(flow.id, "exit_threshold", None, "", why, **name)
    else:
        meaning = reason(told.reason)
        nothing = f"{told.reason} is compared with nothing"
        sheet.add(flow.id, "exit_quantity", meaning.quantity(told.quantity), meaning.unit, **name)
        threshold = meaning.threshold(told.threshold)
        sheet.add(flow.id, "exit_threshold", threshold, meaning.threshold_unit or "", nothing, **name)
    for metric, event in (("exits", "exit"), ("phases", "phase"), ("resumes", "resume"), ("estimates", "estimate")):
        sheet.add(flow.id, metric, count(events, event), "events", **name)


def _told_cross_checks(sheet: Sheet, data: Measured, trace: FlowTrace, startup: Startup) -> None:
    """The module's exit against the one that the trace and the counters show."""
    told, traced = startup.told, startup.traced
    if not len(trace) or (told is None and traced is None):
        return
    flow = trace.flow
    if told is None or traced is None:
        seen: dict[str, Value] = {
            "module": None if told is None else _seconds(trace, told.time_ns),
            "tcp_probe": None if traced is None else _seconds(trace, traced.time_ns),
        }
        sheet.cross_check(flow.id, "exit_time_s", seen, False, "only one of module and trace shows an exit")
        return
    before = max(traced.record - 1, 0)
    first, last = int(trace.time_ns[before]), int(trace.time_ns[traced.record])
    if traced.record == 0:  # the first record shows a flow that is out of slow start already
        first = trace.start_ns
    if told.event == "estimate":  # modules tell of a rising threshold once a round
        first -= _ROUNDS_BETWEEN_ESTIMATES * flow.rtt_us * 1000
        before = min(before, int(np.searchsorted(trace.time_ns, first)))
    sheet.cross_check(
        flow.id,
        "exit_time_s",
        {"module": _seconds(trace, told.time_ns), "tcp_probe": _seconds(trace, traced.time_ns)},
        first <= told.time_ns <= last,
        "the module tells of its exit at another ACK than the one after which the trace shows it",
    )
    windows = int(trace.cwnd[before : traced.record + 1].min()), int(trace.cwnd[before : traced.record + 1].max())
    sheet.cross_check(
        flow.id,
        "exit_cwnd_packets",
        {"module": told.cwnd_packets, "tcp_probe": traced.cwnd_packets},
        windows[0] <= told.cwnd_packets <= windows[1],
        "the module's window is not between those of the records before and after the exit",
    )
    detected = _detection(data, trace, traced)
    cause = leaving.exit_cause(trace, traced, detected, data.counters, data.info[flow.id])
    # What neither counters nor a cut window show, only the module knows; a module may cut its own window to drain it.
    if told.reason in CONGESTION or (detected.alone and cause in _COUNTERS_NAME):
        sheet.cross_check(
            flow.id,
            "exit_cause",
            {"module": told.reason, "counters": cause},
            told.reason == cause,
            "the module and the kernel's counters name different causes",
        )


def _seconds(trace: FlowTrace, time_ns: int) -> float:
    return (time_ns - trace.start_ns) / SECOND_NS
