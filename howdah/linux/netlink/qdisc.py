# SPDX-License-Identifier: Apache-2.0
"""Queueing disciplines and classes (RTM_*QDISC, RTM_*TCLASS): installing, changing in place, reading.

Options are those of docs/data-format.md, in base units; see include/uapi/linux/pkt_sched.h for their encodings.
"""

from __future__ import annotations

import math
import struct
from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

from howdah.linux.netlink.active import ACTIVE, ChokeDrops, choke_drops, gred_queues, marked
from howdah.linux.netlink.message import (
    NLM_F_CREATE,
    NLM_F_EXCL,
    Message,
    NetlinkSocket,
    attribute,
    nested,
    parse_attributes,
    s64,
    text,
    u32,
    u64,
)
from howdah.linux.netlink.traffic_control import Fq, Htb, Netem, NetemLoss, Tbf

RTM_NEWQDISC = 36
RTM_GETQDISC = 38
RTM_NEWTCLASS = 40

_TC_H_ROOT = 0xFFFFFFFF
_TC_H_INGRESS = 0xFFFFFFF1
TCA_KIND = 1
_TCA_OPTIONS = 2
TCA_STATS = 3
TCA_STATS2 = 7
TCA_STATS_BASIC = 1
TCA_STATS_QUEUE = 3
TCA_STATS_APP = 4
TCA_STATS_PKT64 = 8

TCMSG = struct.Struct("=BxxxiIII")  # family, interface index, handle, parent, info
_RATE = struct.Struct("=BBHhHI")  # struct tc_ratespec
_LINKLAYER_ETHERNET = 1
_CELL_LOG = 3  # the smallest for which 1600 bytes fit into 256 cells; informative since Linux 3.9
_TICK_NS = 64  # PSCHED_SHIFT is 6 in every supported kernel
_U32_MAX = 0xFFFFFFFF

Options = dict[str, Any]


@dataclass(frozen=True)
class QdiscState:
    """What an RTM_NEWQDISC answer says; counters as in gnet_stats_basic and gnet_stats_queue."""

    index: int
    handle: str
    parent: str
    kind: str
    bytes: int
    packets: int
    drops: int
    overlimits: int
    backlog_bytes: int
    backlog_packets: int
    marked: int = 0  # packets that an active queue marked instead of dropping
    causes: ChokeDrops | None = None  # of the drops, where the kind is CHOKe


def parse_handle(value: str) -> int:
    """``root``, ``ingress``, ``1:`` or ``1:10`` (hexadecimal, as everywhere in tc) as a number."""
    if value == "root":
        return _TC_H_ROOT
    if value == "ingress":
        return _TC_H_INGRESS
    major, _, minor = value.partition(":")
    return int(major or "0", 16) << 16 | int(minor or "0", 16)


def format_handle(value: int) -> str:
    if value == _TC_H_ROOT:
        return "root"
    if value == _TC_H_INGRESS:
        return "ingress"
    minor = value & 0xFFFF
    return f"{value >> 16:x}:{minor:x}" if minor else f"{value >> 16:x}:"


def header(index: int, handle: str = "0:", parent: str = "0:") -> bytes:
    return TCMSG.pack(0, index, parse_handle(handle), parse_handle(parent), 0)


def _bytes_per_second(options: Options, name: str = "rate_bits_per_second") -> int:
    return int(options[name]) // 8


def _ticks(size_bytes: int, bytes_per_second: int) -> int:
    return math.ceil(size_bytes * 1_000_000_000 / bytes_per_second / _TICK_NS)


def _rate(bytes_per_second: int) -> bytes:
    return _RATE.pack(_CELL_LOG, _LINKLAYER_ETHERNET, 0, -1, 0, min(bytes_per_second, _U32_MAX))


def _htb(options: Options) -> bytes:
    version, rate_to_quantum = 3, 10
    default = options.get("default_class", 0)
    minor = parse_handle(default) & 0xFFFF if isinstance(default, str) and ":" in default else int(default)
    return attribute(Htb.INIT, struct.pack("=IIIII", version, rate_to_quantum, minor, 0, 0))


def _htb_class(options: Options) -> bytes:
    rate = _bytes_per_second(options)
    ceiling = _bytes_per_second(options, "ceil_bits_per_second") if "ceil_bits_per_second" in options else rate
    burst = _ticks(options["burst_bytes"], rate)
    ceiling_burst = _ticks(options["cburst_bytes"], ceiling)
    quantum = options.get("quantum_bytes") or 0
    parameters = _rate(rate) + _rate(ceiling) + struct.pack("=IIIII", burst, ceiling_burst, quantum, 0, 0)
    encoded = attribute(Htb.PARMS, parameters)
    if rate > _U32_MAX:
        encoded += u64(Htb.RATE64, rate)
    if ceiling > _U32_MAX:
        encoded += u64(Htb.CEIL64, ceiling)
    return encoded


def _tbf(options: Options) -> bytes:
    rate = _bytes_per_second(options)
    burst_bytes = options["burst_bytes"]
    no_peak = bytes(_RATE.size)
    sizes = struct.pack("=III", options["limit_bytes"], _ticks(burst_bytes, rate), 0)
    encoded = attribute(Tbf.PARMS, _rate(rate) + no_peak + sizes)
    if rate > _U32_MAX:
        encoded += u64(Tbf.RATE64, rate)
    return encoded + u32(Tbf.BURST, burst_bytes)


def _fq(options: Options) -> bytes:
    encoded = u32(Fq.PLIMIT, options["limit_packets"])
    if options.get("flow_limit_packets") is not None:
        encoded += u32(Fq.FLOW_PLIMIT, options["flow_limit_packets"])
    return encoded


def _netem(options: Options) -> bytes:
    delay_ns = options["delay_us"] * 1000
    jitter_ns = (options.get("jitter_us") or 0) * 1000
    in_bursts = "burst_begins_ratio" in options
    loss = 0 if in_bursts else round((options.get("loss_ratio") or 0.0) * _U32_MAX)
    reorder = round((options.get("reorder_ratio") or 0.0) * _U32_MAX)
    encoded = struct.pack(
        "=IIIIII",
        min(delay_ns // _TICK_NS, _U32_MAX),
        options["limit_packets"],
        loss,
        options["reorder_gap"] if reorder else 0,
        0,
        min(jitter_ns // _TICK_NS, _U32_MAX),
    )
    if reorder:
        encoded += attribute(Netem.REORDER, struct.pack("=II", reorder, 0))
    if in_bursts:  # struct tc_netem_gemodel: begins, ends, arrives in a burst (never), lost outside of one (never)
        ratios = (round(options[f"burst_{name}_ratio"] * _U32_MAX) for name in ("begins", "ends"))
        encoded += nested(Netem.LOSS, attribute(NetemLoss.GE, struct.pack("=IIII", *ratios, 0, 0)))
    encoded += s64(Netem.LATENCY64, delay_ns) + s64(Netem.JITTER64, jitter_ns)
    distribution = options.get("distribution")
    if distribution:
        encoded += attribute(Netem.DELAY_DIST, struct.pack(f"={len(distribution)}h", *distribution))
    if options.get("rate_bits_per_second"):
        rate = _bytes_per_second(options)
        encoded += attribute(Netem.RATE, struct.pack("=IiIi", min(rate, _U32_MAX), 0, 0, 0))
        if rate > _U32_MAX:
            encoded += u64(Netem.RATE64, rate)
    if options.get("seed") is not None:
        encoded += u64(Netem.PRNG_SEED, options["seed"])
    if "tick_us" in options:  # struct tc_netem_slot; all zeros switch it off
        tick_ns = options["tick_us"] * 1000
        encoded += attribute(Netem.SLOT, struct.pack("=qqiiqq", tick_ns, tick_ns, 0, 0, 0, 0))
    return encoded


def _receiver(options: Options) -> bytes:
    """struct receiver_options of modules/receiver/receiver.h."""
    names = ("acknowledge_every", "delay_us", "quick_first", "sack_blocks", "backlog_blocks")
    return struct.pack("=IIIII", *(options[name] for name in names))


def _processor(options: Options) -> bytes:
    """struct processor_options of modules/processor/processor.h."""
    names = ("packet_ns", "ack_ns", "searched_ns", "search", "queue_packets")
    return struct.pack("=IIIII", *(options[name] for name in names))


def _wire(options: Options) -> bytes:
    """struct wire_options of modules/wire/wire.h."""
    return struct.pack("=IIQ", options["wire"], options["to"], options["delay_ns"])


_QDISC_OPTIONS: dict[str, Callable[[Options], bytes]] = {
    "htb": _htb,
    "tbf": _tbf,
    "netem": _netem,
    "fq": _fq,
    **ACTIVE,
    "howdah_receiver": _receiver,
    "howdah_cpu": _processor,
    "howdah_wire": _wire,
    "clsact": lambda _options: b"",
    "bfifo": lambda options: struct.pack("=I", options["limit_bytes"]),
    "pfifo": lambda options: struct.pack("=I", options["limit_packets"]),
}


def qdisc_request(index: int, parent: str, handle: str, kind: str, options: Options) -> bytes:
    """Raises ValueError for a kind this layer does not encode, and KeyError for a missing option."""
    encode = _QDISC_OPTIONS.get(kind)
    if encode is None:
        raise ValueError(f"qdisc {kind!r} is not one of {', '.join(sorted(_QDISC_OPTIONS))}")
    return header(index, handle, parent) + text(TCA_KIND, kind) + attribute(_TCA_OPTIONS, encode(options))


def class_request(index: int, parent: str, classid: str, kind: str, options: Options) -> bytes:
    if kind != "htb":
        raise ValueError(f"classes of {kind!r} are not supported, only those of htb")
    return header(index, classid, parent) + text(TCA_KIND, kind) + nested(_TCA_OPTIONS, _htb_class(options))


def add_qdisc(netlink: NetlinkSocket, index: int, parent: str, handle: str, kind: str, options: Options) -> None:
    """Install a qdisc where none of this project's is; the interface's default one is replaced."""
    netlink.request(RTM_NEWQDISC, qdisc_request(index, parent, handle, kind, options), NLM_F_CREATE | NLM_F_EXCL)
    for encoded in gred_queues(options) if kind == "gred" else ():
        request = header(index, handle, parent) + text(TCA_KIND, kind) + attribute(_TCA_OPTIONS, encoded)
        netlink.request(RTM_NEWQDISC, request)


def change_qdisc(netlink: NetlinkSocket, index: int, parent: str, handle: str, kind: str, options: Options) -> None:
    """Change a qdisc in place, keeping its queue (``tc qdisc change``)."""
    netlink.request(RTM_NEWQDISC, qdisc_request(index, parent, handle, kind, options))


def add_class(netlink: NetlinkSocket, index: int, parent: str, classid: str, kind: str, options: Options) -> None:
    netlink.request(RTM_NEWTCLASS, class_request(index, parent, classid, kind, options), NLM_F_CREATE | NLM_F_EXCL)


def change_class(netlink: NetlinkSocket, index: int, parent: str, classid: str, kind: str, options: Options) -> None:
    netlink.request(RTM_NEWTCLASS, class_request(index, parent, classid, kind, options))


def parse_qdisc(message: Message) -> QdiscState:
    _family, index, handle, parent, _info = TCMSG.unpack_from(message.payload)
    found = parse_attributes(message.payload[TCMSG.size :])
    statistics = parse_attributes(found.get(TCA_STATS2, b""))
    sent_bytes, sent_packets = struct.unpack_from("=QI", statistics.get(TCA_STATS_BASIC, bytes(12)))
    if TCA_STATS_PKT64 in statistics:
        (sent_packets,) = struct.unpack_from("=Q", statistics[TCA_STATS_PKT64])
    queue = struct.unpack_from("=IIIII", statistics.get(TCA_STATS_QUEUE, bytes(20)))
    kind_name = found.get(TCA_KIND, b"").rstrip(b"\0").decode()
    own = statistics.get(TCA_STATS_APP, b"")
    return QdiscState(
        index=index,
        handle=format_handle(handle),
        parent=format_handle(parent),
        kind=kind_name,
        bytes=sent_bytes,
        packets=sent_packets,
        drops=queue[2],
        overlimits=queue[4],
        backlog_bytes=queue[1],
        backlog_packets=queue[0],
        marked=marked(kind_name, own),
        causes=choke_drops(own) if kind_name == "choke" else None,
    )


def qdiscs(netlink: NetlinkSocket) -> list[QdiscState]:
    return [parse_qdisc(message) for message in netlink.dump(RTM_GETQDISC, header(0))]
