# SPDX-License-Identifier: Apache-2.0
"""agent.json as every stage reads it: what the guest built, found and did.

``howdah/agent/report.py`` writes it, in a guest that has the standard library alone. A field that an agent left out,
because its run ended earlier or because it is of an earlier release, is None here.
"""

from __future__ import annotations

from functools import cached_property
from typing import Any

from pydantic import BaseModel, ConfigDict

from howdah.errors import HowdahError
from howdah.plan.operation import ROUTE_METRICS
from howdah.record.directory import RunDirectory
from howdah.record.raw import read_raw_json
from howdah.record.reading import checked


class _Part(BaseModel):
    model_config = ConfigDict(extra="ignore", strict=True, frozen=True, defer_build=True)


class AgentFailure(_Part):
    """Why a run ended before its end."""

    operation: str | None = None
    message: str | None = None


class Phase(_Part):
    """When a phase of the run began and ended, from the epoch on."""

    phase: str
    start_ns: int
    end_ns: int


class TransactionRecord(_Part):
    """A request and its answer, by the client."""

    start_ns: int
    end_ns: int


class FlowRecord(_Part):
    """What became of a flow. ``end_ns`` is when the receiver had its last byte; times count from the epoch."""

    id: int
    source_port: int | None = None
    destination_port: int | None = None
    start_ns: int | None = None
    connected_ns: int | None = None
    end_ns: int | None = None
    bytes_sent: int | None = None
    bytes_received: int | None = None
    segments_sent: int | None = None
    segments_retransmitted: int | None = None
    complete: bool = False
    error: str | None = None
    kernel_algorithm: str | None = None
    realtime_offset_ns: int | None = None
    transactions: list[TransactionRecord] = []


class ShownQueue(_Part):
    """A queueing discipline as ``tc -j qdisc show`` prints it; ``options`` are those of its kind."""

    kind: str | None = None
    handle: str | None = None
    dev: str | None = None
    options: dict[str, Any] = {}


class ShownClass(_Part):
    """A class as ``tc -j class show`` prints it; ``rate`` in bytes a second."""

    handle: str | None = None
    rate: int | None = None


class ShownFilter(_Part):
    """What a queue takes for a mark."""

    dscp: int
    queue: int


class ShownPolicer(_Part):
    """What a policer holds."""

    rate_bits_per_second: int
    burst_bytes: int

    def __str__(self) -> str:
        return f"{self.burst_bytes} bytes at {self.rate_bits_per_second} bit/s"


class NodeQueues(_Part):
    """The queues of a node, and of each interface its classes, filters and policers. An older tc prints classes as
    text."""

    qdiscs: list[ShownQueue]
    classes: dict[str, list[ShownClass | str]] = {}
    filters: dict[str, list[ShownFilter]] = {}
    policers: dict[str, list[ShownPolicer]] = {}


class ShownInterface(_Part):
    """An interface before the flows."""

    index: int | None = None
    mtu_bytes: int | None = None
    gso_max_segs: int | None = None
    offloads: dict[str, bool] = {}

    def setting(self, name: str) -> int | bool | None:
        """``mtu``, ``gso_max_segs`` or an offload by its name; None for what the agent did not read."""
        values = {"mtu_bytes": self.mtu_bytes, "gso_max_segs": self.gso_max_segs}
        return values[name] if name in values else self.offloads.get(name)


class ShownRoute(_Part):
    """A route; a metric that is not set is None."""

    destination: str
    initial_window_packets: int | None = None
    initial_receive_window_packets: int | None = None
    quick_ack: int | None = None

    @property
    def metrics(self) -> dict[str, int]:
        """Those that are set, by their names in plans."""
        return {name: value for name in ROUTE_METRICS if (value := getattr(self, name)) is not None}


class ModuleRecord(_Part):
    """A module; only a profile's own has ``algorithms`` (that it registered) and counts of uses; of BPF,
    ``programs``."""

    srcversion: str | None = None
    parameters: dict[str, str] = {}
    algorithms: list[str] | None = None
    uses_before: int | None = None
    uses_most: int | None = None
    programs: dict[str, str] | None = None


class KernelLogRecord(_Part):
    """How much of the kernel's log is in kernel.log; ``why`` is None, or says why it was not kept."""

    records: int
    first: int | None = None  # number of the run's first message
    lost: int
    why: str | None = None


class ProcessorRecord(_Part):
    """How late a process of high priority woke up; ``late`` has pairs of due time and lateness in nanoseconds."""

    wakeups: int
    missed: int
    late_worst_ns: int | None = None
    late: list[list[int]] = []
    steal: float | None = None


class KernelRecord(_Part):
    """What an agent says of its kernel."""

    kernel_release: str | None = None
    boot_parameters: dict[str, str] | None = None
    modules: dict[str, ModuleRecord | None] | None = None
    processor: ProcessorRecord | None = None
    kernel_log: KernelLogRecord | None = None


class AgentRecord(KernelRecord):
    """agent.json. ``machines`` has the kernel of each machine, where there are several."""

    run: str | None = None
    seed: int | None = None
    status: str | None = None
    error: AgentFailure | None = None
    epoch_monotonic_ns: int | None = None
    phases: list[Phase] = []
    flows: list[FlowRecord] = []
    sysctls: dict[str, dict[str, str]] | None = None
    qdiscs: dict[str, NodeQueues] | None = None
    links: dict[str, dict[str, ShownInterface]] | None = None
    routes: dict[str, list[ShownRoute]] | None = None
    machines: dict[str, KernelRecord] | None = None

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
