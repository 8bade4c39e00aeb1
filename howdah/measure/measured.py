# SPDX-License-Identifier: Apache-2.0
"""The tables of a run as measures and judge use them, and which flows count in which measure: background takes part,
but is not measured."""

from __future__ import annotations

from dataclasses import dataclass, field
from functools import cached_property

import numpy as np
import pyarrow as pa

from howdah.linux.netlink.discipline.netem import Netem
from howdah.measure import throughput
from howdah.measure.capacity import FairCapacity, LinkCapacity, Stairs, Steps
from howdah.measure.event import SlowStartEvent, events_of
from howdah.measure.row import Sheet
from howdah.measure.sampled import (
    NEVER,
    Busy,
    Counters,
    Samples,
    busy_of,
    interface_samples,
    qdisc_samples,
    steady,
    tcp_info_samples,
)
from howdah.measure.trace import SECOND_NS, FlowTrace, Integers, columns_of, trace_of
from howdah.plan.host_queue import host_queues
from howdah.plan.operation import VethLink
from howdah.plan.plan import BACKGROUND, MEASURED, Flow, Plan
from howdah.plan.policer import INGRESS_HANDLE
from howdah.plan.qdisc import ROOT_HANDLE
from howdah.plan.route import changing_rates, way
from howdah.record import table as store
from howdah.record.delivery import opportunities
from howdah.record.directory import RunDirectory

_ROLES = (MEASURED, BACKGROUND)


@dataclass(frozen=True)
class Measured:
    """The tables of a run, reduced to what the measures need. Also used by the judge."""

    plan: Plan
    traces: list[FlowTrace]
    info: dict[int, Samples]
    info_receiver: dict[int, Samples]
    bottleneck: Samples
    counters: Counters
    flows: pa.Table
    way_back: Samples | None = None  # the interface of the bottleneck's reverse direction, if that has a rate
    policer: Samples | None = None  # the policer's qdisc, if there is one: packets that arrived, and drops
    events: dict[int, list[SlowStartEvent]] = field(default_factory=dict)
    lines_ahead: list[Samples] = field(default_factory=list)  # delay lines towards receivers, if they have a limit
    # Queues of the senders' interfaces, if the plan has them, by node and interface.
    host_queues: dict[tuple[str, str], Samples] = field(default_factory=dict)
    reverse_queue: Samples | None = None  # the queue of the reverse direction, if its rate changes

    @cached_property
    def capacity(self) -> FairCapacity:
        """The capacity shared by the flows that send over the bottleneck, whatever their role."""
        crossing = [trace for trace in forward(self.plan, self.traces) if len(trace)]
        spans = [(trace.start_ns, trace.received_ns or trace.stop_ns) for trace in crossing]
        path = self.plan.path
        if (stairs := self._stairs()) is not None:
            return LinkCapacity(stairs, spans)
        goodput = path.mss_bytes / path.frame_bytes
        changes = [(at_us * 1000, rate * goodput) for at_us, rate in path.rate_steps]
        return FairCapacity(path.capacity_goodput_bits_per_second, spans, changes)

    def _stairs(self, *, reverse: bool = False) -> Stairs | None:
        """Return the goodput of a link that follows a trace: what full frames carry in its opportunities."""
        link, path = opportunities(self.plan, reverse=reverse), self.plan.path
        if link is None:
            return None
        frames = link.size_bytes / (path.frame_bytes - link.overhead_bytes_less)
        bytes_per_ns = link.rate_bits_per_second / 8 / SECOND_NS * path.mss_bytes / path.frame_bytes
        return Stairs(bytes_per_ns, link.end_ns, link.until, frames * path.mss_bytes)

    @cached_property
    def link_busy(self) -> Busy:
        """When the bottleneck was busy."""
        path, capacity = self.plan.path, self.capacity
        frames = path.frame_bytes / path.mss_bytes
        return busy_of(self.bottleneck, "sent_bytes", lambda begin, end: frames * capacity.carried_bytes(begin, end))

    @cached_property
    def way_back_busy(self) -> Busy:
        """When the reverse path was busy; never if it has no rate."""
        path = self.plan.path
        rate = path.reverse_rate_bits_per_second
        if self.way_back is not None and (stairs := self._stairs(reverse=True)) is not None:
            frames = path.frame_bytes / path.mss_bytes
            return busy_of(
                self.way_back, "tx_bytes", lambda begin, end: frames * (stairs.integral(end) - stairs.integral(begin))
            )
        if self.way_back is None or rate is None:
            return NEVER
        changes = [(at_us * 1000, float(each)) for at_us, each in path.reverse_rate_steps]
        if not changes:
            return busy_of(self.way_back, "tx_bytes", steady(rate))
        rates = Steps(rate, changes)
        return busy_of(
            self.way_back, "tx_bytes", lambda begin, end: (rates.integral(end) - rates.integral(begin)) / 8 / SECOND_NS
        )

    @cached_property
    def _trace_of(self) -> dict[int, FlowTrace]:
        return {trace.flow.id: trace for trace in self.traces}

    def trace(self, flow: Flow) -> FlowTrace:
        return self._trace_of[flow.id]


def load(directory: RunDirectory, plan: Plan) -> Measured:
    """Read the tables of a run. Raise HowdahError if one is missing or of another version."""
    probe = store.read(directory, "tcp_probe")
    order, parts = _by_flow(probe, plan)
    columns = columns_of(probe.take(order))
    info = store.read(directory, "tcp_info")
    flows = store.read(directory, "flow")
    told = store.read(directory, "slow_start")
    order, events = _by_flow(told, plan)
    told = told.take(order)
    records = {row["flow"]: row for row in flows.to_pylist()}
    queues = store.read(directory, "qdisc")
    senders = tcp_info_samples(info, [flow.id for flow in plan.flows], "sender")
    calibration = plan.calibration
    bottleneck = calibration.bottleneck
    return Measured(
        plan=plan,
        traces=[
            trace_of(
                {name: column[part] for name, column in columns.items()},
                flow,
                records.get(flow.id, {}),
                _segment_bytes(plan, flow, senders[flow.id]),
            )
            for flow, part in zip(plan.flows, parts, strict=True)
        ],
        info=senders,
        info_receiver=tcp_info_samples(info, [flow.id for flow in plan.flows], "receiver"),
        bottleneck=qdisc_samples(queues, *bottleneck),
        counters=Counters(store.read(directory, "counter")),
        flows=flows,
        way_back=_way_back(directory, plan),
        policer=qdisc_samples(queues, *bottleneck[:2], INGRESS_HANDLE) if plan.path.policer is not None else None,
        events={
            flow.id: events_of(told.slice(part.start, part.stop - part.start))
            for flow, part in zip(plan.flows, events, strict=True)
            if part.stop > part.start
        },
        reverse_queue=_reverse_queue(queues, plan),
        host_queues={
            (each.node, each.interface): qdisc_samples(queues, each.node, each.interface, ROOT_HANDLE)
            for each in host_queues(plan)
        },
        lines_ahead=_lines_ahead(queues, plan) if plan.path.delay_limit_packets is not None else [],
    )


def _lines_ahead(queues: pa.Table, plan: Plan) -> list[Samples]:
    last = {(hops[-1].node, hops[-1].interface) for flow in plan.flows if (hops := way(plan, *flow.ends))}
    return [qdisc_samples(queues, *line.place) for line in plan.queues if line.kind == Netem.kind and line.at in last]


def _reverse_queue(queues: pa.Table, plan: Plan) -> Samples | None:
    calibration = plan.calibration
    for node, interface in changing_rates(plan):
        if node != calibration.bottleneck_node:
            return qdisc_samples(queues, node, interface, calibration.bottleneck_handle)
    return None


def _way_back(directory: RunDirectory, plan: Plan) -> Samples | None:
    """Return the readings of the interface at the other end of the bottleneck's link."""
    if plan.path.reverse_rate_bits_per_second is None:
        return None
    bottleneck = plan.calibration.bottleneck[:2]
    for operation in plan.operations:
        if isinstance(operation, VethLink) and bottleneck in operation.ends:
            other = operation.ends[1 - operation.ends.index(bottleneck)]
            return interface_samples(store.read(directory, "interface"), *other)
    return None


def _segment_bytes(plan: Plan, flow: Flow, info: Samples) -> int:
    """Return the data in a full packet: by the path's MTU; for a stack that chooses it, by its log or its packets."""
    if (flow.quic is None and flow.sender_stack is None) or not info.has("mss_bytes"):
        return plan.path.mss_bytes
    return int(info["mss_bytes"].max())


def _by_flow(table: pa.Table, plan: Plan) -> tuple[Integers, list[slice]]:
    """Return an order of the rows, and the slice of each flow of the plan in it; a search per flow is too slow for
    thousands."""
    flows = table["flow"].to_numpy()
    order = np.argsort(flows, kind="stable")
    flows = flows[order]
    ids = np.array([flow.id for flow in plan.flows], dtype=flows.dtype)  # with another type, each search copies all
    begins, ends = (np.searchsorted(flows, ids, side=side).tolist() for side in ("left", "right"))
    return order, [slice(begin, end) for begin, end in zip(begins, ends, strict=True)]


def crosses(plan: Plan, flow: Flow) -> bool:
    """Whether a flow's data crosses the bottleneck in the direction whose rate it limits."""
    if flow.direction != "forward":
        return False
    if flow.role != BACKGROUND:
        return True  # the compiler refuses measured flows that do not
    bottleneck = plan.calibration.bottleneck[:2]
    return any((hop.node, hop.interface) == bottleneck for hop in way(plan, flow.sender, flow.receiver))


def forward(plan: Plan, traces: list[FlowTrace]) -> list[FlowTrace]:
    """Return the traces of the flows that share the bottleneck's capacity."""
    return [trace for trace in traces if crosses(plan, trace.flow)]


def background_rows(sheet: Sheet, plan: Plan, trace: FlowTrace) -> None:
    """Add the goodput of a background flow in the measurement window, its only measure."""
    begin, end = (edge * 1000 for edge in plan.measure_window_us)
    begin, end = max(begin, trace.start_ns), min(end, trace.stop_ns)
    rate = throughput.goodput_bits_per_second(trace, begin, end) if len(trace) else None
    why = "no ACK of this flow was traced, or it was not active in the window"
    sheet.add(trace.flow, "background_goodput_bits_per_second", rate, why, role=BACKGROUND)


def role_rows(sheet: Sheet, plan: Plan, crossing: list[FlowTrace], capacity: FairCapacity) -> None:
    """Add the utilisation by each role, if there is background: their sum is ``utilisation``."""
    if all(flow.role != BACKGROUND for flow in plan.flows):
        return
    begin, end = (edge * 1000 for edge in plan.measure_window_us)
    for role in _ROLES:
        traces = [trace for trace in crossing if trace.flow.role == role]
        used = throughput.utilisation(traces, capacity, begin, end)
        sheet.add(None, f"utilisation_{role}", used, "the window is empty", role=role)
