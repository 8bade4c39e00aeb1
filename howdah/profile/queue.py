# SPDX-License-Identifier: Apache-2.0
"""Queue disciplines a bottleneck can have, with the parameters their authors gave them."""

from __future__ import annotations

from fractions import Fraction
from typing import Literal, Self

from pydantic import Field, model_validator

from howdah.profile.field import Buffer, FieldError, PositiveDuration, Ratio, Section
from howdah.quantity import BufferSize

QueueKind = Literal["fifo", "red", "choke", "gred", "codel", "fq_codel", "pie", "cake"]


class EarlySection(Section):
    """What random early detection is given, and what descends from it."""

    least: Buffer | None = Field(
        default=None, description="mean queue from which packets are dropped; a third of most by default"
    )
    most: Buffer | None = Field(
        default=None, description="mean queue from which every packet is dropped; a quarter of the buffer by default"
    )
    probability: Ratio = Field(
        default=Fraction(1, 50),
        description="of a drop when the mean queue has reached most",
        json_schema_extra={"x-default": "2 %"},
    )
    burst: int | None = Field(
        default=None,
        ge=1,
        le=1_000_000,
        description="packets that may come at once; (2 least + most) / (3 frames) by default, or what the kernel holds",
    )

    @model_validator(mode="after")
    def _probable(self) -> Self:
        if not 0 < self.probability < 1:
            raise FieldError("expected a probability between 0 and 100 %, without either", "probability")
        return self


class RedSection(EarlySection):
    """Random early detection (Floyd and Jacobson 1993): drops with growing probability while the mean queue is between
    two thresholds. The mean is exponentially weighted, by ``burst``."""

    adaptive: bool = Field(default=False, description="let the kernel adapt the probability (adaptive RED)")


class ChokeSection(EarlySection):
    """CHOKe (Pan, Prabhakar and Psounis 2000): RED that first compares each packet with one drawn from the queue, and
    drops both where they are of one flow. It counts packets, so that thresholds are whole ones, rounded down."""


class GredSection(EarlySection):
    """RED with lower thresholds for packets that carry a mark, which a congested queue thus drops first (RFC 2597's
    precedence; the kernel's sch_gred). There is one mean, of all packets; IPv4 packets are looked at."""

    dscp: int = Field(default=14, ge=1, le=63, description="DSCP of marked packets; 14 is AF13")
    marked_least: Buffer | None = Field(
        default=None,
        description="mean queue from which marked packets are dropped; a third of marked_most by default",
    )
    marked_most: Buffer | None = Field(
        default=None, description="mean queue from which every marked packet is dropped; least by default"
    )


class CodelSection(Section):
    """CoDel (RFC 8289): drops while packets have waited longer than ``target`` for a whole ``interval``."""

    target: PositiveDuration = Field(
        default=5_000, description="acceptable waiting time", json_schema_extra={"x-default": "5 ms"}
    )
    interval: PositiveDuration = Field(
        default=100_000,
        description="how long a wait may exceed target; about an RTT",
        json_schema_extra={"x-default": "100 ms"},
    )

    @model_validator(mode="after")
    def _ordered(self) -> CodelSection:
        if self.target >= self.interval:
            raise FieldError("expected a target shorter than the interval", "target")
        return self


class FqCodelSection(CodelSection):
    """Fair queueing with CoDel in each queue (RFC 8290)."""

    flows: int = Field(default=1024, ge=1, le=65536, description="queues that flows are hashed to")
    quantum: Buffer = Field(
        default=BufferSize(Fraction(1), "packets"),
        description="bytes a queue may send in its turn",
        json_schema_extra={"x-default": "1 packet"},
    )


class PieSection(Section):
    """PIE (RFC 8033): a controller that holds the wait at ``target`` by a drop probability."""

    target: PositiveDuration = Field(default=15_000, description="wait", json_schema_extra={"x-default": "15 ms"})
    update: PositiveDuration = Field(
        default=15_000,
        description="time between updates of the probability; the kernel counts it in ticks of 10 ms, rounded up",
        json_schema_extra={"x-default": "15 ms"},
    )
    alpha: int = Field(default=2, ge=0, le=32, description="weight of the wait's deviation, in sixteenths")
    beta: int = Field(default=20, ge=0, le=32, description="weight of the wait's change, in sixteenths")


class CakeSection(Section):
    """CAKE (Høiland-Jørgensen and others 2018): fair queueing with a descendant of CoDel, behind this path's own rate
    limit (CAKE's shaper is off). Its buffer counts the kernel's memory, so it is given 2.2 times the bytes asked for.
    """

    rtt: PositiveDuration = Field(
        default=100_000,
        description="RTT that it is tuned to; it accepts a wait of a twentieth of that",
        json_schema_extra={"x-default": "100 ms"},
    )
    isolation: Literal["flowblind", "flows", "hosts", "dual-srchost", "dual-dsthost", "triple-isolate"] = Field(
        default="triple-isolate", description="which flows or hosts share fairly"
    )
