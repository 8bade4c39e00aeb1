# SPDX-License-Identifier: Apache-2.0
"""Ingest qdisc.bin into the tables ``qdisc`` and ``two_queues``, from RTM_NEWQDISC and RTM_NEWTCLASS.

``qdisc`` has backlog, drops and throughput of queues; ``two_queues`` has the statistics of each queue of a discipline
with two.

Layout: struct tcmsg (include/uapi/linux/rtnetlink.h), TCA_STATS2 (gen_stats.h) and, for kernels or classes without it,
the older TCA_STATS (struct tc_stats, pkt_sched.h). In TCA_STATS2, TCA_STATS_APP has a discipline's own statistics; for
howdah's own disciplines it is a struct of 64-bit counters.
"""

from __future__ import annotations

import dataclasses
from functools import partial

import numpy as np
import pyarrow as pa

from howdah.hooks import Reader
from howdah.ingest.framed import Item, MalformedMessageError, Slot, attributes, parse, read_frames, skeleton_of, text_of
from howdah.ingest.interface import interface_names, read_interfaces
from howdah.ingest.source import Context, Made, SourceReport, nullable, texts
from howdah.linux.netlink.discipline import statistics_of
from howdah.linux.netlink.discipline.discipline import Discipline, HopQueue
from howdah.linux.netlink.qdisc import (
    RTM_NEWQDISC,
    RTM_NEWTCLASS,
    TCA_KIND,
    TCA_STATS,
    TCA_STATS2,
    TCA_STATS_APP,
    TCA_STATS_BASIC,
    TCA_STATS_PKT64,
    TCA_STATS_QUEUE,
    TCMSG,
)
from howdah.record import table as store
from howdah.record.schema import QDISC, TWO_QUEUES

_ROOT = 0xFFFFFFFF
_INGRESS = 0xFFFFFFF1
_NAMES = (
    "backlog_bytes",
    "backlog_packets",
    "sent_bytes",
    "sent_packets",
    "drops_packets",
    "overlimits",
    "marks_packets",
)


def handle_of(number: int) -> str:
    """A handle as tc writes it, in hexadecimal: ``1:``, ``1:10``, ``root``; ``none`` for zero."""
    if number == _ROOT:
        return "root"
    if number == _INGRESS:
        return "ingress"
    if number == 0:
        return "none"
    major, minor = number >> 16, number & 0xFFFF
    return f"{major:x}:{minor:x}" if minor else f"{major:x}:"


def locate(answer: bytes, kind: int, start: int, end: int) -> Item | None:
    """The layout of one answer; its identity is (interface index, handle, parent, kind)."""
    if kind not in (RTM_NEWQDISC, RTM_NEWTCLASS):
        return None
    if end - start < TCMSG.size:
        raise MalformedMessageError(f"a qdisc answer of {end - start} bytes")
    _family, index, handle, parent, _info = TCMSG.unpack_from(answer, start)
    found = attributes(answer, start + TCMSG.size, end)
    fixed = [(start, start + 16), *skeleton_of(found)]
    if TCA_KIND in found:
        offset, length = found[TCA_KIND]
        fixed.append((offset, offset + length))
    slots: dict[str, Slot] = {}
    if TCA_STATS2 in found:
        offset, length = found[TCA_STATS2]
        inner = attributes(answer, offset, offset + length)
        fixed += skeleton_of(inner)
        slots = _stats2(inner) | _marks(answer, inner, text_of(answer, found.get(TCA_KIND)) or "", fixed)
    elif TCA_STATS in found and found[TCA_STATS][1] >= 36:
        slots = _stats(found[TCA_STATS][0])
    identity = (str(index), handle_of(handle), handle_of(parent), text_of(answer, found.get(TCA_KIND)) or "?")
    return Item(identity, slots, fixed)


def _stats2(inner: dict[int, tuple[int, int]]) -> dict[str, Slot]:
    slots: dict[str, Slot] = {}
    if TCA_STATS_BASIC in inner:  # struct gnet_stats_basic: u64 bytes, u32 packets
        offset = inner[TCA_STATS_BASIC][0]
        slots |= {"sent_bytes": Slot(offset, 8), "sent_packets": Slot(offset + 8, 4)}
    if TCA_STATS_PKT64 in inner:  # sent where 32 bits no longer hold the packets
        slots["sent_packets"] = Slot(inner[TCA_STATS_PKT64][0], 8)
    if TCA_STATS_QUEUE in inner:  # struct gnet_stats_queue: qlen, backlog, drops, requeues, overlimits
        offset = inner[TCA_STATS_QUEUE][0]
        slots |= {
            "backlog_packets": Slot(offset, 4),
            "backlog_bytes": Slot(offset + 4, 4),
            "drops_packets": Slot(offset + 8, 4),
            "overlimits": Slot(offset + 16, 4),
        }
    return slots


def _marks(
    answer: bytes, inner: dict[int, tuple[int, int]], kind: str, fixed: list[tuple[int, int]]
) -> dict[str, Slot]:
    """The slot of ECN marks, for kinds that count them."""
    counted = statistics_of(kind)
    if TCA_STATS_APP not in inner or counted is None or counted.marks_at is None:
        return {}
    offset, length = inner[TCA_STATS_APP]
    for step in counted.marks_in:
        found = attributes(answer, offset, offset + length)
        fixed += skeleton_of(found)
        if step not in found:
            return {}
        offset, length = found[step]
    at = counted.marks_at
    return {"marks_packets": Slot(offset + at, 4)} if length >= at + 4 else {}


def _stats(offset: int) -> dict[str, Slot]:
    """Slots in struct tc_stats: u64 bytes; u32 packets, drops, overlimits, bps, pps, qlen, backlog."""
    return {
        "sent_bytes": Slot(offset, 8),
        "sent_packets": Slot(offset + 8, 4),
        "drops_packets": Slot(offset + 12, 4),
        "overlimits": Slot(offset + 16, 4),
        "backlog_packets": Slot(offset + 28, 4),
        "backlog_bytes": Slot(offset + 32, 4),
    }


def ingest_qdisc(context: Context) -> tuple[pa.Table, SourceReport]:
    """Make the table ``qdisc``: one row per reading and queue."""
    _frames, links = context.once(read_interfaces)
    interfaces = interface_names(context, links)
    report = SourceReport()
    frames = read_frames(context.directory.raw / "qdisc.bin")
    records = parse(frames, locate, _NAMES)
    report.problems.extend(str(item) for item in frames.damage)
    nodes = context.node_names()
    names: dict[tuple[int, int], str] = {}
    codes = []
    for node, code in zip(records.node.tolist(), records.identity.tolist(), strict=True):
        index = int(records.identities[code][0])
        key = (node, index)
        if key not in names:
            names[key] = interfaces.get(key) or f"if{index}"
            if key not in interfaces:
                report.problems.append(
                    f"no interface {index} of {nodes[node] if node < len(nodes) else f'node {node}'} is known by name"
                )
        codes.append(key)
    order = {key: number for number, key in enumerate(names)}
    interface = np.array([order[key] for key in codes], dtype=np.int64)
    parents = _parents(context)
    parent_of = []
    for code, key in zip(records.identity.tolist(), codes, strict=True):
        _index, handle, parent, _kind = records.identities[code]
        # Asked for by handle, the kernel answers with the parent of the question, which is none.
        parent_of.append(parents.get((nodes[key[0]], names[key], handle), parent) if parent == "none" else parent)
    parent_names = sorted(set(parent_of))
    parent_codes = np.array([parent_names.index(parent) for parent in parent_of], dtype=np.int64)
    columns: dict[str, object] = {name: nullable(records.columns[name], records.known[name]) for name in _NAMES}
    columns |= {
        "node": texts(records.node, nodes),
        "interface": texts(interface, list(names.values())),
        "handle": texts(records.identity, [item[1] for item in records.identities]),
        "parent": texts(parent_codes, parent_names),
        "kind": texts(records.identity, [item[3] for item in records.identities]),
        "time_ns": records.time_ns - context.epoch_ns,
    }
    table = store.table_of("qdisc", columns)
    report.rows = table.num_rows
    return table, report


def _parents(context: Context) -> dict[tuple[str, str, str], str]:
    """Map (node, interface, handle) to the parent that the plan gave the queue."""
    return {queue.place: queue.parent for queue in context.plan.queues}


READER = Reader(QDISC, ingest_qdisc)


def locate_counters(
    qdisc: str, what: str, names: tuple[str, ...], answer: bytes, kind: int, start: int, end: int
) -> Item | None:
    """The layout of an answer about howdah's own discipline. A node has only one such qdisc, so the identity is its
    kind. ``what`` names it in messages; ``names`` are its counters."""
    if kind != RTM_NEWQDISC:
        return None
    if end - start < TCMSG.size:
        raise MalformedMessageError(f"an answer of {end - start} bytes about a {what}")
    found = attributes(answer, start + TCMSG.size, end)
    name = text_of(answer, found.get(TCA_KIND)) or "?"
    if name != qdisc:
        raise MalformedMessageError(f"an answer about a queue of kind {name} instead of a {what}")
    offset, length = found[TCA_KIND]
    fixed = [*skeleton_of(found), (offset, offset + length)]
    slots: dict[str, Slot] = {}
    if TCA_STATS2 in found:
        offset, length = found[TCA_STATS2]
        inner = attributes(answer, offset, offset + length)
        fixed += skeleton_of(inner)
        offset, length = inner.get(TCA_STATS_APP, (0, 0))
        slots = {name: Slot(offset + 8 * n, 8) for n, name in enumerate(names) if 8 * (n + 1) <= length}
    return Item((name,), slots, fixed)


_READINGS = tuple(name for name in TWO_QUEUES.names if name not in ("node", "interface", "handle", "time_ns"))
_ONE = 1 << 32


def ingest_own(
    context: Context,
    table: str,
    discipline: type[Discipline],
    what: str,
    names: tuple[str, ...],
    instants: tuple[str, ...] = (),
) -> tuple[pa.Table, SourceReport]:
    """Make the table ``table`` of the counters of howdah's own discipline: one row per reading and node.

    ``names`` are the counters. Those in ``instants`` are times of the kernel's clock, and null while the first is 0.
    """
    report = SourceReport()
    frames = read_frames(context.directory.raw / f"{table}.bin")
    records = parse(frames, partial(locate_counters, discipline.kind, what, names), names)
    report.problems.extend(str(item) for item in frames.damage)
    columns: dict[str, object] = {name: nullable(records.columns[name], records.known[name]) for name in names}
    for name in instants:
        known = np.asarray(records.known[name]) & (records.columns[instants[0]] != 0)
        columns[name] = nullable(records.columns[name] - context.epoch_ns, known)
    columns |= {"node": texts(records.node, context.node_names()), "time_ns": records.time_ns - context.epoch_ns}
    made = store.table_of(table, columns)
    report.rows = made.num_rows
    return made, report


def _readings(kind: str) -> dict[str, int]:
    """The offset of each column in the statistics of a kind; empty for a kind with one queue."""
    of = statistics_of(kind)
    return dict(of.readings) if of is not None and issubclass(of, HopQueue) else {}


def _locate_two(answer: bytes, kind: int, start: int, end: int) -> Item | None:
    item = locate(answer, kind, start, end)
    if item is None:
        return None
    found = attributes(answer, start + TCMSG.size, end)
    places = _readings(text_of(answer, found.get(TCA_KIND)) or "")
    if not places or TCA_STATS2 not in found:
        return dataclasses.replace(item, slots={}, wanted=False)
    offset, length = found[TCA_STATS2]
    own = attributes(answer, offset, offset + length).get(TCA_STATS_APP)
    if own is None or own[1] < max(places.values()) + 4:
        return dataclasses.replace(item, slots={}, wanted=False)
    return dataclasses.replace(item, slots={name: Slot(own[0] + at, 4) for name, at in places.items()})


def ingest_two_queues(context: Context) -> Made:
    """Make the table ``two_queues``: one row per reading and queue; no table if no queue of the plan has two."""
    kinds = {queue.kind for queue in context.plan.queues}
    if not any(map(_readings, kinds)):
        return {}
    _frames, links = context.once(read_interfaces)
    interfaces = interface_names(context, links)
    frames = read_frames(context.directory.raw / "qdisc.bin")
    records = parse(frames, _locate_two, _READINGS)
    report = SourceReport()
    report.problems.extend(map(str, frames.damage))
    places = [
        interfaces.get((node, int(records.identities[code][0]))) or f"if{records.identities[code][0]}"
        for node, code in zip(records.node.tolist(), records.identity.tolist(), strict=True)
    ]
    names = sorted(set(places))
    columns: dict[str, object] = {name: records.columns[name] for name in _READINGS}
    columns |= {
        "probability": records.columns["probability"] / _ONE,
        "node": texts(records.node, context.node_names()),
        "interface": texts(np.array([names.index(place) for place in places], dtype=np.int64), names),
        "handle": texts(records.identity, [item[1] for item in records.identities]),
        "time_ns": records.time_ns - context.epoch_ns,
    }
    table = store.table_of("two_queues", columns)
    report.rows = table.num_rows
    return {"two_queues": (table, report)}
