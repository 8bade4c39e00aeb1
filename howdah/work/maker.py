# SPDX-License-Identifier: Apache-2.0
"""Starts the processes that make runs (``howdah/work/worker.py``), gives them runs, reads them and ends them."""

from __future__ import annotations

import contextlib
import json
import os
import signal
import subprocess
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from functools import partial
from typing import IO, Any

from howdah.place import OWN_PYTHON
from howdah.record.directory import RunDirectory
from howdah.unloaded import is_own_process
from howdah.work.forked import Forked, can_fork

WORKER = (*OWN_PYTHON, "-m", "howdah.work.worker")
Process = subprocess.Popen[bytes] | Forked


def pipe(stream: IO[bytes] | None) -> IO[bytes]:
    assert stream is not None
    return stream


@dataclass
class Making:
    """A run in progress. ``last`` is the process's last message about it; empty until the run ends."""

    directory: RunDirectory
    process: Process
    last: dict[str, Any] = field(default_factory=dict)
    phase: dict[str, Any] = field(default_factory=dict)
    unread: bytes = b""

    @property
    def output(self) -> IO[bytes]:
        """The file that becomes readable when the process has written."""
        return pipe(self.process.stdout)

    def read(self) -> bool:
        """Read the process's messages; False after the last one of this run or of the process."""
        said = self.output.read(65536)
        *lines, self.unread = (self.unread + said).split(b"\n")
        for message in map(json.loads, lines):
            if "phase" in message:
                self.phase = message
            else:
                self.last = message
        return bool(said) and not self.last


class Makers:
    """A set of processes. One that waits for work is used before another is started."""

    def __init__(self, command: Sequence[str] = WORKER, environment: Mapping[str, str] | None = None) -> None:
        self.command = command
        self.environment = environment
        self._idle: list[Process] = []
        self._started: list[Process] = []

    def give(self, directory: RunDirectory, *, keep_data: bool = True, patience_s: float | None = None) -> Making:
        """Start the run in ``directory``. A process writes errors of its own to the log of its first run.

        ``keep_data`` is false where the caller removes the data of a run that counts, ``patience_s`` that of
        ``PlannedRun``. Raises OSError where no process can be started.
        """
        order = {"run": str(directory.path), "keep_data": keep_data, "patience_s": patience_s}
        with directory.log.open("w") as errors:
            while self._idle:
                process = self._idle.pop()
                if self._tell(process, order):
                    return Making(directory, process)
                reap(process)
            process = self._start(errors)
        self._started.append(process)
        self._tell(process, order)  # one that has died already is noticed where its result is waited for
        return Making(directory, process)

    def _start(self, errors: IO[str]) -> Process:
        """Start a process: forked from a howdah command, which has most modules loaded; otherwise a new Python.

        It is in a session of its own, so that it can be ended together with its run.
        """
        parent = os.getpid()
        if self.command == WORKER and self.environment is None and is_own_process() and can_fork():
            from howdah.work import worker  # and all that makes a run

            worker.prepare()
            return Forked(partial(worker.serve, parent), errors.fileno())
        return subprocess.Popen(
            [*self.command, str(parent)],
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            stderr=errors,
            bufsize=0,  # what has been read must be seen: select() knows nothing of a buffer
            start_new_session=True,
            env=None if self.environment is None else {**os.environ, **self.environment},
        )

    @staticmethod
    def _tell(process: Process, order: dict[str, Any]) -> bool:
        try:
            pipe(process.stdin).write(json.dumps(order).encode() + b"\n")
        except BrokenPipeError:
            return False
        return process.poll() is None

    def finish(self, making: Making) -> int | None:
        """Take back the process of a run that has ended. Returns its exit status if it died, else None."""
        if making.last:
            self._idle.append(making.process)
            status: int | None = making.last.get("died")
            return status
        return reap(making.process)

    def kill(self) -> None:
        """Kill every process that was started, with its run; an interruption may have kept it from being listed."""
        self._idle.clear()
        for process in self._started:
            end(process)

    def end(self) -> None:
        """End the processes that wait for work."""
        while self._idle:
            reap(self._idle.pop())


def end(process: Process) -> None:
    """Kill a process with its run."""
    if process.poll() is None:
        for kill in (os.killpg, os.kill):  # the run is in its worker's group; one only just forked has none yet
            with contextlib.suppress(ProcessLookupError):
                kill(process.pid, signal.SIGKILL)  # the guest dies with the run
        reap(process)


def reap(process: Process) -> int:
    """Let a process that has no run end, and return its status."""
    with contextlib.suppress(BrokenPipeError):
        pipe(process.stdin).close()
    pipe(process.stdout).close()
    return process.wait()
