# SPDX-License-Identifier: Apache-2.0
"""agent.json as every stage reads it: what the guest built, found and did.

``howdah/agent/report.py`` writes it, in a guest that has the standard library alone. A field that an agent left out,
because its run ended earlier or because it is of an earlier release, is None here. docs/data-format.md has these
descriptions.
"""

from __future__ import annotations

from functools import cached_property
from typing import Any

from pydantic import BaseModel, ConfigDict, Field

from howdah.errors import HowdahError
from howdah.plan.operation import ROUTE_METRICS
from howdah.record.directory import RunDirectory
from howdah.record.model import checked
from howdah.record.raw import read_raw_json


def _told(description: str) -> Any:
    """A field that may be missing."""
    return Field(default=None, description=description)


class _Described(BaseModel):
    model_config = ConfigDict(extra="ignore", strict=True, frozen=True, defer_build=True)


class AgentFailure(_Described):
    """Why a run ended before its end."""

    operation: str | None = _told("What the agent was doing.")
    message: str | None = _told("What went wrong.")


class Phase(_Described):
    """A phase of the run."""

    phase: str = Field(description="`setup`, `calibrate-before`, `flows`, `quiesce`, `calibrate-after`, `collect`.")
    start_ns: int = Field(description="When it began, from the epoch on.")
    end_ns: int = Field(description="When it ended, from the epoch on.")
    wall_us: int | None = _told("How long it took on the host's clock.")


class TransactionRecord(_Described):
    """A request and its answer, by the client. Times count from the epoch."""

    start_ns: int = Field(description="When the request was sent; of the first one, when the connection was opened.")
    end_ns: int = Field(description="When the last byte of the answer came.")
    connected_ns: int | None = _told("When the connection was there.")
    first_ns: int | None = _told("When the first byte of the answer came.")
    body_bytes: int | None = _told("Bytes of the answer.")
    status: int | None = _told("HTTP's status.")
    connects: int | None = _told("How many connections were opened for it.")


class FlowRecord(_Described):
    """What became of a flow. Times count from the epoch."""

    id: int = Field(description="The flow's number in the plan.")
    end: str | None = _told("`sender` or `receiver`, of a flow whose other end another machine or kernel has.")
    sender_cookie: int | None = _told("The kernel's name of the sender's socket.")
    receiver_cookie: int | None = _told("The kernel's name of the receiver's socket.")
    source_port: int | None = _told("The sender's port, which the kernel may have chosen.")
    destination_port: int | None = _told("The receiver's port; only of flows that programs make.")
    start_ns: int | None = _told("When the flow began.")
    connected_ns: int | None = _told("When its sender could send.")
    end_ns: int | None = _told("When the receiver had its last byte.")
    bytes_sent: int | None = _told("Bytes of data that were sent.")
    bytes_received: int | None = _told("Bytes of data that the receiver had.")
    segments_sent: int | None = _told("Segments of the sending socket before it was closed; null of UDP and iperf3.")
    segments_retransmitted: int | None = _told("How many of them were sent again.")
    complete: bool = Field(default=False, description="Whether all arrived that the flow was to send.")
    error: str | None = _told("What went wrong.")
    kernel_algorithm: str | None = _told(
        "The congestion control of the sending socket at its end; null where the agent does not hold it."
    )
    transactions: list[TransactionRecord] = Field(default=[], description="Of HTTP and of exchanges, each request.")
    programs: dict[str, Any] | None = _told(
        "Of a flow that programs make, of `client` and `server`: `command`, `status` and `told_to_end`."
    )
    realtime_offset_ns: int | None = _told("CLOCK_REALTIME less CLOCK_MONOTONIC, of a flow that programs make.")


class ShownQueue(_Described):
    """A queueing discipline, as `tc -j qdisc show` prints it."""

    kind: str | None = _told("Its kind.")
    handle: str | None = _told("Its handle.")
    dev: str | None = _told("Its interface.")
    options: dict[str, Any] = Field(default={}, description="Those of its kind, by tc's names.")


class ShownClass(_Described):
    """A class, as `tc -j class show` prints it."""

    handle: str | None = _told("Its name.")
    rate: int | None = _told("Bytes a second.")


class ShownFilter(_Described):
    """What a queue takes for a mark."""

    dscp: int = Field(description="The mark.")
    queue: int = Field(description="The virtual queue of packets that carry it.")


class ShownPolicer(_Described):
    """What a policer holds."""

    rate_bits_per_second: int = Field(description="Its rate.")
    burst_bytes: int = Field(description="What its bucket holds.")

    def __str__(self) -> str:
        return f"{self.burst_bytes} bytes at {self.rate_bits_per_second} bit/s"


class NodeQueues(_Described):
    """The queues of a node."""

    qdiscs: list[ShownQueue] = Field(description="All of them.")
    classes: dict[str, list[ShownClass | str]] = Field(
        default={}, description="Those of each interface; an older tc prints them as text."
    )
    filters: dict[str, list[ShownFilter]] = Field(default={}, description="By interface; only of a node that has any.")
    policers: dict[str, list[ShownPolicer]] = Field(
        default={}, description="By interface; only of a node that has any."
    )


class ShownInterface(_Described):
    """An interface before the flows."""

    index: int | None = _told("The kernel's number of it in its namespace.")
    mac: str | None = _told("Its address.")
    mtu_bytes: int | None = _told("The largest IP packet.")
    up: bool | None = _told("Whether it carries packets.")
    gso_max_segs: int | None = _told("The most segments of a super-packet.")
    gso_max_size_bytes: int | None = _told("The most bytes of a super-packet.")
    queue_packets: int | None = _told("Its `txqueuelen`.")
    offloads: dict[str, bool] = Field(default={}, description="Whether each is on, by ethtool's short names.")

    def setting(self, name: str) -> int | bool | None:
        """A number, or an offload by its name; None for what the agent did not read."""
        values = {name: getattr(self, name) for name in ("mtu_bytes", "gso_max_segs", "queue_packets")}
        return values[name] if name in values else self.offloads.get(name)


class ShownRoute(_Described):
    """A route that has a metric; a metric that is not set is null."""

    destination: str = Field(description="The network, or `default`.")
    via: str | None = _told("The next node's address.")
    interface: str | None = _told("Where packets leave.")
    initial_window_packets: int | None = _told("initcwnd.")
    initial_receive_window_packets: int | None = _told("initrwnd.")
    quick_ack: int | None = _told("quickack.")

    @property
    def metrics(self) -> dict[str, int]:
        """Those that are set, by their names in plans."""
        return {name: value for name in ROUTE_METRICS if (value := getattr(self, name)) is not None}


class ModuleRecord(_Described):
    """A module. Only a profile's own has what follows `parameters`."""

    srcversion: str | None = _told("The kernel's digest of its source.")
    parameters: dict[str, str] = Field(default={}, description="Their values while the flows ran.")
    loaded_as: str | None = _told("The kernel's name of it.")
    algorithms: list[str] | None = _told("Those that it registered.")
    uses_before: int | None = _told("How many held it before the flows.")
    uses_most: int | None = _told("The most that held it while they ran.")
    programs: dict[str, str] | None = _told("Of BPF: the kernel's tag of each program.")


class AlgorithmRecord(_Described):
    """What provides a congestion control."""

    module: str | None = _told("The module, built in or not.")
    version: str | None = _told("Its MODULE_VERSION.")


class MemoryRecord(_Described):
    """The memory of the kernel."""

    total_bytes: int | None = _told("All of it.")
    available_bytes_least: int | None = _told("The least that was available while the flows ran.")


class KernelLogRecord(_Described):
    """How much of the kernel's log is in kernel.log."""

    records: int = Field(description="Messages in it.")
    first: int | None = _told("Number of the run's first message.")
    lost: int = Field(description="Messages that were overwritten before they were read.")
    left_out: int | None = _told("Messages beyond the limit of the file.")
    why: str | None = _told("Why it was not kept; null where it was.")


class ProcessorRecord(_Described):
    """How late a process of high priority woke up, in real time."""

    interval_ns: int | None = _told("Time from wake-up to wake-up.")
    wakeups: int = Field(description="How often it woke up.")
    missed: int = Field(description="How many intervals it slept through.")
    late_median_ns: int | None = _told("The median of its lateness.")
    late_99_ns: int | None = _told("The 99th percentile.")
    late_worst_ns: int | None = _told("The largest.")
    late: list[list[int]] = Field(default=[], description="`[due_ns, late_ns]` of those later than 2 ms.")
    busiest_second: float | None = _told("Share of the processor's time that was used in the busiest second.")
    steal: float | None = _told("Share of the processor's time that went to other virtual machines.")


class KernelRecord(_Described):
    """What an agent says of its kernel."""

    kernel_release: str | None = _told("`uname -r`.")
    kernel_version: str | None = _told("`uname -v`.")
    boot_parameters: dict[str, str] | None = _told("What the kernel was given at boot, as `module.parameter`.")
    modules: dict[str, ModuleRecord | None] | None = _told("Each by its name.")
    memory: MemoryRecord | None = _told("The memory of the kernel.")
    processor: ProcessorRecord | None = _told("In real time, how late a process woke up.")
    kernel_log: KernelLogRecord | None = _told("How much of the kernel's log was kept.")
    part: list[str] | None = _told("The hosts in this kernel, where there are several.")


class AgentRecord(KernelRecord):
    """The file."""

    format: int | None = _told("The version of this record.")
    status: str | None = _told("`ok`, or `error`.")
    error: AgentFailure | None = _told("Why the run ended early.")
    run: str | None = _told("The plan's name of the run.")
    seed: int | None = _told("The plan's seed.")
    hertz: int | None = _told("Ticks a second of the kernel.")
    epoch_monotonic_ns: int | None = _told("CLOCK_MONOTONIC at time zero of the plan.")
    phases: list[Phase] = Field(default=[], description="In their order.")
    flows: list[FlowRecord] = Field(default=[], description="What became of each flow.")
    operations_wall_us: int | None = _told("How long the network took to build, on the host's clock.")
    available_algorithms: list[str] | None = _told("Congestion controls of the kernel.")
    algorithms: dict[str, AlgorithmRecord] | None = _told("What provides those of the flows.")
    tools: dict[str, str] | None = _told("Versions of programs; without calibration, not of tc.")
    sysctls: dict[str, dict[str, str]] | None = _told("Values by node; `*` is the whole kernel.")
    qdiscs: dict[str, NodeQueues] | None = _told("The queues of each node; absent without calibration.")
    links: dict[str, dict[str, ShownInterface]] | None = _told("The interfaces of each node.")
    routes: dict[str, list[ShownRoute]] | None = _told("The routes of each node that have a metric.")
    machines: dict[str, KernelRecord] | None = _told("The kernel of each machine, where there are several.")

    @cached_property
    def by_id(self) -> dict[int, FlowRecord]:
        """The first record of each flow."""
        return {record.id: record for record in reversed(self.flows)}

    def flow(self, number: int) -> FlowRecord:
        """What became of a flow; a record that says nothing of one that never came to be."""
        return self.by_id.get(number) or FlowRecord(id=number)


def read_agent(directory: RunDirectory) -> AgentRecord:
    """agent.json of a run. Raises FileNotFoundError without it, and RecordError for the place of what is wrong."""
    path = directory.raw / "agent.json"
    return checked(AgentRecord, read_raw_json(path), path)


def agent_or_empty(directory: RunDirectory) -> AgentRecord:
    """The same; a record that says nothing where the file is missing or wrong, which the report of ingest tells."""
    try:
        return read_agent(directory)
    except (OSError, HowdahError):
        return AgentRecord()
