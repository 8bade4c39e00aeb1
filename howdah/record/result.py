# SPDX-License-Identifier: Apache-2.0
"""An experiment as later stages read it: every run with whatever exists of it."""

from __future__ import annotations

import sys
from collections.abc import Callable, Container
from dataclasses import dataclass, field, replace
from datetime import datetime
from pathlib import Path
from typing import Any

import pyarrow as pa

from howdah.errors import HowdahError, RecordError
from howdah.plan.plan import Plan
from howdah.record.connections import Connections, read_connections
from howdah.record.digest import check
from howdah.record.directory import RunDirectory
from howdah.record.index import IndexedRun, ProfileSource, read_index
from howdah.record.metrics import CrossCheck, MetricRow, Metrics, read_metrics
from howdah.record.model import Scalar
from howdah.record.reading import read_plan_file
from howdah.record.run import RunRecord, TreeOrigin, read_record
from howdah.record.schema import TABLES
from howdah.record.table import check_columns, open_table, read_columns
from howdah.record.verdict import Check, Verdict, read_verdict

# Axes that have their own label; the others name the sweep point.
_OWN_LABEL = {"algorithm", "algorithms", "flows.algorithm", "repetition", "repetitions"}


@dataclass(frozen=True)
class Run:
    """One run. A failed run may lack a plan, tables, metrics or a verdict; ``problem`` then says why."""

    directory: RunDirectory
    experiment: str
    algorithm: str
    repetition: int
    axes: dict[str, Scalar]
    status: str
    plan: Plan | None
    metrics: list[MetricRow]
    cross_checks: list[CrossCheck]
    verdict: Verdict | None
    provenance: RunRecord
    problem: str | None = None
    likely_kernel: str | None = (
        None  # release that other runs of the experiment had by the same name, see _with_kernels
    )

    @property
    def name(self) -> str:
        return self.directory.name

    @property
    def verdict_name(self) -> str:
        """The verdict; the status (``failed``) of a run that did not finish; ``unjudged`` without a verdict."""
        if self.status != "finished":
            return self.status
        return self.verdict.verdict if self.verdict else "unjudged"

    @property
    def counts(self) -> bool:
        """Whether the run's measures may enter a summary."""
        return self.status == "finished" and self.verdict_name in ("pass", "fail", "unjudged")

    @property
    def data_kept(self) -> bool:
        """Whether the run still has tables; False if the profile keeps only its results."""
        return not self.provenance.data_removed

    @property
    def kernel(self) -> str:
        """The kernel's release; if the run failed before it was known, that of its siblings, else the name in its
        plan."""
        return str(self.release or self.likely_kernel or (self.plan.kernel if self.plan else "unknown"))

    @property
    def release(self) -> str | None:
        """The release of the kernel that ran, from run.json."""
        return self.provenance.kernel.release or None

    @property
    def point(self) -> str:
        """The sweep point in one line, without the algorithm: ``path.rate=100000000, receiver=freebsd``."""
        return ", ".join(f"{key}={value}" for key, value in self.place.items())

    @property
    def place(self) -> dict[str, Scalar]:
        """The sweep point without the algorithm, as values by field."""
        return {key: value for key, value in sorted(self.axes.items()) if key not in _OWN_LABEL}

    def connections(self) -> Connections:
        """Read the measures of each connection in groups, which ``metrics`` lacks.

        Raise MismatchError if the file is not the one recorded in run.json, RecordError if it is damaged.
        """
        return read_connections(self.directory, self.provenance, self.plan)

    @property
    def started_s(self) -> float:
        """Host time of the start, in seconds since 1970; published virtual times are relative to it."""
        return _seconds(self.provenance.started)

    def table(self, name: str) -> pa.Table | None:
        """A table, or None if the run has none of that name or no row in it.

        Raise MismatchError if it is not the one recorded in run.json.
        """
        file = self.directory.table(name)
        check(self.directory, self.provenance, [file])
        try:
            with open_table(file, name) as parquet:
                check_columns(parquet.schema_arrow, name, file)
                table = read_columns(parquet, TABLES[name].names)
        except FileNotFoundError:
            return None
        return table if table.num_rows else None

    @property
    def checks(self) -> list[Check]:
        return self.verdict.checks if self.verdict else []

    @property
    def broken(self) -> list[Check]:
        return self.verdict.broken if self.verdict else []

    def ordered_checks(self) -> list[Check]:
        """The checks: broken ones first, then those that could not be made, then those that hold."""
        return sorted(self.checks, key=lambda check: (False, None, True).index(check.ok))


@dataclass(frozen=True)
class Experiment:
    """A named list of runs. ``pending`` names the cells without a run directory."""

    path: Path
    name: str
    description: str
    profile: ProfileSource
    created: str
    runs: list[Run]
    pending: list[str] = field(default_factory=list)


def _seconds(text: object) -> float:
    if isinstance(text, int | float):
        return float(text)
    if isinstance(text, str):
        try:
            return datetime.fromisoformat(text).timestamp()
        except ValueError:
            return 0.0
    return 0.0


def load_run(path: Path, experiment: str, cell: IndexedRun | None = None) -> Run:
    """Read one run directory; ``cell`` is its row in experiment.json, used for runs without a plan.

    Raise MismatchError if a file is not the one recorded in run.json.
    """
    directory = RunDirectory(path)
    cell = cell or IndexedRun(run=directory.name)
    record, status = RunRecord(status="running"), cell.status
    if directory.provenance.exists():
        record = read_record(directory)
        status = record.status
    check(directory, record, [directory.plan, directory.metrics, directory.verdict])
    plan, problem = None, record.error
    if directory.plan.exists():
        try:
            plan = read_plan_file(directory.plan)
        except RecordError as error:
            status, problem = "failed", f"plan.json cannot be read: {error.what}"
    elif not problem:
        problem = "the run has no plan.json"
    measured = read_metrics(directory, plan) if directory.metrics.exists() else Metrics()
    return Run(
        directory=directory,
        experiment=experiment,
        algorithm=plan.algorithm if plan else cell.algorithm or "unknown",
        repetition=plan.repetition if plan else cell.repetition,
        axes=plan.axes if plan else dict(cell.axes),
        status=status,
        plan=plan,
        metrics=measured.rows,
        cross_checks=measured.cross_checks,
        verdict=read_verdict(directory) if directory.verdict.exists() else None,
        provenance=record,
        problem=str(problem) if problem else None,
    )


def load_experiment(
    path: Path, *, only: Container[str] | None = None, kept: Callable[[Run], Run] | None = None
) -> Experiment:
    """Read an experiment directory, or a single run directory as an experiment of one run.

    ``only`` names the runs to read; ``kept`` reduces each run to what is to be kept of it. Raise HowdahError if the
    directory is neither.
    """
    index_file = path / "experiment.json"
    if index_file.exists():
        index = read_index(index_file)
        name = index.name or path.name
        runs, pending = [], []
        for cell in index.cells:
            directory = path / cell.run
            if only is not None and directory.name not in only:
                continue
            if directory.is_dir():
                run = load_run(directory, name, cell)
                runs.append(kept(run) if kept else run)
            else:
                pending.append(cell.run)
        return Experiment(
            path=path,
            name=name,
            description=index.description or "",
            profile=index.profile,
            created=index.created,
            runs=_with_kernels(runs),
            pending=pending,
        )
    if (path / "plan.json").exists():
        name = path.parent.name if (path.parent / "experiment.json").exists() else path.name
        run = load_run(path, name)
        return Experiment(
            path=path,
            name=name,
            description="",
            profile=ProfileSource(file=run.plan.profile if run.plan else ""),
            created=run.provenance.started or "",
            runs=[kept(run) if kept else run],
        )
    raise HowdahError(
        "this directory is neither an experiment nor a run: it has no experiment.json and no plan.json",
        where=str(path),
        hint="'howdah list runs' shows what is there.",
    )


def _with_kernels(runs: list[Run]) -> list[Run]:
    """Give a run that failed early the kernel of other runs that asked for the same, so that one kernel has one
    label."""
    releases: dict[tuple[object, ...], set[str]] = {}
    for run in runs:
        if run.plan and run.release:
            releases.setdefault(_kernel_asked(run.plan), set()).add(run.release)
    found = []
    for run in runs:
        known = releases.get(_kernel_asked(run.plan), set()) if run.plan and not run.release else set()
        found.append(replace(run, likely_kernel=next(iter(known))) if len(known) == 1 else run)
    return found


def _kernel_asked(plan: Plan) -> tuple[object, ...]:
    return plan.engine, *plan.kernels, plan.own_kernel, *sorted((plan.machine_kernels or {}).items())


def without_controls(experiments: list[Experiment]) -> list[Experiment]:
    """The experiments without runs of controls and of unknowns, which only claims show, and figures that name them; an
    experiment that has only such runs stays as it is."""
    found = []
    for experiment in experiments:
        runs = [run for run in experiment.runs if not {"control", "unknown"} & run.axes.keys()]
        found.append(replace(experiment, runs=runs) if runs else experiment)
    return found


_SHARED = {"kernel", "modules", "confinement", "stacks", "howdah", "host", "algorithms", "extensions"}
_parts: dict[str, Any] = {}
_WORDS = ("metric", "value", "unit", "group", "role", "algorithm", "receiver", "why")
_KEPT = ("tables/", "connections.parquet")  # files that are read on demand


def brief(run: Run) -> Run:
    """The run without the plan's operations, the checks that hold, and all digests except those of tables. Equal words
    and equal parts of run.json are shared between runs."""
    record = run.provenance
    kept = {name: _shared(getattr(record, name)) for name in _SHARED & record.model_fields_set}
    if record.digests is not None:
        kept["digests"] = {sys.intern(name): each for name, each in record.digests.items() if name.startswith(_KEPT)}
    if record.guest_tree is not None:
        kept["guest_tree"] = _shared(TreeOrigin(sha256=record.guest_tree.sha256))
    verdict = run.verdict
    if verdict is not None:
        verdict = verdict.model_copy(update={"checks": [check for check in verdict.checks if check.ok is not True]})
    return replace(
        run,
        plan=replace(run.plan, operations=[]) if run.plan else None,
        metrics=[replace(row, **{name: _once(getattr(row, name)) for name in _WORDS}) for row in run.metrics],
        cross_checks=[],
        verdict=verdict,
        provenance=record.replaced(**kept),
    )


def _shared(part: Any) -> Any:
    return _parts.setdefault(repr(part), part)


def _once(value: Any) -> Any:
    return sys.intern(value) if isinstance(value, str) else value
