# SPDX-License-Identifier: Apache-2.0
"""The runs of a validation: the profile once on each engine, and what they say of each of its points."""

from __future__ import annotations

import re
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from howdah.command.progress import Display
from howdah.engine.engine import engine as find_engine
from howdah.errors import HowdahError
from howdah.plan.compile import compile_plan
from howdah.plan.plan import Plan
from howdah.profile import Profile
from howdah.run.batch import Job, Outcome, run_cells
from howdah.run.directory import RunDirectory, read_json
from howdah.run.experiment import Cell, Experiment
from howdah.run.provenance import run_key
from howdah.run.retention import keeps_data
from howdah.run.stage import refresh
from howdah.validate.comparison import Point, Side, compare, measures_of

_VERSION = re.compile(r"\b\d+\.\d+\.\d+")
FAILED = "failed"


@dataclass(frozen=True)
class Candidate:
    """One side of a validation: an engine, and the profile as that side runs it."""

    engine: str
    profile: Profile


@dataclass(frozen=True)
class _Prepared:
    experiment: Experiment
    cells: list[Cell]


def validate(
    candidates: tuple[Candidate, Candidate],
    runs: Path,
    display: Display,
    *,
    kernel: str | None = None,
    jobs: int,
    again: bool = False,
) -> list[Point]:
    """Make what is missing of both sides and compare every run of the one with that of the other.

    A run that fails makes its point a problem and stops no other. Raises HowdahError where nothing can be run, or the
    two profiles do not have the same points.
    """
    plans = [
        [compile_plan(cell, engine=each.engine, kernel=kernel) for cell in each.profile.cells()] for each in candidates
    ]
    if [_place(plan) for plan in plans[0]] != [_place(plan) for plan in plans[1]]:
        raise HowdahError("the two sides have different points, so there is nothing to compare")
    made = [_make(each, own, runs, display, jobs, again) for each, own in zip(candidates, plans, strict=True)]
    points = []
    for number, plan in enumerate(plans[0]):
        first, second = (side[number] for side in made)
        points.append(compare(plan.run, plan.algorithm, _path(plan), first, second))
    return points


def _place(plan: Plan) -> tuple[str, str, int]:
    return plan.run, plan.algorithm, plan.repetition


def _path(plan: Plan) -> str:
    path = plan.path
    return f"{path.rate_bits_per_second / 1e6:g} Mbit/s, {path.rtt_us / 1e3:g} ms, {path.buffer_bytes} bytes"


def _make(
    candidate: Candidate, plans: Sequence[Plan], runs: Path, display: Display, jobs: int, again: bool
) -> list[Side]:
    engine = find_engine(candidate.engine)
    profile = candidate.profile
    experiment = Experiment(runs / f"{profile.name}-{engine.name}")
    experiment.create()
    with experiment.locked():
        experiment.sweep_partial()
        identity = engine.prepare(plans, display.build)
        cells = [
            Cell(plan, run_key(plan.to_json(), identity), keeps_data(profile.keep, plan.repetition)) for plan in plans
        ]
        (experiment.path / "profile.yaml").write_text(profile.text, encoding="utf-8")
        display.say(f"{experiment.path.name}: {len(cells)} runs, engine {engine.name}")
        if not again:
            _analyse_again(experiment, cells)
        try:
            workers = jobs if engine.parallel else 1
            outcomes = run_cells(
                [Job(experiment, cell) for cell in cells], workers, again, display.batch, keep_going=True
            )
        finally:
            about = (profile.text, str(profile.path), profile.description)
            experiment.write_index(*about, cells, quick=profile.is_quick, axes=profile.axes)
        return [_side(candidate.engine, experiment, outcome) for outcome in outcomes]


def _analyse_again(experiment: Experiment, cells: Sequence[Cell]) -> None:
    """Both sides by today's analysis: else the comparison would be one of our own code."""
    for cell in cells:
        finished = experiment.finished(cell)
        if finished is not None:
            refresh(finished)


def _side(engine: str, experiment: Experiment, outcome: Outcome) -> Side:
    if outcome.error is not None:
        return Side(engine, FAILED, "", outcome.wall_s, problem=outcome.error.what)
    run = RunDirectory(experiment.path / outcome.cell.directory_name)
    record = read_json(run.provenance)
    verdict = read_json(run.verdict)
    wrong = [check["message"] for check in verdict["checks"] if check["ok"] is False]
    return Side(
        engine=engine,
        verdict=verdict["verdict"],
        kernel=_kernel(record),
        wall_s=record["wall_s"],
        measures=measures_of(read_json(run.metrics)["rows"]),
        problem=f"{verdict['verdict']}: {wrong[0]}" if wrong else None,
    )


def _kernel(record: dict[str, Any]) -> str:
    """The kernel's version. Debian's release names do not always say it, its package versions do."""
    kernel = record.get("kernel") or {}
    said = _VERSION.findall(str(kernel.get("source", "")))
    return said[-1] if said else str(kernel.get("release", "unknown"))
