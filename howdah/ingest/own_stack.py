# SPDX-License-Identifier: Apache-2.0
"""Senders that are a TCP of their own, as rows of ``tcp_probe`` and ``tcp_info``: what their packets show.

No kernel has a socket of such a sender. The capture at its interface has every packet, so what was sent and what was
acknowledged is known at each ACK. The congestion window, its threshold and the smoothed round-trip time are not: they
are null. What was sent again are segments that begin below the highest byte sent before.
"""

from __future__ import annotations

import math

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from howdah.ingest.segment import segments_of
from howdah.ingest.source import Context, Integers, Made
from howdah.linux.netlink.diag import TCP_ESTABLISHED
from howdah.plan.plan import Flow
from howdah.record import table as store
from howdah.record.schema import TABLES

_SYN, _RST, _ACK = 2, 4, 16


def add_own_stacks(context: Context, made: Made) -> None:
    """Append the rows of every flow that a stack of its own sent."""
    flows = [flow for flow in context.plan.flows if flow.sender_stack is not None]
    if not flows or "segment" not in made:
        return
    segments = made["segment"][0]
    for flow in flows:
        columns = segments_of(segments, flow.id, "sender")
        ours = columns["sent_by_sender"] > 0
        data = ours & (columns["payload_bytes"] > 0)
        if not data.any():
            continue
        end = columns["sequence_bytes"] + columns["payload_bytes"]
        highest = np.maximum.accumulate(np.where(data, end, 0))
        before = np.concatenate([np.zeros(1, dtype=np.int64), highest[:-1]])
        again = np.cumsum(data & (columns["sequence_bytes"] < before))
        told = ~ours & (columns["flags"] & (_SYN | _RST | _ACK) == _ACK)
        told &= np.arange(told.size) > int(np.flatnonzero(data)[0])
        acked = np.maximum.accumulate(np.where(told, columns["ack_bytes"], 0))
        wire = {
            "time_ns": columns["time_ns"][told],
            "snd_nxt": highest[told],
            "after": np.minimum(acked, highest)[told],
            "again": again[told],
            "window": columns["window_bytes"][told],
            "mss": np.full(int(told.sum()), int(columns["payload_bytes"][data].max())),
        }
        if not wire["time_ns"].size:
            continue
        if context.plan.collect.tcp_probe:
            _append(made, "tcp_probe", _probe(flow, wire))
        interval_us = context.plan.collect.tcp_info_us
        if interval_us is not None:
            record = context.agent.flow(flow.id)
            end_ns = min(record.end_ns or context.plan.duration_us * 1000, flow.stop_us * 1000)
            begin_ns = int(columns["time_ns"][data][0])
            _append(made, "tcp_info", _info(flow, wire, interval_us * 1000, begin_ns, end_ns))


def _probe(flow: Flow, wire: dict[str, Integers]) -> dict[str, object]:
    """As tcp_probe has it: the state before each ACK is processed."""
    una = np.concatenate([np.zeros(1, dtype=np.int64), wire["after"][:-1]])
    return {
        "flow": np.full(una.size, flow.id),
        "time_ns": wire["time_ns"],
        "data_len_bytes": np.zeros(una.size, dtype=np.int64),
        "snd_nxt_bytes": wire["snd_nxt"],
        "snd_una_bytes": una,
        "snd_wnd_bytes": wire["window"],
    }


def _info(flow: Flow, wire: dict[str, Integers], interval_ns: int, begin_ns: int, end_ns: int) -> dict[str, object]:
    """The last state that the packets show at each reading of tcp_info, from the first data until the flow's end."""
    last_ns = max(int(wire["time_ns"][-1]), end_ns)
    times = np.arange(math.ceil(begin_ns / interval_ns), last_ns // interval_ns + 1) * interval_ns
    at = np.searchsorted(wire["time_ns"], times, side="right") - 1
    known = at >= 0
    at = np.maximum(at, 0)
    acked = np.where(known, wire["after"][at], 0)
    out = np.where(known, wire["snd_nxt"][at] - acked, 0)
    return {
        "flow": np.full(times.size, flow.id),
        "end": pa.array(["sender"] * times.size, pa.string()),
        "time_ns": times,
        "state": np.full(times.size, TCP_ESTABLISHED),
        "mss_bytes": np.full(times.size, int(wire["mss"][0])),
        "unacked_packets": -(-out // int(wire["mss"][0])),
        "total_retrans_packets": np.where(known, wire["again"][at], 0),
        "bytes_acked_bytes": acked,
        "snd_wnd_bytes": np.where(known, wire["window"][at], 0),
    }


def _append(made: Made, name: str, columns: dict[str, object]) -> None:
    """In order of time; columns that packets do not show are null."""
    schema = TABLES[name]
    table, source = made[name]
    rows = len(columns["time_ns"])  # type: ignore[arg-type]
    arrays = {}
    for field in schema:
        kind = field.type.value_type if pa.types.is_dictionary(field.type) else field.type
        values = columns.get(field.name)
        arrays[field.name] = pa.nulls(rows, kind) if values is None else pa.array(values).cast(kind)
    more = store.table_of(name, arrays)
    whole = pa.concat_tables([table.unify_dictionaries(), more.unify_dictionaries()], promote_options="permissive")
    source.counts["wire_rows"] = source.counts.get("wire_rows", 0) + rows
    made[name] = (whole.take(pc.sort_indices(whole, sort_keys=[("time_ns", "ascending")])), source)
