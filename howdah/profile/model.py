# SPDX-License-Identifier: Apache-2.0
"""The fields of a profile. One ``Scenario`` is one point of a sweep: every sweepable field has one value.

Descriptions here become docs/profile-reference.md and the JSON Schema. A field marked ``fixed`` cannot be swept.
"""

from __future__ import annotations

from fractions import Fraction
from typing import Annotated, Any, Literal

from pydantic import BaseModel, ConfigDict, Field, model_validator

from howdah.profile.field import (
    Buffer,
    Bytes,
    Duration,
    GsoSegments,
    IntervalOrOff,
    Name,
    PositiveDuration,
    Rate,
    RateOrUnlimited,
    Ratio,
    SpanField,
    Text,
)
from howdah.quantity import BufferSize, Span

PROFILE_FORMAT = 1
MOST_FLOWS = 1000
MOST_PAIRS = 200


class FieldError(ValueError):
    """A rule that joins several fields is broken; ``path`` says at which field to point."""

    def __init__(self, what: str, *path: str | int) -> None:
        super().__init__(what)
        self.path = path


def fixed(default: Any = ..., **arguments: Any) -> Any:
    """A field that belongs to the whole profile and cannot be swept."""
    return Field(default, json_schema_extra={"x-fixed": True}, **arguments)


class Section(BaseModel):
    model_config = ConfigDict(extra="forbid", frozen=True, strict=True, arbitrary_types_allowed=True)


class OneWayDelay(Section):
    """Propagation delay of each direction: from senders to receivers, and back."""

    forward: Duration = Field(description="from sender to receiver")
    reverse: Duration = Field(description="from receiver to sender")


class DelayVariation(Section):
    """Delay added to the propagation delay, changing with time and never reordering packets.

    Every ``interval`` the added delay takes a new value d(t), 0 <= d(t) <= limit; values are correlated in time (a
    first-order autoregressive process with ``correlation_time``, mapped to the distribution). The configured delay
    thus stays the smallest one. The series is drawn once from the seed and written into the plan.
    """

    distribution: Literal["normal", "exponential", "uniform"] = Field(
        description="normal: mean 3 standard deviations; exponential: mean = standard deviation; uniform: 0 … amplitude"
    )
    standard_deviation: PositiveDuration | None = Field(
        default=None, description="of the added delay (normal, exponential)"
    )
    amplitude: PositiveDuration | None = Field(default=None, description="largest added delay (uniform)")
    correlation_time: Duration = Field(
        description="time in which the autocorrelation falls to 1/e; 0: independent values"
    )
    interval: PositiveDuration = Field(
        default=20_000, description="time between changes", json_schema_extra={"x-default": "20 ms"}
    )
    limit: PositiveDuration | None = Field(
        default=None, description="largest added delay; default 6 standard deviations, or the amplitude"
    )
    direction: Literal["forward", "reverse", "both"] = Field(
        default="both", description="both: two independent series, each with the whole variation"
    )
    source: Text = fixed(
        description="where distribution and amplitude come from: a publication, a measurement, a choice"
    )

    @model_validator(mode="after")
    def _scale(self) -> DelayVariation:
        given, other = ("amplitude", "standard_deviation")
        if self.distribution != "uniform":
            given, other = other, given
        if getattr(self, given) is None:
            raise FieldError(f"distribution {self.distribution} needs {given}", "distribution")
        if getattr(self, other) is not None:
            raise FieldError(f"distribution {self.distribution} takes {given}, not {other}", other)
        if self.interval < 1000:
            raise FieldError("expected an interval of at least 1 ms", "interval")
        return self

    @property
    def limit_us(self) -> int:
        scale = self.amplitude if self.distribution == "uniform" else 6 * (self.standard_deviation or 0)
        return self.limit if self.limit is not None else int(scale or 0)


class PathSection(Section):
    """The path: one bottleneck hop (rate and buffer) and, apart from it, propagation delay towards every host."""

    rate: Rate = Field(description="rate of the bottleneck, link-layer frames counted")
    reverse_rate: Rate | None = Field(default=None, description="rate of the way back; not limited by default")
    rtt: PositiveDuration | None = Field(default=None, description="round-trip propagation delay, half of it each way")
    one_way_delay: OneWayDelay | None = Field(default=None, description="instead of rtt: each direction's delay")
    buffer: Buffer = Field(
        default=BufferSize(Fraction(1), "bdp"),
        description="buffer of the bottleneck; 1 bdp = rate x rtt (unperturbed); exact in bytes",
        json_schema_extra={"x-default": "1 bdp"},
    )
    reverse_buffer: Buffer = Field(
        default=BufferSize(Fraction(1), "bdp"),
        description="buffer of the way back, where reverse_rate is set; 1 bdp = reverse_rate x rtt",
        json_schema_extra={"x-default": "1 bdp"},
    )
    queue: Literal["fifo"] = Field(
        default="fifo", description="queue discipline of the bottleneck: fifo drops at the tail"
    )
    mtu: int = Field(default=1500, ge=576, le=9000, description="bytes of an IP packet on every link")
    sender_interface: RateOrUnlimited = Field(
        default=1_000_000_000,
        description="rate of each sender's interface; unlimited: a bare veth, which is infinitely fast",
        json_schema_extra={"x-default": "1 Gbit/s"},
    )
    gso_max_segs: GsoSegments = Field(
        default=1,
        description="most segments TCP puts into one packet (1: packet-exact); kernel: leave the kernel's default",
    )
    loss: Ratio = Field(
        default=Fraction(0),
        description="random loss after the bottleneck, forward",
        json_schema_extra={"x-default": "0 %"},
    )
    delay_variation: DelayVariation | None = Field(default=None, description="delay that varies during the run")

    @model_validator(mode="after")
    def _one_delay(self) -> PathSection:
        if self.rtt is not None and self.one_way_delay is not None:
            raise FieldError("rtt and one_way_delay are both given; give one", "one_way_delay")
        if self.rtt is None and self.one_way_delay is None:
            raise FieldError("the delay is missing: give rtt, or one_way_delay with forward and reverse")
        if self.forward_delay_us + self.reverse_delay_us == 0:
            raise FieldError("forward and reverse delay are both 0; a path has a round-trip time", "one_way_delay")
        if self.loss > Fraction(1, 2):
            raise FieldError("expected a loss of at most 50 %", "loss")
        return self

    @property
    def forward_delay_us(self) -> int:
        return self.one_way_delay.forward if self.one_way_delay else (self.rtt or 0) // 2

    @property
    def reverse_delay_us(self) -> int:
        return self.one_way_delay.reverse if self.one_way_delay else (self.rtt or 0) - (self.rtt or 0) // 2


class TopologySection(Section):
    """The network: a Mininet Topo class, shipped (``name``) or your own (``file`` and ``class``)."""

    name: Literal["dumbbell"] | None = fixed(
        None, description="a topology of topologies/; dumbbell unless file is given"
    )
    file: Text | None = fixed(None, description="a Python file with a Mininet Topo class, relative to the profile")
    class_: Name | None = fixed(None, alias="class", description="the class in file")
    pairs: int | None = Field(
        default=None, ge=1, le=MOST_PAIRS, description="sender-receiver pairs; one for each flow by default"
    )

    @model_validator(mode="after")
    def _one_source(self) -> TopologySection:
        if self.file is not None and self.name is not None:
            raise FieldError("name and file are both given; give one", "name")
        if (self.file is None) != (self.class_ is None):
            raise FieldError(
                "file and class belong together; one of them is missing", "class" if self.class_ else "file"
            )
        return self


class FlowSection(Section):
    """One TCP connection carrying bulk data from a sender to a receiver."""

    name: Name | None = fixed(None, description="flow1, flow2, … by default")
    start: Duration = Field(
        default=0, description="when the connection is opened", json_schema_extra={"x-default": "0 s"}
    )
    stop: PositiveDuration | None = Field(default=None, description="when sending ends; the end of the run by default")
    size: Bytes | None = Field(default=None, description="bytes to transfer; the flow then ends by itself")
    algorithm: Text | None = Field(default=None, description="instead of the profile's algorithm")
    rtt: PositiveDuration | None = Field(
        default=None, description="round-trip delay of this flow's hosts, split as the path's is"
    )
    sender: Name | None = fixed(None, description="host name; the i-th sender for the i-th flow by default")
    receiver: Name | None = fixed(None, description="host name; the i-th receiver for the i-th flow by default")
    initial_window: int | None = Field(
        default=None, ge=1, le=65535, description="packets (route's initcwnd); the kernel's 10"
    )
    initial_receive_window: int | None = Field(default=None, ge=1, le=65535, description="packets (route's initrwnd)")

    @model_validator(mode="after")
    def _one_end(self) -> FlowSection:
        if self.stop is not None and self.size is not None:
            raise FieldError("stop and size are both given; give one", "stop")
        if self.stop is not None and self.stop <= self.start:
            raise FieldError("the flow stops before it starts", "stop")
        return self


class AlgorithmSection(Section):
    """An algorithm of your own for the ``algorithm`` field."""

    kernel: Annotated[str, Field(pattern=r"^[A-Za-z0-9_-]{1,15}$")] = fixed(
        description="name given to TCP_CONGESTION, at most 15 characters"
    )
    module: Name | None = fixed(None, description="kernel module; tcp_KERNEL where a modules entry provides it")
    parameters: dict[str, Text] = fixed(
        default_factory=dict, description="module parameters, set before any flow starts"
    )
    base: Text | None = fixed(None, description="the congestion avoidance that follows slow start")


class PerturbationSection(Section):
    """How repetitions differ from one another. With ``repetitions: 1`` nothing is perturbed."""

    rtt: Ratio = Field(
        default=Fraction(1, 200),
        description="the path's delay is scaled by 1 ± up to this",
        json_schema_extra={"x-default": "0.5 %"},
    )
    start: SpanField = Field(
        default=Span(Fraction(1), "rtt"),
        description="each flow starts up to this much later",
        json_schema_extra={"x-default": "1 rtt"},
    )
    jitter: SpanField = Field(
        default=Span(Fraction(0), "us"),
        description="order-preserving forward delay added, uniform between 0 and this, correlated over one RTT",
        json_schema_extra={"x-default": "0"},
    )

    @model_validator(mode="after")
    def _small(self) -> PerturbationSection:
        if self.rtt > Fraction(1, 10):
            raise FieldError("expected a perturbation of the RTT of at most 10 %", "rtt")
        return self


class TrafficSection(Section):
    """What sends and what receives: in the kernel, iperf3, or a plain blocking Python program.

    By default both are in the kernel in virtual time, where a process costs wall time, and iperf3 in real time, where
    the kernel is not ours to load modules into.
    """

    source: Literal["kernel", "iperf3", "python"] | None = Field(
        default=None, description="what sends", json_schema_extra={"x-default": "kernel; iperf3 in real time"}
    )
    sink: Literal["kernel", "iperf3", "python"] | None = Field(
        default=None, description="what receives", json_schema_extra={"x-default": "kernel; iperf3 in real time"}
    )

    @model_validator(mode="after")
    def _compatible(self) -> TrafficSection:
        ends = {self.source, self.sink} - {None}
        if "iperf3" in ends and len(ends) > 1:
            raise FieldError("iperf3 speaks a protocol of its own: source and sink must both be iperf3", "sink")
        return self

    def ends(self, *, virtual_time: bool) -> tuple[str, str]:
        """Source and sink, with what is not said filled in."""
        if "iperf3" in (self.source, self.sink) or (not virtual_time and self.source is self.sink is None):
            return "iperf3", "iperf3"
        other = "kernel" if virtual_time else "python"
        return self.source or other, self.sink or other


class CrossCheckSection(Section):
    """One further run with other traffic, to see that the result does not hang on who sends and who receives."""

    traffic: Literal["iperf3", "python"] = fixed(description="what sends and receives in it")
    algorithm: Text | None = fixed(None, description="of this algorithm; the first one by default")


class CollectSection(Section):
    """What is recorded. Intervals may be ``off``."""

    tcp_probe: bool = Field(default=True, description="every ACK at the senders, by the tcp:tcp_probe tracepoint")
    slow_start: bool = Field(
        default=True, description="exits and other events that slow-start modules tell of, where they are loaded"
    )
    tcp_info: IntervalOrOff = Field(
        default=100_000, description="struct tcp_info of both ends", json_schema_extra={"x-default": "100 ms"}
    )
    qdisc: IntervalOrOff = Field(
        default=100_000, description="backlog and drops of every queue", json_schema_extra={"x-default": "100 ms"}
    )
    interfaces: IntervalOrOff = Field(
        default=100_000, description="bytes of every interface", json_schema_extra={"x-default": "100 ms"}
    )
    counters: IntervalOrOff = Field(
        default=1_000_000,
        description="SNMP, netstat, softnet and memory counters",
        json_schema_extra={"x-default": "1 s"},
    )
    ss: bool = Field(default=True, description="ss output of every host at the beginning and the end, as a cross-check")
    pcap: list[Text] = Field(
        default_factory=list, max_length=64, description="interfaces to capture, as node:interface"
    )


_BufferTriple = Annotated[str, Field(pattern=r"^\s*[0-9]{1,10}\s+[0-9]{1,10}\s+[0-9]{1,10}\s*$")]


class HostSection(Section):
    """Settings of the kernel's network stack."""

    sysctls: dict[str, Text] = Field(default_factory=dict, description="set last, on every node; name: value")
    tcp_rmem: _BufferTriple | None = Field(
        default=None, description="least, initial and largest receive buffer in bytes; never a limit by default"
    )
    tcp_wmem: _BufferTriple | None = Field(
        default=None, description="least, initial and largest send buffer in bytes; never a limit by default"
    )
    ipv6: bool = Field(default=False, description="leave IPv6 on; its random timers make runs differ by microseconds")


class WindowSection(Section):
    """The time over which utilisation and fairness are measured."""

    start: Duration = Field(default=0, description="begin", json_schema_extra={"x-default": "0 s"})
    stop: PositiveDuration | None = Field(default=None, description="end; the end of the run by default")


class MeasureSection(Section):
    """How results are measured."""

    window: WindowSection = Field(default_factory=WindowSection, description="start and stop of the measured time")


def _one_flow() -> list[FlowSection]:
    return [FlowSection()]


class Scenario(Section):
    """A profile with every sweep resolved to one value."""

    howdah: Literal[1] = fixed(description="version of the profile format")
    name: Annotated[str, Field(pattern=r"^[a-z0-9][a-z0-9._-]{0,62}$")] = fixed(
        description="lower-case name; results go to the directory of that name in runs/"
    )
    description: Text = fixed("", description="what is shown and why")
    sources: list[Text] = fixed(default_factory=list, description="where the numbers come from")
    topology: TopologySection = Field(default_factory=TopologySection, description="the network")
    path: PathSection = Field(description="rate, delay and buffer")
    flows: list[FlowSection] = Field(
        default_factory=_one_flow,
        min_length=1,
        max_length=MOST_FLOWS,
        description="one bulk flow from time 0 by default",
    )
    algorithm: Text = Field(
        default="cubic", description="congestion control of every flow; howdah list algorithms shows the names"
    )
    duration: PositiveDuration = Field(description="simulated time from the epoch to the end of the flows")
    repetitions: int = fixed(1, ge=1, le=1000, description="runs of each point; 1 is the unperturbed path")
    seed: int = Field(default=1, ge=0, le=2**32 - 1, description="seed of everything random")
    perturbation: PerturbationSection = Field(default_factory=PerturbationSection, description="how repetitions differ")
    traffic: TrafficSection = Field(default_factory=TrafficSection, description="what sends and what receives")
    cross_check: CrossCheckSection | None = fixed(
        None, description="the first repetition of one algorithm again, with other traffic"
    )
    collect: CollectSection = Field(default_factory=CollectSection, description="what is recorded")
    calibrate: bool = Field(
        default=True, description="measure the path before and after the flows; without it a run is invalid"
    )
    host: HostSection = Field(default_factory=HostSection, description="settings of the network stack")
    modules: list[Text] = fixed(
        default_factory=list, max_length=32, description="kernel modules (.c or .ko), relative to the profile"
    )
    algorithms: dict[Name, AlgorithmSection] = fixed(
        default_factory=dict, description="names for algorithms of your own"
    )
    kernel: Text = Field(
        default="debian-6.12",
        description="kernel to run: `debian-VERSION`, `debian-newest`, or the path of a source tree",
    )
    engine: Literal["uml", "host"] = Field(default="uml", description="what runs the plan")
    measure: MeasureSection = Field(default_factory=MeasureSection, description="how results are measured")

    @model_validator(mode="after")
    def _times(self) -> Scenario:
        for index, flow in enumerate(self.flows):
            if flow.start >= self.duration:
                raise FieldError("the flow starts at or after the end of the run", "flows", index, "start")
            if flow.stop is not None and flow.stop > self.duration:
                raise FieldError("the flow stops after the end of the run", "flows", index, "stop")
        window = self.measure.window
        if (window.stop or self.duration) > self.duration:
            raise FieldError("the window ends after the run", "measure", "window", "stop")
        if window.start >= (window.stop or self.duration):
            raise FieldError("the window is empty", "measure", "window", "start")
        names = [flow.name for flow in self.flows if flow.name is not None]
        for index, flow in enumerate(self.flows):
            if flow.name is not None and names.count(flow.name) > 1:
                raise FieldError(f"two flows are called {flow.name!r}", "flows", index, "name")
        return self
