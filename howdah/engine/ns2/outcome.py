# SPDX-License-Identifier: Apache-2.0
"""What became of each flow, as agent.json has it for every engine: made from ns-2's own traces."""

from __future__ import annotations

from typing import Any

from howdah.engine.ns2.network import silent_us
from howdah.errors import HowdahError, RunFailedError
from howdah.ingest.ns2 import FlowAcks, read_acks, read_ends, read_release
from howdah.plan.plan import Flow, Plan
from howdah.record.directory import RunDirectory, write_json
from howdah.trait import Traits


def write_outcome(directory: RunDirectory, plan: Plan) -> None:
    """Write raw/agent.json. Raises RunFailedError where ns-2 left no trace that can be read."""
    try:
        acks = read_acks(directory.raw, plan)
        ends = read_ends(directory.raw)
        release = read_release(directory.raw)
        flows = [_flow(plan, flow, acks[flow.id], ends[flow.id]) for flow in plan.flows]
    except (HowdahError, OSError, ValueError, LookupError, StopIteration) as error:
        raise RunFailedError(f"ns-2's traces cannot be read: {error}", where=str(directory.raw)) from error
    record = {
        "status": "ok",
        "engine": "ns2",
        "kernel_release": Traits(model=release).label,
        "epoch_monotonic_ns": 0,
        "silent_ns": silent_us(plan) * 1000,
        "flows": flows,
    }
    write_json(directory.raw / "agent.json", record)


def _flow(plan: Plan, flow: Flow, acks: FlowAcks, end: dict[str, int]) -> dict[str, Any]:
    mss = plan.path.mss_bytes
    wanted = None if flow.size_bytes is None else -(-flow.size_bytes // mss)
    acked = acks.acknowledged_packets
    whole = wanted is not None and acked >= wanted
    received = acked * mss if flow.size_bytes is None else min(acked * mss, flow.size_bytes)
    return {
        "id": flow.id,
        "start_ns": acks.start_ns,
        "connected_ns": acks.connected_ns,
        "end_ns": acks.time_of(wanted) if whole and wanted is not None else flow.stop_us * 1000,
        "bytes_sent": received,
        "bytes_received": received,
        "complete": whole or wanted is None,
        "segments_sent": end["sent_packets"] - acks.syn,
        "segments_retransmitted": end["retransmitted_packets"],
    }
