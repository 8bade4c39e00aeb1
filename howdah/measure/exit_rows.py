# SPDX-License-Identifier: Apache-2.0
"""Rows and cross-checks of a flow's exit from slow start: told by its module, or found in the per-ACK trace."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from howdah.measure.capacity import FairCapacity
from howdah.measure.cause import ACK_TRAIN, DELAY, UNKNOWN, Detection, detection, exit_cause
from howdah.measure.decision import Decision, decision_of
from howdah.measure.event import SlowStartEvent, count, tells, told_cause, told_exit
from howdah.measure.exit import Exit, exit_of_event, find_exit
from howdah.measure.limit import limit_before
from howdah.measure.measured import Measured
from howdah.measure.rounds import rounds
from howdah.measure.row import Sheet, Value
from howdah.measure.trace import SECOND_NS, FlowTrace
from howdah.plan.plan import Flow, Path
from howdah.record.event import CONGESTION, reason

NO_ACKS = "no ACK of this flow was traced"
_STAYED = "the flow did not leave slow start"
_ROUNDS_BETWEEN_ESTIMATES = 3  # a round lasts up to the full queue's RTT
_COUNTERS_NAME = (ACK_TRAIN, DELAY)


@dataclass(frozen=True)
class Startup:
    """``found`` is the exit that counts: the module's own (``told``) where it reported one, else the trace's.

    ``decision`` is the one that led to it.
    """

    found: Exit | None
    told: SlowStartEvent | None
    traced: Exit | None
    decision: Decision | None


def find_startup(data: Measured, trace: FlowTrace) -> Startup:
    """The exit of a flow from both sources."""
    events = data.events.get(trace.flow.id, [])
    traced = find_exit(trace)
    told = told_exit(events, trace)
    found = exit_of_event(told, trace) if told else traced
    decision = None if found is None else decision_of(found, told, trace, events)
    return Startup(found, told, traced, decision)


def exit_rows(sheet: Sheet, data: Measured, trace: FlowTrace, startup: Startup) -> None:
    """The exit's rows, those of its module's events, and where two sources speak of it, their comparison."""
    flow = trace.flow
    name = {"algorithm": flow.algorithm}
    found = startup.found
    if found is None:
        why = _stayed(data, trace)
        for metric in (
            "exit_time_s",
            "exit_cwnd_packets",
            "exit_cwnd_bdp",
            "exit_round",
            "exit_cause",
            "decision_time_s",
            "decision_cwnd_packets",
            "rollback_packets",
        ):
            sheet.add(flow.id, metric, None, why, **name)
        if data.plan.path.rate_steps:
            sheet.add(flow.id, "exit_cwnd_moment_bdp", None, why, **name)
    else:
        path = data.plan.path
        bdp_packets = path.rate_bits_per_second * flow.rtt_us / 8_000_000 / path.frame_bytes
        detected = _detection(data, trace, found)
        sheet.add(flow.id, "exit_time_s", (found.time_ns - trace.start_ns) / SECOND_NS, **name)
        sheet.add(flow.id, "exit_cwnd_packets", found.cwnd_packets, **name)
        sheet.add(flow.id, "exit_cwnd_bdp", found.cwnd_packets / bdp_packets, **name)
        if path.rate_steps:
            moment = moment_bdp_packets(data.capacity, flow, path, found.time_ns)
            sheet.add(flow.id, "exit_cwnd_moment_bdp", found.cwnd_packets / moment, **name)
        number = startup.told.round if startup.told and not len(trace) else _round(trace, found)
        sheet.add(flow.id, "exit_round", number, **name)
        if startup.told is not None:
            cause = told_cause(data.events[flow.id], startup.told)
        else:
            cause = exit_cause(trace, found, detected, data.counters, data.info[flow.id])
        sheet.add(flow.id, "exit_cause", cause, **name)
        if startup.decision is not None:
            _decision_rows(sheet, trace, found, startup.decision, cause)
        _detection_cross_check(sheet, trace, found, detected, cause)
    if tells(data.plan, flow) or data.events.get(flow.id):
        _event_rows(sheet, data, trace, startup)
        _told_cross_checks(sheet, data, trace, startup)


def moment_bdp_packets(capacity: FairCapacity, flow: Flow, path: Path, time_ns: int) -> float:
    """What a link of changing rate could carry in the round trip before an instant, in full frames: the flow's RTT
    without queues, at the rates that the link had in it."""
    return capacity.whole_bytes(time_ns - flow.rtt_us * 1000, time_ns) / path.mss_bytes


def _decision_rows(sheet: Sheet, trace: FlowTrace, found: Exit, decision: Decision, cause: str) -> None:
    name = {"algorithm": trace.flow.algorithm}
    sheet.add(trace.flow.id, "decision_time_s", (decision.time_ns - trace.start_ns) / SECOND_NS, **name)
    sheet.add(trace.flow.id, "decision_cwnd_packets", decision.cwnd_packets, **name)
    taken: int | None = decision.rollback_packets
    why = None
    if cause in CONGESTION and decision.time_ns < found.time_ns:  # it ended a drain
        taken = max(decision.cwnd_packets - found.cwnd_packets, 0)
    elif cause in CONGESTION:
        taken, why = None, f"TCP cut the window ({cause}), the algorithm took nothing back"
    elif cause == UNKNOWN and found.reduced:
        taken, why = None, "nothing says whether TCP or the algorithm cut the window"
    sheet.add(trace.flow.id, "rollback_packets", taken, why, **name)


def _stayed(data: Measured, trace: FlowTrace) -> str:
    if not len(trace):
        return NO_ACKS
    limit = limit_before(trace, data.info[trace.flow.id], trace.stop_ns)
    return _STAYED if limit is None else f"{_STAYED}; it was held back by the {limit.replace('-', ' ')}"


def _detection(data: Measured, trace: FlowTrace, found: Exit) -> Detection:
    until = int(trace.time_ns[found.record]) if len(trace) else found.time_ns
    return detection(data.counters, trace.flow.sender, found.time_ns, max(until, found.time_ns))


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
    """What the deciding number was, and how often the module reported what."""
    flow = trace.flow
    name = {"algorithm": flow.algorithm}
    events = data.events.get(flow.id, [])
    told = startup.told
    if told is None:
        why = "the module reported no exit" if startup.traced else _STAYED
        sheet.add(flow.id, "exit_quantity", None, why, **name)
        sheet.add(flow.id, "exit_threshold", None, why, **name)
    else:
        meaning = reason(told.reason)
        nothing = f"{told.reason} is compared with nothing"
        if told.quantity is None or (told.threshold is None and meaning.threshold_unit is not None):
            nothing = "what reports the exit does not report this number"
        sheet.add(flow.id, "exit_quantity", meaning.quantity(told.quantity), nothing, unit=meaning.unit, **name)
        threshold = meaning.threshold(told.threshold)
        sheet.add(flow.id, "exit_threshold", threshold, nothing, unit=meaning.threshold_unit or "", **name)
    for metric, event in (("exits", "exit"), ("phases", "phase"), ("resumes", "resume"), ("estimates", "estimate")):
        sheet.add(flow.id, metric, count(events, event), **name)


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
        "the module reports its exit at another ACK than the one after which the trace shows it",
    )
    windows = int(trace.cwnd[before : traced.record + 1].min()), int(trace.cwnd[before : traced.record + 1].max())
    decided_here = startup.decision is not None and startup.decision.time_ns == told.time_ns
    if traced.reduced and decided_here:  # told with the window at the decision, before the cut
        windows = traced.cwnd_packets, max(windows[1], traced.cwnd_packets)
    sheet.cross_check(
        flow.id,
        "exit_cwnd_packets",
        {"module": told.cwnd_packets, "tcp_probe": traced.cwnd_packets},
        windows[0] <= told.cwnd_packets <= windows[1],
        "the module's window is not between those of the records before and after the exit, or was cut already",
    )
    detected = _detection(data, trace, traced)
    cause = exit_cause(trace, traced, detected, data.counters, data.info[flow.id])
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
