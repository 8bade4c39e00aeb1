# SPDX-License-Identifier: Apache-2.0
"""Groups of connections: a few lines of a profile that stand for many flows (howdah/plan/group.py makes them)."""

from __future__ import annotations

from typing import Literal

from pydantic import Field, model_validator

from howdah.profile.field import Bytes, Duration, Name, PositiveDuration, Rate, Text
from howdah.profile.section import FieldError, Section, fixed

MOST_CONNECTIONS = 5000
MOST_GROUP_PAIRS = 200
LEAST_PACKET_BYTES, MOST_PACKET_BYTES = 29, 16000


class OnOffSection(Section):
    """Alternating times in which a source sends and is silent."""

    on: PositiveDuration = Field(description="how long it sends; the mean where it is drawn")
    off: PositiveDuration = Field(description="how long it is silent; the mean where it is drawn")
    distribution: Literal["constant", "exponential", "pareto"] = Field(
        default="constant", description="of both times; pareto has the shape 1.5"
    )


class DatagramSection(Section):
    """UDP at a constant rate, as background."""

    rate: Rate = Field(description="on the wire, frames counted as path.rate does")
    packet: Bytes = Field(
        default=1000, description="IP packet with its headers", json_schema_extra={"x-default": "1000 B"}
    )
    on_off: OnOffSection | None = Field(default=None, description="on and off times; always on by default")

    @model_validator(mode="after")
    def _has_payload(self) -> DatagramSection:
        if not LEAST_PACKET_BYTES <= self.packet <= MOST_PACKET_BYTES:
            what = f"expected a packet of {LEAST_PACKET_BYTES} to {MOST_PACKET_BYTES} bytes: headers take 28"
            raise FieldError(what, "packet")
        return self


class GroupSection(Section):
    """Many connections alike. They become flows when a run is planned, drawn from the seed and the repetition."""

    name: Name = fixed(description="its connections are called NAME-1, NAME-2, …")
    role: Literal["measured", "background"] = fixed(
        "measured", description="background connections take part and are not measured"
    )
    direction: Literal["forward", "reverse"] = Field(
        default="forward", description="of background: reverse if the receivers' hosts send"
    )
    connections: int | None = Field(default=None, ge=1, le=MOST_CONNECTIONS, description="how many")
    start: Duration = Field(default=0, description="when the first may start", json_schema_extra={"x-default": "0 s"})
    interval: PositiveDuration | None = Field(default=None, description="between two starts; all at once by default")
    spread: PositiveDuration | None = Field(
        default=None, description="starts are uniform over this time, drawn anew for each repetition"
    )
    size: Bytes | None = Field(default=None, description="bytes each connection transfers")
    lifetime: PositiveDuration | None = Field(
        default=None, description="how long each connection sends; to the end of the run without size and lifetime"
    )
    request: Bytes | None = Field(
        default=None, description="the receiver connects and sends so many bytes first; the answer is what is measured"
    )
    pairs: int = Field(default=1, ge=1, le=MOST_GROUP_PAIRS, description="host pairs that its connections take in turn")
    algorithm: Text | None = Field(default=None, description="instead of the profile's algorithm")
    rtt: PositiveDuration | None = Field(default=None, description="round-trip delay of the group's hosts")
    initial_window: int | None = Field(default=None, ge=1, le=65535, description="packets; the kernel's 10")
    initial_receive_window: int | None = Field(default=None, ge=1, le=65535, description="packets")
    opener: Literal["sender", "receiver"] = Field(default="sender", description="who connects")

    udp: DatagramSection | None = Field(default=None, description="datagrams instead of TCP")

    @model_validator(mode="after")
    def _consistent(self) -> GroupSection:
        if self.name.isdigit():
            raise FieldError("a group's name needs a letter; numbers are those of flows", "name")
        if self.connections is None:
            raise FieldError("expected connections: how many there are", "connections")
        if self.interval is not None and self.spread is not None:
            raise FieldError("interval and spread are both given; give one", "spread")
        if self.size is not None and self.lifetime is not None:
            raise FieldError("size and lifetime are both given; give one", "lifetime")
        if self.udp is not None:
            self._check_datagrams()
        if self.direction == "reverse" and self.role == "measured":
            raise FieldError("only background can go in the reverse direction", "direction")
        return self

    def _check_datagrams(self) -> None:
        if self.role == "measured":
            raise FieldError("datagrams can only be background; say role: background", "udp")
        for field in ("size", "request", "algorithm", "initial_window", "initial_receive_window"):
            if getattr(self, field) is not None:
                raise FieldError(f"{field} is one of TCP's; leave it out with udp", field)

    @property
    def last_start_us(self) -> int:
        """The latest start that can be drawn, microseconds after the epoch."""
        steps = (self.connections or 1) - 1
        return self.start + (self.spread or 0) + steps * (self.interval or 0)
