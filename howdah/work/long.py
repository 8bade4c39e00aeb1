# SPDX-License-Identifier: Apache-2.0
"""Makes a long sweep run by run: compiles a plan when its run starts, and drops it when that has ended.

Keeps some 20 bytes for each run: its place in the order, and its cost.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator
from contextlib import suppress
from dataclasses import replace
from functools import cached_property
from pathlib import Path
from typing import Any

import numpy as np

from howdah.errors import HowdahError
from howdah.plan.compile import compile_plan
from howdah.plan.plan import Plan
from howdah.profile import Profile
from howdah.profile.profile import LongCells
from howdah.profile.sweep import Computed
from howdah.record.closure import remembered_sha256
from howdah.record.digest import check, keeps_data
from howdah.record.directory import RunDirectory
from howdah.record.index import PENDING, IndexedRun
from howdah.record.provenance import agent_sha256, analysis_sha256, run_key, sha256_text
from howdah.record.run import read_record
from howdah.record.verdict import read_verdict
from howdah.work.cost import expected_core_s
from howdah.work.experiment import ExperimentDirectory, PlannedRun, indexed
from howdah.work.job import Job, Outcome, Past
from howdah.work.stage import is_current, refresh
from howdah.work.sweep_memory import Read, SweepMemory

MOST_NOTED = 1000  # outcomes that are not as they should be


class LongPlans(Computed[Plan]):
    """The plans of a long sweep. ``some`` has those of the points that stand for all, by the places of their cells."""

    def __init__(self, profile: Profile, cells: LongCells, engine: str | None, kernel: str | None) -> None:
        self.profile, self.cells = profile, cells
        self._engine, self._kernel = engine, kernel

    def __len__(self) -> int:
        return len(self.cells)

    def at(self, index: int) -> Plan:
        return compile_plan(self.cells[index], self._engine, self._kernel)

    @cached_property
    def some(self) -> dict[int, Plan]:
        return {place: self[place] for place in self.cells.some}

    def costs(self) -> np.ndarray[tuple[int], np.dtype[np.float32]]:
        """Expected core seconds of each run, of those that stand for all: a point costs what the first one costs, times
        the factor that each of its values makes there. Right where the factors are independent, which they nearly are:
        bits are rate times duration."""
        known = {place: expected_core_s(plan) for place, plan in self.some.items()}
        found = np.empty(len(self), np.float32)
        begin = 0
        for number, (points, repetitions) in enumerate(self.cells.parts):
            parts = self.cells.sweep.parts
            lines = parts[number].lines if number < len(parts) else []
            costs = np.array([known[self.cells.first_of(number, 0)]] if points and lines else [], np.float32)
            for line in lines:
                base = known[self.cells.first_of(number, 0)]
                factors = [known[self.cells.first_of(number, point)] / base for point in line]
                costs = np.multiply.outer(costs, np.array(factors, np.float32)).ravel()
            if not lines:
                costs = np.array([known[self.cells.first_of(number, point)] for point in range(points)], np.float32)
            found[begin : begin + points * repetitions] = np.repeat(costs, repetitions)
            begin += points * repetitions
        return found


def needs(plan: Plan) -> set[tuple[str, ...]]:
    """What the engine must prepare for a plan."""
    modules = {("module", *plan.kernels, name) for name in (*plan.modules, *(plan.required_modules or ()))}
    modules |= {("module build", path, str(build)) for path, build in plan.module_builds.items()}
    return {("engine", plan.engine), *(("kernel", name) for name in plan.kernels), *modules} | (
        {("profiled",)} if plan.collect.cpu else set()
    )


class LongQueue:
    """The queue of one long sweep. ``identities`` are those of the engines, for the plans that stand for all.

    The longest runs come first. What is there is found as their turn comes, or by the sweep's memory before.
    """

    experiments = 1
    planned = False

    def __init__(
        self, experiment: ExperimentDirectory, plans: LongPlans, identities: dict[str, dict[str, Any]]
    ) -> None:
        self.experiment, self.plans, self._identities = experiment, plans, identities
        self._needs = set().union(*(needs(plan) for plan in plans.some.values()))
        self._keep = plans.profile.keep
        self.total = len(plans)
        self.memory = SweepMemory(experiment.path, self._recipe())
        self.again = False
        self.past = Past()
        self.noted: list[Outcome] = []
        self.verdicts: Counter[str] = Counter()
        self._order: np.ndarray[tuple[int], np.dtype[np.int32]] = np.empty(0, np.int32)
        self._costs = plans.costs()
        self._next = 0
        self.waiting_core_s = 0.0

    def _recipe(self) -> str:
        """What all keys depend on. Files that plans are made of show in the plans that stand for all."""
        profile = self.plans.profile
        keys = [self.cell(place, plan).key for place, plan in self.plans.some.items()]
        code = remembered_sha256(["howdah.plan.compile", "howdah.profile.load"])
        parts = [profile.text, str(profile.path.resolve()), str(self.total), code, agent_sha256(), analysis_sha256()]
        return sha256_text("\0".join([*parts, self._keep, repr(sorted(self._identities.items())), *keys]))

    def cell(self, place: int, plan: Plan | None = None) -> PlannedRun:
        plan = plan or self.plans[place]
        key = run_key(plan.to_json(), self._identities[plan.engine])
        return PlannedRun(plan, key, keeps_data(self._keep, plan.repetition), number=place)

    @property
    def some(self) -> list[Job]:
        """Jobs that together need everything that any job needs."""
        return [Job(self.experiment, self.cell(place, plan)) for place, plan in self.plans.some.items()]

    @property
    def paths(self) -> set[Path]:
        return {self.experiment.path}

    def begin(self, again: bool) -> int:
        """Find what is there; the number of runs that the memory has."""
        self.again = again
        self.memory.open()
        known = np.zeros(self.total, bool)
        for number, run in self.memory.runs():
            if not again and run.status == "finished" and run.verdict is not None:
                known[number] = True
                self.verdicts[run.verdict] += 1
        order = np.argsort(-self._costs, kind="stable").astype(np.int32)
        self._order = order[~known[order]]
        self._next = 0
        self.waiting_core_s = float(self._costs[self._order].sum(dtype=np.float64))
        self.past.count = self.past.reused = self.total - len(self._order)
        return self.past.count

    def __len__(self) -> int:
        """The number of jobs that wait."""
        return len(self._order) - self._next

    def take(self) -> Job | Outcome:
        """The next job, or its outcome where its run is there or cannot be made."""
        place = int(self._order[self._next])
        self._next += 1
        self.waiting_core_s = max(self.waiting_core_s - float(self._costs[place]), 0.0)
        job = None
        try:
            job = Job(self.experiment, self.cell(place))
            lacking = needs(job.cell.plan) - self._needs
            if lacking:
                raise HowdahError(
                    f"{job.name} needs what no value of the sweep needs by itself: {sorted(lacking)}",
                    hint="Split the profile: a sweep of at most 1000 runs is planned whole before it is made.",
                )
            return self._there(job) or job
        except HowdahError as error:
            return Outcome(job or self._unplanned(place), error=error)

    def _unplanned(self, place: int) -> Job:
        """The job of a point that cannot be compiled: it has the point's name and the plan of another one."""
        run, axes = self.plans.cells.name(place)
        return Job(self.experiment, PlannedRun(replace(self.plans.some[0], run=run, axes=axes), "", number=place))

    def _there(self, job: Job) -> Outcome | None:
        run = None if self.again else self.experiment.finished(job.cell)
        if run is None:
            return None
        refresh(run)
        check(run, read_record(run), [run.plan, run.metrics, run.verdict])
        verdict = read_verdict(run).verdict
        if verdict == "invalid" and not job.cell.plan.traits.virtual_clock:
            return None
        return Outcome(job, verdict=verdict, reused=True)

    def settle(self, outcomes: list[Outcome]) -> list[Outcome]:
        """Take outcomes that were reported; returns those that the caller keeps."""
        for outcome in outcomes:
            self.past.add(outcome)
            run = RunDirectory(self.experiment.path / outcome.cell.directory_name)
            if outcome.verdict is not None:
                self.verdicts[outcome.verdict] += 1
                self.memory.add(outcome.cell.number, run, _reader(run, outcome.cell))
            if (outcome.error is not None or outcome.verdict == "invalid") and len(self.noted) < MOST_NOTED:
                self.noted.append(outcome)
        self.memory.flush()
        return []

    def rows(self) -> Iterator[IndexedRun]:
        """The rows of experiment.json for the runs that ended."""
        return (run for _, run in self.memory.runs())


def _reader(run: RunDirectory, cell: PlannedRun) -> Read:
    """A function that reads a run that ended and keeps no plan alive."""
    plan = cell.plan
    about = indexed(cell, PENDING, None)
    repeatable = plan.traits.virtual_clock

    def read() -> IndexedRun | None:
        with suppress(HowdahError, FileNotFoundError):
            record = read_record(run)
            check(run, record, [run.plan, run.metrics, run.verdict])
            verdict = read_verdict(run).verdict if run.verdict.exists() else None
            status = record.status
            if is_current(record) and (repeatable or verdict != "invalid"):
                return about.model_copy(update={"status": status, "verdict": verdict})
        return None

    return read
