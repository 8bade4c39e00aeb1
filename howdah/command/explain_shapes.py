# SPDX-License-Identifier: Apache-2.0
"""Shapes of what ``howdah explain`` prints with ``--json``."""

from __future__ import annotations

from typing import Literal

from pydantic import Field

from howdah.command.shape import Shape


class EstimateShape(Shape):
    value: float | None = Field(description="null where the recording cannot tell; 'reason' says why")
    low: float | None = Field(description="null: open")
    high: float | None
    how: str | None
    reason: str | None


class ExplainedExitShape(Shape):
    time_s: float = Field(description="since the first packet, at the sender")
    packets: EstimateShape
    round: int | None
    cause: str | None = Field(description="as exit_cause of metrics.json; null where nothing tells")
    evidence: str


class ExplainedFlow(Shape):
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
    held: dict[str, float] | None = Field(description="held_*_share of docs/measures.md")
    held_back_by: str | None
    algorithm: list[str] = Field(description="those that fit, the likeliest first")
    unknown: dict[str, str] = Field(description="what the recording cannot tell, and why")
    notes: list[str]


class Explain(Shape):
    found: list[str] = Field(description="a sentence for each flow")
    flows: list[ExplainedFlow]
    problems: list[str] = Field(description="what is wrong with the files")
    others: int = Field(description="connections that are not shown")
    page: str | None
