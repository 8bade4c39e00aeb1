# SPDX-License-Identifier: Apache-2.0
"""Rows and cross-checks of a flow's exit from slow start, reported by its module or found in the per-ACK trace.

They include whether a flow without an exit left its start-up, and how many start-ups a detector ended before a loss.

A finite ssthresh ends slow start. If it stays infinite, the flow is in slow start only if its control leaves by
ssthresh, or if its window still grows. A control that never sets it (and follows a rate or a window) may have ended its
start-up long ago.
"""

from __future__ import annotations

from dataclasses import dataclass, replace

import numpy as np

from howdah.algorithm import ALGORITHMS, EXIT_SETS_SSTHRESH, HYSTART
from howdah.measure.capacity import share_of_bdp
from howdah.measure.cause import ACK_TRAIN, DELAY, OWN_CUT, UNKNOWN, Detection, detection, exit_cause
from howdah.measure.control import gains_of, is_bbr, name_of
from howdah.measure.event import SlowStartEvent, count, is_plug_in, reported_cause, reported_exit, reports_events
from howdah.measure.exit import Decision, Exit, decision_of, exit_of_event, find_exit
from howdah.measure.growth import STILL_GROWS
from howdah.measure.limit import limit_before
from howdah.measure.measured import Measured
from howdah.measure.rounds import rounds
from howdah.measure.row import Sheet, Value
from howdah.measure.sampled import Samples
from howdah.measure.trace import SECOND_NS, FlowTrace
from howdah.plan.plan import BACKGROUND, Flow, Plan
from howdah.record.schema import CONGESTION, reason

NO_ACKS = "no ACK of this flow was traced"
_ROUNDS_BETWEEN_ESTIMATES = 3  # in path RTTs: a round lasts up to the RTT of a full queue
_COUNTERS_NAME = (ACK_TRAIN, DELAY)


@dataclass(frozen=True)
class Startup:
    """``found`` is where the flow leaves slow start: the module's own exit (``reported``) if there is one, else the
    trace's. ``decision`` is the decision that led to it.

    ``exit`` is the exit in the rows: ``found``, or, if the algorithm drains its excess data first, the decision to do
    so; a loss that ends the drain decides nothing. ``left`` is False if the flow stayed in its start-up, None if that
    is unknown, with the reason in ``why``. ``paced``: its start-up is one like BBR's.
    """

    found: Exit | None
    reported: SlowStartEvent | None
    traced: Exit | None
    decision: Decision | None
    exit: Exit | None
    left: bool | None
    why: str
    paced: bool

    @property
    def drains(self) -> bool:
        return self.decision is not None and self.decision.drains


def find_startup(data: Measured, trace: FlowTrace) -> Startup:
    """Return the exit of a flow from both sources."""
    events = data.events.get(trace.flow.id, [])
    info = data.info[trace.flow.id]
    # A plug-in's events describe its start-up: some pace, but none like BBR.
    readings = None if reports_events(data.plan, trace.flow) or events else info
    paced = is_bbr(trace, readings)
    traced = find_exit(trace, readings)
    reported = reported_exit(events, trace)
    found = exit_of_event(reported, trace) if reported else traced
    if found is not None:
        decision = decision_of(found, reported, trace, events, info)
        return Startup(found, reported, traced, decision, _decided(found, decision, trace), True, "", paced)
    left, why = (None, NO_ACKS) if not len(trace) else left_without_exit(data.plan, trace, info, paced=paced)
    return Startup(None, reported, traced, None, None, left, why, paced)


def _decided(found: Exit, decision: Decision, trace: FlowTrace) -> Exit:
    if not decision.drains:
        return found
    after = int(np.searchsorted(trace.time_ns, decision.time_ns, side="right"))
    return replace(
        found,
        record=max(min(after, len(trace) - 1), 0),
        time_ns=decision.time_ns,
        cwnd_packets=decision.cwnd_packets,
        reduced=False,
        from_initial_ssthresh=False,
        from_own_threshold=False,
    )


def exit_rows(sheet: Sheet, data: Measured, trace: FlowTrace, startup: Startup) -> None:
    """Add the rows of the exit and of its module's events, and cross-check the two sources if both show an exit."""
    flow = trace.flow
    found, shown = startup.found, startup.exit
    if found is None or shown is None:
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
            sheet.add(flow, metric, None, startup.why)
    else:
        detected = _detection(data, trace, found)
        if startup.reported is not None:
            left_by = reported_cause(data.events[flow.id], startup.reported)
        else:
            left_by = exit_cause(trace, found, detected, data.counters, data.info[flow.id])
        sheet.add(flow, "exit_time_s", _seconds(trace, shown.time_ns))
        sheet.add(flow, "exit_cwnd_packets", shown.cwnd_packets)
        share = share_of_bdp(shown.cwnd_packets, data.capacity, flow, data.plan.path, shown.time_ns)
        sheet.add(flow, "exit_cwnd_bdp", share, "the link carried nothing in the round trip before")
        number = startup.reported.round if startup.reported and not len(trace) else _round(trace, shown)
        sheet.add(flow, "exit_round", number)
        sheet.add(flow, "exit_cause", _decided_by(startup, left_by))
        if startup.decision is not None:
            _decision_rows(sheet, trace, found, startup.decision, left_by)
        _detection_cross_check(sheet, trace, found, detected, left_by)
    sheet.add(flow, "startup_left", None if startup.left is None else int(startup.left), startup.why)
    if startup.paced:
        gain = gains_of(data.info[flow.id]).largest
        sheet.add(flow, "startup_gain", gain, "neither a gain nor a pacing rate was read")
    if reports_events(data.plan, flow) or data.events.get(flow.id):
        _event_rows(sheet, data, trace, startup)
        _report_cross_checks(sheet, data, trace, startup)


def _decided_by(startup: Startup, left_by: str) -> str:
    """Return the cause of the decision: that of the end of slow start, or of the beginning of a drain before it."""
    if startup.decision is None or not startup.drains:
        return left_by
    return OWN_CUT if startup.decision.event is None else startup.decision.event.reason


def _decision_rows(sheet: Sheet, trace: FlowTrace, found: Exit, decision: Decision, cause: str) -> None:
    sheet.add(trace.flow, "decision_time_s", (decision.time_ns - trace.start_ns) / SECOND_NS)
    sheet.add(trace.flow, "decision_cwnd_packets", decision.cwnd_packets)
    taken: int | None = decision.rollback_packets
    why = None
    if cause in CONGESTION and decision.time_ns < found.time_ns:  # congestion ended a drain
        taken = max(decision.cwnd_packets - found.cwnd_packets, 0)
    elif cause in CONGESTION:
        taken, why = None, f"TCP cut the window ({cause}), the algorithm took nothing back"
    elif cause == UNKNOWN and found.reduced:
        taken, why = None, "nothing says whether TCP or the algorithm cut the window"
    sheet.add(trace.flow, "rollback_packets", taken, why)
    if decision.drains:
        sheet.add(trace.flow, "drain_end_time_s", _seconds(trace, found.time_ns))
        last = found.cwnd_packets if cause in CONGESTION else decision.left_packets
        sheet.add(trace.flow, "drain_end_cwnd_packets", last)
        sheet.add(trace.flow, "drain_end_cause", cause)


def _detection(data: Measured, trace: FlowTrace, found: Exit) -> Detection:
    until = int(trace.time_ns[found.record]) if len(trace) else found.time_ns
    return detection(data.counters, trace.flow.sender, found.time_ns, max(until, found.time_ns))


def _round(trace: FlowTrace, found: Exit) -> int:
    return int(np.searchsorted(rounds(trace), max(found.record - 1, 0), side="right"))


def _detection_cross_check(sheet: Sheet, trace: FlowTrace, found: Exit, detected: Detection, cause: str) -> None:
    """Compare the windows: HyStart's counter has the one when the ACK arrived, the next record the one after it."""
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
    flow = trace.flow
    events = data.events.get(flow.id, [])
    reported = startup.reported
    if reported is not None and startup.decision is not None and startup.decision.event is not None:
        reported = startup.decision.event
    if reported is None:
        why = "the module reported no exit" if startup.traced else startup.why
        sheet.add(flow, "exit_quantity", None, why)
        sheet.add(flow, "exit_threshold", None, why)
    else:
        meaning = reason(reported.reason)
        nothing = f"{reported.reason} is compared with nothing"
        if reported.quantity is None or (reported.threshold is None and meaning.threshold_unit is not None):
            nothing = "what reports the exit does not report this number"
        sheet.add(flow, "exit_quantity", meaning.quantity(reported.quantity), nothing, unit=meaning.unit)
        threshold = meaning.threshold(reported.threshold)
        sheet.add(flow, "exit_threshold", threshold, nothing, unit=meaning.threshold_unit or "")
    for metric, event in (("exits", "exit"), ("phases", "phase"), ("resumes", "resume"), ("estimates", "estimate")):
        sheet.add(flow, metric, count(events, event))


def _report_cross_checks(sheet: Sheet, data: Measured, trace: FlowTrace, startup: Startup) -> None:
    reported, traced = startup.reported, startup.traced
    if not len(trace) or (reported is None and traced is None):
        return
    if reported is None or traced is None:
        seen: dict[str, Value] = {
            "module": None if reported is None else _seconds(trace, reported.time_ns),
            "tcp_probe": None if traced is None else _seconds(trace, traced.time_ns),
        }
        sheet.cross_check(trace.flow.id, "exit_time_s", seen, False, "only one of module and trace shows an exit")
        return
    decided_here = startup.decision is not None and startup.decision.time_ns == reported.time_ns
    _compare_time_and_window(sheet, trace, reported, traced, decided_here)
    _compare_cause(sheet, data, trace, reported, traced)


def _compare_time_and_window(
    sheet: Sheet, trace: FlowTrace, reported: SlowStartEvent, traced: Exit, decided_here: bool
) -> None:
    """Compare with the records around the exit; ``decided_here``: the reported exit is also the decision."""
    before = max(traced.record - 1, 0)
    first, last = int(trace.time_ns[before]), int(trace.time_ns[traced.record])
    if traced.record == 0:  # the flow already left slow start before the first record
        first = trace.start_ns
    if reported.event == "estimate":  # modules report a rising threshold once a round
        first -= _ROUNDS_BETWEEN_ESTIMATES * trace.flow.rtt_us * 1000
        before = min(before, int(np.searchsorted(trace.time_ns, first)))
    sheet.cross_check(
        trace.flow.id,
        "exit_time_s",
        {"module": _seconds(trace, reported.time_ns), "tcp_probe": _seconds(trace, traced.time_ns)},
        first <= reported.time_ns <= last,
        "the module reports its exit at another ACK than the one after which the trace shows it",
    )
    windows = int(trace.cwnd[before : traced.record + 1].min()), int(trace.cwnd[before : traced.record + 1].max())
    if traced.reduced and decided_here:  # the module reports the window at the decision, before the cut
        windows = traced.cwnd_packets, max(windows[1], traced.cwnd_packets)
    sheet.cross_check(
        trace.flow.id,
        "exit_cwnd_packets",
        {"module": reported.cwnd_packets, "tcp_probe": traced.cwnd_packets},
        windows[0] <= reported.cwnd_packets <= windows[1],
        "the module's window is not between those of the records before and after the exit, or was cut already",
    )


def _compare_cause(sheet: Sheet, data: Measured, trace: FlowTrace, reported: SlowStartEvent, traced: Exit) -> None:
    detected = _detection(data, trace, traced)
    cause = exit_cause(trace, traced, detected, data.counters, data.info[trace.flow.id])
    # Other causes are known to the module alone, as neither counters nor a cut show them; a module may cut its window
    # itself to drain it.
    if reported.reason in CONGESTION or (detected.alone and cause in _COUNTERS_NAME):
        sheet.cross_check(
            trace.flow.id,
            "exit_cause",
            {"module": reported.reason, "counters": cause},
            reported.reason == cause,
            "the module and the kernel's counters name different causes",
        )


def _seconds(trace: FlowTrace, time_ns: int) -> float:
    return (time_ns - trace.start_ns) / SECOND_NS


STAYED = "the flow did not leave slow start"
STAYED_PACED = "the flow did not leave its start-up"
UNKNOWN_END = "end of start-up unknown: ssthresh stayed infinite"
_GROWING_ROUNDS = 2  # Vegas grows every other round


def left_without_exit(plan: Plan, trace: FlowTrace, info: Samples, *, paced: bool) -> tuple[bool | None, str]:
    """Return whether a flow without an exit left its start-up (False: no; None: unknown), and the reason for no exit.

    With ``paced`` (a control like BBR), the last reading of its gain decides. Otherwise the flow is in slow start by
    its infinite threshold if its control is a slow-start plug-in or one of the kernel's own that leave by it; any other
    flow is in slow start if its window grew by a quarter in the last two rounds.
    """
    limit = limit_before(trace, info, trace.stop_ns)
    held = "" if limit is None else f"; it was held back by the {limit.replace('-', ' ')}"
    if paced:
        gains = gains_of(info)
        stays = gains.end is not None and gains.end == gains.gain.size
        return (False, STAYED_PACED + held) if stays else (None, UNKNOWN_END + held)
    if _leaves_by_threshold(plan, trace) or _grows(trace):
        return False, STAYED + held
    return None, UNKNOWN_END + held


def _leaves_by_threshold(plan: Plan, trace: FlowTrace) -> bool:
    flow = trace.flow
    if plan.traits.model or is_plug_in(plan, flow):
        return True
    of_kernel = flow.is_tcp and flow.kernel_algorithm not in plan.own_algorithms
    return name_of(flow) in EXIT_SETS_SSTHRESH and (of_kernel or flow.like is not None)


def _grows(trace: FlowTrace) -> bool:
    starts = rounds(trace)
    window = trace.cwnd[starts[-1 - _GROWING_ROUNDS] if starts.size > _GROWING_ROUNDS else 0 :]
    return bool(window[-1] >= STILL_GROWS * window[0] and (np.diff(window) >= 0).all())


_HYSTART_COUNTERS = ("TcpExtTCPHystartTrainDetect", "TcpExtTCPHystartDelayDetect")
_UNCOUNTED = "the kernel of the senders has no counters of HyStart"
_KERNELS_OWN = "tcp_cubic"


def detector_rows(sheet: Sheet, data: Measured) -> None:
    """Add ``detector_exits`` of the run: how many start-ups were ended by the detectors of its algorithms.

    For the kernel's CUBIC it is the growth of its counters (TCPHystartTrainDetect, TCPHystartDelayDetect) on every host
    with a measured flow; for a plug-in, the number of measured flows for which it reported one of the reasons by which
    it ends a start-up. Connections of groups count like flows. No row if no algorithm has a detector.
    """
    flows = [flow for flow in data.plan.flows if flow.role != BACKGROUND and flow.is_tcp and not flow.stacks]
    with_one = [flow for flow in flows if (known := ALGORITHMS.get(flow.algorithm)) is not None and known.detector]
    if not with_one:
        return
    counted = [flow for flow in with_one if _is_counted(flow)]
    total = sum(_ended_by_detector(data, flow) for flow in with_one if not _is_counted(flow))
    for host in dict.fromkeys(flow.sender for flow in counted):
        grown = [data.counters.total(host, name) for name in _HYSTART_COUNTERS]
        if all(each is None for each in grown):
            sheet.add(None, "detector_exits", None, _UNCOUNTED)
            return
        total += sum(each or 0 for each in grown)
    sheet.add(None, "detector_exits", total)


def _is_counted(flow: Flow) -> bool:
    known = ALGORITHMS[flow.algorithm]
    return known.module == _KERNELS_OWN and known.detector == HYSTART


def _ended_by_detector(data: Measured, flow: Flow) -> bool:
    ends_by = ALGORITHMS[flow.algorithm].ends_by
    return any(event.reason in ends_by for event in data.events.get(flow.id, []))
