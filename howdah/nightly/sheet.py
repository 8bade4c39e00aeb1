# SPDX-License-Identifier: Apache-2.0
"""What stays of an experiment to compare with: every measure of every repetition of every cell, and how it was made."""

from __future__ import annotations

from dataclasses import asdict, dataclass, field
from pathlib import Path
from typing import Any

from howdah.nightly.effect import LEFT_OUT
from howdah.nightly.suite import Series, slug_of
from howdah.publish.experiment import Run, load_experiment
from howdah.run.provenance import now, software

FORMAT = 1
Value = float | str | None


@dataclass
class Repetition:
    """One run. ``metrics`` by ``measure`` or ``measure@flow``; None where a valid run has no such value."""

    verdict: str
    seed: int | None
    metrics: dict[str, Value] = field(default_factory=dict)
    why: str = ""

    @property
    def counts(self) -> bool:
        return self.verdict in ("pass", "fail", "unjudged")


@dataclass
class CellSheet:
    """One cell of the matrix: ``axes`` without the repetition, ``plan`` what tells that it is still the same."""

    axes: dict[str, Any]
    algorithm: str
    receiver: str
    plan: str = ""
    repetitions: dict[int, Repetition] = field(default_factory=dict)


@dataclass
class Sheet:
    """One experiment. ``problem`` says why it could not be prepared: its kernel does not build, for example."""

    experiment: str
    item: str
    kernel: str
    made: str
    howdah: dict[str, Any]
    release: str = ""
    image: str = ""
    problem: str | None = None
    units: dict[str, str] = field(default_factory=dict)
    cells: dict[str, CellSheet] = field(default_factory=dict)

    def to_json(self) -> dict[str, Any]:
        return {"format": FORMAT, **asdict(self)}

    @staticmethod
    def from_json(data: Any) -> Sheet:
        """Raises ValueError, KeyError or TypeError where this is no sheet of this format."""
        if not isinstance(data, dict) or data.get("format") != FORMAT:
            raise ValueError(f"expected format {FORMAT}")
        fields = {name: value for name, value in data.items() if name not in ("format", "cells")}
        sheet = Sheet(**fields)
        for slug, cell in data["cells"].items():
            repetitions = {int(number): Repetition(**each) for number, each in cell.pop("repetitions").items()}
            sheet.cells[slug] = CellSheet(**cell, repetitions=repetitions)
        return sheet


def empty_sheet(series: Series, problem: str | None = None) -> Sheet:
    return Sheet(series.name, series.item, series.kernel, now(), software(), problem=problem)


def read_experiment(series: Series, directory: Path, cells: set[str] | None = None) -> Sheet:
    """The sheet of an experiment that was run; ``cells`` are the slugs wanted, None for all."""
    sheet = empty_sheet(series)
    experiment = load_experiment(directory)
    for run in experiment.runs:
        if run.plan is None:
            continue
        slug = slug_of(run.plan.run)
        if cells is not None and slug not in cells:
            continue
        kernel = run.provenance.get("kernel") or {}
        sheet.release = str(kernel.get("release") or sheet.release)
        sheet.image = str(kernel.get("image_sha256") or sheet.image)
        receiver = next((str(row["receiver"]) for row in run.metrics if row.get("receiver")), "linux")
        cell = sheet.cells.setdefault(slug, CellSheet(run.axes, run.algorithm, receiver))
        if run.repetition == 0:
            cell.plan = str(run.provenance.get("plan_sha256") or "")
        cell.repetitions[run.repetition] = _repetition(run, series, sheet.units)
    return sheet


def _repetition(run: Run, series: Series, units: dict[str, str]) -> Repetition:
    found = Repetition(run.verdict_name, run.plan.seed if run.plan else None, why=_why(run))
    if not run.counts:
        return found
    for row in run.metrics:
        name = str(row["metric"])
        if name in LEFT_OUT or not series.compares(name) or (row["flow"] is not None and row.get("group")):
            continue
        units[name] = str(row.get("unit") or "")
        of = row.get("group") if row["flow"] is None else row["flow"] + 1
        value = row["value"]
        found.metrics[name if of is None else f"{name}@{of}"] = (
            value if value is None or isinstance(value, str) else float(value)
        )
    return found


def _why(run: Run) -> str:
    """Why a run does not count."""
    if run.counts:
        return ""
    if run.problem:
        return run.problem
    broken = [str(check["message"]) for check in run.ordered_checks() if check.get("ok") is False]
    return broken[0] if broken else ""
