# SPDX-License-Identifier: Apache-2.0
"""Active queue management: options of red, codel, fq_codel, pie and cake, and how many packets they marked.

Attributes and structures are those of include/uapi/linux/pkt_sched.h.
"""

from __future__ import annotations

import struct
from collections.abc import Callable
from typing import Any

from howdah.linux.netlink.message import attribute, parse_attributes, u32, u64
from howdah.linux.netlink.traffic_control import Cake, CakeStats, CakeTinStats, Codel, FqCodel, Pie, Red

Options = dict[str, Any]

_RED_ECN, _RED_ADAPTIVE = 1, 4
_RED_PROBABILITY_ONE = 2**32
_CAKE_BESTEFFORT = 3
_CAKE_FLOW_MODES = {
    "flowblind": 0,
    "hosts": 3,
    "flows": 4,
    "dual-srchost": 5,
    "dual-dsthost": 6,
    "triple-isolate": 7,
}

# Where the count of marked packets, 32 bits, begins in the statistics of each kind; cake has it in its tins.
MARKS_AT = {"red": 12, "codel": 24, "fq_codel": 12, "pie": 36}


def _red(options: Options) -> bytes:
    flags = _RED_ECN * options["ecn"] | _RED_ADAPTIVE * options["adaptive"]
    parameters = struct.pack(
        "=IIIBBBB",
        options["limit_bytes"],
        options["least_bytes"],
        options["most_bytes"],
        options["ewma_log"],
        options["probability_log"],
        options["idle_log"],
        flags,
    )
    probability = int(options["probability"] * _RED_PROBABILITY_ONE)
    return (
        attribute(Red.PARMS, parameters)
        + attribute(Red.STAB, bytes(options["idle_shifts"]))
        + u32(Red.MAX_P, probability)
    )


def _codel(options: Options) -> bytes:
    times = u32(Codel.TARGET, options["target_us"]) + u32(Codel.INTERVAL, options["interval_us"])
    return u32(Codel.LIMIT, options["limit_packets"]) + times + u32(Codel.ECN, int(options["ecn"]))


def _fq_codel(options: Options) -> bytes:
    queues = u32(FqCodel.FLOWS, options["flows"]) + u32(FqCodel.QUANTUM, options["quantum_bytes"])
    queues += u32(FqCodel.MEMORY_LIMIT, options["memory_limit_bytes"])
    return _codel(options) + queues


def _pie(options: Options) -> bytes:
    times = u32(Pie.TARGET, options["target_us"]) + u32(Pie.TUPDATE, options["update_us"])
    gains = u32(Pie.ALPHA, options["alpha"]) + u32(Pie.BETA, options["beta"])
    return u32(Pie.LIMIT, options["limit_packets"]) + times + gains + u32(Pie.ECN, int(options["ecn"]))


def _cake(options: Options) -> bytes:
    """One tin, no rate limit of its own; it marks whatever can be marked, always."""
    shape = u64(Cake.BASE_RATE64, 0) + u32(Cake.DIFFSERV_MODE, _CAKE_BESTEFFORT)
    shape += u32(Cake.FLOW_MODE, _CAKE_FLOW_MODES[options["isolation"]])
    times = u32(Cake.RTT, options["rtt_us"]) + u32(Cake.TARGET, options["target_us"])
    return shape + times + u32(Cake.MEMORY, options["memory_limit_bytes"])


ACTIVE: dict[str, Callable[[Options], bytes]] = {
    "red": _red,
    "codel": _codel,
    "fq_codel": _fq_codel,
    "pie": _pie,
    "cake": _cake,
}


def marked(kind: str, statistics: bytes) -> int:
    """Packets marked since the qdisc was made, from its TCA_STATS_APP; 0 for a kind that marks nothing."""
    if kind == "cake":
        tins = parse_attributes(parse_attributes(statistics).get(CakeStats.TIN_STATS, b""))
        values = (parse_attributes(tin).get(CakeTinStats.ECN_MARKED_PACKETS, bytes(4)) for tin in tins.values())
        return sum(int.from_bytes(value, "little") for value in values)
    offset = MARKS_AT.get(kind)
    return 0 if offset is None else int.from_bytes(statistics[offset : offset + 4], "little")
