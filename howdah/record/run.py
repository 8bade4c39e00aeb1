# SPDX-License-Identifier: Apache-2.0
"""run.json: the model of where a run came from, what it ran on, and how it ended, with its reader and its writer.

Engines fill in the first part (``EngineReport``), ``howdah/work`` the rest, and docs/data-format.md has these
descriptions. A field that was not set is left out of the file.
"""

from __future__ import annotations

from typing import Any, Literal

from pydantic import ConfigDict, Field

from howdah.errors import RecordError
from howdah.record.directory import RunDirectory, read_json, write_json
from howdah.record.model import FilePart, checked

RUN_FORMAT: Literal[1] = 1
Status = Literal["running", "finished", "failed"]
Number = int | float


def _told(description: str) -> Any:
    """A field that may be missing."""
    return Field(default=None, description=description)


class _RunPart(FilePart):
    model_config = ConfigDict(frozen=True)


class EngineOrigin(_RunPart):
    """The engine."""

    name: str | None = _told("Its name.")
    guest_wall_s: Number | None = _told("How long the guest ran on the host's clock.")
    guest_memory_peak_bytes: int | None = _told("Most memory of the guest's process.")
    wall_s: Number | None = _told("How long the run took, for an engine without a guest.")
    tools: str | None = _told("What the launcher was built from.")
    parts: dict[str, Any] | None = _told("`kernel`, `modules` and `guest_wall_s` of each of several kernels.")
    qemu: str | None = _told("QEMU's version, for a virtual machine.")
    accelerator: str | None = _told("What ran the machine: `kvm` or `tcg`.")
    why_not_kvm: str | None = _told("Why it was not KVM.")
    processor: str | None = _told("How fast its processor was.")
    command: list[str] | None = _told("QEMU's command.")
    model: str | None = _told("The model, for a simulator.")
    machine_set: str | None = _told("The set of machines, if several.")
    dilation: Number | None = _told("How much slower their clocks were.")
    machines: dict[str, Any] | None = _told(
        "Each one's `role`, `hosts`, `kernel_release`, `kernel_version`, `accelerator`, `clock` and `modules`."
    )


class KernelOrigin(_RunPart):
    """The kernel."""

    release: str | None = _told("`uname -r`.")
    image_sha256: str | None = _told("Digest of its image; null if it was not built here.")
    config_sha256: str | None = _told("Digest of its configuration.")
    source: str | None = _told("Where it came from.")
    compiler: str | None = _told("What compiled it.")
    options_not_taken: list[str] | None = _told("Options that its source does not have.")
    package: str | None = _told("The package of a distribution's kernel.")
    version: str | None = _told("Version of the package.")


class TreeOrigin(_RunPart):
    """The guest's files."""

    sha256: str | None = _told("Digest of all files.")
    packages: dict[str, str] | None = _told("Their packages with versions.")


class ModuleOrigin(_RunPart):
    """A kernel module; for a profile's own, with what agent.json has about it."""

    srcversion: str | None = _told("The kernel's digest of its source.")
    source: str | None = _told("Where it came from.")
    parameters: dict[str, str | None] | None = _told("As the kernel shows them after loading.")
    sha256: str | None = _told("Digest of its file, which headers and compiler flags change too.")


class Confinement(_RunPart):
    """What a user-mode kernel could not access."""

    kept_from: list[str] | None = _told("`files`, `network`, `privileges`: what this machine could keep it from.")
    addresses_fixed: bool = Field(default=True, description="Whether its addresses are the same in every run.")


class StackOrigin(_RunPart):
    """A TCP implementation other than the kernel's."""

    identity: str | None = _told("Digest of all that it is made of.")
    source: str | None = _told("Where it came from.")
    tools: dict[str, str] | None = _told("Versions of the programs that built it.")


class Software(_RunPart):
    """howdah itself."""

    version: str | None = _told("Its version.")
    revision: str | None = _told("The git revision; null outside of a checkout.")
    modified: bool | None = _told("Whether the checkout differs from the revision; null if unknown.")


class HostMachine(_RunPart):
    """The machine on which the command ran."""

    machine: str | None = _told("Its architecture.")
    system: str | None = _told("Its operating system.")
    cpu: str | None = _told("Its processor.")
    python: str | None = _told("Its Python.")


class StageTime(_RunPart):
    """The time that a stage took."""

    stage: str = Field(description="`engine`, `ingest`, `measure`, `judge`, `compress`.")
    wall_s: Number = Field(default=0.0, description="Wall seconds.")
    core_s: Number | None = _told("Processor seconds of the guest and all processes of the run.")


class AddedPart(_RunPart):
    """A part that an installed package added."""

    kind: str = Field(default="", description="The group of its entry point ([extending.md](extending.md)).")
    name: str = Field(default="", description="Its name.")
    package: str = Field(default="", description="The package.")
    version: str = Field(default="", description="Its version.")


class EngineReport(FilePart):
    """An engine's report on a run."""

    engine: EngineOrigin = Field(default=EngineOrigin(), description="The engine.")
    kernel: KernelOrigin = Field(default=KernelOrigin(), description="The kernel; the sender's, if several.")
    guest_tree: TreeOrigin | None = _told("The guest's files; null without a guest.")
    modules: dict[str, ModuleOrigin] = Field(default={}, description="Each module by its name.")
    confinement: Confinement | None = _told("What a user-mode kernel could not access.")
    stacks: dict[str, StackOrigin] | None = _told("Each TCP other than the kernel's, by its name.")


class RunRecord(EngineReport):
    """The content of run.json."""

    format: Literal[1] = Field(default=RUN_FORMAT, description="The version of this record.")
    status: Status = Field(description="`running`, `finished` or `failed`.")
    key: str | None = _told("The run's [key](architecture.md#keys-and-resumption).")
    plan_sha256: str | None = _told("Digest of plan.json.")
    sender: Any = _told(
        "As in plan.json, the profile's sender of another time: `name`, and of each field of `settings` `value`, "
        "`instead_of` (where the profile overrides it), `what` and `source`."
    )
    processors: Any = _told(
        "As in plan.json, of each processor of a host `host`, `interface`, `model`, `packet_ns`, `ack_ns`, "
        "`searched_ns`, `search`, `queue_packets`, and `sources` with where each value comes from."
    )
    howdah: Software = Field(default=Software(), description="howdah itself.")
    host: HostMachine = Field(default=HostMachine(), description="Where the command ran.")
    started: str | None = _told("When the run began.")
    stages: list[StageTime] = Field(default=[], description="What each stage took.")
    error: str | None = _told("Why the run failed.")
    parameter_places: dict[str, str] = Field(
        default={},
        description="`module.parameter`: `file:line`, relative to where the command was given, or the file's name.",
    )
    made_here: str | None = _told(
        "A code that shows the user whose howdah made the plan that it did "
        "([trust.md](trust.md#whose-code-a-command-runs)); where the plan names modules, kernels, stacks, programs or "
        "an engine outside of a guest."
    )
    rerun_of: str | None = _told("The run that this one repeats.")
    algorithms: Any = _told("As in agent.json.")
    analysis_sha256: str | None = _told(
        "The analysis that made tables, metrics and verdict; null while they are being made: a command that finds it "
        "null makes them again."
    )
    extensions: list[AddedPart] = Field(default=[], description="What installed packages added.")
    ended: str | None = _told("When the run ended.")
    wall_s: Number | None = _told("How long it took.")
    virtual_s: Number | None = _told("How long the guest's clock ran.")
    data_removed: bool = Field(
        default=False,
        description="Whether the results alone are kept (`keep: first`, [sweeps.md](sweeps.md)): raw/, tables/ and "
        "share/ do not exist.",
    )
    packed_as: str | None = _told(
        "`results`, in a [pack](pack.md#less-than-everything) of results, which has `data_removed`, too."
    )
    raw_left_out: list[str] | None = _told("Files of raw/ that a pack without large records lacks.")
    rewritten: dict[str, str | None] | None = _told("Digests of files before a pack replaced paths in them.")
    digests: dict[str, str] | None = _told(
        "SHA-256 of every file of the run's directory as it is stored, but of run.json, report.html, signatures and "
        "hidden files ([verify.md](verify.md)); older runs have none."
    )

    def take(self, report: EngineReport) -> None:
        """Take over the fields that an engine set."""
        for name in report.model_fields_set:
            setattr(self, name, getattr(report, name))

    def replaced(self, **changes: Any) -> RunRecord:
        """A copy with these changes."""
        return self.model_copy(update=changes)

    @property
    def core_s(self) -> float:
        """Processor seconds of all stages; wall seconds for stages without."""
        return float(sum(each.wall_s if each.core_s is None else each.core_s for each in self.stages))


def read_record(directory: RunDirectory) -> RunRecord:
    """Read run.json. Raise FileNotFoundError without it, and RecordError, which names the place of what is wrong."""
    return checked(RunRecord, read_json(directory.provenance), directory.provenance)


def record_or_empty(directory: RunDirectory) -> RunRecord:
    """Read run.json; return an empty record if it is missing or wrong."""
    try:
        return read_record(directory)
    except (OSError, RecordError):
        return RunRecord(status="running")


def write_record(directory: RunDirectory, record: RunRecord) -> None:
    write_json(directory.provenance, record.plain())
