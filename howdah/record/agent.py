# SPDX-License-Identifier: Apache-2.0
"""agent.json: what the guest built, found and did. The agent writes these records, and later stages read them with
``howdah/record/reading.py``. Standard library only.

A field that the agent left out, because its run ended early, is None here. docs/data-format.md has these descriptions.
"""

from __future__ import annotations

from functools import cached_property
from typing import Any

from howdah.codec import described, occasional, planned

AGENT_FORMAT = 1


@planned
class AgentFailure:
    """Why a run ended early."""

    operation: str | None = described("What the agent was doing.", default=None)
    message: str | None = described("What went wrong.", default=None)


@planned
class Phase:
    """A phase of the run."""

    phase: str = described("`setup`, `calibrate-before`, `flows`, `quiesce`, `calibrate-after`, `collect`.")
    start_ns: int = described("When it began, from the epoch on.")
    end_ns: int = described("When it ended, from the epoch on.")
    wall_us: int | None = described("How long it took on the host's clock.", default=None)


@planned
class TransactionRecord:
    """A request and its answer, as the client saw them. Times count from the epoch."""

    start_ns: int = described("When the request was sent; of the first one, when the connection was opened.")
    end_ns: int = described("When the last byte of the answer arrived.")
    connected_ns: int | None = occasional("When the connection was established.", default=None)
    first_ns: int | None = occasional("When the first byte of the answer arrived.", default=None)
    body_bytes: int | None = occasional("Bytes of the answer.", default=None)
    status: int | None = occasional("The HTTP status.", default=None)
    connects: int | None = occasional("How many connections were opened for it.", default=None)


@planned
class ProgramRecord:
    """A program of a flow."""

    command: list[str] = described("Its command line.")
    status: int | None = described("Its exit status; null if it did not end.")
    told_to_end: bool = described("Whether the agent ended it.")


@planned
class FlowRecord:
    """What became of a flow. Times count from the epoch."""

    id: int = described("The flow's number in the plan.")
    end: str | None = occasional(
        "`sender` or `receiver`, if the other end is on another machine or kernel.", default=None
    )
    sender_cookie: int | None = described("The kernel's cookie of the sender's socket.", default=None)
    receiver_cookie: int | None = described("The kernel's cookie of the receiver's socket.", default=None)
    source_port: int | None = described("The sender's port, which the kernel may have chosen.", default=None)
    destination_port: int | None = occasional("The receiver's port; only for flows made by programs.", default=None)
    start_ns: int | None = described("When the flow began.", default=None)
    connected_ns: int | None = described("When its sender could send.", default=None)
    end_ns: int | None = described("When the receiver got its last byte.", default=None)
    bytes_sent: int | None = described("Bytes of data sent.", default=None)
    bytes_received: int | None = described("Bytes of data that the receiver got.", default=None)
    segments_sent: int | None = described(
        "Segments of the sending socket before it was closed; null for UDP and iperf3.", default=None
    )
    segments_retransmitted: int | None = described("How many of them were sent again.", default=None)
    complete: bool = described("Whether all that it was to send arrived.", default=False)
    error: str | None = described("What went wrong.", default=None)
    kernel_algorithm: str | None = occasional(
        "The sending socket's congestion control at its end; null if the agent does not hold the socket.", default=None
    )
    transactions: list[TransactionRecord] | None = occasional("Each request, for HTTP and exchanges.", default=None)
    programs: dict[str, ProgramRecord] | None = occasional(
        "`client` and `server` of a flow made by programs.", default=None
    )
    realtime_offset_ns: int | None = occasional(
        "CLOCK_REALTIME less CLOCK_MONOTONIC, for a flow made by programs.", default=None
    )


@planned
class ShownQueue:
    """A queueing discipline, as `tc -j qdisc show` prints it."""

    kind: str | None = occasional("Its kind.", default=None)
    handle: str | None = occasional("Its handle.", default=None)
    dev: str | None = occasional("Its interface.", default=None)
    root: bool | None = occasional("Whether it is at the root.", default=None)
    parent: str | None = occasional("Its parent class.", default=None)
    refcnt: int | None = occasional("Its reference count.", default=None)
    options: dict[str, Any] = described("Options of its kind, by tc's names.", default_factory=dict)


@planned
class ShownClass:
    """A class, as `tc -j class show` prints it."""

    handle: str | None = occasional("Its name.", default=None)
    root: bool | None = occasional("Whether it is at the root.", default=None)
    parent: str | None = occasional("Its parent class.", default=None)
    leaf: str | None = occasional("Handle of the queue below it.", default=None)
    rate: int | None = occasional("Bytes per second.", default=None)
    ceil: int | None = occasional("Most bytes per second.", default=None)
    burst: int | None = occasional("Bytes at once.", default=None)
    cburst: int | None = occasional("The most bytes at once.", default=None)


@planned
class ShownFilter:
    """The mark that assigns packets to a virtual queue."""

    dscp: int = described("The mark.")
    queue: int = described("The virtual queue for packets with it.")


@planned
class ShownPolicer:
    """The settings of a policer."""

    rate_bits_per_second: int = described("Its rate.")
    burst_bytes: int = described("What its bucket holds.")

    def __str__(self) -> str:
        return f"{self.burst_bytes} bytes at {self.rate_bits_per_second} bit/s"


@planned
class NodeQueues:
    """The queues of a node."""

    qdiscs: list[ShownQueue] = described("All of them.")
    classes: dict[str, list[ShownClass | str]] = described(
        "By interface; an older tc prints them as text.", default_factory=dict
    )
    filters: dict[str, list[ShownFilter]] = occasional(
        "By interface; only for a node that has any.", default_factory=dict
    )
    policers: dict[str, list[ShownPolicer]] = occasional(
        "By interface; only for a node that has any.", default_factory=dict
    )


@planned
class ShownInterface:
    """An interface before the flows."""

    index: int | None = described("Its number in its namespace.", default=None)
    mac: str | None = described("Its address.", default=None)
    mtu_bytes: int | None = described("The largest IP packet.", default=None)
    up: bool | None = described("Whether it is up.", default=None)
    gso_max_segs: int | None = described("The most segments of a super-packet.", default=None)
    gso_max_size_bytes: int | None = described("The most bytes of a super-packet.", default=None)
    queue_packets: int | None = described("Its `txqueuelen`.", default=None)
    offloads: dict[str, bool] = described("Whether each is on, by ethtool's short names.", default_factory=dict)

    def setting(self, name: str) -> int | bool | None:
        """The value of a number or of an offload; None if the agent did not read it."""
        values = {name: getattr(self, name) for name in ("mtu_bytes", "gso_max_segs", "queue_packets")}
        return values[name] if name in values else self.offloads.get(name)


@planned
class ShownRoute:
    """A route that has a metric; a metric that is not set is null."""

    destination: str = described("The network, or `default`.")
    via: str | None = described("The next node's address.", default=None)
    interface: str | None = described("The outgoing interface.", default=None)
    initial_window_packets: int | None = described("initcwnd.", default=None)
    initial_receive_window_packets: int | None = described("initrwnd.", default=None)
    quick_ack: int | None = described("quickack.", default=None)

    @property
    def metrics(self) -> dict[str, int]:
        """The metrics that are set, by their names in plans."""
        others = ("destination", "via", "interface")
        return {name: value for name, value in vars(self).items() if name not in others and value is not None}


@planned
class ModuleRecord:
    """A module. Fields after `parameters` exist only for a profile's own."""

    srcversion: str | None = described("The kernel's digest of its source.", default=None)
    parameters: dict[str, str | None] = described("Their values while the flows ran.", default_factory=dict)
    loaded_as: str | None = occasional("Its name in the kernel.", default=None)
    algorithms: list[str] | None = occasional("Congestion controls that it registered.", default=None)
    uses_before: int | None = occasional("Its reference count before the flows.", default=None)
    uses_most: int | None = occasional("Its largest reference count while they ran.", default=None)
    programs: dict[str, str] | None = occasional("For BPF, the kernel's tag of each program.", default=None)


@planned
class AlgorithmRecord:
    """The module that provides a congestion control."""

    module: str | None = described("Its module, built in or not.", default=None)
    version: str | None = described("Its MODULE_VERSION.", default=None)


@planned
class MemoryRecord:
    """The memory of the kernel."""

    total_bytes: int | None = described("Total memory.", default=None)
    available_bytes_least: int | None = described("The least that was available while the flows ran.", default=None)


@planned
class KernelLogRecord:
    """How much of the kernel's log kernel.log holds."""

    records: int = described("Messages in it.", default=0)
    first: int | None = described("Number of the run's first message.", default=None)
    lost: int = described("Messages that were overwritten before they were read.", default=0)
    left_out: int | None = described("Messages beyond the limit of the file.", default=None)
    why: str | None = described("Why it was not kept; null if it was.", default=None)


@planned
class ProcessorRecord:
    """How late a process of high priority woke up, in real time: a measure of the machine's load."""

    interval_ns: int | None = described("Time between wake-ups.", default=None)
    wakeups: int = described("Number of wake-ups.", default=0)
    missed: int = described("Number of missed intervals.", default=0)
    late_median_ns: int | None = described("The median of its lateness.", default=None)
    late_99_ns: int | None = described("The 99th percentile.", default=None)
    late_worst_ns: int | None = described("The largest.", default=None)
    late: list[list[int]] = described("`[due_ns, late_ns]` of wake-ups more than 2 ms late.", default_factory=list)
    busiest_second: float | None = described("Share of the processor's time used in the busiest second.", default=None)
    steal: float | None = described("Share of the processor's time that went to other virtual machines.", default=None)


@planned
class KernelRecord:
    """An agent's description of its kernel."""

    kernel_release: str | None = occasional("`uname -r`.", default=None)
    kernel_version: str | None = occasional("`uname -v`.", default=None)
    boot_parameters: dict[str, str] | None = occasional(
        "Parameters given at boot, as `module.parameter`.", default=None
    )
    modules: dict[str, ModuleRecord] | None = occasional("Each by its name.", default=None)
    memory: MemoryRecord | None = occasional("The memory of the kernel.", default=None)
    processor: ProcessorRecord | None = occasional("How late a process woke up, in real time.", default=None)
    kernel_log: KernelLogRecord | None = occasional("How much of the kernel's log was kept.", default=None)
    machine: str | None = occasional("The name of this kernel or machine, if there are several.", default=None)
    part: list[str] | None = occasional("The hosts in this kernel, if there are several.", default=None)


@planned
class AgentRecord(KernelRecord):
    """The content of agent.json."""

    format: int | None = described("The version of this record.", default=None)
    status: str | None = described("`ok`, or `error`.", default=None)
    error: AgentFailure | None = described("Why the run ended early.", default=None)
    run: str | None = described("The plan's name of the run.", default=None)
    seed: int | None = described("The plan's seed.", default=None)
    hertz: int | None = occasional("The kernel's ticks per second.", default=None)
    epoch_monotonic_ns: int | None = occasional("CLOCK_MONOTONIC at time zero of the plan.", default=None)
    phases: list[Phase] = described("The phases, in order.", default_factory=list)
    flows: list[FlowRecord] = occasional("What became of each flow.", default_factory=list)
    operations_wall_us: int | None = occasional(
        "How long building the network took, on the host's clock.", default=None
    )
    available_algorithms: list[str] | None = occasional("Congestion controls of the kernel.", default=None)
    algorithms: dict[str, AlgorithmRecord] | None = occasional("What provides those that the flows use.", default=None)
    tools: dict[str, str] | None = occasional("Versions of programs; without calibration, not tc's.", default=None)
    sysctls: dict[str, dict[str, str]] | None = occasional("Values by node; `*` is the whole kernel.", default=None)
    qdiscs: dict[str, NodeQueues] | None = occasional(
        "The queues of each node; absent without calibration.", default=None
    )
    links: dict[str, dict[str, ShownInterface]] | None = occasional("The interfaces of each node.", default=None)
    routes: dict[str, list[ShownRoute]] | None = occasional("The routes of each node that have a metric.", default=None)
    machines: dict[str, KernelRecord] | None = occasional(
        "The kernel of each machine, if there are several.", default=None
    )

    @cached_property
    def by_id(self) -> dict[int, FlowRecord]:
        """The first record of each flow."""
        return {record.id: record for record in reversed(self.flows)}

    def flow(self, number: int) -> FlowRecord:
        """The record of a flow; an empty record if the flow was never made."""
        return self.by_id.get(number) or FlowRecord(id=number)
