# SPDX-License-Identifier: Apache-2.0
"""The stored results of an experiment: every measure of every repetition of every cell, and how it was made."""

from __future__ import annotations

import json
import math
from dataclasses import asdict, dataclass, field
from pathlib import Path
from typing import Any

from howdah.errors import HowdahError, explain
from howdah.nightly.suite import SuiteExperiment, slug_of
from howdah.record.directory import read_json, write_json
from howdah.record.model import Scalar
from howdah.record.provenance import agent_sha256, now, sha256_text, software
from howdah.record.result import Run
from howdah.work.results import read_results

FORMAT = 2
Value = float | str | None
_NOT_STORED = "wall_s"  # differs between otherwise equal sheets


@dataclass
class Repetition:
    """One run. ``metrics`` by ``measure`` or ``measure@flow``; None if a valid run lacks the value.

    ``key`` and ``plan`` are the run's key and the hash of its plan, as in run.json. ``wall_s`` is its wall time.
    """

    verdict: str
    seed: int | None
    metrics: dict[str, Value] = field(default_factory=dict)
    why: str = ""
    key: str = ""
    plan: str = ""
    wall_s: float = 0.0

    @property
    def counts(self) -> bool:
        return self.verdict in ("pass", "fail", "unjudged")


@dataclass(frozen=True)
class Origin:
    """What produced a cell's numbers. ``guest`` is one hash of the kernel's image, its modules, the file system and the
    engine's tools; ``agent`` and ``analysis`` are hashes of howdah's code in the guest and after it. Empty if unknown.
    """

    engine: str = ""
    virtual_clock: bool = False
    guest: str = ""
    agent: str = ""
    analysis: str = ""


@dataclass
class CellSheet:
    """One cell of the matrix: ``axes`` without the repetition."""

    axes: dict[str, Scalar]
    algorithm: str
    receiver: str
    origin: Origin = field(default_factory=Origin)
    repetitions: dict[int, Repetition] = field(default_factory=dict)


@dataclass
class ClaimSheet:
    """The verdict on a claim. ``measured`` is the value from its runs, as text for people."""

    verdict: str
    says: str
    measured: str
    why: str
    wall_s: float = 0.0


@dataclass
class NightSheet:
    """One experiment. ``problem`` says why it could not be prepared, for example that its kernel does not build.

    ``prepare_s`` is the wall time of preparing it.
    """

    experiment: str
    item: str
    kernel: str
    made: str
    howdah: dict[str, Scalar]
    release: str = ""
    image: str = ""
    problem: str | None = None
    units: dict[str, str] = field(default_factory=dict)
    cells: dict[str, CellSheet] = field(default_factory=dict)
    claims: dict[str, ClaimSheet] = field(default_factory=dict)
    prepare_s: float = 0.0

    def to_json(self) -> dict[str, Any]:
        """The sheet without wall times; ``sha256`` is the hash of the rest."""
        data = {"format": FORMAT, **asdict(self)}
        del data["prepare_s"]
        for cell in data["cells"].values():
            for each in cell["repetitions"].values():
                del each[_NOT_STORED]
        for claim in data["claims"].values():
            del claim[_NOT_STORED]
        if not data["claims"]:
            del data["claims"]  # older sheets of measures have no such field
        return {"sha256": _digest(json.dumps(data)), **data}

    @staticmethod
    def from_json(data: Any) -> NightSheet:
        """Parse a sheet. Raises ValueError, KeyError or TypeError if it does not have this format or was edited."""
        if not isinstance(data, dict) or data.get("format") != FORMAT:
            raise ValueError(f"expected format {FORMAT}")
        if data["sha256"] != _digest(json.dumps({name: value for name, value in data.items() if name != "sha256"})):
            raise ValueError("it is not what was stored: somebody edited or merged it")
        fields = {name: value for name, value in data.items() if name not in ("format", "sha256", "cells", "claims")}
        claims = {name: ClaimSheet(**claim) for name, claim in data.get("claims", {}).items()}
        sheet = NightSheet(**fields, claims=claims)
        for slug, cell in data["cells"].items():
            rest = {name: value for name, value in cell.items() if name not in ("origin", "repetitions")}
            repetitions = {int(number): Repetition(**each) for number, each in cell["repetitions"].items()}
            sheet.cells[slug] = CellSheet(**rest, origin=Origin(**cell["origin"]), repetitions=repetitions)
        return sheet


def _digest(text: str) -> str:
    """The hash of the data as read back, with keys as text and sorted."""
    return sha256_text(json.dumps(json.loads(text), sort_keys=True))


def empty_sheet(series: SuiteExperiment, problem: str | None = None) -> NightSheet:
    return NightSheet(series.name, series.item, series.kernel, now(), software().plain(), problem=problem)


def read_experiment(series: SuiteExperiment, directory: Path, cells: set[str] | None = None) -> NightSheet:
    """Return the sheet of a finished experiment; ``cells`` are the slugs wanted, None for all."""
    sheet = empty_sheet(series)
    experiment = read_results(directory)
    for run in experiment.runs:
        if run.plan is None:
            continue
        slug = slug_of(run.plan.run)
        if cells is not None and slug not in cells:
            continue
        kernel = run.provenance.kernel
        sheet.release = kernel.release or sheet.release
        sheet.image = kernel.image_sha256 or sheet.image
        receiver = next((row.receiver for row in run.metrics if row.receiver), "linux")
        cell = sheet.cells.setdefault(slug, CellSheet(run.axes, run.algorithm, receiver))
        if run.counts:
            cell.origin = _origin(run)
        cell.repetitions[run.repetition] = repetition_of(run, sheet.units)
    return sheet


def _origin(run: Run) -> Origin:
    plan, record = run.plan, run.provenance
    kernel, tree, tools = record.kernel, record.guest_tree, record.engine
    modules = {name: each.sha256 or each.srcversion for name, each in record.modules.items()}
    parts = [kernel.image_sha256, tree.sha256 if tree else None, tools.tools, tools.qemu, modules]
    is_known = bool(kernel.image_sha256) and all(modules.values())
    return Origin(
        engine=plan.engine if plan else "",
        virtual_clock=plan is not None and plan.traits.virtual_clock,
        guest=sha256_text(json.dumps(parts, sort_keys=True)) if is_known else "",
        agent=agent_sha256(),  # the run was found by its key, which includes this hash
        analysis=record.analysis_sha256 or "",
    )


def repetition_of(run: Run, units: dict[str, str]) -> Repetition:
    record = run.provenance
    found = Repetition(
        *(run.verdict_name, run.plan.seed if run.plan else None),
        why=_why(run),
        key=record.key or "",
        plan=record.plan_sha256 or "",
        wall_s=float(record.wall_s or 0.0),
    )
    if not run.counts:
        return found
    for row in run.metrics:
        units[row.metric] = row.unit or ""
        found.metrics[f"{row.metric}@{row.of}" if row.of else row.metric] = _value(row.value)
    return found


def _value(value: Any) -> Value:
    """Treat NaN and infinity as missing. NaN would compare unequal to everything and never exceed a margin."""
    if value is None or isinstance(value, str):
        return value
    return float(value) if math.isfinite(value) else None


def _why(run: Run) -> str:
    """Why a run does not count."""
    if run.counts:
        return ""
    if run.problem:
        return run.problem
    return run.broken[0].message if run.broken else ""


class Baseline:
    def __init__(self, directory: Path) -> None:
        self.directory = directory

    def file(self, experiment: str) -> Path:
        return self.directory / f"{experiment}.json"

    def read(self, experiment: str) -> NightSheet | None:
        """Return the accepted sheet of an experiment, or None. Raises HowdahError if it cannot be read."""
        file = self.file(experiment)
        if not file.exists():
            return None
        try:
            return NightSheet.from_json(read_json(file))
        except (ValueError, KeyError, TypeError, AttributeError) as error:
            raise HowdahError(
                f"this baseline cannot be read: {error}",
                where=str(file),
                hint="'howdah nightly --accept' stores a new one.",
            ) from error

    def accept(self, sheet: NightSheet, *, part: bool = False) -> None:
        """Replace the stored sheet; for a ``part`` of an experiment, keep its other cells."""
        before = self.read(sheet.experiment) if part else None
        if before is not None and sheet.problem is None:
            for slug, cell in before.cells.items():
                sheet.cells.setdefault(slug, cell)
            sheet.units = {**before.units, **sheet.units}
            sheet.claims = {**before.claims, **sheet.claims}
        sheet.cells = dict(sorted(sheet.cells.items()))
        try:
            self.directory.mkdir(parents=True, exist_ok=True)
            write_json(self.file(sheet.experiment), sheet.to_json())
        except OSError as error:
            raise HowdahError(
                f"the baseline cannot be written: {explain(error)}",
                where=str(self.directory),
                hint="Choose another place with --baseline DIR.",
            ) from error

    def experiments(self) -> list[str]:
        """Return the names of all experiments that have a sheet."""
        return sorted(file.stem for file in self.directory.glob("*.json")) if self.directory.is_dir() else []
