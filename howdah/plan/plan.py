# SPDX-License-Identifier: Apache-2.0
"""A plan: everything that one run needs, resolved to numbers. Nothing downstream derives anything again.

``plan.json`` is this class as JSON. All times are integers in microseconds of virtual (or real) time relative to the
epoch, the instant at which the experiment starts; sizes are bytes on the wire (link-layer frames) unless a name says
otherwise. Occasional fields are in plan.json only if they differ from their default. Standard library only: guests read
it, too.
"""

from __future__ import annotations

import json
from collections.abc import Container, Mapping
from dataclasses import field, replace
from typing import Any

from howdah.codec import OCCASIONAL, decoded, encoded, in_columns, in_rows, planned
from howdah.plan.event import Event
from howdah.plan.kept import ModelRecord, PerturbationRecord, SenderRecord
from howdah.plan.kernel import ModuleBuild, OwnKernel, Part
from howdah.plan.path import Path
from howdah.plan.placed import Qdisc
from howdah.plan.shares import KernelShare, MachineShare
from howdah.plan.step import Operation
from howdah.plan.traffic import Exchange, HttpRequests, PlannedStack, Programs
from howdah.traffic import TRAFFIC, TrafficKind
from howdah.trait import Traits, traits

PLAN_FORMAT, _OLDER = 3, 2  # format 1 numbered flows from 0; format 2, still read, had a field for each interval
_IN_COLUMNS = ("flows", "timeline")  # lists that are written in columns if they are very long


@planned
class Host:
    """A network namespace of the emulated network. ``role`` is ``sender``, ``receiver`` or ``router``."""

    name: str
    role: str
    address: str | None = None
    calibration_address: str | None = None


def _kind(name: str) -> TrafficKind:
    if name not in TRAFFIC:
        raise ValueError(f"there is no traffic {name!r}; known: {', '.join(TRAFFIC)}")
    return TRAFFIC[name]


MEASURED, BACKGROUND = "measured", "background"
CAPTURE_BUFFER_BYTES = 64 << 20  # buffer of each tcpdump, which the kernel allocates at its start


@planned
class Flow:
    """One connection, or flow of datagrams. Times count from the epoch; ``stop_us`` ends a bulk flow, ``size_bytes``
    others.

    ``id`` is the flow's number, from 1: the profile's flows, then background flows, then connections of groups. It is
    used in ``--set flows.2.start``, claims, tables, metrics.json, labels, checks and messages.
    """

    id: int
    name: str
    sender: str
    receiver: str
    source_address: str
    source_port: int
    destination_address: str
    destination_port: int
    algorithm: str
    kernel_algorithm: str
    traffic: str  # a kind of howdah/traffic.py
    start_us: int
    stop_us: int
    size_bytes: int | None
    forward_delay_us: int
    reverse_delay_us: int
    rtt_us: int
    initial_window_packets: int
    sink: str = "kernel"
    opener: str = "sender"  # or "receiver": who connects
    role: str = MEASURED  # or BACKGROUND
    direction: str = "forward"  # or "reverse": the sender is a host of the receivers' side
    group: str | None = None  # name of the group it was made from; its sockets are opened when it starts
    request_bytes: int | None = None  # the receiver's request, to which the sender's data is the answer
    # UDP instead of TCP: a datagram with this payload per interval, during the bursts ([[from_us, to_us], ...]).
    datagram_bytes: int | None = None
    datagram_interval_ns: int | None = None
    bursts: list[list[int]] = field(default_factory=list)
    http: HttpRequests | None = field(default=None, metadata=OCCASIONAL)
    exchange: Exchange | None = field(default=None, metadata=OCCASIONAL)
    program: Programs | None = field(default=None, metadata=OCCASIONAL)
    # How its receiver acknowledges (howdah/profile/end.py); behaviours other than "linux" are emulated.
    receiver_behaviour: str = field(default="linux", metadata=OCCASIONAL)
    receiver_stack: PlannedStack | None = field(default=None, metadata=OCCASIONAL)
    sender_stack: PlannedStack | None = field(default=None, metadata=OCCASIONAL)
    # The kernel's own algorithm with the same start-up as the module's, if the profile names one.
    like: str | None = field(default=None, metadata=OCCASIONAL)

    @property
    def title(self) -> str:
        """The flow's name in messages: ``flow 1``, or ``flow 2 (second)`` if it has a name."""
        return f"flow {self.id}" if self.name == f"flow{self.id}" else f"flow {self.id} ({self.name})"

    @property
    def receiver_name(self) -> str:
        """The receiver's name in tables: its stack if that is not the kernel's, else its behaviour."""
        return self.receiver_stack.name if self.receiver_stack else self.receiver_behaviour

    def bdp_bytes(self, path: Path) -> float:
        """Return the path's rate x the flow's RTT."""
        return path.rate_bits_per_second * self.rtt_us / 8_000_000

    def bdp_packets(self, path: Path) -> float:
        """Return the BDP in full frames."""
        return self.bdp_bytes(path) / path.frame_bytes

    @property
    def stacks(self) -> list[PlannedStack]:
        """The stacks of its ends that are not the kernel's TCP."""
        return [each for each in (self.sender_stack, self.receiver_stack) if each is not None]

    @property
    def kind(self) -> TrafficKind:
        """The kind of traffic that sends it. Raise ValueError if unknown."""
        return _kind(self.traffic)

    @property
    def sink_kind(self) -> TrafficKind:
        """The kind of traffic that receives it. Raise ValueError if unknown."""
        return _kind(self.sink)

    @property
    def quic(self) -> str | None:
        """The QUIC stack that makes it, None for a flow of TCP or datagrams."""
        return self.program.quic if self.program is not None else None

    @property
    def is_tcp(self) -> bool:
        """Whether it is a TCP flow."""
        return self.datagram_bytes is None and (self.program is None or self.program.protocol == "tcp")

    def at(self, side: str) -> tuple[str, int]:
        """Return address and port of the ``source`` or the ``destination``."""
        if side == "source":
            return self.source_address, self.source_port
        return self.destination_address, self.destination_port

    def host(self, side: str) -> str:
        return self.sender if side == "source" else self.receiver

    @property
    def ends(self) -> tuple[str, str]:
        """Host on the senders' side and host on the receivers' side."""
        return (self.sender, self.receiver) if self.direction == "forward" else (self.receiver, self.sender)


@planned
class CalibrationTarget:
    """Two hosts, with calibration addresses, between which the path is measured before and after the flows."""

    sender: str
    receiver: str
    sender_address: str
    receiver_address: str
    forward_delay_us: int
    reverse_delay_us: int
    variation_us: int  # how far a single one-way delay may exceed the base because the plan asks for delay variation
    variation_reverse_us: int = 0

    @property
    def ends(self) -> tuple[tuple[str, str], tuple[str, str]]:
        """Host and address of the sender and of the receiver."""
        return (self.sender, self.sender_address), (self.receiver, self.receiver_address)


@planned
class Calibration:
    """The expected measurements of the path. The agent records measurements; the judge compares them with this."""

    enabled: bool
    before_us: int  # start of the first calibration relative to the epoch (negative)
    after_us: int  # start of the second calibration relative to the epoch
    phase_us: int  # how long one calibration may take
    settle_us: int  # silence after it
    rate_bits_per_second: int
    buffer_bytes: int
    frame_bytes: int
    bottleneck_node: str
    bottleneck_interface: str
    bottleneck_handle: str
    targets: list[CalibrationTarget]
    # Why the depth of the buffer cannot be measured, such as a queue that drops before it is full.
    buffer_unknown: str | None = None
    train_rate_bits_per_second: int | None = None  # rate of senders slower than the bottleneck; None: its rate
    train_packets: int | None = None  # longest train without a drop; None: as many as the buffer holds
    early_us: int = 0  # by how much a probe may be early, because the plan has reordering
    part_bytes: int | None = field(default=None, metadata=OCCASIONAL)  # filled part of a buffer that drains too slowly
    overhead_bytes: int = field(default=0, metadata=OCCASIONAL)  # bytes per frame that a tunnel adds
    # Frames that the bottleneck passes at once. Set by an emulator that measures itself, never in a plan.
    burst_frames: int | None = field(default=None, metadata=OCCASIONAL)

    @property
    def bottleneck(self) -> tuple[str, str, str]:
        """Node, interface and handle of the bottleneck's queue."""
        return self.bottleneck_node, self.bottleneck_interface, self.bottleneck_handle


@planned
class Collect:
    """What is recorded. ``intervals_us`` has the interval of each periodic collector that is on, by the collector's
    name (howdah/registered.py)."""

    tcp_probe: bool
    intervals_us: dict[str, int]
    ss: bool
    pcap: list[str]  # "node:interface"
    trace_buffer_bytes: int
    slow_start: bool = True  # events of the slow-start modules, if they are loaded
    cpu: bool = field(default=False, metadata=OCCASIONAL)  # processor time by function

    @property
    def tcp_info_us(self) -> int | None:
        return self.intervals_us.get("tcp_info")

    @property
    def qdisc_us(self) -> int | None:
        return self.intervals_us.get("qdisc")

    @property
    def processor_us(self) -> int | None:
        return self.intervals_us.get("processor")

    @property
    def opportunities_us(self) -> int | None:
        return self.intervals_us.get("opportunities")

    def at(self, **intervals_us: int | None) -> Collect:
        """Return a copy with other intervals; None switches a collector off."""
        merged = {**self.intervals_us, **intervals_us}
        return replace(self, intervals_us={name: us for name, us in merged.items() if us is not None})

    def on(self, hosts: Container[str], *, sends: bool) -> Collect:
        """Return what a part of the run with these hosts records; tracepoints report on senders only."""
        here = [capture for capture in self.pcap if capture.partition(":")[0] in hosts]
        probe, slow_start = self.tcp_probe and sends, self.slow_start and sends
        return replace(self, pcap=here, tcp_probe=probe, slow_start=slow_start)


@planned
class RealTime:
    """A virtual machine that runs by this machine's clock; ``accelerator`` is ``auto``, ``kvm`` or ``tcg``."""

    accelerator: str


@planned
class Processor:
    """The emulated processor of ``host``, for which packets that arrive at ``interface`` queue. ``sources`` has the
    source of each constant, by the profile's field (howdah/profile/processor.py).
    """

    host: str
    interface: str
    model: str
    packet_ns: int
    ack_ns: int
    searched_ns: int
    search: str
    queue_packets: int
    sources: dict[str, str]


@planned
class Plan:
    """See the module's docstring. ``axes`` is the run's sweep point: dotted field name to value."""

    profile: str
    run: str
    engine: str
    kernel: str
    axes: dict[str, Any]
    algorithm: str
    repetition: int
    seed: int
    perturbation: PerturbationRecord
    topology: str
    hosts: list[Host]
    path: Path
    flows: list[Flow]
    operations: list[Operation]
    timeline: list[Event]
    calibration: Calibration
    collect: Collect
    modules: list[str]  # extra module sources or .ko files the profile brings, absolute paths
    module_parameters: dict[str, dict[str, str]]
    kernel_parameters: dict[str, str]  # module parameters of built-in code, e.g. {"tcp_cubic.hystart": "0"}
    epoch_us: int  # uptime of the guest at time zero
    duration_us: int
    guest_memory_bytes: int
    wall_clock_limit_s: float
    traits: Traits  # of the engine
    measure_window_us: tuple[int, int] = (0, 0)
    # vm engine: the guest runs 2**-shift instructions per nanosecond.
    processor_shift: int | None = field(default=None, metadata=OCCASIONAL)
    real_time: RealTime | None = field(default=None, metadata=OCCASIONAL)  # vm engine without a virtual clock
    own_kernel: OwnKernel | None = field(default=None, metadata=OCCASIONAL)  # vm engine
    machine_kernels: dict[str, str] | None = field(default=None, metadata=OCCASIONAL)  # each machine's kernel, by role
    measure_cwnd_packets: int | None = field(default=None, metadata=OCCASIONAL)  # the time to this cwnd is measured
    topology_arguments: dict[str, int] = field(default_factory=dict)  # arguments of the Topo class
    required_modules: list[str] | None = None  # names of the kernel modules that the run needs; None: all available
    # The kernel's name of an algorithm to the module of the profile that must provide it.
    own_algorithms: dict[str, str] = field(default_factory=dict, metadata=OCCASIONAL)
    # Path of a module of the profile to its build, if that has more than the module's file.
    module_builds: dict[str, ModuleBuild] = field(default_factory=dict, metadata=OCCASIONAL)
    parts: list[Part] = field(default_factory=list, metadata=OCCASIONAL)  # several kernels, the senders' first
    # Behaviour, or stack, of the receivers of measured flows that name none.
    receiver: str = field(default="linux", metadata=OCCASIONAL)
    # Name and settings of the profile's sender (howdah/profile/end.py), if it is of another time.
    sender: SenderRecord | None = field(default=None, metadata=OCCASIONAL)
    # Declared parameters of an engine whose TCP is a model (howdah/plan/model.py).
    model: ModelRecord | None = field(default=None, metadata=OCCASIONAL)
    processors: list[Processor] = field(default_factory=list, metadata=OCCASIONAL)  # processors of hosts
    format: int = PLAN_FORMAT
    part: KernelShare | None = field(default=None, metadata=OCCASIONAL)  # set in the part for one of several kernels
    slice: MachineShare | None = field(default=None, metadata=OCCASIONAL)  # set in the part for one of several machines
    # "module.parameter", or "flow 2" of programs, to its place in the profile. For messages only, and not part of
    # plan.json, so that a further line in a profile does not change the run.
    parameter_places: dict[str, str] = field(default_factory=dict, compare=False)

    @property
    def queues(self) -> list[Qdisc]:
        """The queueing disciplines that the operations create, in order."""
        return [item for item in self.operations if isinstance(item, Qdisc)]

    @property
    def end_us(self) -> int:
        """When the run must be over, counted from the epoch."""
        if self.calibration.enabled:
            return self.calibration.after_us + self.calibration.phase_us + self.calibration.settle_us
        return self.duration_us + self.path.quiet_us

    @property
    def real_time_limit_s(self) -> float:
        """The most real time that may pass from the first measurement of the path on."""
        around_us = self.end_us - self.duration_us - min(self.calibration.before_us, 0)
        return self.wall_clock_limit_s + around_us / 1e6

    @property
    def kernels(self) -> list[str]:
        """All kernels of the run, the senders' first."""
        return list(dict.fromkeys([self.kernel, *(part.kernel for part in self.parts)]))

    @property
    def modules_in_use(self) -> tuple[str, ...]:
        """The profile's modules whose algorithms are used by flows."""
        return tuple(sorted(set(self.own_algorithms.values())))

    @property
    def kernels_algorithms(self) -> list[str]:
        """Names of the congestion controls of flows that come from the kernel, not from a module of the profile."""
        asked = dict.fromkeys(flow.kernel_algorithm for flow in self.flows)
        return [name for name in asked if name and name not in self.own_algorithms]

    def to_json(self) -> str:
        return json.dumps(in_columns(encoded(self), _IN_COLUMNS), indent=1)

    @staticmethod
    def from_json(text: str) -> Plan:
        value = json.loads(text)
        found = value.get("format")
        if found not in (PLAN_FORMAT, _OLDER):
            raise ValueError(f"plan format {found}, expected {PLAN_FORMAT}; run the profile again")
        if "traits" not in value:  # older plans have none
            value["traits"] = encoded(traits(value["engine"], real_time=value.get("real_time") is not None))
        return decoded(Plan, of_today(value))


def of_today(plan: Mapping[str, Any]) -> Mapping[str, Any]:
    """Return a plan's JSON in today's form: columns become rows, and older formats are converted."""
    plan = in_rows(plan, _IN_COLUMNS)
    collect = plan.get("collect")
    if plan.get("format") != _OLDER or not isinstance(collect, Mapping):
        return plan
    return {**plan, "format": PLAN_FORMAT, "collect": _intervals_together(collect)}


def collect_of(value: Mapping[str, Any]) -> Collect:
    """Return the collectors of a plan's JSON, in today's format or an older one."""
    return decoded(Collect, _intervals_together(value))


def _intervals_together(collect: Mapping[str, Any]) -> Mapping[str, Any]:
    """Gather the intervals, which were separate fields of older plans, such as ``qdisc_us``."""
    if "intervals_us" in collect:
        return collect
    fields = {name.removesuffix("_us"): us for name, us in collect.items() if name.endswith("_us")}
    rest = {name: value for name, value in collect.items() if not name.endswith("_us")}
    return {**rest, "intervals_us": {name: us for name, us in fields.items() if us is not None}}
