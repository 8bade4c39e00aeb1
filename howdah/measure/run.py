# SPDX-License-Identifier: Apache-2.0
"""tables/ to metrics.json: all measures of one run."""

from __future__ import annotations

from howdah.errors import HowdahError
from howdah.extension import Extension, extensions
from howdah.hooks import MeasureEntry
from howdah.linux.netlink.discipline import queues
from howdah.measure import group, outside, overshoot, queue, throughput
from howdah.measure.blind import ends_unseen, unseen_at_the_end
from howdah.measure.capacity import buffer_drain_ns
from howdah.measure.course import course_rows
from howdah.measure.cpu import cpu_rows
from howdah.measure.event import estimate_rows
from howdah.measure.exit import Exit
from howdah.measure.exit_rows import NO_ACKS, detector_rows, exit_rows, find_startup
from howdah.measure.growth import growth_end_rows
from howdah.measure.held import Together, collect, held_rows, is_told, together_rows
from howdah.measure.host_processor import processor_host_rows
from howdah.measure.limit import limit_rows
from howdah.measure.measured import Measured, background_rows, forward, load, role_rows
from howdah.measure.opening import extreme_rows, jump_rows, opening_rows, reach_rows
from howdah.measure.own_stack import own_stack_rows, unseen
from howdah.measure.processor import processor_rows
from howdah.measure.queue import link_rows
from howdah.measure.receiver import receiver_rows
from howdah.measure.recovery import early_loss_rows, recovery_rows
from howdah.measure.rounds import raw_rtt, sent_once
from howdah.measure.row import GroupOf, Sheet
from howdah.measure.sampled import Samples
from howdah.measure.trace import SECOND_NS, FlowTrace
from howdah.plan.plan import BACKGROUND, Plan
from howdah.record.agent import AgentRecord
from howdah.record.connections import Connections, write_connections
from howdah.record.directory import RunDirectory, write_json
from howdah.record.raw import agent_or_empty

_FIFO = ("bfifo", "pfifo")
_NOT_CONNECTED = "when the flow could send is not known"


def measure(directory: RunDirectory, plan: Plan, data: Measured | None = None) -> None:
    """Write metrics.json and, beside it, the measures of the connections of groups.

    Formulas are in the docstrings of this package; docs/measures.md lists them.

    ``data`` are the tables if they have been read already. Raise HowdahError if they cannot be read.
    """
    data, agent = data or load(directory, plan), agent_or_empty(directory)
    ends = ends_unseen(data)
    sheet = Sheet(
        {
            "run": plan.run,
            "engine": plan.engine,
            "kernel": agent.kernel_release or plan.kernel,
            "algorithm": plan.algorithm,
            "receiver": plan.receiver,
            "repetition": plan.repetition,
            "axes": plan.axes,
        },
        {flow.id: flow.receiver_name for flow in plan.flows if flow.receiver_name != plan.receiver},
        unseen=unseen(plan) | unseen_at_the_end(data, ends),
        ends_unseen=ends,
    )
    together: dict[str, Together] = {}
    for trace in data.traces:
        if trace.flow.group is not None:
            if trace.flow.role != BACKGROUND:
                group.connection_rows(sheet, trace, agent.flow(trace.flow.id))
                extreme_rows(sheet, trace)
                jump_rows(sheet, data, trace)
                gathered = together.setdefault(trace.flow.group, Together())
                collect(gathered, data, trace, agent.flow(trace.flow.id))
            continue
        if trace.flow.role == BACKGROUND:
            background_rows(sheet, plan, trace)
            continue
        _flow_rows(sheet, data, trace)
        outside.compare(sheet, directory, trace.flow, data.info[trace.flow.id], plan.epoch_us * 1000)
    group.group_rows(sheet, plan, agent)
    for name, gathered in together.items():
        first = next(flow for flow in plan.flows if flow.group == name)
        if is_told(first):
            together_rows(sheet, GroupOf(name, first.algorithm, first.role), gathered)
    _run_rows(sheet, data)
    detector_rows(sheet, data)
    processor_host_rows(sheet, directory, data)
    receiver_rows(sheet, directory, data)
    own_stack_rows(sheet, directory, data)
    footprint_rows(sheet, agent)
    extension_rows(sheet, directory, data)
    if plan.collect.cpu:
        cpu_rows(sheet, directory, plan)
        if plan.traits.finite_processor:
            processor_rows(sheet, directory, data)
    connections = Connections(sheet.connections.table())
    write_connections(directory, connections)
    write_json(directory.metrics, sheet.plain(connections))


def _flow_rows(sheet: Sheet, data: Measured, trace: FlowTrace) -> None:
    flow = trace.flow
    plan = data.plan
    info = data.info[flow.id]
    startup = find_startup(data, trace)
    exit_rows(sheet, data, trace, startup)
    limit_rows(sheet, trace, info)
    held_rows(sheet, data, trace, startup.found)
    estimate_rows(sheet, trace, data.events.get(flow.id, []))
    reach_rows(sheet, trace, plan.measure_cwnd_packets)
    found = startup.found
    why = None if len(trace) else NO_ACKS
    path = plan.path
    above = overshoot.overshoot_packets(trace, found, data.capacity, path)
    sheet.add(flow, "overshoot_packets", above, why)
    sheet.add(flow, "peak_cwnd_packets", overshoot.peak_cwnd(trace, found), why)
    _loss_rows(sheet, data, trace, info, found)
    reached = throughput.time_to_share_s(trace, data.capacity)
    missing = why or "no RTT window reached 90 % of the fair capacity"
    sheet.add(flow, "time_to_90_percent_s", reached, missing)
    missing = why or "no RTT window reached 10 % of the capacity: all of it was ramp"
    sheet.add(flow, "blackout_s", throughput.blackout_s(trace, data.capacity), missing)
    begin, end = (edge * 1000 for edge in plan.measure_window_us)
    begin, end = max(begin, trace.start_ns), min(end, trace.stop_ns)
    rate = throughput.flow_goodput_bits_per_second(trace, begin, end) if len(trace) else None
    missing = why or "the flow was not active in the window"
    sheet.add(flow, "goodput_bits_per_second", rate, missing)
    course_rows(sheet, data, trace, startup, rate, end)
    if flow.sender_stack is None:
        growth_end_rows(sheet, trace, data.capacity, path, NO_ACKS)
    opening_rows(sheet, trace, path, data.capacity)
    extreme_rows(sheet, trace)
    jump_rows(sheet, data, trace)
    _rtt_rows(sheet, trace, info, path.early_us)
    if flow.size_bytes is not None:
        _completion_row(sheet, data, trace, flow.size_bytes)


def _loss_rows(sheet: Sheet, data: Measured, trace: FlowTrace, info: Samples, found: Exit | None) -> None:
    flow = trace.flow
    drain_ns = overshoot.first_drain_ns(trace, data.capacity, data.plan.path)
    episode = overshoot.first_loss_episode(trace, info, data.bottleneck, drain_ns, len(data.plan.flows))
    recovery_rows(sheet, data, trace, episode)
    early_loss_rows(sheet, data, trace, found, episode, drain_ns)
    why = None if len(trace) else NO_ACKS
    dropped = 0 if episode is None and len(trace) else (episode.dropped if episode else None)
    again = 0 if episode is None and len(trace) else (episode.retransmitted if episode else None)
    sheet.add(flow, "dropped_packets", dropped, why or "the queue was not read")
    sheet.add(flow, "first_loss_retransmitted_packets", again, why or "tcp_info was not read")
    by_info = int(info["total_retrans_packets"].max()) if info.has("total_retrans_packets") else None
    of_kernel = flow.is_tcp and flow.sender_stack is None
    alone = of_kernel and sum(other.sender == flow.sender for other in data.plan.flows) == 1
    by_mib = data.counters.total(flow.sender, "TcpRetransSegs") if alone else None
    total = by_mib if by_mib is not None else by_info
    sheet.add(flow, "retransmitted_packets", total, "neither counters nor tcp_info were read")
    if by_info is not None and by_mib is not None:
        # The last reading of tcp_info precedes the socket's close, so it may miss the latest retransmissions.
        sheet.cross_check(
            flow.id,
            "retransmitted_packets",
            {"mib": by_mib, "tcp_info": by_info},
            by_info <= by_mib,
            "tcp_info counts more retransmissions than the host",
        )


def _rtt_rows(sheet: Sheet, trace: FlowTrace, info: Samples, early_us: int) -> None:
    flow = trace.flow
    rtt, good = raw_rtt(trace)
    why = "no ACK acknowledged new data" if len(trace) else NO_ACKS
    least = int(rtt[good].min()) / 1000 if good.any() else None
    sure = good & sent_once(trace, info)
    most = int(rtt[sure].max()) / 1000 if sure.any() else None
    sheet.add(flow, "min_rtt_us", least, why)
    why = "every byte that an ACK can be matched with may have been sent twice" if good.any() else why
    sheet.add(flow, "max_rtt_us", most, why)
    # tcpi_min_rtt is a windowed minimum (tcp_min_rtt_wlen) in whole microseconds: compare with its least value.
    # A sender such as iperf3 may continue after its time, and is traced until it stops. Leave out readings after the
    # last record, when a schedule of the path is over, and ACKs after the last reading.
    until_ns = max(trace.stop_ns, int(trace.time_ns[-1])) if len(trace) else trace.stop_ns
    read_ns = info.time_ns[info.time_ns <= until_ns]
    kernel = info.least("min_rtt_us", until_ns)
    good &= trace.time_ns <= (read_ns[-1] if read_ns.size else until_ns)
    least = int(rtt[good].min()) / 1000 if good.any() else None
    if least is not None and kernel is not None:
        # An ambiguous sample comes from time stamps, which count milliseconds; a packet that overtakes is acknowledged
        # selectively, which the kernel measures, but sequence numbers do not show.
        tolerance = 1000 + 0.001 * flow.rtt_us + early_us
        sheet.cross_check(
            flow.id,
            "min_rtt_us",
            {"tcp_probe": least, "tcp_info": kernel},
            abs(kernel - least) <= tolerance,
            "the RTT from sequence numbers and the kernel's own minimum differ by more than 1 ms and 0.1 %",
        )


def _completion_row(sheet: Sheet, data: Measured, trace: FlowTrace, size_bytes: int) -> None:
    flow = trace.flow
    rows = (row for row in data.flows.to_pylist() if row["flow"] == flow.id)
    end = next((row["end_ns"] for row in rows if row["complete"]), None)
    value = None if end is None else (end - trace.start_ns) / SECOND_NS
    why = f"the flow did not complete its {size_bytes} bytes"
    sheet.add(flow, "completion_time_s", value, why)
    handshake_s = None if trace.connected_ns is None else (trace.connected_ns - trace.start_ns) / SECOND_NS
    moved = None if value is None or handshake_s is None or flow.kind.control_connection else value - handshake_s
    sheet.add(flow, "transfer_time_s", moved, why if value is None else _NOT_CONNECTED)
    traced = throughput.completion_time_s(trace, size_bytes)
    if value is not None and traced is not None:
        sheet.cross_check(
            flow.id,
            "completion_time_s",
            {"agent": value, "tcp_probe": traced},
            abs(value - traced) <= 2 * flow.rtt_us / 1e6,
            "the agent and the last ACK differ by more than two round trips",
        )


def _run_rows(sheet: Sheet, data: Measured) -> None:
    plan = data.plan
    path = plan.path
    begin, end = (edge * 1000 for edge in plan.measure_window_us)
    crossing = forward(plan, data.traces)
    used = throughput.utilisation(crossing, data.capacity, begin, end)
    sheet.add(None, "utilisation", used, "the window is empty")
    link_rows(sheet, data)
    role_rows(sheet, plan, crossing, data.capacity)
    _utilisation_cross_check(sheet, data, used, begin, end)
    flows = [(trace, data.info[trace.flow.id]) for trace in data.traces]
    peak = queue.queue_peak(flows, data.bottleneck, path.rate_bits_per_second, path.frame_bytes, _is_fifo(plan))
    best = peak.sampled_bytes if peak.sampled_bytes is not None else peak.by_rtt_bytes
    sheet.add(None, "queue_peak_bytes", best, "neither the queue nor an RTT was measured")
    if peak.sampled_bytes is not None and peak.by_rtt_bytes is not None:
        sheet.cross_check(
            None,
            "queue_peak_bytes",
            {"qdisc": peak.sampled_bytes, "tcp_probe": round(peak.by_rtt_bytes)},
            peak.agree,
            f"the queue's counter and the longest RTT differ by more than {peak.tolerance_bytes:.0f} bytes",
        )
    drops = data.bottleneck["drops_packets"] if data.bottleneck.has("drops_packets") else None
    total = int(drops[-1] - drops[0]) if drops is not None else None
    sheet.add(None, "bottleneck_drops_packets", total, "the queue was not read")
    if path.policer is not None:
        held = data.policer
        policed = (
            int(held["drops_packets"][-1] - held["drops_packets"][0]) if held and held.has("drops_packets") else None
        )
        sheet.add(None, "policer_drops_packets", policed, "the policer's counters were not read")
    if data.host_queues:
        own = [each for each in data.host_queues.values() if each.has("drops_packets")]
        refused = sum(int(each["drops_packets"][-1] - each["drops_packets"][0]) for each in own) if own else None
        sheet.add(None, "host_queue_drops_packets", refused, "the senders' queues were not read")
    if path.delay_limit_packets is not None:
        read = [line for line in data.lines_ahead if line.has("drops_packets")]
        lost = sum(int(line["drops_packets"][-1] - line["drops_packets"][0]) for line in read) if read else None
        sheet.add(None, "delay_line_drops_packets", lost, "the delay lines were not read")
    ratio = queue.drop_ratio(data.bottleneck)
    sheet.add(None, "bottleneck_drop_ratio", ratio, "the queue was not read, or nothing came to it")
    if plan.path.ecn or queues()[plan.path.queue].marks_always:
        marks = data.bottleneck["marks_packets"] if data.bottleneck.has("marks_packets") else None
        count = int(marks[-1] - marks[0]) if marks is not None else None
        sheet.add(None, "bottleneck_marks_packets", count, "the queue was not read")
    measured = [trace for trace in data.traces if trace.flow.role != BACKGROUND]
    if len(measured) > 1:
        span = throughput.common_span_ns(measured)
        rates = [throughput.goodput_bits_per_second(trace, *span) or 0.0 for trace in measured] if span else []
        jain = throughput.jain_index(rates)
        sheet.add(None, "jain_index", jain, "the flows were never active together, or moved nothing")


def _utilisation_cross_check(sheet: Sheet, data: Measured, used: float | None, begin: int, end: int) -> None:
    """Compare what left the bottleneck's queue in the window with what was acknowledged."""
    path = data.plan.path
    sent = data.bottleneck.growth("sent_bytes", begin, end) if data.bottleneck.has("sent_bytes") else None
    if used is None or sent is None or data.plan.processors:  # ACKs that wait for a processor are late
        return
    full = data.capacity.whole_bytes(begin, end) * path.frame_bytes / path.mss_bytes  # on the wire
    wire = sent / full
    # The queue also carries retransmissions and data that is acknowledged after the window: one RTT and one buffer.
    again = sum(_retransmitted(data.info[flow.id]) for flow in data.plan.flows)
    late = path.rtt_us / 1e6 + buffer_drain_ns(data.capacity, path, end) / SECOND_NS
    # ACKs of flows in reverse are no goodput: at most one, of a twentieth of a frame, per frame.
    back = any(flow.direction == "reverse" for flow in data.plan.flows)
    acks = 0.05 * (path.reverse_rate_bits_per_second or 0) / path.rate_bits_per_second if back else 0.0
    datagrams = group.datagram_bits_per_second(data.plan, begin, end) / 8 * (end - begin) / SECOND_NS / full
    tolerance = late * SECOND_NS / (end - begin) + again * path.frame_bytes / full + acks + datagrams
    sheet.cross_check(
        None,
        "utilisation",
        {"tcp_probe": used, "qdisc": wire},
        -0.01 <= wire - used <= tolerance + 0.01,
        "the queue sent more, or less, than acknowledgements and retransmissions explain",
    )


def _retransmitted(info: Samples) -> int:
    return int(info["total_retrans_packets"].max()) if info.has("total_retrans_packets") else 0


def _is_fifo(plan: Plan) -> bool:
    """Whether the longest RTT shows the bottleneck's backlog: the queue is a FIFO, and nothing else delays packets."""
    path = plan.path
    if path.delay_variation is not None or path.reverse_rate_bits_per_second is not None or path.hops:
        return False
    if path.rate_changes or plan.processors or any(item.op == "qdisc" for item in plan.timeline):
        return False
    kinds = [queue.kind for queue in plan.queues if queue.place == plan.calibration.bottleneck]
    return bool(kinds) and kinds[-1] in _FIFO


def extension_rows(sheet: Sheet, directory: RunDirectory, data: Measured) -> None:
    """Add the measures of extensions. Raise HowdahError, with the package's name, if one fails."""
    for name, extension in extensions("measures").items():
        entry: MeasureEntry = extension.load()
        for flow, value in _values(extension, entry, directory, data).items():
            if isinstance(value, str) and not entry.metric.is_text:
                sheet.add(flow, name, None, value)
            else:
                sheet.add(flow, name, value)


def _values(
    extension: Extension, entry: MeasureEntry, directory: RunDirectory, data: Measured
) -> dict[int | None, float | int | str]:
    found: dict[int | None, float | int | str] = extension.guarded(lambda: dict(entry.compute(directory, data)))
    known = {flow.id for flow in data.plan.flows} | {None}
    if strange := set(found) - known:
        raise HowdahError(
            f"the measure {extension.name} of the package {extension.package} has values of flows that the plan has "
            f"not: {sorted(map(str, strange))}",
            hint=f"Keys are numbers of flows, or None for the run. Remove it with: pip uninstall {extension.package}",
        )
    return found


_MODULE = "footprint"


def footprint_rows(sheet: Sheet, agent: AgentRecord) -> None:
    """Add ``sock_bytes``, ``tcp_sock_bytes``, ``ack_sample_bytes``, ``rate_sample_bytes`` and
    ``congestion_control_room_bytes`` of the kernel; no rows if the run does not load the module."""
    module = (agent.modules or {}).get(_MODULE)
    for name, size in module.parameters.items() if module else ():
        if size is not None and size.isdecimal():
            sheet.add(None, name, int(size))
