# SPDX-License-Identifier: Apache-2.0
"""All runs of the atlas as one queue over the machine's cores; then claims and report of each experiment."""

from __future__ import annotations

import time
from collections.abc import Iterable
from concurrent.futures import ProcessPoolExecutor
from contextlib import ExitStack
from dataclasses import dataclass
from pathlib import Path

from howdah.atlas.chapter import Chapter
from howdah.atlas.published import publish
from howdah.atlas.record import Sitting
from howdah.claim.claims import judge_claims
from howdah.command.progress import Display
from howdah.engine.engine import engine as find_engine
from howdah.errors import HowdahError
from howdah.plan.compile import compile_plan
from howdah.report import report
from howdah.run.batch import Job, Outcome, Rest, Work, run_cells
from howdah.run.experiment import Cell, Experiment
from howdah.run.provenance import run_key
from howdah.run.retention import keeps_data


@dataclass
class _Prepared:
    chapter: Chapter
    experiment: Experiment
    cells: list[Cell]

    def write_index(self) -> None:
        profile = self.chapter.profile
        self.experiment.write_index(
            profile.text,
            str(profile.path),
            profile.description,
            self.cells,
            quick=profile.is_quick,
            axes=profile.axes,
        )


def make(chapters: list[Chapter], workers: int, again: bool, display: Display, sitting: Sitting) -> None:
    """Make every run that is not there yet and fill in ``sitting``; what went wrong goes to the chapters' ``problems``.

    A profile that cannot be prepared or a run that fails does not stop the others; a full disk, which every run would
    meet, stops the queue. On KeyboardInterrupt whatever has finished is kept and in its experiment's index.
    """
    start = time.monotonic()
    with ExitStack() as locks:
        prepared = []
        for chapter in chapters:
            found = _prepare(chapter, display, locks)
            if found is not None:
                prepared.append(found)
        for each in prepared:
            each.write_index()  # whatever ends this command, what it finishes can be read
        jobs = [Job(each.experiment, cell) for each in prepared for cell in each.cells]
        display.say(f"atlas: {len(prepared)} profiles, {len(jobs)} runs, {workers} at a time")
        outcomes: list[Outcome] = []

        def listen(active: list[Work], done: list[Outcome], rest: Rest) -> None:
            outcomes[:] = done  # an interruption takes the queue's own along
            display.batch(active, done, rest)

        try:
            outcomes[:] = run_cells(jobs, workers, again, listen, keep_going=True)
        except KeyboardInterrupt:
            sitting.interrupted = True
            raise
        finally:
            for each in prepared:
                each.write_index()
            _count(sitting, outcomes, time.monotonic() - start)
        _note_problems(prepared, outcomes)


def _prepare(chapter: Chapter, display: Display, locks: ExitStack) -> _Prepared | None:
    try:
        plans = [compile_plan(cell, engine=None, kernel=None) for cell in chapter.profile.cells()]
        engine = find_engine(plans[0].engine)
        experiment = Experiment(chapter.path)
        experiment.create()
        locks.enter_context(experiment.locked())
        experiment.sweep_partial()
        identity = engine.prepare(plans, display.build)
    except HowdahError as error:
        chapter.problems.append(str(error))
        display.say(f"  ✕ {chapter.name}  {error.what}")
        return None
    (experiment.path / "profile.yaml").write_text(chapter.profile.text, encoding="utf-8")
    keep = chapter.profile.keep
    cells = [Cell(plan, run_key(plan.to_json(), identity), keeps_data(keep, plan.repetition)) for plan in plans]
    return _Prepared(chapter, experiment, cells)


def _count(sitting: Sitting, outcomes: Iterable[Outcome], wall_s: float) -> None:
    for outcome in outcomes:
        if outcome.reused:
            sitting.found += 1
            continue
        sitting.core_s += outcome.wall_s
        if outcome.error is not None:
            sitting.failed += 1
            continue
        sitting.made += 1
        sitting.simulated_s += (outcome.cell.plan.epoch_us + outcome.cell.plan.duration_us) / 1e6
    sitting.wall_s = round(wall_s, 3)


def _note_problems(prepared: list[_Prepared], outcomes: Iterable[Outcome]) -> None:
    failed = {outcome.cell.key: outcome.error for outcome in outcomes if outcome.error is not None}
    for each in prepared:
        errors = [failed[cell.key] for cell in each.cells if cell.key in failed]
        if errors:
            more = f" (and {len(errors) - 1} more runs)" if errors[1:] else ""
            each.chapter.problems.append(f"{errors[0].what}{more}")


def conclude(chapters: list[Chapter], workers: int, display: Display) -> None:
    """Judge the claims and write the report of every experiment that is there, ``workers`` at a time."""
    there = [chapter for chapter in chapters if (found := chapter.experiment()) is not None and found.runs]
    with ProcessPoolExecutor(max_workers=workers) as pool:
        paths = [(chapter.path, chapter.profile.path) for chapter in there]
        work = [(chapter, pool.submit(_conclude, *path)) for chapter, path in zip(there, paths, strict=True)]
        for done, (chapter, future) in enumerate(work, 1):
            try:
                future.result()
            except HowdahError as error:
                chapter.problems.append(str(error))
            display.build("claims and reports", done, len(work))
    for chapter in there:
        judged = chapter.judged()
        if judged is None:
            chapter.problems.append("its claims were not judged")
            continue
        known, experiment = chapter.published(), chapter.experiment()
        assert experiment is not None
        own = chapter.of_the_machine
        otherwise = known.differing(experiment, judged["claims"], own) if known is not None else []
        if otherwise:
            chapter.problems.append(f"the published results of the very same runs are others: {', '.join(otherwise)}")


def publish_complete(chapters: list[Chapter], display: Display) -> list[Path]:
    """Publish what is complete; the files. What is not is told, and left as it was."""
    files = []
    for chapter in chapters:
        experiment, judged = chapter.experiment(), chapter.judged()
        if experiment is None or judged is None or chapter.results is None:
            display.say(f"  not published: {chapter.name} has not been judged")
            continue
        try:
            files.append(publish(experiment, chapter.profile.text, judged["claims"], chapter.results))
        except HowdahError as error:
            display.say(f"  not published: {error.what}")
    return files


def _conclude(path: Path, profile: Path) -> None:
    judge_claims(path, profile)
    report(path, prometheus="off")
