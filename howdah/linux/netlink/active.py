# SPDX-License-Identifier: Apache-2.0
"""Active queue management: options of red, choke, gred, codel, fq_codel, pie and cake, how many packets they marked,
and why CHOKe dropped.

Attributes and structures are those of include/uapi/linux/pkt_sched.h.
"""

from __future__ import annotations

import struct
from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

from howdah.linux.netlink.message import attribute, parse_attributes, u32, u64
from howdah.linux.netlink.traffic_control import Cake, CakeStats, CakeTinStats, Choke, Codel, FqCodel, Gred, Pie, Red

Options = dict[str, Any]

_RED_ECN, _RED_ADAPTIVE = 1, 4
_GRED_PRIORITY = 1
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

_CHOKE_STATS = struct.Struct("=IIIII")

# Where the count of marked packets, 32 bits, begins in the statistics of each kind; cake has it in its tins.
MARKS_AT = {"red": 12, "choke": 12, "codel": 24, "fq_codel": 12, "pie": 36}


def _early(options: Options, unit: str, flags: int) -> bytes:
    """struct tc_red_qopt, and tc_choke_qopt of the same layout."""
    return struct.pack(
        "=IIIBBBB",
        options[f"limit_{unit}"],
        options[f"least_{unit}"],
        options[f"most_{unit}"],
        options["ewma_log"],
        options["probability_log"],
        options["idle_log"],
        flags,
    )


def _probability(options: Options) -> int:
    return int(options["probability"] * _RED_PROBABILITY_ONE)


def _red(options: Options) -> bytes:
    parameters = _early(options, "bytes", _RED_ECN * options["ecn"] | _RED_ADAPTIVE * options["adaptive"])
    encoded = attribute(Red.PARMS, parameters) + attribute(Red.STAB, bytes(options["idle_shifts"]))
    return encoded + u32(Red.MAX_P, _probability(options))


def _choke(options: Options) -> bytes:
    parameters = _early(options, "packets", _RED_ECN * options["ecn"])
    encoded = attribute(Choke.PARMS, parameters) + attribute(Choke.STAB, bytes(options["idle_shifts"]))
    return encoded + u32(Choke.MAX_P, _probability(options))


def _gred(options: Options) -> bytes:
    """Room and number of the virtual queues. In rio mode queues of one priority share the mean."""
    setup = struct.pack("=IIBBH", 2, 0, 1, 0, 0)  # struct tc_gred_sopt
    return attribute(Gred.DPS, setup) + u32(Gred.LIMIT, options["limit_bytes"])


def gred_queues(options: Options) -> list[bytes]:
    """Options of one request for each virtual queue, of unmarked and of marked packets, when GRED is there."""
    found = []
    for queue, of in enumerate(("", "marked_")):
        sizes = (options["limit_bytes"], options[f"{of}least_bytes"], options[f"{of}most_bytes"])
        logs = (options["ewma_log"], options[f"{of}probability_log"], options["idle_log"])
        parameters = struct.pack("=IIII24xBBBB8x", *sizes, queue, *logs, _GRED_PRIORITY)  # struct tc_gred_qopt
        encoded = attribute(Gred.PARMS, parameters) + attribute(Gred.STAB, bytes(options["idle_shifts"]))
        found.append(encoded + u32(Gred.MAX_P, _probability(options)))
    return found


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
    "choke": _choke,
    "gred": _gred,
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


@dataclass(frozen=True)
class ChokeDrops:
    """Why CHOKe dropped, as ``tc -s`` prints it.

    ``early``: by its probability, or above its upper threshold. ``pdrop``: it was full. ``matched``: a packet was of
    one flow with the one drawn from the queue, and both went.
    """

    early: int
    pdrop: int
    other: int
    matched: int


def choke_drops(statistics: bytes) -> ChokeDrops | None:
    """From TCA_STATS_APP of a CHOKe queue (struct tc_choke_xstats); None where the kernel gave none."""
    if len(statistics) < _CHOKE_STATS.size:
        return None
    early, pdrop, other, _marked, matched = _CHOKE_STATS.unpack_from(statistics)
    return ChokeDrops(early, pdrop, other, matched)
