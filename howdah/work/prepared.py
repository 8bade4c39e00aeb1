# SPDX-License-Identifier: Apache-2.0
"""From a profile to its finished runs: the steps that all commands that make runs share.

Compile, hold the experiment's directory, prepare the engine, name the cells, bring old results up to date, make what is
missing, write the index. Claims of earlier runs are removed first, so an interrupted experiment has none.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping, Sequence
from contextlib import ExitStack
from dataclasses import dataclass
from pathlib import Path

import numpy as np

from howdah.engine.engine import Engine
from howdah.engine.engine_bundle import Portable
from howdah.engine.registry import engine as find_engine
from howdah.engine.registry import keep
from howdah.errors import HowdahError
from howdah.number import counted
from howdah.plan.plan import Plan
from howdah.profile import Profile
from howdah.record.claims import CLAIMS_NAME
from howdah.record.directory import write_whole
from howdah.record.index import IndexedRun
from howdah.work.batch import Listener, run_queue
from howdah.work.compiled import Plans
from howdah.work.experiment import ExperimentDirectory
from howdah.work.job import Executor, Job, Outcome
from howdah.work.local import WORKER, LocalExecutor
from howdah.work.planned import Places, Prepared, Runs
from howdah.work.queue import RunQueue, Waiting, existing_outcome
from howdah.work.results import Tell, refresh_all, say
from howdah.work.sweep_memory import SweepMemory

Build = Callable[[str, int, int], None]  # a step of a build, parts done, parts in total (0: unknown)


def hold(path: Path, locks: ExitStack) -> ExperimentDirectory:
    """Open or create the experiment in a directory, hold it until ``locks`` closes, and remove leftovers in it.

    Raise HowdahError if another command holds it or it cannot be written.
    """
    experiment = ExperimentDirectory(path)
    experiment.create()
    locks.enter_context(experiment.locked())
    experiment.sweep_partial()
    return experiment


def prepare(
    experiment: ExperimentDirectory,
    profile: Profile,
    plans: Plans,
    build: Build,
    engines: dict[str, Engine] | None = None,
) -> Prepared:
    """Prepare the engines for these plans of a profile (a control may have its own engine), and write the profile to
    the held experiment.

    A caller of many experiments passes the ``engines`` it has prepared, by name; they use what they have built without
    looking for changes, and further ones are added. Without it all engines are new and notice edited sources.

    Raise EngineUnavailableError if an engine cannot run here, and HowdahError if something cannot be built.
    """
    known = {} if engines is None else engines
    by_engine: dict[str, list[Plan]] = {}
    for plan in plans.chosen.values():
        by_engine.setdefault(plan.engine, []).append(plan)
    needed = {name: known.get(name) or find_engine(name) for name in by_engine}
    identities = {name: engine.prepare(by_engine[name], build) for name, engine in needed.items()}
    for name, engine in needed.items():
        known[name] = engine
        keep(name, engine)
    write_whole(experiment.path / "profile.yaml", profile.text)
    (experiment.path / CLAIMS_NAME).unlink(missing_ok=True)
    parallel = all(engine.parallel for engine in needed.values())
    cells = Runs(plans, identities)
    return Prepared(experiment, profile, cells, parallel, cells.places, SweepMemory(experiment.path))


def make(
    prepared: Sequence[Prepared],
    workers: int,
    again: bool,
    listen: Listener,
    *,
    keep_going: bool = False,
    tell: Tell = say,
    executor: Executor | None = None,
) -> list[Outcome]:
    """Make the missing runs and return the outcomes in the order of the runs. Of runs whose plans are not kept, return
    only those with an error or an invalid run, up to MOST_NOTED.

    The ``executor`` makes the runs that other machines can make, if there is one; this machine makes the others,
    ``workers`` at a time.

    Existing runs are analysed again if the analysis has changed: those whose plans are kept before anything is made,
    the others when it is their turn. A run whose files differ from its digests has an error as its outcome; without
    ``keep_going`` nothing is made then. The indexes of the experiments are written however this ends.
    """
    for each in prepared:
        each.open()
    try:
        for each in prepared:
            each.write_index()  # if the command is killed, its finished runs are listed
        found = find_existing_runs(prepared, workers, again, tell)
        outcomes = list(found.refused)
        if outcomes and not keep_going:
            return outcomes
        batches = _batches(found.waiting, executor)
        for number, (place, some) in enumerate(batches):
            if number:
                if not keep_going and any(outcome.error for outcome in outcomes):
                    break
                tell(f"{sum(map(len, some))} runs are made on this machine")
            first = not number
            queue = RunQueue(some, found.there if first else [], known=found.known if first else 0, again=again)
            outcomes += run_queue(queue, place or LocalExecutor(workers, WORKER), listen, keep_going=keep_going)
    finally:
        for each in prepared:
            each.memory.settle()
            each.write_index()
            each.memory.close()
    order = {each.experiment.path: number for number, each in enumerate(prepared)}
    return sorted(outcomes, key=lambda outcome: (order[outcome.job.experiment.path], outcome.cell.number))


def _batches(waiting: list[Waiting], executor: Executor | None) -> list[tuple[Executor | None, list[Waiting]]]:
    """Return the runs for the executor and then those for this machine (None), without an empty batch."""
    if executor is None:
        return [(None, waiting)]
    divided = [_split_by_place(each) for each in waiting]
    batches = [(executor, [each for each, _ in divided]), (None, [each for _, each in divided])]
    return [batch for batch in batches if any(batch[1])] or batches[:1]


@dataclass(frozen=True)
class FoundRuns:
    """What exists of some experiments: runs that may have to be made, outcomes of existing runs, outcomes of runs whose
    results cannot be used, and how many further runs exist according to the memories."""

    waiting: list[Waiting]
    there: list[Outcome]
    refused: list[Outcome]
    known: int


def find_existing_runs(prepared: Sequence[Prepared], workers: int, again: bool, tell: Tell) -> FoundRuns:
    """Find out which runs of some experiments exist. Memories, where experiments have one, are open."""
    waiting_places: list[Places] = []
    jobs: list[Job] = []
    for each in prepared:
        known = () if again else (number for number, run in each.memory.runs() if _has_ended(run))
        places = _without(each.wanted, known, len(each.cells))
        if len(places) < len(each.wanted):
            tell(f"{counted(len(each.wanted) - len(places), 'run')} of {len(each.cells)} are there already")
        waiting_places.append(places)
        if not again:
            kept = np.array(sorted(each.cells.chosen), np.int32)
            jobs += [Job(each.experiment, each.cells.chosen[place]) for place in kept[np.isin(kept, places)].tolist()]
    refused = _bring_up_to_date(jobs, workers, tell)
    there = []
    for job in jobs:
        if id(job) not in refused:
            try:
                found = existing_outcome(job)
            except HowdahError as error:
                refused[id(job)] = error
            else:
                there += [found] if found is not None else []
    wrong = [Outcome(job, error=refused[id(job)]) for job in jobs if id(job) in refused]
    ended: dict[Path, list[int]] = {}
    for outcome in [*there, *wrong]:
        ended.setdefault(outcome.job.experiment.path, []).append(outcome.cell.number)
    waiting = [
        Waiting(each, _without(places, ended.get(each.experiment.path, []), len(each.cells)), each.cells.costs())
        for each, places in zip(prepared, waiting_places, strict=True)
    ]
    return FoundRuns(waiting, there, wrong, sum(len(each.wanted) for each in prepared) - sum(map(len, waiting_places)))


def _without(places: Places, others: Iterable[int], total: int) -> Places:
    gone = np.zeros(total, bool)
    gone[np.fromiter(others, np.int32)] = True
    return places[~gone[places]]


def _has_ended(run: IndexedRun) -> bool:
    return run.status == "finished" and run.verdict is not None


def _bring_up_to_date(jobs: Sequence[Job], workers: int, tell: Tell) -> dict[int, HowdahError]:
    """Analyse existing runs again if the analysis has changed. Return the errors of runs where that fails, by ``id`` of
    the job."""
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
    return refused


def _split_by_place(waiting: Waiting) -> tuple[Waiting, Waiting]:
    """Separate the runs that other machines can make from the others.

    Raise HowdahError if some of the others are in a sweep whose plans are not kept.
    """
    cells = waiting.prepared.cells
    examined = waiting.places.tolist() if cells.whole else list(cells.chosen)
    engines = {name: find_engine(name) for name in waiting.prepared.engines}
    local = {place: why for place in examined if (why := _why_local(cells[place].plan, engines)) is not None}
    if local and not cells.whole:
        raise HowdahError(
            f"some runs of this sweep can only be made on this machine: {next(iter(local.values()))}",
            hint="Put them into a profile of their own, or leave out --scheduler and --cluster.",
        )
    is_local = np.isin(waiting.places, list(local))
    return waiting.at(waiting.places[~is_local]), waiting.at(waiting.places[is_local])


def _why_local(plan: Plan, engines: Mapping[str, Engine]) -> str | None:
    """Return why no other machine can make the run, or None if one can."""
    engine = engines[plan.engine]
    if not isinstance(engine, Portable):
        return f"the engine {plan.engine} makes {plan.run} here"
    try:
        engine.check_portable(plan)
    except HowdahError as error:
        return error.what
    return None
