# SPDX-License-Identifier: Apache-2.0
"""Counts what a command and the processes that it forks do to files, and stops one of them before the n-th of these.

Where a command is killed at a random time, most kills find it computing: they leave the same files as many others.
Before each operation on a file there is one state of the disk, and this names it by a number.
"""

from __future__ import annotations

import contextlib
import mmap
import os
import signal
import struct
import sys
import time
from collections.abc import Callable
from pathlib import Path

from tests.faults.processes import state_of

# Of Python's audit events: what changes files, and what starts and ends processes.
_EVENTS = frozenset(
    (
        *("os.rename", "os.remove", "os.rmdir", "os.mkdir", "os.link", "os.symlink", "os.truncate", "os.chmod"),
        *("os.utime", "shutil.rmtree", "shutil.move", "shutil.copyfile", "shutil.copytree", "tempfile.mkstemp"),
        *("tempfile.mkdtemp", "subprocess.Popen", "os.fork", "os.forkpty", "os.posix_spawn", "os.kill", "os.killpg"),
        *("fcntl.flock", "fcntl.lockf", "socket.bind", "socket.connect", "mmap.__new__"),
    )
)
_WRITES = os.O_WRONLY | os.O_RDWR | os.O_CREAT
_PLACES = struct.Struct("QQQ")  # done so far; stop before this one, 0 for none; the process that has stopped


class Operations:
    """A page of memory in ``file`` that the command, its forks and whoever watches them share."""

    def __init__(self, file: Path) -> None:
        self.file = file
        if not file.exists():
            file.write_bytes(bytes(mmap.PAGESIZE))
        with file.open("r+b") as opened:
            self._page = mmap.mmap(opened.fileno(), mmap.PAGESIZE)

    def begin(self, stop_before: int = 0) -> None:
        self._page[: _PLACES.size] = _PLACES.pack(0, stop_before, 0)

    @property
    def done(self) -> int:
        return self._get()[0]

    def stopped(self, seconds: float, is_over: Callable[[], bool]) -> int | None:
        """The process that stops, as soon as it has; None where none does in that time, or ``is_over()`` before."""
        deadline = time.monotonic() + seconds
        while not (pid := self._get()[2]) or state_of(pid) not in ("T", None):
            if is_over() or time.monotonic() > deadline:
                return None
            time.sleep(0.005)
        return pid

    def watch(self) -> None:
        """From now on this process, and every fork of it, counts, and stops where it was told to."""
        sys.addaudithook(self._met)

    def _get(self) -> tuple[int, int, int]:
        done, stop, pid = _PLACES.unpack_from(self._page)
        return done, stop, pid

    def _met(self, event: str, details: tuple[object, ...]) -> None:
        if event == "open":
            flags = details[2] if len(details) > 2 else 0
            if not isinstance(flags, int) or not flags & _WRITES:
                return
        elif event not in _EVENTS:
            return
        done, stop, pid = self._get()
        done += 1
        is_due = stop and not pid and done >= stop
        self._page[: _PLACES.size] = _PLACES.pack(done, stop, os.getpid() if is_due else pid)
        if is_due:
            os.kill(os.getpid(), signal.SIGSTOP)


def go_on(pid: int) -> None:
    with contextlib.suppress(ProcessLookupError):
        os.kill(pid, signal.SIGCONT)
