# SPDX-License-Identifier: Apache-2.0
"""Many runs at once: one worker process a core, each on one run at a time; interrupted cleanly, resumed for free."""

from __future__ import annotations

import json
import os
import selectors
import shutil
import subprocess
import sys
import time
from collections import deque
from collections.abc import Callable, Sequence
from dataclasses import dataclass, field
from typing import IO, Any

from howdah.errors import HowdahError
from howdah.run.directory import RunDirectory
from howdah.run.experiment import Cell, Experiment


@dataclass
class Outcome:
    """How one cell ended; ``verdict`` is None when there is an ``error``."""

    cell: Cell
    verdict: str | None = None
    error: HowdahError | None = None
    reused: bool = False
    wall_s: float = 0.0


@dataclass
class Work:
    """A run in progress, as shown to the person who waits."""

    cell: Cell
    directory: RunDirectory
    process: subprocess.Popen[str]
    started: float
    phase: str = "start"
    done_us: int = 0
    of_us: int = 0
    last: dict[str, Any] = field(default_factory=dict)


Listener = Callable[[list[Work], list[Outcome], int], None]
WORKER = (sys.executable, "-m", "howdah.run.worker")


def _output(process: subprocess.Popen[str]) -> IO[str]:
    assert process.stdout is not None
    return process.stdout


def _start(experiment: Experiment, cell: Cell, worker: Sequence[str]) -> Work:
    directory = experiment.begin(cell)
    with directory.log.open("w") as errors:
        process = subprocess.Popen(
            [*worker, str(directory.path), str(os.getpid())],
            stdin=subprocess.DEVNULL,
            stdout=subprocess.PIPE,
            stderr=errors,
            text=True,
        )
    return Work(cell, directory, process, time.monotonic())


def _read(work: Work) -> bool:
    """Take one line of a worker's progress; False when it has said all."""
    line = _output(work.process).readline()
    if not line:
        return False
    message = json.loads(line)
    if "phase" in message:
        work.phase, work.done_us, work.of_us = message["phase"], message["done_us"], message["of_us"]
    else:
        work.last = message
    return True


def _finish(experiment: Experiment, work: Work) -> Outcome:
    status = work.process.wait()
    _output(work.process).close()
    outcome = Outcome(work.cell, wall_s=time.monotonic() - work.started)
    if "verdict" in work.last:
        experiment.keep(work.cell, work.directory)
        outcome.verdict = work.last["verdict"]
        return outcome
    if "error" in work.last:
        outcome.error = HowdahError(work.last["error"], where=work.last["where"], hint=work.last["hint"])
    else:
        tail = work.directory.log.read_text(errors="replace").strip().splitlines()[-8:]
        outcome.error = HowdahError(
            f"the process of run {work.cell.plan.run} ended with status {status} and no result",
            where=str(experiment.path),
            hint="\n  ".join(tail) or None,
        )
    shutil.rmtree(work.directory.path, ignore_errors=True)
    return outcome


def _end(active: list[Work]) -> None:
    for work in active:
        work.process.kill()  # the guest dies with its worker
    for work in active:
        work.process.wait()
        shutil.rmtree(work.directory.path, ignore_errors=True)


def run_cells(
    experiment: Experiment,
    cells: list[Cell],
    workers: int,
    again: bool,
    listen: Listener,
    worker: Sequence[str] = WORKER,
) -> list[Outcome]:
    """Run every cell that has no finished run yet, ``workers`` at a time, and return all outcomes in the cells' order.

    On KeyboardInterrupt (or any error here) the workers and their guests are killed and their partial directories
    removed; runs that had finished stay.
    """
    outcomes: list[Outcome] = []
    waiting: deque[Cell] = deque()
    for cell in cells:
        if not again and experiment.finished(cell):
            verdict = json.loads((experiment.path / cell.directory_name / "verdict.json").read_text())["verdict"]
            outcomes.append(Outcome(cell, verdict=verdict, reused=True))
        else:
            waiting.append(cell)
    active: list[Work] = []
    stop = False
    with selectors.DefaultSelector() as selector:
        try:
            while waiting or active:
                while waiting and len(active) < workers and not stop:
                    work = _start(experiment, waiting.popleft(), worker)
                    active.append(work)
                    selector.register(_output(work.process), selectors.EVENT_READ, work)
                if not active:
                    break
                for key, _ in selector.select(timeout=0.5):
                    work = key.data
                    if not _read(work):
                        selector.unregister(key.fileobj)
                        outcome = _finish(experiment, work)
                        active.remove(work)
                        outcomes.append(outcome)
                        # An error that is not about one run (no space, no engine) would meet every other run as well.
                        stop = stop or outcome.error is not None
                listen(active, outcomes, len(cells))
        except BaseException:
            _end(active)
            raise
    order = {cell.key: position for position, cell in enumerate(cells)}
    return sorted(outcomes, key=lambda outcome: order[outcome.cell.key])
