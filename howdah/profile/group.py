# SPDX-License-Identifier: Apache-2.0
"""The section ``groups``: a few lines of a profile that describe many flows (made by howdah/plan/group.py)."""

from __future__ import annotations

from typing import Literal

from pydantic import Field, model_validator

from howdah.profile.end import ReceiverName
from howdah.profile.field import (
    AlgorithmName,
    Bytes,
    Duration,
    FieldError,
    Name,
    PositiveDuration,
    Rate,
    Section,
    fixed,
    preset,
)
from howdah.profile.sizes import SizesSection

MOST_HTTP_CONNECTIONS = 50  # each needs its own server and client process
_DAY_US = 86_400_000_000


class HttpSection(Section):
    """Successive requests for the same object over one keep-alive connection."""

    object: Bytes = Field(description="size of the object, the body of each answer")
    requests: int = Field(default=1, ge=1, le=1000, description="sequential requests per connection")
    every: PositiveDuration | None = Field(
        default=None,
        description="minimum time between request starts; default: each request follows the previous answer",
    )

    @model_validator(mode="after")
    def _possible(self) -> HttpSection:
        if self.every is not None and (self.every % 1000 or _DAY_US % self.every):
            what = "expected whole milliseconds that divide a day (curl counts requests per day)"
            raise FieldError(what, "every")
        if self.every is not None and self.requests == 1:
            raise FieldError("there is one request; leave every out, or give requests", "every")
        return self


MOST_CONNECTIONS = 100_000
MOST_GROUP_PAIRS = 200
LEAST_PACKET_BYTES, MOST_PACKET_BYTES = 29, 16000


class OnOffSection(Section):
    """Alternating on and off times of a source."""

    on: PositiveDuration = Field(description="how long it sends; the mean if drawn")
    off: PositiveDuration = Field(description="how long it is silent; the mean if drawn")
    distribution: Literal["constant", "exponential", "pareto"] = Field(
        default="constant", description="distribution of both times; pareto has shape 1.5"
    )


class DatagramSection(Section):
    """UDP background traffic at a constant rate."""

    rate: Rate = Field(description="rate on the wire, counting frames like path.rate")
    packet: Bytes = preset(Bytes, "1000 B", description="size of the IP packet with headers")
    on_off: OnOffSection | None = Field(default=None, description="on and off times; default: always on")

    @model_validator(mode="after")
    def _has_payload(self) -> DatagramSection:
        if not LEAST_PACKET_BYTES <= self.packet <= MOST_PACKET_BYTES:
            what = f"expected a packet of {LEAST_PACKET_BYTES} to {MOST_PACKET_BYTES} bytes, of which headers take 28"
            raise FieldError(what, "packet")
        return self


def _above_one(shape: float, field: str) -> None:
    if shape <= 1:
        raise FieldError(f"expected a shape above 1, not {shape}: the mean would be infinite", field)


class WebSection(Section):
    """Web sessions, one connection per object (HTTP/1.0): ns-2's model with the numbers of the Jump Start paper,
    section IV. Times are exponential, pages per session geometric. Objects per page and packets per object are Pareto
    of the second kind, rounded, at least 1."""

    sessions: int = Field(default=50, ge=1, le=1000, description="number of sessions")
    between_sessions: PositiveDuration = preset(
        PositiveDuration, "5 ms", description="mean time between starts of sessions"
    )
    pages: int = Field(default=5, ge=1, le=1000, description="mean pages per session")
    between_pages: PositiveDuration = preset(
        PositiveDuration, "500 ms", description="mean time between starts of pages"
    )
    objects: int = Field(default=4, ge=1, le=1000, description="mean objects per page")
    objects_shape: float = Field(default=1.5, ge=1, le=100, description="Pareto shape of the number of objects")
    between_objects: PositiveDuration = preset(
        PositiveDuration, "50 ms", description="mean time between requests of objects"
    )
    object_packets: int = Field(default=4, ge=1, le=100_000, description="mean object size in full segments")
    object_shape: float = Field(default=1.2, ge=1, le=100, description="Pareto shape of the object size")
    largest: Bytes = preset(Bytes, "10 MB", description="maximum size; larger objects are cut to it")

    @model_validator(mode="after")
    def _finite_means(self) -> WebSection:
        _above_one(self.objects_shape, "objects_shape")
        _above_one(self.object_shape, "object_shape")
        return self


class MixSection(Section):
    """Medium-sized transfers at a mean rate, like the background of the HyStart paper.

    Arrivals are a Poisson process. Sizes are those of the Surge generator (Barford and Crovella 1998: 93 % lognormal,
    the rest Pareto), restricted to those between least and most.
    """

    rate: Rate = Field(description="mean load on the wire, which determines the arrival rate")
    least: Bytes = preset(Bytes, "50 kB", description="smallest transfer")
    most: Bytes = preset(Bytes, "5 MB", description="largest transfer")

    @model_validator(mode="after")
    def _range(self) -> MixSection:
        if self.least >= self.most:
            raise FieldError("the largest transfer is not larger than the smallest", "most")
        return self


class GroupSection(Section):
    """A set of similar connections, which planning a run turns into flows, drawn from the seed and the repetition."""

    name: Name = fixed(description="its connections are called NAME-1, NAME-2, …")
    role: Literal["measured", "background"] = fixed(
        "measured", description="background connections take part and are not measured"
    )
    direction: Literal["forward", "reverse"] = Field(
        default="forward", description="reverse: the receivers' hosts send (background only)"
    )
    connections: int | None = Field(default=None, ge=1, le=MOST_CONNECTIONS, description="number of connections")
    start: Duration = preset(Duration, "0 s", description="earliest start of a connection")
    interval: PositiveDuration | None = Field(
        default=None, description="time between two starts, or its mean if drawn; default: all start at once"
    )
    arrivals: Literal["regular", "poisson", "pareto"] = Field(
        default="regular",
        description="times between starts: regular: interval; or drawn with that mean in each repetition, "
        "exponential (poisson) or Pareto of shape 1.5 (bursty)",
    )
    spread: PositiveDuration | None = Field(
        default=None, description="draw starts uniformly over this time, again in each repetition"
    )
    size: Bytes | None = Field(default=None, description="bytes that each connection transfers")
    sizes: SizesSection | None = Field(default=None, description="instead of size: drawn for each connection")
    lifetime: PositiveDuration | None = Field(
        default=None, description="how long each connection sends; without size and lifetime: to the end of the run"
    )
    request: Bytes | None = Field(
        default=None, description="size of a request: the receiver connects and sends it; the answer is measured"
    )
    requests: int = Field(
        default=1,
        ge=1,
        le=1000,
        description="requests per connection, each answered with size bytes, or with the connection's drawn size; "
        "several are made by processes",
    )
    think: Duration = preset(Duration, "0 s", description="time between an answer's end and the next request")
    pairs: int = Field(
        default=1, ge=1, le=MOST_GROUP_PAIRS, description="host pairs, which the connections use in turn"
    )
    alternate: bool = Field(
        default=False,
        description="send every other connection in reverse, as background in a group called NAME-back",
    )
    algorithm: AlgorithmName | None = Field(default=None, description="overrides the profile's algorithm")
    rtt: PositiveDuration | None = Field(default=None, description="round-trip delay of the group's hosts")
    initial_window: int | None = Field(default=None, ge=1, le=65535, description="in packets; default: the kernel's 10")
    initial_receive_window: int | None = Field(default=None, ge=1, le=65535, description="packets")
    opener: Literal["sender", "receiver"] | None = Field(
        default=None,
        description="which end connects; default: the receiver if it sends requests, otherwise the sender. "
        "With web, sender means no requests: objects start at the time of their request",
    )
    receiver_behaviour: ReceiverName | None = Field(
        default=None, description="emulated behaviour of its receivers; overrides the profile's receiver"
    )

    udp: DatagramSection | None = Field(
        default=None, description="UDP at a constant rate instead of TCP, as background"
    )

    http: HttpSection | None = Field(
        default=None, description="HTTP transactions: nginx at the sender, curl at the receiver"
    )

    web: WebSection | None = Field(default=None, description="instead of connections: sessions of web pages")
    mix: MixSection | None = Field(default=None, description="instead of connections: transfers at a mean rate")

    @model_validator(mode="after")
    def _consistent(self) -> GroupSection:
        if self.name.isdigit():
            raise FieldError("a group's name needs a letter; numbers are those of flows", "name")
        drawn = self.web or self.mix
        if (self.connections is None) + (self.web is None) + (self.mix is None) != 2:
            raise FieldError("expected one of connections (how many there are), web and mix", "connections")
        for field in ("interval", "spread", "size", "sizes", "lifetime", "udp"):
            if drawn is not None and getattr(self, field) is not None:
                raise FieldError(f"{field} cannot be combined with web or mix, which draw it", field)
        if self.interval is not None and self.spread is not None:
            raise FieldError("interval and spread are both given; give one", "spread")
        if self.arrivals != "regular" and self.interval is None:
            raise FieldError(f"{self.arrivals} arrivals need interval, the mean time between two starts", "arrivals")
        if self.size is not None and self.lifetime is not None:
            raise FieldError("size and lifetime are both given; give one", "lifetime")
        for field in ("size", "lifetime", "udp", "http"):
            if self.sizes is not None and getattr(self, field) is not None:
                raise FieldError(f"sizes cannot be combined with {field}", field)
        if self.udp is not None:
            self._check_datagrams()
        if self.http is not None:
            self._check_http()
        if self.opener == "sender" and (self.request is not None or self.http is not None):
            raise FieldError("the end that sends requests connects: leave opener out", "opener")
        if self.requests > 1 and (self.request is None or (self.size is None and self.sizes is None)):
            raise FieldError("several requests need request, and the size of their answers: size or sizes", "requests")
        if self.think and self.requests == 1:
            raise FieldError("there is one request; leave think out, or give requests", "think")
        if self.alternate and (self.direction == "reverse" or self.udp is not None):
            raise FieldError("alternate needs TCP connections in the forward direction", "alternate")
        if self.direction == "reverse" and self.role == "measured":
            raise FieldError("only background can go in the reverse direction", "direction")
        return self

    def _check_http(self) -> None:
        for field in ("size", "request", "udp", "web", "mix"):
            if getattr(self, field) is not None:
                raise FieldError(f"{field} cannot be combined with http, whose object sets the size", field)
        if (self.connections or 0) > MOST_HTTP_CONNECTIONS:
            what = f"expected at most {MOST_HTTP_CONNECTIONS} connections: each has a server and a client of its own"
            raise FieldError(what, "connections")

    def _check_datagrams(self) -> None:
        if self.role == "measured":
            raise FieldError("datagrams can only be background; say role: background", "udp")
        for field in ("size", "request", "algorithm", "initial_window", "initial_receive_window"):
            if getattr(self, field) is not None:
                raise FieldError(f"{field} is a field of TCP; leave it out with udp", field)

    @property
    def last_start_us(self) -> int:
        """The latest start in microseconds after the epoch; the first for drawn intervals, which have no maximum."""
        if self.arrivals != "regular":
            return self.start
        steps = (self.connections or 1) - 1
        return self.start + (self.spread or 0) + steps * (self.interval or 0)
