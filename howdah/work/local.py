# SPDX-License-Identifier: Apache-2.0
"""Make runs on this machine: start worker processes (``howdah/work/worker.py``), one per core; give each one run at a
time; read their messages; end them."""

from __future__ import annotations

import contextlib
import json
import os
import selectors
import shutil
import signal
import subprocess
import time
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from functools import partial
from typing import IO

from howdah.errors import HowdahError, explain
from howdah.place import OWN_PYTHON
from howdah.record.directory import PARTIAL, RunDirectory
from howdah.unloaded import is_own_process
from howdah.work.experiment import add_free_space_hint
from howdah.work.forked import Forked, can_fork
from howdah.work.job import Job, Outcome, Rest, Work

WORKER = (*OWN_PYTHON, "-m", "howdah.work.worker")
Process = subprocess.Popen[bytes] | Forked


def pipe(stream: IO[bytes] | None) -> IO[bytes]:
    assert stream is not None
    return stream


@dataclass(frozen=True)
class RunPhase:
    """How far a run is, as its process reports it."""

    phase: str
    done_us: int
    of_us: int


@dataclass(frozen=True)
class Ended:
    """A process's last message about a run: its verdict, or an error instead, or the exit status with which the run
    ``died`` without either."""

    verdict: str | None = None
    failed: bool = False
    error: str | None = None
    where: str | None = None
    hint: str | None = None
    died: int | None = None


@dataclass
class RunInProgress:
    """A run in progress. ``last`` is None until the run ends."""

    directory: RunDirectory
    process: Process
    last: Ended | None = None
    phase: RunPhase | None = None
    unread: bytes = b""

    @property
    def output(self) -> IO[bytes]:
        """The file that becomes readable when the process has written."""
        return pipe(self.process.stdout)

    def read(self) -> bool:
        """Read the process's messages. Return False after the last message of this run or at the end of the process."""
        chunk = self.output.read(65536)
        *lines, self.unread = (self.unread + chunk).split(b"\n")
        for message in map(json.loads, lines):
            if "phase" in message:
                self.phase = RunPhase(**message)
            else:
                self.last = Ended(**message)
        return bool(chunk) and self.last is None


class WorkerProcesses:
    """A set of worker processes. An idle one is reused before another is started."""

    def __init__(self, command: Sequence[str] = WORKER, environment: Mapping[str, str] | None = None) -> None:
        self.command = command
        self.environment = environment
        self._idle: list[Process] = []
        self._started: list[Process] = []

    def give(
        self, directory: RunDirectory, *, keep_data: bool = True, patience_s: float | None = None
    ) -> RunInProgress:
        """Start the run in ``directory``. A process writes its own errors to the log of its first run.

        ``keep_data`` is false if the caller removes the data of a valid run; ``patience_s`` is that of ``PlannedRun``.
        Raise OSError if no process can be started.
        """
        order = {"run": str(directory.path), "keep_data": keep_data, "patience_s": patience_s}
        line = json.dumps(order).encode() + b"\n"
        with directory.log.open("w") as errors:
            while self._idle:
                process = self._idle.pop()
                if self._tell(process, line):
                    return RunInProgress(directory, process)
                reap(process)
            process = self._start(errors)
        self._started.append(process)
        self._tell(process, line)  # if it has died already, read() will notice
        return RunInProgress(directory, process)

    def _start(self, errors: IO[str]) -> Process:
        """Start a process: forked from a howdah command, which has most modules loaded; otherwise a new Python.

        It gets a session of its own, so that it can be killed together with its run.
        """
        parent = os.getpid()
        if self.command == WORKER and self.environment is None and is_own_process() and can_fork():
            from howdah.work import worker  # loads all that makes a run

            worker.prepare()
            return Forked(partial(worker.serve, parent), errors.fileno())
        return subprocess.Popen(
            [*self.command, str(parent)],
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            stderr=errors,
            bufsize=0,  # select() does not see data in a buffer
            start_new_session=True,
            env=None if self.environment is None else {**os.environ, **self.environment},
        )

    @staticmethod
    def _tell(process: Process, line: bytes) -> bool:
        try:
            pipe(process.stdin).write(line)
        except BrokenPipeError:
            return False
        return process.poll() is None

    def finish(self, making: RunInProgress) -> int | None:
        """Take back the process of a run that has ended. Return the exit status if it died, else None."""
        if making.last is not None:
            self._idle.append(making.process)
            return making.last.died
        return reap(making.process)

    def kill(self) -> None:
        """Kill every process that was started, with its run, including those an interruption kept from being listed."""
        self._idle.clear()
        for process in self._started:
            end(process)

    def end(self) -> None:
        """End the idle processes."""
        while self._idle:
            reap(self._idle.pop())


def end(process: Process) -> None:
    """Kill a process with its run."""
    if process.poll() is None:
        for kill in (os.killpg, os.kill):  # the run is in its worker's group; a worker just forked has no group yet
            with contextlib.suppress(ProcessLookupError):
                kill(process.pid, signal.SIGKILL)  # the guest dies with the run
        reap(process)


def reap(process: Process) -> int:
    """Let a process without a run exit, and return its status."""
    with contextlib.suppress(BrokenPipeError):
        pipe(process.stdin).close()
    pipe(process.stdout).close()
    return process.wait()


class LocalExecutor:
    """Makes ``workers`` runs at a time on this machine. ``command`` starts a worker process."""

    def __init__(self, workers: int, command: Sequence[str] = WORKER) -> None:
        self.workers = workers
        self._makers = WorkerProcesses(command)
        self._selector = selectors.DefaultSelector()
        self._making: dict[int, tuple[Work, RunInProgress]] = {}

    @property
    def active(self) -> list[Work]:
        return [work for work, _ in self._making.values()]

    @property
    def handed(self) -> list[Job]:
        return []

    def open(self, jobs: Sequence[Job], *, total: int | None = None) -> None:
        """Do nothing: the cache has what the jobs need."""

    def has_room(self) -> bool:
        return len(self._making) < self.workers

    def give(self, job: Job) -> None:
        try:
            directory, cell = job.experiment.begin(job.cell), job.cell
            making = self._makers.give(directory, keep_data=cell.keep_data, patience_s=cell.patience_s)
        except OSError as error:
            for partial in job.experiment.path.glob(f"{PARTIAL}{job.cell.directory_name}-{os.getpid()}"):
                shutil.rmtree(partial, ignore_errors=True)
            raise HowdahError(f"cannot start the run: {explain(error)}", where=str(job.experiment.path)) from error
        key = making.output.fileno()
        self._making[key] = (Work(job), making)
        self._selector.register(making.output, selectors.EVENT_READ, key)

    def wait(self, timeout_s: float) -> list[Outcome]:
        ended = []
        for event, _ in self._selector.select(timeout=timeout_s):
            work, making = self._making[event.data]
            if making.read():
                if (now := making.phase) is not None:
                    work.phase, work.done_us, work.of_us = now.phase, now.done_us, now.of_us
                continue
            self._selector.unregister(event.fileobj)
            del self._making[event.data]
            ended.append(self._finish(work, making))
        return ended

    def _finish(self, work: Work, making: RunInProgress) -> Outcome:
        experiment, cell = work.job.experiment, work.cell
        status = self._makers.finish(making)
        outcome = Outcome(work.job, wall_s=time.monotonic() - work.started)
        last = making.last
        if last is not None and last.verdict is not None:
            try:
                experiment.keep(cell, making.directory)
            except OSError as error:
                outcome.error = HowdahError(f"the run cannot be kept: {explain(error)}", where=str(experiment.path))
            else:
                outcome.verdict, outcome.failed = last.verdict, last.failed
                return outcome
        else:
            outcome.error = failure(making, status, cell.plan.run, str(experiment.path))
        add_free_space_hint(outcome.error, experiment)  # before the partial directory is removed, which frees space
        shutil.rmtree(making.directory.path, ignore_errors=True)
        return outcome

    def show(self, outcomes: Sequence[Outcome], rest: Rest) -> None:
        """Do nothing: the command's own display shows the batch."""

    def kill(self) -> None:
        self._makers.kill()
        for _, making in self._making.values():
            shutil.rmtree(making.directory.path, ignore_errors=True)
        self._making.clear()

    def close(self) -> None:
        self._makers.end()
        self._selector.close()
        self._selector = selectors.DefaultSelector()


def failure(making: RunInProgress, status: int | None, run: str, where: str) -> HowdahError:
    """Return the reason why a process ended without a verdict."""
    last = making.last
    if last is not None and last.error is not None:
        return HowdahError(last.error, where=last.where, hint=last.hint)
    tail = making.directory.log.read_text(errors="replace").strip().splitlines()[-8:]
    return HowdahError(
        f"the process of run {run} ended with status {status} and no result",
        where=where,
        hint="\n  ".join(tail) or None,
    )
