# SPDX-License-Identifier: Apache-2.0
"""The one way from a profile to its finished runs, for every command that makes runs.

Compile, hold the experiment's directory, prepare the engine, name the cells, bring old results up to date, make what is
missing, write the index. Claims of earlier runs are removed first, so an interrupted experiment has none.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from contextlib import ExitStack, suppress
from dataclasses import dataclass
from pathlib import Path

from howdah.engine.engine import Engine
from howdah.engine.engine_bundle import Portable
from howdah.engine.registry import engine as find_engine
from howdah.engine.registry import keep
from howdah.errors import HowdahError
from howdah.number import counted
from howdah.place import written
from howdah.plan.plan import Plan
from howdah.profile import Profile
from howdah.record.claims import CLAIMS_NAME
from howdah.record.digest import check, keeps_data
from howdah.record.directory import write_whole
from howdah.record.provenance import run_key
from howdah.record.run import read_record
from howdah.work.batch import WORKER, Job, Listener, Outcome, run_cells, run_queue
from howdah.work.experiment import ExperimentDirectory, PlannedRun
from howdah.work.job import Executor
from howdah.work.local import LocalExecutor
from howdah.work.long import LongPlans, LongQueue
from howdah.work.results import Tell, refresh_all, say

Build = Callable[[str, int, int], None]  # a step of a build, how far it is, of how much (0: not known)


@dataclass(frozen=True)
class Prepared:
    """An experiment whose engine is ready. ``parallel``: whether several of its runs may be made at once. A long sweep
    has no cells, but a queue that makes them."""

    experiment: ExperimentDirectory
    profile: Profile
    cells: list[PlannedRun]
    parallel: bool
    long: LongQueue | None = None

    @property
    def jobs(self) -> list[Job]:
        return [Job(self.experiment, cell) for cell in self.cells]

    @property
    def engines(self) -> list[str]:
        jobs = self.long.some if self.long is not None else self.jobs
        return list(dict.fromkeys(job.cell.plan.engine for job in jobs))

    def write_index(self) -> None:
        profile = self.profile
        about = (profile.text, written(profile.path), profile.description)
        rows, total = self.experiment.indexed(self.cells), None
        if self.long is not None:
            rows, total = self.long.rows(), self.long.total
        self.experiment.write_index(*about, rows, quick=profile.is_quick, axes=profile.axes, total=total)


def hold(path: Path, locks: ExitStack) -> ExperimentDirectory:
    """Open or create the experiment in a directory, hold it until ``locks`` closes, and remove leftovers in it.

    Raises HowdahError where another command holds it, or it cannot be written.
    """
    experiment = ExperimentDirectory(path)
    experiment.create()
    locks.enter_context(experiment.locked())
    experiment.sweep_partial()
    return experiment


def prepare(
    experiment: ExperimentDirectory,
    profile: Profile,
    plans: Sequence[Plan],
    build: Build,
    engines: dict[str, Engine] | None = None,
) -> Prepared:
    """Prepare the engines for these plans of a profile (a control may have its own engine), and write what the held
    experiment will be.

    ``engines`` are those that a caller of many experiments has prepared, by name, which take what they have built as it
    was; further ones are added. Without it all are new, and find what was edited since.

    Raises EngineUnavailableError where an engine cannot run here, and HowdahError where something cannot be built.
    """
    long = plans if isinstance(plans, LongPlans) else None
    plans = list(long.some.values()) if long is not None else plans
    known = {} if engines is None else engines
    needed = {name: known.get(name) or find_engine(name) for name in dict.fromkeys(plan.engine for plan in plans)}
    identities = {
        name: engine.prepare([plan for plan in plans if plan.engine == name], build) for name, engine in needed.items()
    }
    for name, engine in needed.items():
        known[name] = engine
        keep(name, engine)
    write_whole(experiment.path / "profile.yaml", profile.text)
    (experiment.path / CLAIMS_NAME).unlink(missing_ok=True)
    parallel = all(engine.parallel for engine in needed.values())
    if long is not None:
        return Prepared(experiment, profile, [], parallel, LongQueue(experiment, long, identities))
    cells = [
        PlannedRun(plan, run_key(plan.to_json(), identities[plan.engine]), keeps_data(profile.keep, plan.repetition))
        for plan in plans
    ]
    return Prepared(experiment, profile, cells, parallel)


def make(
    prepared: Sequence[Prepared],
    workers: int,
    again: bool,
    listen: Listener,
    *,
    jobs: Sequence[Job] | None = None,
    keep_going: bool = False,
    tell: Tell = say,
    executor: Executor | None = None,
) -> list[Outcome]:
    """Make the missing runs; return the outcomes in the order of ``jobs`` (default: all of ``prepared``).

    ``executor`` makes them. This machine makes the others, ``workers`` at a time: all without an executor, else those
    that no other machine can make.

    Existing runs are analysed again where the analysis has changed. A run whose files differ from its digests gets an
    error as its outcome; without ``keep_going`` nothing is made then. The indexes of the experiments are written
    however this ends.
    """
    if jobs is None and len(prepared) == 1 and prepared[0].long is not None:
        return _make_long(prepared[0], prepared[0].long, workers, again, listen, keep_going, tell, executor)
    if any(each.long is not None for each in prepared):
        raise HowdahError(
            "a sweep of more than 1000 runs must be made on its own, and as a whole",
            hint="Make it with 'howdah run', or split the profile.",
        )
    if jobs is None:
        jobs = [job for each in prepared for job in each.jobs]
    try:
        for each in prepared:
            each.write_index()  # a command that is killed leaves what it finished to be read
        refused = {} if again else _bring_up_to_date(jobs, workers, tell)
        outcomes = [Outcome(job, error=error) for job in jobs if (error := refused.get(id(job))) is not None]
        if outcomes and not keep_going:
            return outcomes
        rest = [job for job in jobs if id(job) not in refused]
        travelling, staying = _divided(rest) if executor is not None else ([], rest)
        if travelling:
            outcomes += run_cells(travelling, workers, again, listen, keep_going=keep_going, executor=executor)
        if not travelling or (staying and (keep_going or not any(outcome.error for outcome in outcomes))):
            if travelling:
                tell(f"{len(staying)} runs are made on this machine")
            outcomes += run_cells(staying, workers, again, listen, worker=WORKER, keep_going=keep_going)
    finally:
        for each in prepared:
            each.write_index()
    order = {id(job): position for position, job in enumerate(jobs)}
    return sorted(outcomes, key=lambda outcome: order[id(outcome.job)])


def _make_long(
    prepared: Prepared,
    long: LongQueue,
    workers: int,
    again: bool,
    listen: Listener,
    keep_going: bool,
    tell: Tell,
    executor: Executor | None,
) -> list[Outcome]:
    """``make`` of a long sweep; return the first outcomes that are errors or invalid.

    ``executor`` makes all of it, or this machine.
    """
    there = long.begin(again)
    if there:
        tell(f"{counted(there, 'run')} of {long.total} are there already")
    if executor is not None and _divided(long.some)[1]:
        raise HowdahError(
            "some runs of this sweep can only be made on this machine",
            hint="Make a profile of them of their own, or leave out --scheduler and --cluster.",
        )
    try:
        prepared.write_index()
        return run_queue(long, executor or LocalExecutor(workers, WORKER), listen, keep_going=keep_going) + long.noted
    finally:
        long.memory.settle()
        prepared.write_index()
        long.memory.close()


def _divided(jobs: Sequence[Job]) -> tuple[list[Job], list[Job]]:
    """Separate the jobs whose runs other machines can make from the others."""
    engines = {name: find_engine(name) for name in {job.cell.plan.engine for job in jobs}}
    found: tuple[list[Job], list[Job]] = [], []
    for job in jobs:
        engine, stays = engines[job.cell.plan.engine], True
        if isinstance(engine, Portable):
            with suppress(HowdahError):
                engine.check_portable(job.cell.plan)
                stays = False
        found[stays].append(job)
    return found


def _bring_up_to_date(jobs: Sequence[Job], workers: int, tell: Tell) -> dict[int, HowdahError]:
    """Refresh existing runs; return the errors of runs whose results cannot be used, by ``id`` of their jobs."""
    there = {run.path: (run, job) for job in jobs if (run := job.experiment.finished(job.cell)) is not None}
    refused: dict[int, HowdahError] = {}
    for run, error in refresh_all([run for run, _ in there.values()], workers):
        if run is None:
            continue
        job = there[run.path][1]
        if error is None:
            tell(f"  ~ {job.name}  analysed again")
        else:
            refused[id(job)] = error
    for run, job in there.values():
        try:
            check(run, read_record(run), [run.plan, run.metrics, run.verdict])
        except HowdahError as error:
            refused.setdefault(id(job), error)
    return refused
