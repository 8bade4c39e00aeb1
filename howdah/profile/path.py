# SPDX-License-Identifier: Apache-2.0
"""The section ``path``: rates, delays, buffers, queues, and how they change over time."""

from __future__ import annotations

from fractions import Fraction
from typing import Any, Literal

from pydantic import ConfigDict, Field, model_validator

from howdah.frame import frame_bytes
from howdah.profile.field import (
    Buffer,
    Bytes,
    Duration,
    FieldError,
    GsoSegments,
    PositiveDuration,
    Rate,
    RateOrUnlimited,
    Ratio,
    Section,
    Text,
    fixed,
    preset,
)
from howdah.profile.link import LinkSection
from howdah.profile.middlebox import MiddleboxSection
from howdah.profile.queue import AnyQueue, queue_field, refuse_flat
from howdah.profile.varying import (
    HandoverSection,
    RateVariationSection,
    ReorderSection,
    StepSection,
    TraceSection,
    check_steps,
)
from howdah.quantity import exact_bdp, format_duration, format_rate, format_size

_LONGEST_US = 270_000_000  # longest burst: the kernel stores it in 32 bits, in units of 64 ns


class PolicerSection(Section):
    """A token bucket, before the forward queue of the bottleneck: it holds ``burst`` bytes and fills at ``rate``. Each
    frame takes its bytes from it, or is dropped if there are too few (the kernel's police action)."""

    rate: Rate = Field(description="rate at which the bucket fills, counting link-layer frames")
    burst: Bytes = Field(description="size of the bucket, which passes at once after a pause")

    def check(self, frame_bytes: int) -> None:
        """Raise FieldError for a policer that passes no full frame, or that the kernel cannot represent."""
        if self.burst < frame_bytes:
            what = f"a burst of {format_size(self.burst)} drops every full frame, which has {frame_bytes} bytes"
            raise FieldError(f"{what}; give at least that, or a smaller path.mtu", "policer", "burst")
        if self.rate < 8:
            raise FieldError(f"{format_rate(self.rate)} is below a byte a second; give more", "policer", "rate")
        full_us = self.burst * 8_000_000 // self.rate
        if full_us > _LONGEST_US:
            what = f"a burst of {format_duration(full_us)} of the policer's rate; the kernel counts up to"
            raise FieldError(
                f"{what} {format_duration(_LONGEST_US)}; make burst smaller or rate higher", "policer", "burst"
            )


LARGEST_DRAWN_US = 5_000_000  # largest random delay: netem stores a deviation in 32 bits, in nanoseconds


class OneWayDelay(Section):
    """Propagation delay of each direction."""

    forward: Duration = Field(description="from sender to receiver")
    reverse: Duration = Field(description="from receiver to sender")


class DelayVariation(Section):
    """Delay added to the propagation delay, from 0 to ``limit``.

    With ``order: kept`` it changes with time and never reorders packets. It takes a new value every ``interval``.
    Values are correlated in time: a first-order autoregressive process with ``correlation_time``, mapped to the
    distribution. The series is drawn once, from the seed, and written into the plan. With ``order: broken`` each packet
    draws its own delay, and a packet with a shorter delay overtakes.
    """

    distribution: Literal["normal", "exponential", "uniform", "pareto", "table"] = Field(
        description="normal: mean 3 standard deviations; exponential: mean = standard deviation; uniform: 0 … "
        "amplitude; pareto: 1 - F(x) = (1 + x / a)^-3, a = 1.155 standard deviations, mean a / 2; table: from a file"
    )
    order: Literal["kept", "broken"] = Field(
        default="kept", description="kept: packets stay in order; broken: they can overtake"
    )
    standard_deviation: PositiveDuration | None = Field(
        default=None, description="standard deviation of the added delay (normal, exponential, pareto)"
    )
    table: Text | None = fixed(
        None, description="a file with one added delay, such as 3 ms, per line, all equally likely"
    )
    amplitude: PositiveDuration | None = Field(default=None, description="largest added delay (uniform)")
    correlation_time: Duration | None = Field(
        default=None,
        description="time in which the autocorrelation falls to 1/e; 0: independent values; required if order is kept",
    )
    interval: PositiveDuration = preset(PositiveDuration, "20 ms", description="time between changes")
    limit: PositiveDuration | None = Field(
        default=None, description="largest added delay; default: 6 standard deviations, or the amplitude"
    )
    direction: Literal["forward", "reverse", "both"] = Field(
        default="both", description="both: two independent series, each with the full variation"
    )
    source: Text = fixed(description="origin of distribution and amplitude: a publication, a measurement, a choice")

    @model_validator(mode="after")
    def _scale(self) -> DelayVariation:
        given = {"uniform": "amplitude", "table": "table"}.get(self.distribution, "standard_deviation")
        if getattr(self, given) is None:
            raise FieldError(f"distribution {self.distribution} needs {given}", "distribution")
        for other in ("amplitude", "standard_deviation", "table"):
            if other != given and getattr(self, other) is not None:
                raise FieldError(f"distribution {self.distribution} takes {given}, not {other}", other)
        return self

    @model_validator(mode="after")
    def _ordered(self) -> DelayVariation:
        if self.interval < 1000:
            raise FieldError("expected an interval of at least 1 ms", "interval")
        if self.order == "kept" and self.correlation_time is None:
            raise FieldError("a delay that keeps packets in order needs a correlation_time", "correlation_time")
        if self.order == "broken" and self.correlation_time:
            raise FieldError("each packet draws its own delay; leave correlation_time out", "correlation_time")
        if self.order == "broken" and self.limit_us > LARGEST_DRAWN_US:
            raise FieldError("a packet can draw a delay of 5 s at most; give a smaller limit", "limit")
        return self

    @property
    def limit_us(self) -> int:
        """The largest added delay, or 0 if only the table determines it."""
        scale = self.amplitude if self.distribution == "uniform" else 6 * (self.standard_deviation or 0)
        return self.limit if self.limit is not None else int(scale or 0)


class HopSection(Section):
    """An additional hop in series with the bottleneck, with its own queue; never slower than the bottleneck."""

    rate: Rate = Field(description="rate, at least the path's")
    buffer: Buffer = preset(Buffer, "1 bdp", description="buffer; 1 bdp = the hop's rate x rtt")
    queue: AnyQueue = queue_field("this hop")
    place: Literal["before", "after"] = Field(
        default="after", description="before or after the bottleneck, in the forward direction"
    )


def _complete(schema: dict[str, Any]) -> None:
    """Add to the schema: a rate and one form of delay are required, unless ``like`` provides them."""
    schema.pop("required")
    given = [{"required": [rate, delay]} for rate in ("rate", "link") for delay in ("rtt", "one_way_delay")]
    schema["anyOf"] = [*given, {"required": ["like"]}]
    pairs = (("rtt", "one_way_delay"), ("rate", "link"), ("reverse_rate", "reverse_link"))
    schema["not"] = {"anyOf": [{"required": list(pair)} for pair in pairs]}


class PathSection(Section):
    """The path: a bottleneck hop (rate and buffer) and, separately, propagation delay towards every host."""

    model_config = ConfigDict(json_schema_extra=_complete)

    like: Text | None = Field(
        default=None,
        description="take fields that are not given from another profile's path: a file, or a name such as paths/geo",
    )
    rate: Rate = Field(description="rate of the bottleneck, counting link-layer frames")
    link: LinkSection | None = Field(
        default=None, description="instead of rate: a bottleneck that carries bytes at the instants of a trace"
    )
    reverse_rate: Rate | None = Field(default=None, description="rate of the reverse direction; default: unlimited")
    reverse_link: LinkSection | None = Field(
        default=None, description="instead of reverse_rate: like link, in the reverse direction"
    )
    rtt: PositiveDuration | None = Field(
        default=None, description="round-trip propagation delay, half in each direction"
    )
    one_way_delay: OneWayDelay | None = Field(default=None, description="instead of rtt: the delay of each direction")
    buffer: Buffer = preset(
        Buffer,
        "1 bdp",
        description="buffer of the bottleneck; 1 bdp = rate x rtt (unperturbed); exact to the byte; "
        "a packet is a full frame",
    )
    reverse_buffer: Buffer = preset(
        Buffer,
        "1 bdp",
        description="reverse buffer, if reverse_rate is set; 1 bdp = reverse_rate x rtt; "
        "packets count whatever their size",
    )
    queue: AnyQueue = queue_field("the bottleneck, forward")
    reverse_queue: AnyQueue = queue_field("reverse, if reverse_rate is set")
    policer: PolicerSection | None = Field(
        default=None, description="before the forward queue, drops what exceeds a rate and a burst"
    )
    ecn: bool = Field(
        default=False,
        description="the queue marks packets instead of dropping if it can; hosts negotiate ECN (net.ipv4.tcp_ecn=1)",
    )
    hops: list[HopSection] = Field(
        default_factory=list, max_length=8, description="additional hops in series, which make the topology a chain"
    )
    mtu: int = Field(default=1500, ge=576, le=9000, description="bytes of an IP packet on every link")
    sender_interface: RateOrUnlimited = preset(
        RateOrUnlimited,
        "1 Gbit/s",
        description="rate of each sender's interface; unlimited: a bare veth, which is infinitely fast",
    )
    burst: Literal["frame", "none"] = Field(
        default="frame",
        description="frame: after a pause, a rate limit passes two frames at once, one of them early; "
        "none: every frame is spaced, as on a wire (virtual time only)",
    )
    tick: PositiveDuration | None = Field(
        default=None,
        description="while flows run, delay lines release due packets together, at this interval, like an emulator "
        "with a coarse clock (Dummynet: 1 or 10 ms); default: each on time (virtual time only)",
    )
    delay_limit: int | None = Field(
        default=None,
        ge=1,
        le=10_000_000,
        description="capacity in packets of the delay line towards each receiver while flows run, as in a testbed "
        "that left netem's limit at 1000; more packets are dropped. Default: no limit",
    )
    gso_max_segs: GsoSegments = Field(
        default=1,
        description="maximum segments per packet that TCP sends (1: packet-exact); kernel: the kernel's default",
    )
    loss: Ratio = preset(Ratio, "0 %", description="random loss after the bottleneck, forward")
    loss_burst: float | None = Field(
        default=None,
        ge=1,
        le=1000,
        description="mean number of packets lost in a row by random loss (Gilbert's model); default: losses are "
        "independent",
    )
    reverse_loss: Ratio = preset(Ratio, "0 %", description="random loss in the reverse direction, after its rate limit")
    reverse_loss_burst: float | None = Field(
        default=None, ge=1, le=1000, description="like loss_burst, for reverse_loss"
    )
    delay_variation: DelayVariation | None = Field(default=None, description="delay that varies during the run")
    reorder: ReorderSection | None = Field(default=None, description="forward packets that overtake others")
    middlebox: MiddleboxSection | None = Field(default=None, description="a hop that changes or drops packets")
    schedule: list[StepSection] = Field(
        default_factory=list, max_length=10_000, description="changes of rates, delay and losses at given times"
    )
    trace: TraceSection | None = Field(default=None, description="changes from a file that schedule does not make")
    rate_variation: RateVariationSection | None = Field(default=None, description="a random rate, drawn from the seed")
    handover: HandoverSection | None = Field(default=None, description="satellite hand-overs")

    @model_validator(mode="before")
    @classmethod
    def _no_flat_queue(cls, data: Any) -> Any:
        return refuse_flat(data)

    @model_validator(mode="after")
    def _one_delay(self) -> PathSection:
        if self.rtt is not None and self.one_way_delay is not None:
            raise FieldError("rtt and one_way_delay are both given; give one", "one_way_delay")
        if self.rtt is None and self.one_way_delay is None:
            raise FieldError("the delay is missing: give rtt, or one_way_delay with forward and reverse")
        if self.forward_delay_us + self.reverse_delay_us == 0:
            raise FieldError("forward and reverse delay are both 0; a path has a round-trip time", "one_way_delay")
        for name in ("loss", "reverse_loss"):
            if getattr(self, name) > Fraction(1, 2):
                raise FieldError("expected a loss of at most 50 %", name)
        return self

    @model_validator(mode="after")
    def _consistent(self) -> PathSection:
        self._check_queues()
        for index, hop in enumerate(self.hops):
            if hop.rate < self.rate:
                what = "this hop is slower than path.rate; give path.rate the slowest, and hops before it place: before"
                raise FieldError(what, "hops", index, "rate")
        check_steps(self.schedule, "schedule")
        for name in ("loss", "reverse_loss"):
            if (mean := getattr(self, f"{name}_burst")) is not None:
                self._check_bursts(name, mean)
        if self.trace is not None and self.rate_variation is not None:
            raise FieldError("trace and rate_variation are both given; give one", "rate_variation")
        self._check_rates()
        if self.rate_variation is not None and self.rate_variation.least > self.rate:
            raise FieldError("expected at most path.rate", "rate_variation", "least")
        self._check_delay_lines()
        return self

    def _check_queues(self) -> None:
        if self.ecn and self.queue.discipline.unmarked:
            raise FieldError(f"{self.queue.discipline.unmarked}; ecn needs another queue", "ecn")
        own = self.reverse_queue.kind != "fifo" or getattr(self.reverse_queue, "counts", None) is not None
        if own and self.reverse_rate is None:
            raise FieldError("the reverse direction has no queue without a rate; give reverse_rate", "reverse_queue")
        if self.policer is not None:
            self.policer.check(self.frame_bytes)

    def _check_delay_lines(self) -> None:
        """Raise FieldError for features that one delay line cannot combine."""
        broken = self.delay_variation is not None and self.delay_variation.order == "broken"
        for name in ("reorder", "tick", "middlebox"):
            if broken and getattr(self, name) is not None:
                what = f"delay_variation with order broken cannot be combined with {name}; leave one out"
                raise FieldError(what, "delay_variation", "order")
        lossy = self.loss or any(step.loss is not None or step.outage is not None for step in self.schedule)
        if self.delay_limit is not None and (lossy or self.handover is not None or self.middlebox is not None):
            what = "a delay line with a limit drops packets itself; leave loss, outage, handover and middlebox out"
            raise FieldError(what, "delay_limit")
        if self.reorder is not None and self.forward_delay_us == 0:
            raise FieldError("without a forward delay no packet can overtake", "reorder")

    def _check_rates(self) -> None:
        """Raise FieldError if two of link, drawn rates and steps set a rate, or steps set one that is unlimited."""
        if self.link is not None and self.rate_variation is not None:
            raise FieldError("link and rate_variation are both given; give one", "rate_variation")
        others = {
            "rate": "the link's trace gives the rate; give this step a delay or a loss" * (self.link is not None)
            or "rate_variation draws the rates; give this step a delay or a loss" * (self.rate_variation is not None),
            "reverse_rate": self.no_reverse_steps or "",
        }
        for index, step in enumerate(self.schedule):
            for name, why in others.items():
                if why and getattr(step, name) is not None:
                    raise FieldError(why, "schedule", index, name)

    @property
    def no_reverse_steps(self) -> str | None:
        """Why the reverse rate cannot change during the run; None if it can."""
        if self.reverse_link is not None:
            return "the reverse link's trace gives its rate"
        return "the reverse direction has no rate to change; give path.reverse_rate" if not self.reverse_rate else None

    def _check_bursts(self, name: str, mean: float) -> None:
        losses: list[tuple[tuple[str | int, ...], Fraction]] = [((name,), getattr(self, name))]
        losses += [
            (("schedule", index, name), loss)
            for index, step in enumerate(self.schedule)
            if (loss := getattr(step, name)) is not None and loss < 1
        ]
        if self.trace is None and not any(loss for _, loss in losses):
            what = f"there is no random loss to come in bursts; give path.{name}"
            raise FieldError(what, f"{name}_burst")
        for place, loss in losses:
            if loss * (1 + Fraction(mean)) > Fraction(mean):
                raise FieldError(f"bursts of {mean:g} packets cannot reach this loss; make {name}_burst longer", *place)

    @property
    def frame_bytes(self) -> int:
        """The size of a full frame on any link."""
        return frame_bytes(self.mtu)

    def bdp(self, rate_bits_per_second: int | None = None) -> Fraction:
        """Bandwidth-delay product in bytes of the unperturbed round trip and the path's rate, or another rate."""
        rate = self.rate if rate_bits_per_second is None else rate_bits_per_second
        return exact_bdp(rate, self.forward_delay_us + self.reverse_delay_us)

    @property
    def early_us(self) -> int:
        """How early an overtaking packet arrives, in microseconds; 0 if none overtakes."""
        return 0 if self.reorder is None else self.forward_delay_us

    @property
    def reverse_counts_packets(self) -> bool:
        """Whether the reverse queue's limit counts packets, as set by its fifo or by the unit of its buffer."""
        counts = getattr(self.reverse_queue, "counts", None)
        return self.reverse_queue.kind == "fifo" and (counts or self.reverse_buffer.unit) == "packets"

    @property
    def forward_delay_us(self) -> int:
        return self.one_way_delay.forward if self.one_way_delay else (self.rtt or 0) // 2

    @property
    def reverse_delay_us(self) -> int:
        return self.one_way_delay.reverse if self.one_way_delay else (self.rtt or 0) - (self.rtt or 0) // 2
