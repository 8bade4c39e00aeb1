# SPDX-License-Identifier: Apache-2.0
"""The runs of a validation: the profile once on each engine, and what they say of each of its points."""

from __future__ import annotations

import re
from contextlib import ExitStack
from dataclasses import dataclass
from pathlib import Path

from howdah.errors import HowdahError
from howdah.number import counted
from howdah.plan.plan import Plan
from howdah.profile import Profile
from howdah.record.result import Run
from howdah.record.run import KernelOrigin
from howdah.validate.comparison import ComparedPoint, Side, compare, measures_of
from howdah.work.batch import Outcome
from howdah.work.compiled import Plans, compile_plans
from howdah.work.display import Display
from howdah.work.job import Executor
from howdah.work.prepared import hold, make, prepare
from howdah.work.results import read_results

_VERSION = re.compile(r"\b\d+\.\d+\.\d+")
FAILED = "failed"


@dataclass(frozen=True)
class Candidate:
    """One side of a validation: an engine, and the profile as that side runs it."""

    engine: str
    profile: Profile


def validate(
    candidates: tuple[Candidate, Candidate],
    runs: Path,
    display: Display,
    *,
    kernel: str | None = None,
    jobs: int,
    again: bool = False,
    executor: Executor | None = None,
) -> list[ComparedPoint]:
    """Make what is missing of both sides and compare every run of the one with that of the other.

    A run that fails makes its point a problem and stops no other. Raises HowdahError where nothing can be run, or the
    two profiles do not have the same points.
    """
    plans = [compile_plans(each.profile, engine=each.engine, kernel=kernel) for each in candidates]
    if [_place(plan) for plan in plans[0]] != [_place(plan) for plan in plans[1]]:
        raise HowdahError("the two sides have different points, so there is nothing to compare")
    made = [_make(each, own, runs, display, jobs, again, executor) for each, own in zip(candidates, plans, strict=True)]
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
    candidate: Candidate,
    plans: Plans,
    runs: Path,
    display: Display,
    jobs: int,
    again: bool,
    executor: Executor | None,
) -> list[Side]:
    profile = candidate.profile
    with ExitStack() as locks:
        experiment = hold(runs / f"{profile.name}-{candidate.engine}", locks)
        prepared = prepare(experiment, profile, plans, display.build)
        display.say(f"{experiment.path.name}: {counted(len(plans), 'run')}, engine {candidate.engine}")
        workers = jobs if prepared.parallel else 1
        outcomes = make([prepared], workers, again, display.batch, keep_going=True, tell=display.say, executor=executor)
        read = {run.name: run for run in read_results(experiment.path).runs}
        return [_side(candidate.engine, outcome, read.get(outcome.cell.directory_name)) for outcome in outcomes]


def _side(engine: str, outcome: Outcome, run: Run | None) -> Side:
    if outcome.error is not None or run is None or run.verdict is None:
        problem = outcome.error.what if outcome.error is not None else "the run is missing"
        return Side(engine, FAILED, "", outcome.wall_s, problem=problem)
    return Side(
        engine=engine,
        verdict=run.verdict.verdict,
        kernel=_kernel(run.provenance.kernel),
        wall_s=run.provenance.wall_s or 0.0,
        measures=measures_of([*run.metrics, *run.connections().rows()]),
        problem=f"{run.verdict.verdict}: {run.broken[0].message}" if run.broken else None,
    )


def _kernel(kernel: KernelOrigin) -> str:
    """The kernel's version. Debian's release names do not always say it, its package versions do."""
    said: list[str] = _VERSION.findall(kernel.source or "")
    return said[-1] if said else kernel.release or "unknown"
