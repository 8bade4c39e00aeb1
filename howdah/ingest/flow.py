# SPDX-License-Identifier: Apache-2.0
"""agent.json to the table ``flow``: what became of each flow of the plan."""

from __future__ import annotations

import pyarrow as pa

from howdah.ingest.source import Context, SourceReport
from howdah.plan.plan import Flow
from howdah.record import table as store
from howdah.record.agent import FlowRecord
from howdah.record.schema import FLOW


def ingest_flow(context: Context) -> tuple[pa.Table, SourceReport]:
    """One row a flow of the plan, in its order; a flow the agent did not report has null times and is not complete.

    Times of agent.json already count from the epoch.
    """
    report = SourceReport()
    columns: dict[str, list[object]] = {name: [] for name in FLOW.names}
    for flow in context.plan.flows:
        record = context.agent.flow(flow.id)
        if flow.id not in context.agent.by_id:
            report.problems.append(f"{flow.title} is not in agent.json")
        elif record.error:
            report.problems.append(f"{flow.title}: {record.error}")
        row = {
            "flow": flow.id,
            "flow_name": flow.name,
            "sender_node": flow.sender,
            "receiver_node": flow.receiver,
            "algorithm": flow.algorithm,
            "kernel_algorithm": flow.kernel_algorithm,
            "start_ns": record.connected_ns if _begins_connected(flow) else record.start_ns,
            "connected_ns": record.connected_ns,
            "end_ns": record.end_ns,
            "bytes_sent_bytes": record.bytes_sent,
            "bytes_received_bytes": record.bytes_received,
            "complete": record.complete and not _is_cut(flow, record),
        }
        for name, value in row.items():
            columns[name].append(value)
    table = store.table_of("flow", {name: pa.array(values, FLOW.field(name).type) for name, values in columns.items()})
    report.rows = table.num_rows
    return table, report


def _begins_connected(flow: Flow) -> bool:
    """Of a transfer by iperf3: its processes talk on a control connection first, and wait a round trip for the server's
    word on it where other sources wait for the handshake."""
    return flow.kind.control_connection and flow.size_bytes is not None


def _is_cut(flow: Flow, record: FlowRecord) -> bool:
    """Whether the end of the run cut a transfer short: what had been written by then arrived, and no more."""
    return flow.size_bytes is not None and (record.bytes_received or 0) < flow.size_bytes
