# SPDX-License-Identifier: Apache-2.0
"""A worker process: ``python -m howdah.work.worker PARENT``, or forked by a command (``work/local.py``).

It reads runs from standard input, each a JSON object on a line: ``run`` is the directory, ``keep_data`` whether its
data stay, ``patience_s`` the limit after which it counts as hanging (``Patience``).

Each run is a process forked from this one, which has loaded the libraries once for all runs. Progress goes to standard
output, one JSON object per line. The last line of a run is ``{"verdict": …}``, ``{"error": …}`` or, if it died without
either, ``{"died": status}``. A run dies with its worker, the worker with the process that started it, and a guest with
its run, so a ``kill -9`` of the command leaves nothing behind.
"""

from __future__ import annotations

import gc
import json
import os
import signal
import sys
import time
from collections.abc import Callable
from pathlib import Path

from howdah.engine.engine import RunProgress
from howdah.engine.life import processor_s
from howdah.errors import HowdahError, RunFailedError, explain, file_of_error
from howdah.metric import known_metrics
from howdah.record import reading
from howdah.record.agent import AgentRecord
from howdah.record.directory import RunDirectory
from howdah.record.kernel_log import in_use
from howdah.record.provenance import analysis_sha256
from howdah.record.run import read_record
from howdah.unloaded import collect_rarely, leave_pandas_out
from howdah.work.forked import die_with_parent, set_process_name
from howdah.work.stage import execute, load, read_plan

LOOKS_AFTER_S = 1.0  # wall time without progress after which processor time is checked


class Patience:
    """A progress listener that passes on to ``progress`` and detects a hanging run.

    A call raises RunFailedError if ``limit_s`` of processor time have passed since simulated time last advanced.
    ``in_use`` returns, in words, the code that may cause it.
    """

    def __init__(self, progress: RunProgress, limit_s: float, in_use: Callable[[], str]) -> None:
        self._progress, self._limit_s, self._in_use = progress, limit_s, in_use
        self._position = ("", 0, 0)
        self._moved, self._moved_at_core_s = time.monotonic(), 0.0

    def __call__(self, phase: str, done_us: int, of_us: int) -> None:
        self._progress(phase, done_us, of_us)
        now = time.monotonic()
        if self._position != (phase, done_us, of_us):
            self._position = phase, done_us, of_us
            self._moved, self._moved_at_core_s = now, processor_s(os.getpid())
        elif now - self._moved > LOOKS_AFTER_S:
            self._check(processor_s(os.getpid()) - self._moved_at_core_s)

    def _check(self, spent_s: float) -> None:
        if spent_s > self._limit_s:
            phase, done_us, of_us = self._position
            raise RunFailedError(
                f"the run hangs, and was ended: {spent_s:.1f} s of a processor passed without simulated time "
                f"(phase {phase}, {done_us / 1e6:.1f} of {of_us / 1e6:.1f} simulated seconds){self._in_use()}"
            )


NAME = "howdah-worker"


def _say(**message: object) -> None:
    sys.stdout.write(json.dumps(message) + "\n")
    sys.stdout.flush()


def _run(directory: RunDirectory, keep_data: bool, patience_s: float | None) -> None:
    def tell(phase: str, done_us: int, of_us: int) -> None:
        _say(phase=phase, done_us=done_us, of_us=of_us)

    def modules() -> str:
        return in_use(read_plan(directory).modules_in_use)

    progress = tell if patience_s is None else Patience(tell, patience_s, modules)
    try:
        verdict = execute(directory, progress, keep_data=keep_data)
    except HowdahError as error:
        _say(error=error.what, where=error.where, hint=error.hint)
    except OSError as error:
        _say(error=explain(error), where=file_of_error(error), hint=None)
    else:
        _say(verdict=verdict, failed=read_record(directory).status != "finished")


def _fork(directory: RunDirectory, keep_data: bool, patience_s: float | None) -> None:
    """Make the run in a child process. This process has only one thread, so forking is safe.

    Errors of the run and of the worker go to this run's log, since the log of the previous run is complete.
    """
    worker = os.getpid()
    with directory.log.open("a") as log:
        os.dup2(log.fileno(), sys.stderr.fileno())
    child = os.fork()
    if child == 0:
        status = 1
        try:
            die_with_parent(worker)
            _run(directory, keep_data, patience_s)
            status = 0
        except BaseException:  # noqa: BLE001 - whatever it is, the worker must not go on as a second one
            sys.excepthook(*sys.exc_info())
        finally:
            sys.stderr.flush()
            os._exit(status)
    _, status = os.waitpid(child, 0)
    if status != 0:
        _say(died=os.waitstatus_to_exitcode(status))


def prepare() -> None:
    """Import once what all runs need; their processes inherit it."""
    load()
    analysis_sha256()
    known_metrics()
    reading.prepare(AgentRecord)


def serve(parent: int) -> None:
    """Make runs until standard input ends."""
    die_with_parent(parent)
    set_process_name(NAME)
    signal.signal(signal.SIGINT, signal.SIG_IGN)  # the parent hears Ctrl-C and ends its workers in order
    prepare()
    gc.freeze()  # exclude what is loaded from every run's garbage collections
    for line in iter(sys.stdin.readline, ""):
        order = json.loads(line)
        _fork(RunDirectory(Path(order["run"])), order["keep_data"], order["patience_s"])


def main() -> int:
    collect_rarely()
    leave_pandas_out()
    serve(int(sys.argv[1]))
    return 0


if __name__ == "__main__":
    sys.exit(main())
