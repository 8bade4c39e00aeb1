# SPDX-License-Identifier: Apache-2.0
"""Ingest captures at the ends of flows into the tables ``segment``, one row per TCP segment that left or reached an
end, and ``sack_block``, one row per block of their SACK options.

A capture at an end shows what its TCP received and sent, on any system. Captures elsewhere on the path give no rows.
"""

from __future__ import annotations

import ipaddress
import math
from collections.abc import Iterator, Sequence
from dataclasses import dataclass

import numpy as np
import numpy.typing as npt
import pyarrow as pa
import pyarrow.compute as pc

from howdah.ingest.capture import ACK, MOST_SCALE, SYN, Headers, read_clock, read_packets, tcp_headers
from howdah.ingest.source import Context, Integers, Made, SourceReport, add_rows, nullable, texts
from howdah.linux.netlink.diag import TCP_ESTABLISHED
from howdah.plan.plan import Flow
from howdah.record import table as store
from howdah.record.schema import SACK_BLOCK, SEGMENT

ENDS = ("sender", "receiver")
_PARTS = tuple(name for name in SEGMENT.names if name not in ("flow", "end", "sent_by"))
_WRAP = 1 << 32


@dataclass(frozen=True)
class EndSegments:
    """Segments of one flow at one of its ends, in columns by name; ``ours`` marks those of the flow's sender.
    ``blocks`` has rows (index of the segment, left edge, right edge) in bytes of the other end's data."""

    flow: int
    end: int
    ours: npt.NDArray[np.bool_]
    columns: dict[str, Integers]
    blocks: Integers


def ingest_segments(context: Context) -> Made:
    """Make the tables for every flow at each captured end, in order of time.

    Without captures, or without a record of their clock (older versions), return no table. A damaged file loses rows;
    the source ``pcap`` reports it.
    """
    if not context.plan.collect.pcap:
        return {}
    clock = read_clock(context.directory.raw)
    if clock is None:
        return {}
    report = SourceReport(counts={"other_packets": 0})
    seen: list[EndSegments] = []
    for place in context.plan.collect.pcap:
        node = place.partition(":")[0]
        ends = {flow.id: end for flow in context.plan.flows for end, name in enumerate(_nodes(flow)) if name == node}
        if not ends:
            continue
        packets = read_packets(context.directory.raw / "pcap" / f"{place.replace(':', '-')}.pcap")
        headers = tcp_headers(packets)
        found = list(_of_flows(context, headers, ends))
        report.counts["other_packets"] += len(packets) - sum(rows.size for _, rows, _ in found)
        time_ns = clock.monotonic(headers.realtime_ns) - context.epoch_ns
        seen += [end_segments(flow, ends[flow], headers, time_ns, rows, ours) for flow, rows, ours in found]
    table, blocks = segment_table(seen), block_table(seen)
    report.rows = table.num_rows
    return {"segment": (table, report), "sack_block": (blocks, SourceReport(rows=blocks.num_rows))}


def _nodes(flow: Flow) -> tuple[str, str]:
    return flow.sender, flow.receiver


def _of_flows(
    context: Context, headers: Headers, ends: dict[int, int]
) -> Iterator[tuple[int, Integers, npt.NDArray[np.bool_]]]:
    """Yield each flow with segments here: its id, their positions, ascending, and which of them its sender sent."""
    addresses, address = np.unique(headers.addresses, return_inverse=True)
    ports, port = np.unique(headers.ports, return_inverse=True)
    pairs = address.astype(np.int64) * max(ports.size, 1) + port
    order = np.argsort(pairs, kind="stable")
    pairs = pairs[order]
    for flow in context.plan.flows:
        if flow.id not in ends or flow.datagram_bytes is not None:
            continue
        directions = []
        for source, source_port, target, target_port in _both(flow, context.source_port(flow)):
            first = _index(addresses, source << 32 | target)
            second = _index(ports, source_port << 16 | target_port)
            wanted = -1 if first is None or second is None else first * ports.size + second
            begin, stop = (int(np.searchsorted(pairs, wanted, side=side)) for side in ("left", "right"))
            directions.append(order[begin:stop])
        rows = np.concatenate(directions)
        if rows.size:
            ours = np.arange(rows.size) < directions[0].size
            sorted_ = np.argsort(rows, kind="stable")
            yield flow.id, rows[sorted_], ours[sorted_]


def _both(flow: Flow, source_port: int) -> Iterator[tuple[int, int, int, int]]:
    """Yield source address and port, and target address and port, of the flow's sender and then of its receiver."""
    source, target = (int(ipaddress.IPv4Address(each)) for each in (flow.source_address, flow.destination_address))
    yield source, source_port, target, flow.destination_port
    yield target, flow.destination_port, source, source_port


def _index(values: Integers, wanted: int) -> int | None:
    wanted = wanted - (1 << 64) if wanted >= 1 << 63 else wanted  # as it is in 64 bits with a sign
    at = int(np.searchsorted(values, wanted))
    return at if at < values.size and values[at] == wanted else None


def end_segments(
    flow: int, end: int, headers: Headers, time_ns: Integers, rows: Integers, ours: npt.NDArray[np.bool_]
) -> EndSegments:
    flags = headers.flags[rows]
    syn, acknowledges = (flags & SYN) > 0, (flags & ACK) > 0
    sequence, acknowledged = headers.sequence[rows], headers.acknowledged[rows]
    options = headers.options
    scale = np.minimum(options.scale[rows], MOST_SCALE)
    window = headers.window[rows].copy()
    offered = [scale[syn & mine] for mine in (ours, ~ours)]
    known = all(shifts.size for shifts in offered)
    scaled = known and all((shifts >= 0).all() for shifts in offered)
    relative, confirmed = np.zeros_like(sequence), np.zeros_like(sequence)
    for mine, shifts in ((ours, offered[0]), (~ours, offered[1])):
        origin = _origin(sequence, acknowledged, mine, syn, acknowledges)
        relative[mine] = _from(origin, sequence[mine] + syn[mine])
        theirs = ~mine & acknowledges
        confirmed[theirs] = _from(origin, acknowledged[theirs])
        if scaled:
            window[mine & ~syn] <<= int(shifts[0])
    columns = {
        "time_ns": time_ns[rows],
        "flags": flags,
        "sequence_bytes": relative,
        "payload_bytes": headers.payload_bytes[rows],
        "ack_bytes": np.where(acknowledges, confirmed, -1),
        "window_bytes": np.where(syn | known, window, -1),
        "sack_blocks": options.sack_blocks[rows],
        "mss_bytes": options.mss_bytes[rows],
        "window_scale_bits": scale,
        "sack_permitted": options.sack_permitted[rows],
        "time_stamps": options.time_stamps[rows],
    }
    return EndSegments(flow, end, ours, columns, _blocks(options.sack, rows, acknowledged, confirmed))


def _blocks(sack: Integers, rows: Integers, acknowledged: Integers, confirmed: Integers) -> Integers:
    """The SACK blocks of the segments ``rows`` of a capture, counted relative to what each acknowledges."""
    begin, stop = (np.searchsorted(sack[:, 0], rows, side=side) for side in ("left", "right"))
    count = stop - begin
    segment = np.repeat(np.arange(rows.size), count)
    blocks = sack[np.arange(count.sum()) + np.repeat(begin - np.cumsum(count) + count, count)]
    edges = [confirmed[segment] + _step(edge - acknowledged[segment]) for edge in (blocks[:, 1], blocks[:, 2])]
    return np.column_stack([segment, *edges])


def _origin(
    sequence: Integers,
    acknowledged: Integers,
    mine: npt.NDArray[np.bool_],
    syn: npt.NDArray[np.bool_],
    acknowledges: npt.NDArray[np.bool_],
) -> int:
    """The sequence number of one end's first byte of data, after its SYN; else the first number seen."""
    for values, chosen, step in (
        (sequence, mine & syn, 1),
        (sequence, mine, 0),
        (acknowledged, ~mine & acknowledges, 0),
    ):
        if chosen.any():
            return int(values[chosen][0]) + step
    return 0


def _from(origin: int, numbers: Integers) -> Integers:
    """32-bit sequence numbers as bytes from ``origin``, continued across wraps."""
    counted: Integers = np.cumsum(_step(np.diff(numbers, prepend=origin)))
    return counted


def _step(differences: Integers) -> Integers:
    """Differences of 32-bit sequence numbers as signed numbers."""
    steps = differences & (_WRAP - 1)
    return np.where(steps >= _WRAP >> 1, steps - _WRAP, steps)


def segments_of(table: pa.Table, flow: int, end: str) -> dict[str, Integers]:
    """Columns of a flow's segments at one end, in order, -1 without a value; ``sent_by_sender`` is 0 or 1."""
    mine = table.filter(pc.and_(pc.equal(table["flow"], flow), pc.equal(table["end"], end)))
    names = ("time_ns", "flags", "sequence_bytes", "payload_bytes", "ack_bytes", "window_bytes", "sack_blocks")
    found = {
        name: np.asarray(pc.fill_null(mine[name].cast(pa.int64()), -1).to_numpy(), dtype=np.int64) for name in names
    }
    found["sent_by_sender"] = np.asarray(pc.equal(mine["sent_by"], "sender").to_numpy(), dtype=np.int64)
    return found


def segment_table(seen: list[EndSegments], places: Sequence[str] = ENDS) -> pa.Table:
    """Make the table ``segment``; ``places`` are the names of the ends' numbers."""
    if not seen:
        return SEGMENT.empty_table()
    columns = {name: np.concatenate([each.columns[name] for each in seen]) for name in _PARTS}
    sizes = [each.ours.size for each in seen]
    order = np.argsort(columns["time_ns"], kind="stable")  # of one capture, the order of the file
    columns = {name: values[order] for name, values in columns.items()}
    flows = np.repeat([each.flow for each in seen], sizes)[order]
    ends = np.repeat([each.end for each in seen], sizes)[order]
    sent_by = np.concatenate([np.where(each.ours, 0, 1) for each in seen])[order]
    values: dict[str, object] = dict(columns)
    for name in ("sack_permitted", "time_stamps"):
        values[name] = columns[name].astype(bool)
    for name in ("ack_bytes", "window_bytes", "mss_bytes", "window_scale_bits"):
        values[name] = nullable(columns[name], columns[name] >= 0)
    return store.table_of(
        "segment",
        {**values, "flow": flows, "end": texts(ends, list(places)), "sent_by": texts(sent_by, list(ENDS))},
    )


def block_table(seen: list[EndSegments], places: Sequence[str] = ENDS) -> pa.Table:
    """Make the table ``sack_block``, in order of time; blocks of one segment keep the order of the option."""
    seen = [each for each in seen if each.blocks.size]
    if not seen:
        return SACK_BLOCK.empty_table()
    time_ns = np.concatenate([each.columns["time_ns"][each.blocks[:, 0]] for each in seen])
    order = np.argsort(time_ns, kind="stable")
    sizes = [each.blocks.shape[0] for each in seen]
    edges = np.concatenate([each.blocks[:, 1:] for each in seen])[order]
    sent_by = np.concatenate([np.where(each.ours[each.blocks[:, 0]], 0, 1) for each in seen])[order]
    return store.table_of(
        "sack_block",
        {
            "flow": np.repeat([each.flow for each in seen], sizes)[order],
            "end": texts(np.repeat([each.end for each in seen], sizes)[order], list(places)),
            "sent_by": texts(sent_by, list(ENDS)),
            "time_ns": time_ns[order],
            "left_edge_bytes": edges[:, 0],
            "right_edge_bytes": edges[:, 1],
        },
    )


_SYN, _RST, _ACK = 2, 4, 16


def add_own_stacks(context: Context, made: Made) -> None:
    """Append the rows of every flow whose sender is a TCP stack other than the kernel's."""
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
            add_rows(made, "tcp_probe", _probe(flow, wire), "wire")
        interval_us = context.plan.collect.tcp_info_us
        if interval_us is not None:
            record = context.agent.flow(flow.id)
            end_ns = min(record.end_ns or context.plan.duration_us * 1000, flow.stop_us * 1000)
            begin_ns = int(columns["time_ns"][data][0])
            add_rows(made, "tcp_info", _info(flow, wire, interval_us * 1000, begin_ns, end_ns), "wire")


def _probe(flow: Flow, wire: dict[str, Integers]) -> pa.Table:
    """Rows as tcp_probe would have them: the state before each ACK is processed."""
    una = np.concatenate([np.zeros(1, dtype=np.int64), wire["after"][:-1]])
    columns = {
        "flow": np.full(una.size, flow.id),
        "time_ns": wire["time_ns"],
        "data_len_bytes": np.zeros(una.size, dtype=np.int64),
        "snd_nxt_bytes": wire["snd_nxt"],
        "snd_una_bytes": una,
        "snd_wnd_bytes": wire["window"],
    }
    return store.sparse_table_of("tcp_probe", columns)


def _info(flow: Flow, wire: dict[str, Integers], interval_ns: int, begin_ns: int, end_ns: int) -> pa.Table:
    """The last state that the packets show at each reading of tcp_info, from the first data until the flow's end."""
    last_ns = max(int(wire["time_ns"][-1]), end_ns)
    times = np.arange(math.ceil(begin_ns / interval_ns), last_ns // interval_ns + 1) * interval_ns
    at = np.searchsorted(wire["time_ns"], times, side="right") - 1
    known = at >= 0
    at = np.maximum(at, 0)
    acked = np.where(known, wire["after"][at], 0)
    out = np.where(known, wire["snd_nxt"][at] - acked, 0)
    columns = {
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
    return store.sparse_table_of("tcp_info", columns)
