# SPDX-License-Identifier: Apache-2.0
"""qdisc.bin to the table ``two_queues``: what a discipline with two queues says of each, from its own statistics."""

from __future__ import annotations

import dataclasses

import numpy as np

from howdah.ingest.framed import parse, read_frames
from howdah.ingest.interface import interface_names, read_interfaces
from howdah.ingest.netlink import Item, Slot, attributes, text_of
from howdah.ingest.qdisc import locate
from howdah.ingest.source import Context, Made, SourceReport, texts
from howdah.linux.netlink.discipline import statistics_of
from howdah.linux.netlink.discipline.discipline import HopQueue
from howdah.linux.netlink.qdisc import TCA_KIND, TCA_STATS2, TCA_STATS_APP, TCMSG
from howdah.record import table as store
from howdah.record.schema import TWO_QUEUES

_READINGS = tuple(name for name in TWO_QUEUES.names if name not in ("node", "interface", "handle", "time_ns"))
_ONE = 1 << 32


def _readings(kind: str) -> dict[str, int]:
    """Where each column is in the statistics of a kind; nothing for one that has one queue."""
    of = statistics_of(kind)
    return dict(of.readings) if of is not None and issubclass(of, HopQueue) else {}


def _locate(answer: bytes, kind: int, start: int, end: int) -> Item | None:
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
    """One row a reading and queue; no table where no queue of the plan has two."""
    kinds = {queue.kind for queue in context.plan.queues}
    if not any(map(_readings, kinds)):
        return {}
    _frames, links = context.once(read_interfaces)
    interfaces = interface_names(context, links)
    frames = read_frames(context.directory.raw / "qdisc.bin")
    records = parse(frames, _locate, _READINGS)
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
