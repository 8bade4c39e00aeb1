# SPDX-License-Identifier: Apache-2.0
"""Shows the progress of long work: bars on a terminal, a line for each event in a log, nothing with --json."""

from __future__ import annotations

import time
from collections.abc import Iterable
from types import TracebackType

from rich.console import Console
from rich.progress import BarColumn, Progress, TaskID, TextColumn, TimeElapsedColumn

from howdah.foreign import escape_controls
from howdah.work.batch import Outcome, Rest, Work
from howdah.work.job import Past

# Phases before the flows take little wall time; the bar of a run is the share of its simulated time that has passed.
_MARKS = {"pass": "✓", "fail": "✕", "unsupported": "?", "invalid": "!"}
_MOST_BARS = 16
_LINE_EVERY_S = 60.0  # of a log, which has no bars
_LEAST_SHARE = 0.1  # of a run, from which on its pace tells something
HONEST_SHARE = 0.25  # of the whole work in expected core seconds, or of the parts of a step, that a promise needs
_LEAST_TOLD_S = 1.0  # less is not said: nobody waits for it


def _clock(seconds: float) -> str:
    whole = int(seconds)
    return (
        f"{whole // 3600}:{whole // 60 % 60:02}:{whole % 60:02}" if whole >= 3600 else f"{whole // 60}:{whole % 60:02}"
    )


def left_words(seconds: float) -> str:
    """``  about 1:20 left``; nothing where nobody waits for it."""
    return f"  about {_clock(seconds)} left" if seconds >= _LEAST_TOLD_S else ""


class Display:
    """Progress of builds and runs. Use as a context manager; ``build``, ``single`` and ``batch`` are the listeners."""

    def __init__(self, quiet: bool) -> None:
        self.quiet = quiet
        self.console = Console(stderr=True, highlight=False)
        self.live = self.console.is_terminal and not quiet
        self._progress = Progress(
            TextColumn("{task.description}"),
            BarColumn(bar_width=28),
            TextColumn("{task.fields[note]}"),
            TimeElapsedColumn(),
            console=self.console,
            transient=True,
        )
        self._tasks: dict[str, TaskID] = {}
        self._phases: dict[str, str] = {}
        self._reported = 0
        self._several = False
        self._open_step: str | None = None  # of a build; it does not say when it is done, so what follows ends it
        self._last_line = self._begun = time.monotonic()
        self._step_begun: dict[str, float] = {}

    def __enter__(self) -> Display:
        if self.live:
            self._progress.start()
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        if self.live:
            self._progress.stop()

    def say(self, text: str) -> None:
        """Print a line that stays above the bars."""
        if not self.quiet:
            self.console.print(escape_controls(text), markup=False)

    def build(self, what: str, done: int, total: int) -> None:
        """A step of a build, or of what else has parts; ``total`` 0 while it is not known.

        Where there is no terminal a step is a line, and a line a minute says how far it is.
        """
        if self.quiet:
            return
        note = f"{done}/{total}{self._step_left(what, done, total)}" if total else str(done or "")
        if not self.live:
            if self._phases.get("build") != what:
                self._phases["build"] = what
                self._last_line = time.monotonic()
                self.say(f"  {what}")
            elif note and time.monotonic() - self._last_line >= _LINE_EVERY_S:
                self._last_line = time.monotonic()
                self.say(f"  … {what} {note}")
            return
        if self._open_step != what:
            self._end_step()
        self._bar(f"build {what}", what, done, total, note)
        if total and done >= total:
            self._drop(f"build {what}")
        elif not total:
            self._open_step = what

    def _step_left(self, what: str, done: int, total: int) -> str:
        """Of a step of equal parts, once enough of them are done."""
        begun = self._step_begun.setdefault(what, time.monotonic())
        if done >= total:
            self._step_begun.pop(what)
        if not total or done < HONEST_SHARE * total:
            return ""
        return left_words((time.monotonic() - begun) * (total - done) / done)

    def single(self, phase: str, done_us: int, of_us: int) -> None:
        """The one run of a command that makes one run."""
        if self.live:
            self._end_step()
            self._bar("single", phase, done_us, of_us, f"{done_us / 1e6:.1f}/{of_us / 1e6:.1f} s simulated")
        elif self._phases.get("single") != phase:
            self._phases["single"] = phase
            self.say(f"  {phase}")

    def batch(self, active: list[Work], outcomes: list[Outcome], rest: Rest) -> None:
        """Runs of a batch: one bar for all with the time left, one a worker; finished runs as lines.

        Where there is no terminal to draw on, a line a minute says how far it is.
        """
        self._several = rest.experiments > 1
        done = rest.past.count + len(outcomes)
        if done < self._reported:
            self._reported = 0  # another batch of the same command
            self._begun = time.monotonic()
        for outcome in outcomes[max(self._reported - rest.past.count, 0) :]:
            self._say_outcome(outcome)
        self._reported = done
        if self.quiet:
            return
        left = time_left(active, outcomes, rest)
        note = f"{done}/{rest.total}" + (left_words(left) if left is not None else "")
        note += (
            f"  {failed} failed"
            if (failed := rest.past.failed + sum(each.error is not None for each in outcomes))
            else ""
        )
        if (speed := self._speed(outcomes, rest.past)) is not None and len(active) > 1:
            note += f"  {speed:.1f} simulated s/s"
        if not self.live:
            if time.monotonic() - self._last_line >= _LINE_EVERY_S and active:
                self._last_line = time.monotonic()
                self.say(f"  … {note}")
            return
        shown = sorted(active, key=lambda work: work.started)[:_MOST_BARS]  # a cluster has more than a screen has lines
        self._end_step()
        known = {f"run {work.job.name}" for work in shown}
        for name in [name for name in self._tasks if name.startswith("run ") and name not in known]:
            self._drop(name)
        self._bar("all", "all runs", done, rest.total, note)
        for work in shown:
            note = (
                f"{work.phase}  {max(work.done_us, 0) / 1e6:.1f}/{work.of_us / 1e6:.1f} s" if work.of_us else work.phase
            )
            self._bar(f"run {work.job.name}", f"  {work.cell.plan.run}", work.done_us, work.of_us, note)
        if done >= rest.total and not active:
            self._drop("all")  # what is built for the next batch stands alone

    def _speed(self, outcomes: list[Outcome], past: Past) -> float | None:
        """Simulated seconds for each that has passed, of the runs that were made since the first report."""
        made = [each for each in outcomes if not each.reused and each.error is None]
        simulated = past.simulated_s + simulated_s(made)
        return simulated / (time.monotonic() - self._begun) if simulated else None

    def _say_outcome(self, outcome: Outcome) -> None:
        name = outcome.job.name if self._several else outcome.cell.directory_name
        if outcome.reused:
            self.say(f"  = {name}  already there ({outcome.verdict})")
        elif outcome.error is not None:
            self.say(f"  ✕ {name}  {outcome.error.what}")
        elif outcome.failed:
            self.say(f"  {_MARKS['invalid']} {name}  failed after {outcome.wall_s:.1f} s")
        else:
            simulated = simulated_s([outcome])
            mark = _MARKS[outcome.verdict or "invalid"]
            self.say(f"  {mark} {name}  {outcome.verdict}  {simulated:.0f} s simulated in {outcome.wall_s:.1f} s")

    def _bar(self, key: str, description: str, done: int, total: int, note: str) -> None:
        if key not in self._tasks:
            self._tasks[key] = self._progress.add_task(description, total=None, note="")
        self._progress.update(self._tasks[key], description=escape_controls(description), note=escape_controls(note))
        self._progress.update(self._tasks[key], completed=max(done, 0), total=total or None)

    def _end_step(self) -> None:
        if self._open_step is not None and f"build {self._open_step}" in self._tasks:
            self._drop(f"build {self._open_step}")
        self._open_step = None

    def _drop(self, key: str) -> None:
        self._progress.remove_task(self._tasks.pop(key))


def simulated_s(outcomes: Iterable[Outcome]) -> float:
    """Simulated seconds of these runs, from boot to end. Failed runs do not count, because theirs are unknown."""
    whole = [each for each in outcomes if not each.failed]
    return sum(each.cell.plan.epoch_us + each.cell.plan.duration_us for each in whole) / 1e6


def _run_left(work: Work, pace: float, now: float) -> float:
    """Of a run in progress: as its cost says, and no less than its own pace says where its share is known."""
    passed = now - work.started
    own = passed * (1 - work.share) / work.share if work.share >= _LEAST_SHARE else 0.0
    return max(work.job.expected_core_s * pace - passed, own, 0.0)


def time_left(active: list[Work], outcomes: list[Outcome], rest: Rest) -> float | None:
    """Seconds until the batch is done, or None while they cannot be estimated: before a quarter of what the batch is
    expected to cost has been made.

    Runs are unequal, so what is left is counted in expected core seconds (``work/cost.py``). Finished runs, and those
    in progress by their share, show how long such a second takes here.
    """
    now = time.monotonic()
    made = [each for each in outcomes if not each.reused and each.error is None]
    spent = rest.past.wall_s + sum(each.wall_s for each in made)
    expected = rest.past.core_s + sum(each.job.expected_core_s for each in made)
    whole = expected + rest.waiting_core_s + sum(work.job.expected_core_s for work in active)
    for work in active:
        if work.share >= _LEAST_SHARE:
            spent += now - work.started
            expected += work.share * work.job.expected_core_s
    if not expected or expected < HONEST_SHARE * whole:
        return None
    pace = spent / expected
    begun = [_run_left(work, pace, now) for work in active]
    return max((rest.waiting_core_s * pace + sum(begun)) / max(len(active), 1), *begun, 0.0)
