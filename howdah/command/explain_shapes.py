# SPDX-License-Identifier: Apache-2.0
"""Shapes of what ``howdah explain`` prints with ``--json``."""

from __future__ import annotations

from typing import Literal

from pydantic import Field

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


class ExplainedFlow(FilePart):
    """One flow of a recording; docs/explain.md."""

    name: str
    file: str
    source: Literal["capture", "tcp_probe", "ss", "iperf3", "qlog"]
    at: Literal["sender", "middle", "receiver"] | None
    duration_s: float
    data_bytes: int
    base_rtt_us: EstimateShape
    rate_bits_per_second: EstimateShape
    sender_interface_bits_per_second: EstimateShape
    buffer_bytes: EstimateShape
    delay_variation_us: EstimateShape
    peak_packets: EstimateShape
    overshoot_packets: EstimateShape
    exit: ExplainedExitShape | None
    why_no_exit: str
    limit: str | None = Field(description="what ended the growth without an exit: receive-window, application")
    loss_by: Literal["queue", "policer", "random"] | None
    policer: PolicerShape | None
    held: dict[str, float] | None = Field(description="held_*_share of docs/measures.md")
    held_back_by: str | None
    algorithm: list[str] = Field(description="those that fit, the likeliest first")
    unknown: dict[str, str] = Field(description="what the recording cannot tell, and why")
    notes: list[str]


class LegShape(FilePart):
    """From one tap to the next, in the direction of the data."""

    near: str = Field(description="the file of the tap nearer to the sender")
    far: str
    packets: int = Field(description="that the near tap saw; offloaded segments count as what they hold")
    lost_packets: int = Field(description="that the far tap did not see, and that were sent again")
    unseen_packets: int = Field(description="that the far capture lacks though they arrived")
    acks: int | None
    lost_acks: int | None
    loss_by: Literal["queue", "policer", "random"] | None
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


class Explain(FilePart):
    found: list[str] = Field(description="a sentence for each flow")
    flows: list[ExplainedFlow]
    joined: list[JoinedShape]
    problems: list[str] = Field(description="what is wrong with the files")
    others: int = Field(description="connections that are not shown")
    page: str | None
