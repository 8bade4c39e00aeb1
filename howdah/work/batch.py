# SPDX-License-Identifier: Apache-2.0
"""Make many runs in a fixed order. An interruption leaves only finished runs; the repeated command uses them."""

from __future__ import annotations

import os
import shutil
import time
from collections.abc import Callable
from typing import Any, Literal, NotRequired, TypedDict

from howdah.errors import HowdahError
from howdah.record.directory import PARTIAL
from howdah.work.experiment import LEAST_FREE_BYTES, add_free_space_hint, free_bytes
from howdah.work.job import Executor, Job, Outcome, Rest, Work
from howdah.work.queue import RunQueue

__all__ = ["Job", "Listener", "Outcome", "Rest", "Work", "run_queue"]

_TELL_EVERY_S = 0.5
Listener = Callable[[list[Work], list[Outcome], Rest], None]


def run_queue(queue: RunQueue, place: Executor, listen: Listener, *, keep_going: bool = False) -> list[Outcome]:
    """Make all jobs of a queue with the executor ``place``. Return the outcomes that the queue keeps.

    After a failed run no further run starts; with ``keep_going`` only a full disk has that effect. On
    KeyboardInterrupt, or any error here, the workers and their guests are killed and partial directories removed;
    finished runs stay.
    """
    outcomes = queue.settle([])
    stop = False
    try:
        if queue:
            place.open(queue.jobs, total=None if queue.whole else len(queue))
        while queue or place.active or place.handed:
            stop = stop or _start_jobs(queue, place, outcomes, keep_going=keep_going)
            idle = not place.active and not place.handed
            if (stop or not queue) and idle:
                break
            for outcome in place.wait(0.0 if idle and place.has_room() else _TELL_EVERY_S):
                outcomes.append(outcome)
                stop = stop or _meets_every_run(outcome, keep_going)
            rest_core_s = sum(job.expected_core_s for job in place.handed) + (0.0 if stop else queue.waiting_core_s)
            rest = Rest(queue.total, rest_core_s, len(queue.paths), queue.past)
            listen(list(place.active), outcomes, rest)
            place.show(outcomes, rest)
            outcomes = queue.settle(outcomes)
    except BaseException:
        place.kill()
        for path in queue.paths:  # including that of a run that was just starting
            for partial in path.glob(f"{PARTIAL}*-{os.getpid()}"):
                shutil.rmtree(partial, ignore_errors=True)
        raise
    finally:
        place.close()
    return queue.settle(outcomes)


def _start_jobs(queue: RunQueue, place: Executor, outcomes: list[Outcome], *, keep_going: bool) -> bool:
    """Give jobs to the executor while it has room, at most until the next report is due. Append the outcomes of jobs
    that need not or cannot start. Return whether no further job should start.
    """
    begun = time.monotonic()
    stop = False
    while queue and not stop and place.has_room() and time.monotonic() - begun < _TELL_EVERY_S:
        job = queue.take()
        if isinstance(job, Outcome):
            outcomes.append(job)
        else:
            try:
                place.give(job)
                continue
            except HowdahError as error:
                add_free_space_hint(error, job.experiment)
                outcomes.append(Outcome(job, error=error))
        stop = _meets_every_run(outcomes[-1], keep_going)
    return stop


def _meets_every_run(outcome: Outcome, keep_going: bool) -> bool:
    """Return whether an outcome's error would fail every other run (no space, no engine), so that none should start."""
    if outcome.error is None:
        return False
    free = free_bytes(outcome.job.experiment)
    return not keep_going or free is None or free < LEAST_FREE_BYTES


Kind = Literal["build", "begin", "start", "progress", "run", "say", "end"]


class RunEvent(TypedDict):
    """Events are printed in the order in which they happen. New events and new fields may be added; readers ignore
    those that they do not know.

    ``build``: a step (``what``, ``done`` of ``total``, which is 0 while unknown). ``begin``: the ``experiment`` and its
    number of ``runs``. ``start`` and ``progress`` of a ``run``: its ``phase``, and the simulated seconds done and in
    total. ``run``: it has ended, with a ``verdict`` or an ``error``. ``say``: a sentence for a person. ``end``: the
    ``exit_code`` of the command, and the ``report``.
    """

    event: Kind
    what: NotRequired[str]
    done: NotRequired[int]
    total: NotRequired[int]
    experiment: NotRequired[str]
    runs: NotRequired[int]
    run: NotRequired[str]
    phase: NotRequired[str]
    simulated_s: NotRequired[float]
    of_s: NotRequired[float]
    verdict: NotRequired[str | None]
    error: NotRequired[str | None]
    reused: NotRequired[bool]
    wall_s: NotRequired[float]
    report: NotRequired[str | None]
    exit_code: NotRequired[int]


class Events:
    """A listener to builds and batches that passes on each event."""

    def __init__(self, tell: Callable[[RunEvent], None]) -> None:
        self.tell = tell
        self._step: tuple[str, int, int] | None = None
        self._reported: dict[str, tuple[Any, ...]] = {}
        self._ended = 0

    def say(self, text: str) -> None:
        self.tell({"event": "say", "what": text})

    def build(self, what: str, done: int, total: int) -> None:
        if self._step != (what, done, total):
            self._step = (what, done, total)
            self.tell({"event": "build", "what": what, "done": done, "total": total})

    def batch(self, active: list[Work], outcomes: list[Outcome], rest: Rest) -> None:
        """Report progress. ``outcomes`` grows at its end; those that ``rest.past`` counts have been removed."""
        for outcome in outcomes[max(self._ended - rest.past.count, 0) :]:
            self._end(outcome)
        self._ended = rest.past.count + len(outcomes)
        for work in active:
            name, state = work.cell.directory_name, (work.phase, work.done_us)
            if name not in self._reported:
                self.tell({"event": "start", "run": name})
            if self._reported.get(name) != state:
                self._reported[name] = state
                done, whole = work.done_us / 1e6, work.of_us / 1e6
                event: RunEvent = {"event": "progress", "run": name, "phase": work.phase}
                self.tell({**event, "simulated_s": done, "of_s": whole})

    def _end(self, outcome: Outcome) -> None:
        name = outcome.cell.directory_name
        self._reported.pop(name, None)
        error = None if outcome.error is None else str(outcome.error)
        event: RunEvent = {"event": "run", "run": name, "verdict": outcome.verdict, "error": error}
        self.tell({**event, "reused": outcome.reused, "wall_s": round(outcome.wall_s, 3)})
