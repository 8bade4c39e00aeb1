# SPDX-License-Identifier: Apache-2.0
"""Many runs at once: one worker process a core, each on one run at a time; interrupted cleanly, resumed for free.

A worker is told its runs one by one on its standard input (``howdah/work/worker.py``): what it needs is loaded once.
"""

from __future__ import annotations

import contextlib
import json
import os
import selectors
import shutil
import signal
import subprocess
import sys
import time
from collections import deque
from collections.abc import Callable, Sequence
from dataclasses import dataclass, field
from functools import cached_property
from pathlib import Path
from typing import IO, Any

from howdah.errors import HowdahError, explain
from howdah.plan.plan import Plan
from howdah.record.directory import PARTIAL, RunDirectory
from howdah.record.reading import read_verdict
from howdah.work.cost import expected_core_s
from howdah.work.experiment import Cell, Experiment

_LEAST_FREE_BYTES = 64_000_000  # with less no further run is begun after one has failed


@dataclass(frozen=True)
class Job:
    """A cell and the experiment it belongs to, whose lock the caller holds."""

    experiment: Experiment
    cell: Cell

    @property
    def name(self) -> str:
        return f"{self.experiment.path.name}/{self.cell.directory_name}"

    @cached_property
    def expected_core_s(self) -> float:
        """Of ``run/cost.py``; kept, since the time left is told from that of every job, several times a second."""
        return expected_core_s(self.cell.plan)


@dataclass
class Outcome:
    """How one job ended; ``verdict`` is None when there is an ``error``."""

    job: Job
    verdict: str | None = None
    error: HowdahError | None = None
    reused: bool = False
    wall_s: float = 0.0

    @property
    def cell(self) -> Cell:
        return self.job.cell


@dataclass
class Work:
    """A run in progress, as shown to the person who waits."""

    job: Job
    directory: RunDirectory
    process: subprocess.Popen[bytes]
    started: float
    phase: str = "start"
    done_us: int = 0
    of_us: int = 0
    last: dict[str, Any] = field(default_factory=dict)
    unread: bytes = b""

    @property
    def cell(self) -> Cell:
        return self.job.cell

    @property
    def share(self) -> float:
        """How much of its simulated time has passed, 0 to 1."""
        return min(max(self.done_us / self.of_us, 0.0), 1.0) if self.of_us else 0.0


@dataclass(frozen=True)
class Rest:
    """How far a batch is: jobs in all, the expected core seconds (of ``run/cost.py``) of those not begun, and of how
    many experiments they are."""

    total: int
    waiting_core_s: float = 0.0
    experiments: int = 1


Listener = Callable[[list[Work], list[Outcome], Rest], None]
WORKER = (sys.executable, "-m", "howdah.work.worker")


def _pipe(stream: IO[bytes] | None) -> IO[bytes]:
    assert stream is not None
    return stream


class _Workers:
    """The processes that make the runs; one that waits for work is used before another is started."""

    def __init__(self, command: Sequence[str]) -> None:
        self.command = command
        self._idle: list[subprocess.Popen[bytes]] = []
        self._started: list[subprocess.Popen[bytes]] = []

    def give(self, directory: RunDirectory) -> subprocess.Popen[bytes]:
        """A process that makes the run in ``directory``. What it says of its own troubles is in its first run's log."""
        with directory.log.open("w") as errors:
            while self._idle:
                process = self._idle.pop()
                if self._tell(process, directory):
                    return process
                _reap(process)
            process = subprocess.Popen(
                [*self.command, str(os.getpid())],
                stdin=subprocess.PIPE,
                stdout=subprocess.PIPE,
                stderr=errors,
                bufsize=0,  # what has been read must be seen: select() knows nothing of a buffer
                start_new_session=True,  # so that it can be ended together with its run
            )
        self._started.append(process)
        self._tell(process, directory)  # one that has died already is noticed where its result is waited for
        return process

    @staticmethod
    def _tell(process: subprocess.Popen[bytes], directory: RunDirectory) -> bool:
        try:
            _pipe(process.stdin).write(json.dumps(str(directory.path)).encode() + b"\n")
        except BrokenPipeError:
            return False
        return process.poll() is None

    def take_back(self, process: subprocess.Popen[bytes]) -> None:
        self._idle.append(process)

    def kill(self) -> None:
        """Kill every process that was started, with its run; an interruption may have kept it from being listed."""
        self._idle.clear()
        for process in self._started:
            if process.poll() is None:
                with contextlib.suppress(ProcessLookupError):
                    os.killpg(process.pid, signal.SIGKILL)  # the run is in its worker's group; the guest dies with it
                _reap(process)

    def end(self) -> None:
        """End those that wait for work."""
        while self._idle:
            _reap(self._idle.pop())


def _reap(process: subprocess.Popen[bytes]) -> int:
    """Let a worker that has no run end, and return its status."""
    with contextlib.suppress(BrokenPipeError):
        _pipe(process.stdin).close()
    _pipe(process.stdout).close()
    return process.wait()


def _start(job: Job, workers: _Workers) -> Work:
    try:
        directory = job.experiment.begin(job.cell)
        process = workers.give(directory)
    except OSError as error:
        for partial in job.experiment.path.glob(f"{PARTIAL}{job.cell.directory_name}-{os.getpid()}"):
            shutil.rmtree(partial, ignore_errors=True)
        raise HowdahError(f"cannot start the run: {explain(error)}", where=str(job.experiment.path)) from error
    return Work(job, directory, process, time.monotonic())


def _read(work: Work) -> bool:
    """Take what a worker has said; False when it has said all, of this run or for ever."""
    said = _pipe(work.process.stdout).read(65536)
    *lines, work.unread = (work.unread + said).split(b"\n")
    for message in map(json.loads, lines):
        if "phase" in message:
            work.phase, work.done_us, work.of_us = message["phase"], message["done_us"], message["of_us"]
        else:
            work.last = message
    return bool(said) and not work.last


def _finish(work: Work, workers: _Workers) -> Outcome:
    experiment, cell = work.job.experiment, work.cell
    if work.last:
        status = work.last.get("died")
        workers.take_back(work.process)
    else:
        status = _reap(work.process)
    outcome = Outcome(work.job, wall_s=time.monotonic() - work.started)
    if "verdict" in work.last:
        try:
            experiment.keep(cell, work.directory)
        except OSError as error:
            outcome.error = HowdahError(f"the run cannot be kept: {explain(error)}", where=str(experiment.path))
        else:
            outcome.verdict = work.last["verdict"]
            return outcome
    elif "error" in work.last:
        outcome.error = HowdahError(work.last["error"], where=work.last["where"], hint=work.last["hint"])
    else:
        tail = work.directory.log.read_text(errors="replace").strip().splitlines()[-8:]
        outcome.error = HowdahError(
            f"the process of run {cell.plan.run} ended with status {status} and no result",
            where=str(experiment.path),
            hint="\n  ".join(tail) or None,
        )
    _tell_of_room(outcome.error, experiment)  # before the partial directory goes, which makes room
    shutil.rmtree(work.directory.path, ignore_errors=True)
    return outcome


def _free_bytes(experiment: Experiment) -> int | None:
    try:
        return shutil.disk_usage(experiment.path).free
    except OSError:
        return None


def _tell_of_room(error: HowdahError, experiment: Experiment) -> None:
    """A full disk is not always named by what fails on it: not even the log can be written."""
    free = _free_bytes(experiment)
    if free is not None and free < _LEAST_FREE_BYTES:
        room = f"Only {free / 1e6:.1f} MB are free there. Make room and give the command again: finished runs are kept."
        error.hint = f"{error.hint}\n  {room}" if error.hint else room


def _has_virtual_clock(plan: Plan) -> bool:
    return plan.traits.virtual_clock


def run_cells(
    jobs: Sequence[Job],
    workers: int,
    again: bool,
    listen: Listener,
    worker: Sequence[str] = WORKER,
    *,
    keep_going: bool = False,
) -> list[Outcome]:
    """Run every job that has no finished run yet, ``workers`` at a time, and return the outcomes in the jobs' order.

    A run that was made in real time and is invalid is made again: the machine may have its processors free this time.
    In virtual time it would come out the same.

    One experiment after the other, the cheapest first, so that a batch that is interrupted leaves whole experiments. Of
    each, the longest runs come first, so that no core waits at the end for one that began late. An error (which is not
    about the path: that would be an invalid run) ends the batch once the runs in progress are done; with ``keep_going``
    only a full disk does. On KeyboardInterrupt (or any error here) the workers and their guests are killed and their
    partial directories removed; runs that had finished stay.
    """
    outcomes: list[Outcome] = []
    unfinished: list[Job] = []
    for job in jobs:
        finished = None if again else job.experiment.finished(job.cell)
        verdict = read_verdict(finished)["verdict"] if finished is not None else None
        if verdict is None or (verdict == "invalid" and not _has_virtual_clock(job.cell.plan)):
            unfinished.append(job)
        else:
            outcomes.append(Outcome(job, verdict=verdict, reused=True))
    left: dict[Path, float] = {}
    for job in unfinished:
        left[job.experiment.path] = left.get(job.experiment.path, 0.0) + job.expected_core_s
    waiting = deque(  # equal ones in their order
        sorted(unfinished, key=lambda job: (left[job.experiment.path], job.experiment.path, -job.expected_core_s))
    )
    waiting_core_s = sum(left.values())  # kept up to date: it is told several times a second, of thousands of jobs
    experiments = len({job.experiment.path for job in jobs})
    active: list[Work] = []
    processes = _Workers(worker)
    stop = False
    with selectors.DefaultSelector() as selector:
        try:
            while waiting or active:
                while waiting and len(active) < workers and not stop:
                    job = waiting.popleft()
                    waiting_core_s -= job.expected_core_s
                    try:
                        work = _start(job, processes)
                    except HowdahError as error:
                        _tell_of_room(error, job.experiment)
                        outcomes.append(Outcome(job, error=error))
                        stop = _meets_every_run(outcomes[-1], keep_going)
                        continue
                    active.append(work)
                    selector.register(_pipe(work.process.stdout), selectors.EVENT_READ, work)
                if not active:
                    break
                for key, _ in selector.select(timeout=0.5):
                    work = key.data
                    if not _read(work):
                        selector.unregister(key.fileobj)
                        outcome = _finish(work, processes)
                        active.remove(work)
                        outcomes.append(outcome)
                        stop = stop or _meets_every_run(outcome, keep_going)
                rest_core_s = 0.0 if stop or not waiting else waiting_core_s
                listen(active, outcomes, Rest(len(jobs), rest_core_s, experiments))
        except BaseException:
            processes.kill()
            for work in active:
                shutil.rmtree(work.directory.path, ignore_errors=True)
            for path in {job.experiment.path for job in jobs}:  # also of a run that was only just being begun
                for partial in path.glob(f"{PARTIAL}*-{os.getpid()}"):
                    shutil.rmtree(partial, ignore_errors=True)
            raise
        finally:
            processes.end()
    order = {id(job): position for position, job in enumerate(jobs)}
    return sorted(outcomes, key=lambda outcome: order[id(outcome.job)])


def _meets_every_run(outcome: Outcome, keep_going: bool) -> bool:
    """Whether no further run should be begun: an error (no space, no engine) that the others would meet as well."""
    if outcome.error is None:
        return False
    free = _free_bytes(outcome.job.experiment)
    return not keep_going or free is None or free < _LEAST_FREE_BYTES
