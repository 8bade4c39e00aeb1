# SPDX-License-Identifier: Apache-2.0
"""What ``howdah explain --json`` prints: explained flows, and connections that several taps saw."""

from __future__ import annotations

from pydantic import Field

from howdah.explain.bucket import Bucket
from howdah.explain.connection import Options
from howdah.explain.estimate import Estimate
from howdah.explain.explained import Explained, FlowFacts
from howdah.explain.joined import Joined, Leg
from howdah.explain.path import LossBy
from howdah.record.model import FilePart


class EstimateShape(FilePart):
    value: float | None = Field(description="null where the recording cannot tell; 'reason' says why")
    low: float | None = Field(description="null: open")
    high: float | None
    how: str | None
    reason: str | None


class ExplainedExitShape(FilePart):
    time_s: float = Field(description="since the first packet, at the sender")
    packets: EstimateShape
    round: int | None
    cause: str | None = Field(description="as exit_cause of metrics.json; null where nothing tells")
    evidence: str


class PolicerShape(FilePart):
    rate_bits_per_second: float
    burst_bytes: float


class ExplainedFlow(FlowFacts):
    """One flow of a recording; docs/explain.md."""

    base_rtt_us: EstimateShape
    rate_bits_per_second: EstimateShape
    sender_interface_bits_per_second: EstimateShape
    buffer_bytes: EstimateShape
    delay_variation_us: EstimateShape
    peak_packets: EstimateShape
    overshoot_packets: EstimateShape
    policer: PolicerShape | None
    options: dict[str, Options | None]
    exit: ExplainedExitShape | None
    held: dict[str, float] | None = Field(description="held_*_share of docs/measures.md")
    held_back_by: str | None
    held_window_bytes: float | None


class LegShape(FilePart):
    """From one tap to the next, in the direction of the data."""

    near: str = Field(description="the file of the tap nearer to the sender")
    far: str
    packets: int = Field(description="that the near tap saw; offloaded segments count as what they hold")
    lost_packets: int = Field(description="that the far tap did not see, and that were sent again")
    unseen_packets: int = Field(description="that the far capture lacks though they arrived")
    acks: int | None
    lost_acks: int | None
    loss_by: LossBy | None
    loss_words: str
    policer: PolicerShape | None
    queue_most_us: float = Field(description="the largest one-way delay of the data beyond the least")
    queue_back_most_us: float | None
    one_way_us: EstimateShape
    clock_offset_us: EstimateShape = Field(description="the far clock less the near one")
    clock_skew_ppm: EstimateShape


class JoinedShape(FilePart):
    """A connection that several taps saw, its files from the sender on."""

    name: str
    files: list[str]
    legs: list[LegShape]


def shown_flow(flow: Explained) -> ExplainedFlow:
    holding, held_by = flow.holding, flow.held_back_by
    found = {name: getattr(flow, name) for name in ExplainedFlow.model_fields if hasattr(flow, name)}
    return ExplainedFlow.made_of(
        flow,
        **{name: _estimate(value) for name, value in found.items() if isinstance(value, Estimate)},
        policer=_policer(flow.policer),
        exit=None if flow.exit is None else ExplainedExitShape.made_of(flow.exit, packets=_estimate(flow.exit.packets)),
        held=None if holding is None else {kind.metric: holding.share(kind) for kind in holding.seconds},
        held_back_by=None if held_by is None else held_by.value,
        held_window_bytes=None if holding is None else holding.window_bytes,
    )


def _estimate(found: Estimate, per: float = 1.0) -> EstimateShape:
    value, low, high = (None if each is None else each / per for each in (found.value, found.low, found.high))
    return EstimateShape(value=value, low=low, high=high, how=found.how or None, reason=found.reason or None)


def shown_joined(joined: Joined) -> JoinedShape:
    """One connection that several taps saw."""
    return JoinedShape.made_of(joined, legs=[_leg(leg) for leg in joined.legs])


def _leg(leg: Leg) -> LegShape:
    clocks = leg.clocks
    return LegShape.made_of(
        leg,
        packets=int(leg.data.near_ns.size),
        lost_packets=leg.lost,
        unseen_packets=leg.data.unseen,
        acks=int(leg.acks.near_ns.size) if leg.acks is not None else None,
        lost_acks=leg.acks_lost,
        policer=_policer(leg.bucket),
        queue_most_us=float(clocks.data_ns.max()) / 1e3,
        queue_back_most_us=float(clocks.ack_ns.max()) / 1e3 if clocks.ack_ns.size else None,
        one_way_us=_estimate(clocks.data_least_ns, 1e3),
        clock_offset_us=_estimate(clocks.offset_ns, 1e3),
        clock_skew_ppm=_estimate(clocks.skew_ppm),
    )


def _policer(bucket: Bucket | None) -> PolicerShape | None:
    return None if bucket is None else PolicerShape.made_of(bucket)
