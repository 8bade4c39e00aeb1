# SPDX-License-Identifier: Apache-2.0
"""The fields of a profile. A ``Scenario`` is one point of a sweep: every sweepable field has one value.

The descriptions become docs/profile-reference.md and the JSON Schema. A field marked ``fixed`` cannot be swept.
"""

from __future__ import annotations

from fractions import Fraction
from typing import Annotated, Any, ClassVar, Literal

from pydantic import Field, model_validator

from howdah.default import DEFAULT_ENGINE, DEFAULT_KERNEL
from howdah.profile.collect import CollectSection
from howdah.profile.end import HostSection, ReceiverName, ReceiverSection, SenderSection
from howdah.profile.field import (
    AlgorithmName,
    Bytes,
    Duration,
    EngineName,
    FieldError,
    KernelName,
    Name,
    PositiveDuration,
    Ratio,
    Section,
    ShortSection,
    SpanField,
    Text,
    fixed,
    preset,
)
from howdah.profile.group import GroupSection
from howdah.profile.machine import MachineSection, MachinesSection, Ns2Section
from howdah.profile.override import Cases
from howdah.profile.path import PathSection
from howdah.profile.traffic import TrafficSection


class ModuleSection(ShortSection):
    """A kernel module. Its file alone needs no mapping: `modules: [./tcp_mine.c]`."""

    short: ClassVar[str] = "file"

    file: Text = fixed(
        description="a .c or .ko file, a directory with a Kbuild or Makefile, or BPF (.bpf.c); relative to the profile"
    )
    include: list[Text] = fixed(
        default_factory=list,
        max_length=16,
        description="header directories, relative to the profile",
    )
    define: dict[Annotated[str, Field(pattern=r"^[A-Za-z_][A-Za-z0-9_]{0,63}$")], Text] = fixed(
        default_factory=dict, description="preprocessor macros"
    )
    sources: list[Text] = fixed(
        default_factory=list, max_length=64, description="more .c files of the module, relative to the profile"
    )


EXPERIMENT_NAME = r"^[a-z0-9][a-z0-9._-]{0,62}$"
MOST_FLOWS = 1000
MOST_PAIRS = 200


class TopologySection(Section):
    """The network: a Mininet Topo class, shipped (``name``) or your own (``file`` and ``class``)."""

    name: Literal["dumbbell", "chain"] | None = fixed(
        None, description="a topology of topologies/; dumbbell, or chain where path.hops is given"
    )
    file: Text | None = fixed(None, description="a Python file with a Mininet Topo class, relative to the profile")
    class_: Name | None = fixed(None, alias="class", description="the class in file")
    pairs: int | None = Field(
        default=None, ge=1, le=MOST_PAIRS, description="sender-receiver pairs; default: one per flow"
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

    name: Name | None = fixed(None, description="default: flow1, flow2, …")
    start: Duration = preset(Duration, "0 s", description="when the connection is opened")
    stop: PositiveDuration | None = Field(default=None, description="when sending ends; default: at the end of the run")
    size: Bytes | None = Field(default=None, description="bytes to transfer, after which the flow ends")
    algorithm: AlgorithmName | None = Field(default=None, description="overrides the profile's algorithm")
    rtt: PositiveDuration | None = Field(
        default=None, description="round-trip delay of this flow's hosts, split like the path's"
    )
    sender: Name | None = fixed(None, description="host name; default: the i-th sender for the i-th flow")
    receiver: Name | None = fixed(None, description="host name; default: the i-th receiver for the i-th flow")
    port: int | None = fixed(
        None,
        ge=1,
        le=65535,
        description="port of the receiver, or of the server if programs make the flow; "
        "default: 5001 for the first flow, 5002 for the second …",
    )
    initial_window: int | None = Field(
        default=None, ge=1, le=65535, description="in packets (the route's initcwnd); default: the kernel's 10"
    )
    initial_receive_window: int | None = Field(
        default=None, ge=1, le=65535, description="in packets (the route's initrwnd)"
    )
    opener: Literal["sender", "receiver"] = Field(
        default="sender",
        description="which end connects; if the sender does, it is offered at most 64 KiB until its first data is "
        "acknowledged",
    )
    receiver_behaviour: ReceiverName | None = Field(
        default=None, description="emulated behaviour of its receiver; overrides the profile's receiver"
    )
    receiver_stack: Text | None = Field(
        default=None, description="TCP stack of its receiver; overrides receiver.stack (engine `uml`)"
    )
    sender_stack: Text | None = Field(
        default=None, description="TCP stack of its sender; overrides sender.stack (engine `uml`)"
    )
    receiver_kernel: KernelName | None = Field(
        default=None, description="kernel of its receiver; overrides receiver.kernel (engine `uml`)"
    )
    traffic: TrafficSection | None = Field(
        default=None, description="what sends and receives; overrides the profile's traffic"
    )

    @model_validator(mode="after")
    def _one_end(self) -> FlowSection:
        if self.stop is not None and self.size is not None:
            raise FieldError("stop and size are both given; give one", "stop")
        if self.stop is not None and self.stop <= self.start:
            raise FieldError("the flow stops before it starts", "stop")
        return self


class BackgroundSection(FlowSection):
    """An unmeasured flow. It is in the tables, and its utilisation is reported separately."""

    direction: Literal["forward", "reverse"] = Field(
        default="forward", description="reverse: the receiver's host sends (the hosts keep their names)"
    )


class AlgorithmSection(Section):
    """Your own algorithm for the ``algorithm`` field; give ``like``, ``kernel`` or both."""

    like: AlgorithmName | None = fixed(
        None,
        description="a known algorithm, from which kernel name, module, base and parameters are copied; together with "
        "kernel: a built-in algorithm with the same start-up, which measures need to know",
    )
    kernel: Annotated[str, Field(pattern=r"^[A-Za-z0-9_-]{1,15}$")] | None = fixed(
        None, description="the name for TCP_CONGESTION, at most 15 characters"
    )
    module: Name | None = fixed(None, description="kernel module; default: tcp_KERNEL, if a modules entry provides it")
    parameters: dict[Annotated[str, Field(pattern=r"^[A-Za-z0-9_-]{1,64}$")], Text] = Field(
        default_factory=dict, description="module parameters, set before any flow starts; they override those of like"
    )
    base: Text | None = fixed(None, description="congestion avoidance after slow start")

    @model_validator(mode="after")
    def _one_origin(self) -> AlgorithmSection:
        if self.like is None and self.kernel is None:
            raise FieldError("expected like (a known algorithm), kernel (a name for TCP_CONGESTION), or both")
        return self


class PerturbationSection(Section):
    """How repetitions differ from each other. With ``repetitions: 1`` nothing is perturbed."""

    rtt: Ratio = preset(Ratio, "0.5 %", description="the path's delay is scaled by a factor within 1 ± this")
    start: SpanField = preset(SpanField, "1 rtt", description="each flow starts later by up to this")
    jitter: SpanField = preset(
        SpanField,
        "0",
        description="added forward delay that keeps the order, uniform from 0 to this, correlated over one RTT",
    )

    @model_validator(mode="after")
    def _small(self) -> PerturbationSection:
        if self.rtt > Fraction(1, 10):
            raise FieldError("expected a perturbation of the RTT of at most 10 %", "rtt")
        return self


class CrossCheckSection(Section):
    """One additional run with other traffic, which shows whether the result depends on the generator."""

    traffic: Literal["iperf3", "python"] = fixed(description="source and sink of the additional run")
    algorithm: AlgorithmName | None = fixed(None, description="its algorithm; default: the first one")


class WindowSection(Section):
    """The time over which utilisation and fairness are measured."""

    start: Duration = preset(Duration, "0 s", description="begin")
    stop: PositiveDuration | None = Field(default=None, description="end; default: the end of the run")


class MeasureSection(Section):
    """How results are measured."""

    window: WindowSection = Field(
        default_factory=WindowSection, description="time over which utilisation and fairness are measured"
    )
    reach: Annotated[int, Field(ge=2, le=1_000_000)] | None = Field(
        default=None, description="a congestion window in packets; the time and rounds to reach it are measured"
    )


def _one_flow() -> list[FlowSection]:
    return [FlowSection()]


class Scenario(Section):
    """A profile with every sweep resolved to one value."""

    howdah: Literal[1] = fixed(description="version of the profile format")
    name: Annotated[str, Field(pattern=EXPERIMENT_NAME)] = fixed(description="lower-case name; results go to runs/NAME")
    description: Text = fixed("", description="what the experiment shows, and why")
    sources: list[Text] = fixed(default_factory=list, description="where the numbers come from")
    topology: TopologySection = Field(default_factory=TopologySection, description="the network")
    path: PathSection = Field(description="rate, delay and buffer")
    flows: list[FlowSection] = Field(
        default_factory=_one_flow,
        max_length=MOST_FLOWS,
        description="default: one bulk flow from time 0",
    )
    background: list[BackgroundSection] = Field(
        default_factory=list, max_length=MOST_FLOWS, description="flows that are not measured"
    )
    groups: list[GroupSection] = Field(
        default_factory=list,
        max_length=32,
        description="sets of similar connections; with groups, flows defaults to none",
    )
    algorithm: AlgorithmName = Field(
        default="cubic", description="congestion control of every flow; howdah list algorithms shows the names"
    )
    case: Cases = fixed(
        default_factory=dict,
        description="a sweep over sets of values: name: field.field: value, as for --set",
    )
    sender: SenderSection = Field(
        default_factory=SenderSection, description="behaviour and kernel of the senders: a mapping, or a behaviour"
    )
    receiver: ReceiverSection = Field(
        default_factory=ReceiverSection,
        description="behaviour and kernel of the receivers: a mapping, or a behaviour",
    )
    duration: PositiveDuration = Field(description="simulated time from the epoch to the end of the flows")
    repetitions: int = fixed(1, ge=1, le=1000, description="runs of each point; a single run is unperturbed")
    seed: int = Field(default=1, ge=0, le=2**32 - 1, description="seed of all random draws")
    perturbation: PerturbationSection = Field(default_factory=PerturbationSection, description="how repetitions differ")
    traffic: TrafficSection = Field(default_factory=TrafficSection, description="what sends and what receives")
    cross_check: CrossCheckSection | None = fixed(
        None, description="repeat the first repetition of one algorithm with other traffic"
    )
    collect: CollectSection = Field(default_factory=CollectSection, description="what is recorded")
    keep: Literal["everything", "first"] = fixed(
        "everything",
        description="first: keep raw records and tables only of each point's first repetition and of invalid runs; "
        "results are always kept",
    )
    calibrate: bool = Field(
        default=True,
        description="measure the path before and after the flows; false: only checks during the flows",
    )
    host: HostSection = Field(default_factory=HostSection, description="settings of the hosts' network stack")
    modules: list[ModuleSection] = fixed(
        default_factory=list,
        max_length=32,
        description="kernel modules; each must be used by some run",
    )
    algorithms: dict[Name, AlgorithmSection] = fixed(
        default_factory=dict, description="your own algorithms, by name: each gives like, kernel or both"
    )
    kernel: KernelName = Field(
        default=DEFAULT_KERNEL,
        description="kernel to run: `debian-VERSION`, `debian-VERSION+PATCHES`, `debian-newest`, or the path of a "
        "source tree; howdah list kernels shows sets of patches",
    )
    split: bool = Field(
        default=False,
        description="run senders and receivers in separate kernels even if both are the same: faster, on two "
        "processors (engine `uml`)",
    )
    engine: EngineName = Field(default=DEFAULT_ENGINE, description="engine that runs the plan")
    machine: MachineSection = Field(default_factory=MachineSection, description="the virtual machine of the vm engine")
    machines: MachinesSection = Field(
        default_factory=MachinesSection, description="which machine to use for a role that has several"
    )
    ns2: Ns2Section = Field(default_factory=Ns2Section, description="the model of the ns2 engine")
    measure: MeasureSection = Field(default_factory=MeasureSection, description="how results are measured")

    @property
    def every_flow(self) -> list[FlowSection]:
        """Measured flows, then background flows."""
        return [*self.flows, *self.background]

    def flow_at(self, index: int) -> FlowSection:
        """The flow with this index in ``every_flow``, found without building the list: groups make thousands of
        flows."""
        count = len(self.flows)
        return self.flows[index] if index < count else self.background[index - count]

    def place_of(self, index: int) -> tuple[str, int]:
        """The section and index that define the flow with this index in ``every_flow``."""
        origin = getattr(self.flow_at(index), "origin", None)
        if origin is not None:
            return "groups", int(origin)
        count = len(self.flows)
        return ("flows", index) if index < count else ("background", index - count)

    @model_validator(mode="before")
    @classmethod
    def _groups_alone(cls, data: Any) -> Any:
        """With groups, the profile has no default flow."""
        if isinstance(data, dict) and data.get("groups") and "flows" not in data:
            return {**data, "flows": []}
        return data

    @model_validator(mode="after")
    def _groups_fit(self) -> Scenario:
        if not self.flows and not any(group.role == "measured" for group in self.groups):
            raise FieldError("nothing is measured: expected a flow, or a group whose role is measured", "flows")
        names = [group.name for group in self.groups]
        for index, group in enumerate(self.groups):
            if group.name in names[:index]:
                raise FieldError(f"two groups are called {group.name!r}", "groups", index, "name")
            back = "direction" if group.direction == "reverse" else "alternate"
            if (group.direction == "reverse" or group.alternate) and self.path.reverse_rate is None:
                what = "the reverse direction has no bottleneck for it; give path.reverse_rate"
                raise FieldError(what, "groups", index, back)
            if group.alternate and f"{group.name}-back" in names:
                raise FieldError(f"two groups are called {group.name}-back", "groups", index, "alternate")
            if group.start >= self.duration:
                raise FieldError("the group starts at or after the end of the run", "groups", index, "start")
            if group.last_start_us > self.duration:
                field = "spread" if group.spread is not None else "interval"
                raise FieldError("its last connection starts after the end of the run", "groups", index, field)
        return self

    @model_validator(mode="after")
    def _times(self) -> Scenario:
        for index, flow in enumerate(self.every_flow):
            place = self.place_of(index)
            if flow.start >= self.duration:
                raise FieldError("the flow starts at or after the end of the run", *place, "start")
            if flow.stop is not None and flow.stop > self.duration:
                raise FieldError("the flow stops after the end of the run", *place, "stop")
        window = self.measure.window
        if (window.stop or self.duration) > self.duration:
            raise FieldError("the window ends after the run", "measure", "window", "stop")
        if window.start >= (window.stop or self.duration):
            raise FieldError("the window is empty", "measure", "window", "start")
        names = [flow.name for flow in self.every_flow if flow.name is not None]
        for index, flow in enumerate(self.every_flow):
            if flow.name is not None and names.count(flow.name) > 1:
                raise FieldError(f"two flows are called {flow.name!r}", *self.place_of(index), "name")
        for index, other in enumerate(self.background):
            if other.direction == "reverse" and self.path.reverse_rate is None:
                what = "the reverse direction has no bottleneck for it; give path.reverse_rate"
                raise FieldError(what, "background", index, "direction")
        if self.path.hops and self.topology.name == "dumbbell":
            raise FieldError("a dumbbell has one hop; leave topology out, or name chain", "topology", "name")
        return self
