# SPDX-License-Identifier: Apache-2.0
"""Ingest interface.bin into the table ``interface``: traffic counters of every interface, from RTM_NEWLINK
(rtnl_link_stats64).
"""

from __future__ import annotations

import struct

import pyarrow as pa

from howdah.hooks import Reader
from howdah.ingest.framed import (
    Frames,
    Item,
    MalformedMessageError,
    Records,
    Slot,
    attributes,
    parse,
    read_frames,
    skeleton_of,
    text_of,
)
from howdah.ingest.source import Context, SourceReport, nullable, texts
from howdah.linux.netlink.link import IFLA_IFNAME, IFLA_STATS64, RTM_NEWLINK
from howdah.plan.operation import VethLink
from howdah.record import table as store
from howdah.record.schema import TEXT

SCHEMA = pa.schema(
    [
        ("node", TEXT),
        ("interface", TEXT),
        ("time_ns", pa.int64()),
        ("rx_bytes", pa.int64()),
        ("rx_packets", pa.int64()),
        ("rx_dropped_packets", pa.int64()),
        ("tx_bytes", pa.int64()),
        ("tx_packets", pa.int64()),
        ("tx_dropped_packets", pa.int64()),
    ]
)
_IFINFOMSG = struct.Struct("<BxHiII")
# struct rtnl_link_stats64 begins with these; all are 64 bits.
_ORDER = (
    "rx_packets",
    "tx_packets",
    "rx_bytes",
    "tx_bytes",
    "rx_errors",
    "tx_errors",
    "rx_dropped_packets",
    "tx_dropped_packets",
)
_NAMES = ("rx_bytes", "rx_packets", "rx_dropped_packets", "tx_bytes", "tx_packets", "tx_dropped_packets")


def locate(answer: bytes, kind: int, start: int, end: int) -> Item | None:
    """The layout of one answer; its identity is (interface index, name)."""
    if kind != RTM_NEWLINK:
        return None
    if end - start < _IFINFOMSG.size:
        raise MalformedMessageError(f"an interface answer of {end - start} bytes")
    _family, _type, index, _flags, _change = _IFINFOMSG.unpack_from(answer, start)
    found = attributes(answer, start + _IFINFOMSG.size, end)
    fixed = [(start + 4, start + 8), *skeleton_of(found)]
    slots: dict[str, Slot] = {}
    if IFLA_IFNAME in found:
        offset, length = found[IFLA_IFNAME]
        fixed.append((offset, offset + length))
    if IFLA_STATS64 in found:
        offset, length = found[IFLA_STATS64]
        slots = {name: Slot(offset + 8 * n, 8) for n, name in enumerate(_ORDER) if 8 * (n + 1) <= length}
    return Item((str(index), text_of(answer, found.get(IFLA_IFNAME)) or f"if{index}"), slots, fixed)


def read_interfaces(context: Context) -> tuple[Frames, Records]:
    """Parse interface.bin, which also gives the queues the names of interfaces."""
    frames = read_frames(context.directory.raw / "interface.bin")
    return frames, parse(frames, locate, _NAMES)


def interface_names(context: Context, records: Records) -> dict[tuple[int, int], str]:
    """Map (node, interface index) to the name, by the answers and by agent.json's list of links.

    If neither has it, use the order of the plan: links are created in it, and a new namespace numbers them from 2 (1 is
    ``lo``).
    """
    number = {host: position for position, host in enumerate(context.node_names())}
    names = {(node, 1): "lo" for node in number.values()}
    following = dict.fromkeys(number, 2)
    for operation in context.plan.operations:
        for host, interface in operation.ends if isinstance(operation, VethLink) else ():
            names[(number[host], following[host])] = interface
            following[host] += 1
    links = context.agent.links or {}
    for node, host in enumerate(context.node_names()):
        for name, link in links.get(host, {}).items():
            if link.index is not None:
                names[(node, link.index)] = name
    pairs = sorted(set(zip(records.node.tolist(), records.identity.tolist(), strict=True)))
    for node, code in pairs:
        index, name = records.identities[code]
        names[(node, int(index))] = name
    return names


def ingest_interface(context: Context) -> tuple[pa.Table, SourceReport]:
    """Make the table: one row per reading and interface."""
    frames, records = context.once(read_interfaces)
    report = SourceReport()
    report.problems.extend(str(item) for item in frames.damage)
    columns: dict[str, object] = {name: nullable(records.columns[name], records.known[name]) for name in _NAMES}
    columns |= {
        "node": texts(records.node, context.node_names()),
        "interface": texts(records.identity, [item[1] for item in records.identities]),
        "time_ns": records.time_ns - context.epoch_ns,
    }
    table = store.table_of("interface", columns)
    report.rows = table.num_rows
    return table, report


READER = Reader(SCHEMA, ingest_interface)
