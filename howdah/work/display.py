# SPDX-License-Identifier: Apache-2.0
"""Show the progress of long work: bars on a terminal, a line for each event in a log, nothing with --json."""

from __future__ import annotations

import time
from collections.abc import Iterable
from types import TracebackType

from rich.console import Console
from rich.progress import BarColumn, Progress, TaskID, TextColumn, TimeElapsedColumn

from howdah.foreign import escape_controls
from howdah.work.batch import Outcome, Rest, Work
from howdah.work.job import Past

# A run's bar is the share of its simulated time that has passed: phases before the flows take little wall time.
_MARKS = {"pass": "✓", "fail": "✕", "unsupported": "?", "invalid": "!"}
_MOST_BARS = 16
_LINE_EVERY_S = 60.0  # between lines of progress in a log
_LEAST_SHARE = 0.1  # share of a run from which its own pace is used for the time left
SHARE_BEFORE_ESTIMATE = 0.25  # share of all expected core seconds, or of a step's parts, before a time left is shown
_LEAST_SHOWN_S = 1.0  # a shorter time left is not shown


def _clock(seconds: float) -> str:
    whole = int(seconds)
    return (
        f"{whole // 3600}:{whole // 60 % 60:02}:{whole % 60:02}" if whole >= 3600 else f"{whole // 60}:{whole % 60:02}"
    )


def time_left_text(seconds: float) -> str:
    """Return ``  about 1:20 left``, or nothing for less than a second."""
    return f"  about {_clock(seconds)} left" if seconds >= _LEAST_SHOWN_S else ""


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
        self._open_step: str | None = None  # of unknown length, so the next step ends it
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
        """Print a line that stays above the bars. It wraps on a terminal alone: in a log a name that is cut is lost."""
        if not self.quiet:
            self.console.print(escape_controls(text), markup=False, soft_wrap=not self.console.is_terminal)

    def build(self, what: str, done: int, total: int) -> None:
        """Show a step of a build, or of other work in parts; ``total`` is 0 while unknown.

        Without a terminal, print a line for each step, and each minute a line with the step's progress.
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
        """Return the time left of a step of equal parts, once SHARE_BEFORE_ESTIMATE of them are done."""
        begun = self._step_begun.setdefault(what, time.monotonic())
        if done >= total:
            self._step_begun.pop(what)
        if not total or done < SHARE_BEFORE_ESTIMATE * total:
            return ""
        return time_left_text((time.monotonic() - begun) * (total - done) / done)

    def single(self, phase: str, done_us: int, of_us: int) -> None:
        """Show the run of a command that makes only one."""
        if self.live:
            self._end_step()
            self._bar("single", phase, done_us, of_us, f"{done_us / 1e6:.1f}/{of_us / 1e6:.1f} s simulated")
        elif self._phases.get("single") != phase:
            self._phases["single"] = phase
            self.say(f"  {phase}")

    def batch(self, active: list[Work], outcomes: list[Outcome], rest: Rest) -> None:
        """Show the runs of a batch: a bar for all with the time left, a bar per worker, a line per finished run.

        Without a terminal, print each minute a line with the progress of all runs.
        """
        self._several = rest.experiments > 1
        done = rest.past.count + len(outcomes)
        if done < self._reported:
            self._reported = 0  # the command has begun another batch
            self._begun = time.monotonic()
        for outcome in outcomes[max(self._reported - rest.past.count, 0) :]:
            self._say_outcome(outcome)
        self._reported = done
        if self.quiet:
            return
        note = self._batch_note(active, outcomes, rest)
        if self.live:
            self._draw_batch(active, done, rest.total, note)
        elif time.monotonic() - self._last_line >= _LINE_EVERY_S and active:
            self._last_line = time.monotonic()
            self.say(f"  … {note}")

    def _batch_note(self, active: list[Work], outcomes: list[Outcome], rest: Rest) -> str:
        """Return ``3/12  about 1:20 left  1 failed  4.2 simulated s/s``."""
        left = time_left(active, outcomes, rest)
        note = f"{rest.past.count + len(outcomes)}/{rest.total}" + (time_left_text(left) if left is not None else "")
        if failed := rest.past.failed + sum(each.error is not None for each in outcomes):
            note += f"  {failed} failed"
        if (speed := self._speed(outcomes, rest.past)) is not None and len(active) > 1:
            note += f"  {speed:.1f} simulated s/s"
        return note

    def _draw_batch(self, active: list[Work], done: int, total: int, note: str) -> None:
        shown = sorted(active, key=lambda work: work.started)[:_MOST_BARS]  # a cluster may have more than the screen
        self._end_step()
        known = {f"run {work.job.name}" for work in shown}
        for name in [name for name in self._tasks if name.startswith("run ") and name not in known]:
            self._drop(name)
        self._bar("all", "all runs", done, total, note)
        for work in shown:
            note = (
                f"{work.phase}  {max(work.done_us, 0) / 1e6:.1f}/{work.of_us / 1e6:.1f} s" if work.of_us else work.phase
            )
            self._bar(f"run {work.job.name}", f"  {work.cell.plan.run}", work.done_us, work.of_us, note)
        if done >= total and not active:
            self._drop("all")  # so that builds for the next batch are shown alone

    def _speed(self, outcomes: list[Outcome], past: Past) -> float | None:
        """Return simulated seconds per second of wall time since the first report, or None before a run was made."""
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
    """Return the simulated seconds of these runs, from boot to end. Failed runs do not count: their time is unknown."""
    whole = [each for each in outcomes if not each.failed]
    return sum(each.cell.plan.epoch_us + each.cell.plan.duration_us for each in whole) / 1e6


def _run_left(work: Work, pace: float, now: float) -> float:
    """Return the seconds left of a run in progress: by its expected cost, but at least by its own pace once that is
    known."""
    passed = now - work.started
    own = passed * (1 - work.share) / work.share if work.share >= _LEAST_SHARE else 0.0
    return max(work.job.expected_core_s * pace - passed, own, 0.0)


def time_left(active: list[Work], outcomes: list[Outcome], rest: Rest) -> float | None:
    """Return the seconds until the batch is done, or None while a quarter of its expected cost has not been made.

    Runs differ in length, so the remaining work is counted in expected core seconds (``work/cost.py``). Finished runs,
    and runs in progress by their share, show how long such a second takes on this machine.
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
    if not expected or expected < SHARE_BEFORE_ESTIMATE * whole:
        return None
    pace = spent / expected
    begun = [_run_left(work, pace, now) for work in active]
    return max((rest.waiting_core_s * pace + sum(begun)) / max(len(active), 1), *begun, 0.0)
