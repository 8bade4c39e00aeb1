# SPDX-License-Identifier: Apache-2.0
"""The tables of a run as measures and judge use them."""

from __future__ import annotations

from dataclasses import dataclass, field
from functools import cached_property

import numpy as np
import pyarrow as pa

from howdah.measure.capacity import FairCapacity
from howdah.measure.counters import Counters
from howdah.measure.event import SlowStartEvent, events_of
from howdah.measure.role import forward
from howdah.measure.sampled import Samples, qdisc_samples, tcp_info_samples
from howdah.measure.trace import FlowTrace, flow_trace
from howdah.plan.plan import Flow, Plan
from howdah.record import table as store
from howdah.record.directory import RunDirectory


@dataclass(frozen=True)
class Measured:
    """The tables of a run, cut to what the measures need. Also used by the judge."""

    plan: Plan
    traces: list[FlowTrace]
    info: dict[int, Samples]
    info_receiver: dict[int, Samples]
    bottleneck: Samples
    counters: Counters
    flows: pa.Table
    events: dict[int, list[SlowStartEvent]] = field(default_factory=dict)

    @cached_property
    def capacity(self) -> FairCapacity:
        """Shared by the flows that send over the bottleneck, whatever their role."""
        crossing = [trace for trace in forward(self.plan, self.traces) if len(trace)]
        spans = [(trace.start_ns, trace.received_ns or trace.stop_ns) for trace in crossing]
        path = self.plan.path
        goodput = path.mss_bytes / path.frame_bytes
        changes = [(at_us * 1000, rate * goodput) for at_us, rate in path.rate_steps]
        return FairCapacity(path.capacity_goodput_bits_per_second, spans, changes)

    def trace(self, flow: Flow) -> FlowTrace:
        return next(trace for trace in self.traces if trace.flow.id == flow.id)


def load(directory: RunDirectory, plan: Plan) -> Measured:
    """Read the tables of a run. Raises HowdahError if one is missing or of another version."""
    probe = _by_flow(store.read(directory, "tcp_probe"), plan)
    info = store.read(directory, "tcp_info")
    flows = store.read(directory, "flow")
    told = _by_flow(store.read(directory, "slow_start"), plan)
    records = {row["flow"]: row for row in flows.to_pylist()}
    senders = tcp_info_samples(info, [flow.id for flow in plan.flows], "sender")
    calibration = plan.calibration
    return Measured(
        plan=plan,
        traces=[
            flow_trace(probe[flow.id], flow, records.get(flow.id, {}), _segment_bytes(plan, flow, senders[flow.id]))
            for flow in plan.flows
        ],
        info=senders,
        info_receiver=tcp_info_samples(info, [flow.id for flow in plan.flows], "receiver"),
        bottleneck=qdisc_samples(
            store.read(directory, "qdisc"),
            calibration.bottleneck_node,
            calibration.bottleneck_interface,
            calibration.bottleneck_handle,
        ),
        counters=Counters(store.read(directory, "counter")),
        flows=flows,
        events={flow.id: events_of(told[flow.id], flow.id) for flow in plan.flows},
    )


def _segment_bytes(plan: Plan, flow: Flow, info: Samples) -> int:
    """Data in a full packet: by the path's MTU, or of a stack that chooses, what its log or its packets show."""
    if (flow.quic is None and flow.sender_stack is None) or not info.has("mss_bytes"):
        return plan.path.mss_bytes
    return int(info["mss_bytes"].max())


def _by_flow(table: pa.Table, plan: Plan) -> dict[int, pa.Table]:
    """The rows of each flow of the plan, in their order; a search for each of thousands is too slow."""
    flows = table["flow"].to_numpy()
    order = np.argsort(flows, kind="stable")
    table, flows = table.take(order), flows[order]
    ids = np.array([flow.id for flow in plan.flows], dtype=flows.dtype)  # of another type, each search would copy all
    begins, ends = (np.searchsorted(flows, ids, side=side).tolist() for side in ("left", "right"))
    return {flow.id: table.slice(begin, end - begin) for flow, begin, end in zip(plan.flows, begins, ends, strict=True)}
