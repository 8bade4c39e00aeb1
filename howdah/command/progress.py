# SPDX-License-Identifier: Apache-2.0
"""What is shown while long work goes on: bars on a terminal, a line an event in a log, nothing with --json."""

from __future__ import annotations

import time
from types import TracebackType

from rich.console import Console
from rich.progress import BarColumn, Progress, TaskID, TextColumn, TimeElapsedColumn

from howdah.run.batch import Outcome, Work

# Phases before the flows take little wall time; the bar of a run is the share of its simulated time that has passed.
_MARKS = {"pass": "✓", "fail": "✕", "unsupported": "?", "invalid": "!"}


def _clock(seconds: float) -> str:
    whole = int(seconds)
    return (
        f"{whole // 3600}:{whole // 60 % 60:02}:{whole % 60:02}" if whole >= 3600 else f"{whole // 60}:{whole % 60:02}"
    )


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
        self._began = time.monotonic()

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
        """A line that stays."""
        if not self.quiet:
            self.console.print(text, markup=False)

    def build(self, what: str, done: int, total: int) -> None:
        """A step of a build; ``total`` 0 while it is not known."""
        if self.quiet:
            return
        if not self.live:
            if self._phases.get("build") != what:
                self._phases["build"] = what
                self.say(f"  {what}")
            return
        self._bar(f"build {what}", what, done, total, f"{done}/{total}" if total else "")
        if total and done >= total:
            self._drop(f"build {what}")

    def single(self, phase: str, done_us: int, of_us: int) -> None:
        """The one run of a command that makes one run."""
        if self.live:
            self._bar("single", phase, done_us, of_us, f"{done_us / 1e6:.1f}/{of_us / 1e6:.1f} s simulated")
        elif self._phases.get("single") != phase:
            self._phases["single"] = phase
            self.say(f"  {phase}")

    def batch(self, active: list[Work], outcomes: list[Outcome], total: int) -> None:
        """Runs of a batch: one bar for all with the time left, one a worker; finished runs as lines."""
        for outcome in outcomes[self._reported :]:
            self._say_outcome(outcome)
        self._reported = len(outcomes)
        if not self.live:
            return
        known = {f"run {work.cell.directory_name}" for work in active}
        for name in [name for name in self._tasks if name.startswith("run ") and name not in known]:
            self._drop(name)
        self._bar(
            "all", "all runs", len(outcomes), total, f"{len(outcomes)}/{total}  {self._left(active, outcomes, total)}"
        )
        for work in active:
            note = (
                f"{work.phase}  {max(work.done_us, 0) / 1e6:.1f}/{work.of_us / 1e6:.1f} s" if work.of_us else work.phase
            )
            self._bar(f"run {work.cell.directory_name}", f"  {work.cell.plan.run}", work.done_us, work.of_us, note)

    def _left(self, active: list[Work], outcomes: list[Outcome], total: int) -> str:
        made = [outcome.wall_s for outcome in outcomes if not outcome.reused]
        if not made:
            return ""
        mean = sum(made) / len(made)
        rest = (total - len(outcomes) - len(active)) * mean
        rest += sum(max(mean - (time.monotonic() - work.started), 0.0) for work in active)
        return f"about {_clock(rest / max(len(active), 1))} left"

    def _say_outcome(self, outcome: Outcome) -> None:
        name = outcome.cell.directory_name
        if outcome.reused:
            self.say(f"  = {name}  already there ({outcome.verdict})")
        elif outcome.error is not None:
            self.say(f"  ✕ {name}  {outcome.error.what}")
        else:
            simulated = (outcome.cell.plan.epoch_us + outcome.cell.plan.duration_us) / 1e6
            mark = _MARKS[outcome.verdict or "invalid"]
            self.say(f"  {mark} {name}  {outcome.verdict}  {simulated:.0f} s simulated in {outcome.wall_s:.1f} s")

    def _bar(self, key: str, description: str, done: int, total: int, note: str) -> None:
        if key not in self._tasks:
            self._tasks[key] = self._progress.add_task(description, total=None, note="")
        self._progress.update(
            self._tasks[key], description=description, completed=max(done, 0), total=total or None, note=note
        )

    def _drop(self, key: str) -> None:
        self._progress.remove_task(self._tasks.pop(key))
