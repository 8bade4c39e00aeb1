# SPDX-License-Identifier: Apache-2.0
"""Makes all runs of the atlas as one queue over the machine's cores, then claims and report of each experiment; and
atlas.json: the cost of the atlas, summed over the commands that made it."""

from __future__ import annotations

import time
from collections.abc import Iterable
from concurrent.futures import as_completed
from contextlib import ExitStack
from dataclasses import dataclass, field, fields
from pathlib import Path

from howdah.atlas.chapter import Chapter
from howdah.atlas.points import write_points
from howdah.atlas.published import publish
from howdah.claim.finding import FAIL
from howdah.codec import encoded
from howdah.errors import HowdahError, RecordError
from howdah.number import counted
from howdah.profile import load
from howdah.profile.control import UNKNOWN_AXIS
from howdah.record.directory import RunDirectory, read_json, write_json
from howdah.record.provenance import now
from howdah.record.run import read_record
from howdah.report.build import report
from howdah.work.batch import Outcome, Rest, Work
from howdah.work.compiled import compile_plans
from howdah.work.display import Display
from howdah.work.job import Executor
from howdah.work.planned import Prepared
from howdah.work.pool import pool
from howdah.work.prepared import hold, prepare
from howdah.work.prepared import make as make_runs
from howdah.work.results import judged_claims, runs_of


def make(
    chapters: list[Chapter],
    workers: int,
    again: bool,
    display: Display,
    sitting: Sitting,
    executor: Executor | None = None,
) -> None:
    """Make every missing run and fill in ``sitting``; errors are added to the chapters' ``problems``.

    If a claim fails then and the paper leaves something open, the runs of that grid follow.

    A profile that cannot be prepared or a run that fails does not stop the others; a full disk, which every run would
    meet, stops the queue. On KeyboardInterrupt finished runs are kept and are in their experiment's index.
    """
    start = time.monotonic()
    try:
        _make(chapters, workers, again, display, sitting, executor)
        failing = _open_and_failing(chapters)
        if failing:
            names = ", ".join(chapter.name for chapter in failing)
            display.say(f"claims fail; the grid of what is left open is run: {names}")
            _make(failing, workers, False, display, sitting, executor, only_grid=True)
    finally:
        sitting.wall_s = round(time.monotonic() - start, 3)


def _open_and_failing(chapters: list[Chapter]) -> list[Chapter]:
    """Return the chapters with a failing claim and something left open, whose profiles now include that grid."""
    found = []
    for chapter in chapters:
        profile = chapter.profile
        if not profile.grid or profile.with_unknowns or profile.is_quick or not runs_of(chapter.path):
            continue
        try:
            judged = judged_claims(chapter.path, profile.path)
        except HowdahError as error:
            chapter.problems.append(str(error))
            continue
        if judged is not None and any(claim.verdict == FAIL for claim in judged.claims):
            chapter.profile = load(profile.path, unknowns=True)
            found.append(chapter)
    return found


def _make(
    chapters: list[Chapter],
    workers: int,
    again: bool,
    display: Display,
    sitting: Sitting,
    executor: Executor | None,
    *,
    only_grid: bool = False,
) -> None:
    """Make the runs of these chapters, or those of their grids alone."""
    with ExitStack() as locks:
        prepared = [(chapter, found) for chapter in chapters if (found := _prepare(chapter, display, locks))]
        ready = [each.only(lambda _run, axes: UNKNOWN_AXIS in axes) if only_grid else each for _, each in prepared]
        number = sum(len(each.wanted) for each in ready)
        many = f"{counted(len(prepared), 'profile')}, {counted(number, 'run')}"
        display.say(f"atlas: {many}" + ("" if executor else f", {workers} at a time"))
        outcomes: list[Outcome] = []

        def listen(active: list[Work], done: list[Outcome], rest: Rest) -> None:
            outcomes[:] = done  # kept here, as an interruption discards the queue's own list
            display.batch(active, done, rest)

        try:
            outcomes[:] = make_runs(ready, workers, again, listen, keep_going=True, tell=display.say, executor=executor)
        except KeyboardInterrupt:
            sitting.interrupted = True
            raise
        finally:
            _count(sitting, outcomes)
        _note_problems(prepared, outcomes)


def _prepare(chapter: Chapter, display: Display, locks: ExitStack) -> Prepared | None:
    try:
        experiment = hold(chapter.path, locks)
        return prepare(experiment, chapter.profile, compile_plans(chapter.profile), display.build)
    except HowdahError as error:
        chapter.problems.append(str(error))
        display.say(f"  ✕ {chapter.name}  {error.what}")
        return None


def _count(sitting: Sitting, outcomes: Iterable[Outcome]) -> None:
    for outcome in outcomes:
        if outcome.reused:
            sitting.found += 1
            continue
        if outcome.error is not None:
            sitting.failed += 1
            continue
        run = RunDirectory(outcome.job.experiment.path / outcome.cell.directory_name)
        sitting.core_s += read_record(run).core_s
        sitting.made += 1
        sitting.simulated_s += (outcome.cell.plan.epoch_us + outcome.cell.plan.duration_us) / 1e6


def _note_problems(prepared: list[tuple[Chapter, Prepared]], outcomes: Iterable[Outcome]) -> None:
    failed: dict[Path, list[HowdahError]] = {}
    for outcome in outcomes:
        if outcome.error is not None:
            failed.setdefault(outcome.job.experiment.path, []).append(outcome.error)
    for chapter, each in prepared:
        errors = failed.get(each.experiment.path)
        if errors:
            more = f" (and {len(errors) - 1} more runs)" if errors[1:] else ""
            chapter.problems.append(f"{errors[0].what}{more}")


def conclude(chapters: list[Chapter], workers: int, display: Display) -> None:
    """Judge the claims and write the report of every existing experiment, ``workers`` at a time."""
    there = [chapter for chapter in chapters if runs_of(chapter.path)]
    with pool(workers) as processes:
        paths = [(chapter.path, chapter.profile.path) for chapter in there]
        work = {processes.submit(_conclude, *path): chapter for chapter, path in zip(there, paths, strict=True)}
        if work:
            display.build("claims and reports", 0, len(work))
        for done, future in enumerate(as_completed(work), 1):
            try:
                future.result()
            except HowdahError as error:
                work[future].problems.append(str(error))
            display.build("claims and reports", done, len(work))
    for chapter in there:
        judged = chapter.judged()
        if judged is None:
            chapter.problems.append("its claims were not judged")
            continue
        known, experiment = chapter.published(), chapter.experiment()
        if experiment is None:
            continue  # its problems have the reason
        own = chapter.of_the_machine
        otherwise = known.differing(experiment, judged.claims, own) if known is not None else []
        if otherwise:
            chapter.problems.append(f"the published results differ for identical runs: {', '.join(otherwise)}")


def publish_complete(chapters: list[Chapter], display: Display) -> list[Path]:
    """Publish complete experiments and return the files. Report the others, and leave their results as they are."""
    files = []
    for chapter in chapters:
        experiment, judged, profile = chapter.experiment(), chapter.judged(), chapter.profile
        if experiment is None or judged is None or chapter.results is None:
            if chapter.path.exists():
                display.say(f"  not published: {chapter.name} has not been judged")
            continue
        try:
            files.append(publish(experiment, profile.text, profile.claims, judged, chapter.results))
            write_points(experiment, profile, chapter.results)
        except HowdahError as error:
            display.say(f"  not published: {error.what}")
    return files


def _conclude(path: Path, profile: Path) -> None:
    judged_claims(path, profile)
    report(path, prometheus="off")


FORMAT = 1


@dataclass
class Sitting:
    """The work of one command: the runs it made and found, and its wall time."""

    started: str
    quick: bool
    made: int = 0
    found: int = 0
    failed: int = 0
    simulated_s: float = 0.0
    core_s: float = 0.0
    wall_s: float = 0.0
    workers: int = 0
    interrupted: bool = False


_OF_A_SITTING = {each.name for each in fields(Sitting)}


@dataclass
class Record:
    """Sittings of the quick and of the full atlas, kept apart: their wall times do not add up."""

    sittings: list[Sitting] = field(default_factory=list)

    def of(self, *, quick: bool) -> list[Sitting]:
        return [sitting for sitting in self.sittings if sitting.quick == quick]

    def wall_s(self, *, quick: bool) -> float:
        """Return the seconds on the wall of all sittings that made runs, including resumed ones."""
        return sum(sitting.wall_s for sitting in self.of(quick=quick) if sitting.made or sitting.failed)

    def core_s(self, *, quick: bool) -> float:
        return sum(sitting.core_s for sitting in self.of(quick=quick))

    def simulated_s(self, *, quick: bool) -> float:
        return sum(sitting.simulated_s for sitting in self.of(quick=quick))


def begin(quick: bool, workers: int) -> Sitting:
    return Sitting(started=now(), quick=quick, workers=workers)


def read_sittings(path: Path) -> Record:
    """Return the record at ``path``; an empty one if the file is missing, or has another format."""
    try:
        data = read_json(path)
    except (FileNotFoundError, RecordError):
        return Record()
    if not isinstance(data, dict) or data.get("format") != FORMAT:
        return Record()
    return Record(
        [Sitting(**{name: sitting[name] for name in sitting.keys() & _OF_A_SITTING}) for sitting in data["sittings"]]
    )


def add(path: Path, sitting: Sitting) -> Record:
    """Add a sitting to the record at ``path`` and return it."""
    record = read_sittings(path)
    record.sittings.append(sitting)
    write_json(path, {"format": FORMAT, "sittings": encoded(record.sittings)})
    return record
