# SPDX-License-Identifier: Apache-2.0
"""Active queue management: options of red, codel, fq_codel, pie and cake, and how many packets they marked.

Attributes and structures are those of include/uapi/linux/pkt_sched.h.
"""

from __future__ import annotations

import struct
from collections.abc import Callable
from typing import Any

from howdah.agent.netlink.message import attribute, parse_attributes, u32, u64

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
_CAKE_TIN_STATS = 10
_CAKE_TIN_MARKED_PACKETS = 8

# Offset and length of the count of marked packets in the statistics of each kind.
_MARKED = {"red": (12, 4), "codel": (24, 4), "fq_codel": (12, 4), "pie": (36, 4)}


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
    return attribute(1, parameters) + attribute(2, bytes(options["idle_shifts"])) + u32(3, probability)


def _codel(options: Options) -> bytes:
    times = u32(1, options["target_us"]) + u32(3, options["interval_us"])
    return u32(2, options["limit_packets"]) + times + u32(4, int(options["ecn"]))


def _fq_codel(options: Options) -> bytes:
    queues = u32(5, options["flows"]) + u32(6, options["quantum_bytes"]) + u32(9, options["memory_limit_bytes"])
    return _codel(options) + queues


def _pie(options: Options) -> bytes:
    times = u32(1, options["target_us"]) + u32(3, options["update_us"])
    gains = u32(4, options["alpha"]) + u32(5, options["beta"])
    return u32(2, options["limit_packets"]) + times + gains + u32(6, int(options["ecn"]))


def _cake(options: Options) -> bytes:
    """One tin, no rate limit of its own; it marks whatever can be marked, always."""
    shape = u64(2, 0) + u32(3, _CAKE_BESTEFFORT) + u32(5, _CAKE_FLOW_MODES[options["isolation"]])
    times = u32(7, options["rtt_us"]) + u32(8, options["target_us"])
    return shape + times + u32(10, options["memory_limit_bytes"])


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
        tins = parse_attributes(parse_attributes(statistics).get(_CAKE_TIN_STATS, b""))
        values = (parse_attributes(tin).get(_CAKE_TIN_MARKED_PACKETS, bytes(4)) for tin in tins.values())
        return sum(int.from_bytes(value, "little") for value in values)
    offset, length = _MARKED.get(kind, (0, 0))
    return int.from_bytes(statistics[offset : offset + length], "little")
