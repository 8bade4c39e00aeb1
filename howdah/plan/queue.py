# SPDX-License-Identifier: Apache-2.0
"""The queue of a hop: kind and options of the qdisc behind its rate limit."""

from __future__ import annotations

from typing import Any

from howdah.errors import ProfileError
from howdah.plan.path import MOST_HELD_US, Path
from howdah.plan.red import burst_of, probability_log, red_numbers
from howdah.profile import Cell
from howdah.profile.path import PathSection
from howdah.profile.queue import EarlySection
from howdah.quantity import format_duration, format_rate

Leaf = tuple[str, dict[str, Any]]

FIRST_IN_FIRST_OUT = ("fifo",)  # those whose buffer is what a packet may have to wait for

# CAKE counts struct sk_buff and its data area: 2.2 kB at least for a full frame of 1514 bytes, so the buffer's bytes
# are multiplied by this (11 / 5) to hold about as many full frames as asked for.
_CAKE_MEMORY = (11, 5)
_CAKE_TARGETS = 20  # in a round trip, as tc has it

_LEAST_MEMORY_BYTES = 32 << 20
_LARGEST_MEMORY_BYTES = 2**31 - 1

_CHOKE_PACKETS = 128 * 1024 - 1  # CHOKE_MAX_QUEUE

_EARLY = {"red": "RED", "choke": "CHOKe", "gred": "GRED"}

PIE_BURST_US = 150_000  # within which PIE lets everything pass (RFC 8033, section 4.4)


def leaf(cell: Cell, kind: str, buffer_bytes: int, rate_bits_per_second: int, frame_bytes: int, at: str) -> Leaf:
    """The qdisc of the profile's queue ``kind``; ``at`` names the hop in errors. Raises ProfileError."""
    path = cell.scenario.path
    packets = -(-buffer_bytes // frame_bytes)
    if kind == "fifo":
        return "bfifo", {"limit_bytes": buffer_bytes}
    if kind in _EARLY:
        options = _early(cell, kind, buffer_bytes, rate_bits_per_second, frame_bytes, at)
        return kind, _marked(cell, options, at) if kind == "gred" else options
    if kind == "codel":
        times = {"target_us": path.codel.target, "interval_us": path.codel.interval}
        return "codel", {"limit_packets": packets, **times, "ecn": path.ecn}
    if kind == "fq_codel":
        return "fq_codel", {
            "limit_packets": packets,
            "target_us": path.fq_codel.target,
            "interval_us": path.fq_codel.interval,
            "flows": path.fq_codel.flows,
            "quantum_bytes": max(path.fq_codel.quantum.to_bytes(path.bdp(), frame_bytes), 256),
            "memory_limit_bytes": _memory_bytes(buffer_bytes, frame_bytes),
            "ecn": path.ecn,
        }
    if kind == "pie":
        return "pie", {
            "limit_packets": packets,
            "target_us": path.pie.target,
            "update_us": path.pie.update,
            "alpha": path.pie.alpha,
            "beta": path.pie.beta,
            "ecn": path.ecn,
        }
    memory = min(buffer_bytes * _CAKE_MEMORY[0] // _CAKE_MEMORY[1], _LARGEST_MEMORY_BYTES)
    times = {"rtt_us": path.cake.rtt, "target_us": max(path.cake.rtt // _CAKE_TARGETS, 1)}
    return "cake", {**times, "isolation": path.cake.isolation, "memory_limit_bytes": memory}


def reverse_buffer(path: PathSection, frame_bytes: int) -> tuple[int | None, int | None]:
    """The most bytes that the queue of the way back holds, and packets where the profile counts them; None without one.

    What flows there is ACKs. A buffer in packets is therefore of packets, whatever their size.
    """
    if path.reverse_rate is None:
        return None, None
    most_bytes = max(path.reverse_buffer.to_bytes(path.bdp(path.reverse_rate), frame_bytes), frame_bytes)
    return most_bytes, most_bytes // frame_bytes if path.reverse_buffer.unit == "packets" else None


def check_drains(cell: Cell, path: Path) -> None:
    """Raises ProfileError for a queue of either way that takes hours to empty, which every run would wait for."""
    ways = (
        ("buffer", path.forward_queue_us, path.rate_bits_per_second),
        ("reverse_buffer", path.reverse_queue_us, path.reverse_rate_bits_per_second),
    )
    for name, held_us, rate in ways:
        if rate is not None and held_us > MOST_HELD_US:
            takes, most = format_duration(held_us), format_duration(MOST_HELD_US)
            what = (
                f"path.{name} takes {takes} to drain at {format_rate(rate)}; a run waits until it has, {most} at most"
            )
            raise ProfileError(what, where=cell.place("path", name), hint="make it smaller, or the rate higher")


def reverse_leaf(path: Path) -> Leaf:
    """The qdisc of the way back, which has a rate."""
    if path.reverse_buffer_packets is not None:
        return "pfifo", {"limit_packets": path.reverse_buffer_packets}
    return "bfifo", {"limit_bytes": path.reverse_buffer_bytes}


def _memory_bytes(buffer_bytes: int, frame_bytes: int) -> int:
    """Enough that the limit in packets is what counts."""
    return min(max(_LEAST_MEMORY_BYTES, 4 * buffer_bytes + 64 * frame_bytes), _LARGEST_MEMORY_BYTES)


def _early(
    cell: Cell, kind: str, buffer_bytes: int, rate_bits_per_second: int, frame_bytes: int, at: str
) -> dict[str, Any]:
    """Options of RED and of those that descend from it; CHOKe counts packets where RED counts bytes."""
    path = cell.scenario.path
    asked: EarlySection = getattr(path, kind)
    step, unit = (frame_bytes, "packets") if kind == "choke" else (1, "bytes")
    bdp = path.bdp()
    most = asked.most.to_bytes(bdp, frame_bytes) if asked.most else buffer_bytes // 4
    least = asked.least.to_bytes(bdp, frame_bytes) if asked.least else most // 3
    limit, least, most = -(-buffer_bytes // step), least // step * step, most // step * step
    where = cell.place("path", kind)
    if not frame_bytes <= least < most <= limit * step:
        counted = f"{frame_bytes // step}, {least // step}, {most // step}, {limit} {unit}"
        what = f"{_EARLY[kind]}{at} needs a frame <= least < most <= buffer, not {counted}"
        hint = f"give path.{kind}.least and path.{kind}.most, or a larger buffer"
        raise ProfileError(what, where=where, hint=hint)
    if kind == "choke" and limit > _CHOKE_PACKETS:
        what = f"CHOKe{at} holds at most {_CHOKE_PACKETS} packets, not {limit}"
        raise ProfileError(what, where=cell.place("path", "buffer"), hint="give a smaller buffer, or another queue")
    probability = float(asked.probability)
    numbers = red_numbers(least, most, frame_bytes, asked.burst, probability, rate_bits_per_second, step)
    if isinstance(numbers, str):
        hint = f"another path.{kind}.burst, or smaller thresholds"
        raise ProfileError(f"path.{kind}: {numbers}", where=where, hint=hint)
    return {
        f"limit_{unit}": limit,
        f"least_{unit}": least // step,
        f"most_{unit}": most // step,
        "packet_bytes": frame_bytes,
        "burst_packets": numbers.burst_packets,
        "probability": probability,
        "rate_bits_per_second": rate_bits_per_second,
        **({"adaptive": path.red.adaptive} if kind == "red" else {}),
        **({} if kind == "gred" else {"ecn": path.ecn}),
        "ewma_log": numbers.ewma_log,
        "probability_log": numbers.probability_log,
        "idle_log": numbers.idle_log,
        "idle_shifts": numbers.idle_shifts,
    }


def _marked(cell: Cell, options: dict[str, Any], at: str) -> dict[str, Any]:
    """The options of GRED with the thresholds of marked packets. Both share one mean, and so its weight."""
    path, frame, limit = cell.scenario.path, options["packet_bytes"], options["limit_bytes"]
    asked, bdp = path.gred, path.bdp()
    most = asked.marked_most.to_bytes(bdp, frame) if asked.marked_most else options["least_bytes"]
    least = asked.marked_least.to_bytes(bdp, frame) if asked.marked_least else most // 3
    where = cell.place("path", "gred")
    if not frame <= least < most <= limit:
        what = f"GRED{at} needs a frame <= marked_least < marked_most <= buffer, not {frame}, {least}, {most}, {limit}"
        hint = "give path.gred.marked_least and path.gred.marked_most, or a larger buffer"
        raise ProfileError(f"{what} bytes", where=where, hint=hint)
    burst = burst_of(least / frame, options["ewma_log"])
    if burst is None:
        what = f"path.gred: no burst of marked packets has the weight 2^-{options['ewma_log']} of the mean"
        raise ProfileError(what, where=where, hint="give another path.gred.burst or path.gred.marked_least")
    return options | {
        "marked_least_bytes": least,
        "marked_most_bytes": most,
        "marked_burst_packets": burst,
        "marked_probability_log": probability_log(least, most, options["probability"]),
        "dscp": asked.dscp,
    }


def train_packets(kind: str, options: dict[str, Any], rate_bits_per_second: int, frame_bytes: int) -> int | None:
    """Longest packet train that the queue lets pass without a drop; None: as many as its buffer holds.

    RED, CHOKe and GRED look at the mean queue, which is below ``least`` while the queue is; CoDel waits an interval
    before the first drop, PIE for its burst allowance: half of each. CAKE's first drop comes at the second packet that
    waited longer than its target (cobalt_should_drop: the interval is scaled by a root that is zero until then).
    """
    if kind in ("red", "gred"):
        return max(int(options["least_bytes"]) // frame_bytes, 2)
    if kind == "choke":
        return max(int(options["least_packets"]), 2)
    if kind == "cake":
        return max(int(options["target_us"]) * rate_bits_per_second // 8_000_000 * 9 // 10 // frame_bytes + 1, 2)
    patience = {"codel": "interval_us", "fq_codel": "interval_us"}
    if kind not in patience and kind != "pie":
        return None
    patience_us = PIE_BURST_US if kind == "pie" else int(options[patience[kind]])
    return max(patience_us * rate_bits_per_second // 8_000_000 // frame_bytes // 2, 2)
