# SPDX-License-Identifier: Apache-2.0
"""The processes of a sandbox: found by its path, which is in their environment, arguments or working directory."""

from __future__ import annotations

import contextlib
import os
import signal
import time
from dataclasses import dataclass
from pathlib import Path

from howdah.work.worker import NAME as WORKER_NAME

_KINDS = (  # the first that fits: a launcher has the guest's command line among its arguments
    ("/launch\0", "launcher"),
    ("howdah.work.worker", "worker"),
    ("howdah.command.main", "command"),
    ("tests.faults.started", "command"),
    ("./linux", "guest"),
    ("prometheus\0", "prometheus"),
)


@dataclass(frozen=True)
class Process:
    """``kind``: command, worker, launcher, guest, prometheus, or other (compilers, git, promtool)."""

    pid: int
    kind: str
    words: str

    def end(self) -> None:
        """Kill it, if it has not ended by itself."""
        with contextlib.suppress(ProcessLookupError):
            os.kill(self.pid, signal.SIGKILL)


def processes_of(sandbox: Path) -> list[Process]:
    """Every process of the sandbox but this one; those that have ended and were not waited for are none."""
    found = []
    mark = str(sandbox).encode()
    for entry in Path("/proc").iterdir():
        if not entry.name.isdigit() or int(entry.name) == os.getpid():
            continue
        try:
            status = (entry / "stat").read_text(errors="replace")
            if status[status.rindex(")") + 2] in "ZX":
                continue
            arguments = (entry / "cmdline").read_bytes()
            name = status[status.index("(") + 1 : status.rindex(")")]
            belongs = mark in arguments or mark in (entry / "environ").read_bytes()
            if belongs or str(sandbox) in str((entry / "cwd").readlink()):
                found.append(Process(int(entry.name), _kind(arguments, name), arguments.decode(errors="replace")))
        except (OSError, ValueError):
            continue  # it ended meanwhile
    return found


def state_of(pid: int) -> str | None:
    """The letter of /proc/PID/stat; None of a process that is gone."""
    try:
        status = Path(f"/proc/{pid}/stat").read_text(errors="replace")
    except OSError:
        return None
    return status[status.rindex(")") + 2]


def _kind(arguments: bytes, name: str) -> str:
    if name == WORKER_NAME:  # a command's words are those of the workers that it forks
        return "worker"
    text = arguments.decode(errors="replace")
    return next((kind for words, kind in _KINDS if words in text), "other")


def left_after(sandbox: Path, seconds: float) -> list[Process]:
    """The processes that are still there so much later; none is the good answer, which comes as soon as it is true."""
    deadline = time.monotonic() + seconds
    while left := processes_of(sandbox):
        if time.monotonic() > deadline:
            return left
        time.sleep(0.03)
    return []


def end_all(sandbox: Path) -> None:
    """Kill what is left, so that the next round does not see it."""
    for process in processes_of(sandbox):
        process.end()
