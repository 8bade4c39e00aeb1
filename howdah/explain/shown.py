# SPDX-License-Identifier: Apache-2.0
"""One explained flow as an object of JSON: docs/json.schema.json has its shape."""

from __future__ import annotations

from dataclasses import asdict
from typing import Any

from howdah.explain.bucket import Bucket
from howdah.explain.estimate import Estimate
from howdah.explain.explained import Explained
from howdah.explain.joined import Joined, Leg

_PLAIN = (
    "name", "file", "source", "at", "duration_s", "data_bytes", "opener", "mss_bytes", "initial_window_packets",
    "handshake_rtt_us", "goodput_bits_per_second", "growth", "round_flights_packets", "why_no_exit", "limit",
    "retransmitted_packets", "spurious_packets", "late_packets", "lost_before_packets", "loss_by", "loss_words",
    "timeouts",
    "receive_window_least_bytes", "receive_window_most_bytes", "segments_per_ack", "paced", "algorithm",
    "algorithm_words", "notes", "unknown",
)  # fmt: skip
_ESTIMATES = (
    "base_rtt_us", "rate_bits_per_second", "sender_interface_bits_per_second", "buffer_bytes", "delay_variation_us",
    "peak_packets", "overshoot_packets",
)  # fmt: skip


def as_json(flow: Explained) -> dict[str, Any]:
    found: dict[str, Any] = {name: getattr(flow, name) for name in _PLAIN}
    found |= {name: _estimate(getattr(flow, name)) for name in _ESTIMATES}
    found["policer"] = _policer(flow.policer)
    found["options"] = {side: asdict(said) if said is not None else None for side, said in flow.options.items()}
    leaves = flow.exit
    found["exit"] = None if leaves is None else {
        "time_s": leaves.time_s,
        "packets": _estimate(leaves.packets),
        "round": leaves.round,
        "cause": leaves.cause,
        "evidence": leaves.evidence,
    }  # fmt: skip
    holding = flow.holding
    found["held"] = None if holding is None else {kind.metric: holding.share(kind) for kind in holding.seconds}
    found["held_back_by"] = str(flow.held_back_by.value) if flow.held_back_by is not None else None
    found["held_window_bytes"] = holding.window_bytes if holding is not None else None
    return found


def _estimate(found: Estimate) -> dict[str, Any]:
    return {
        "value": found.value,
        "low": found.low,
        "high": found.high,
        "how": found.how or None,
        "reason": found.reason or None,
    }


def joined_json(joined: Joined) -> dict[str, Any]:
    """One connection that several taps saw."""
    return {"name": joined.name, "files": joined.files, "legs": [_leg(leg) for leg in joined.legs]}


def _leg(leg: Leg) -> dict[str, Any]:
    clocks, bucket = leg.clocks, leg.bucket
    return {
        "near": leg.near,
        "far": leg.far,
        "packets": int(leg.data.near_ns.size),
        "lost_packets": leg.lost,
        "unseen_packets": leg.data.unseen,
        "acks": int(leg.acks.near_ns.size) if leg.acks is not None else None,
        "lost_acks": leg.acks_lost,
        "loss_by": leg.loss_by,
        "loss_words": leg.loss_words,
        "policer": _policer(bucket),
        "queue_most_us": float(clocks.data_ns.max()) / 1e3,
        "queue_back_most_us": float(clocks.ack_ns.max()) / 1e3 if clocks.ack_ns.size else None,
        "one_way_us": _estimate(_us(clocks.data_least_ns)),
        "clock_offset_us": _estimate(_us(clocks.offset_ns)),
        "clock_skew_ppm": _estimate(clocks.skew_ppm),
    }


def _policer(bucket: Bucket | None) -> dict[str, float] | None:
    if bucket is None:
        return None
    return {"rate_bits_per_second": bucket.rate_bits_per_second, "burst_bytes": bucket.burst_bytes}


def _us(found: Estimate) -> Estimate:
    value, low, high = (None if each is None else each / 1e3 for each in (found.value, found.low, found.high))
    return Estimate(value, low, high, found.how, found.reason)
