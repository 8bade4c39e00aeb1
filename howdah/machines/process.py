# SPDX-License-Identifier: Apache-2.0
"""Processes that a file remembers: none is ended unless it is proved to be the one that was started."""

from __future__ import annotations

import os
import signal
import time
from dataclasses import dataclass
from pathlib import Path

from howdah.running import is_running, stat_fields

_START_FIELD = 19  # of /proc/PID/stat behind the name, which may hold anything (proc(5): field 22, starttime)


@dataclass(frozen=True)
class Remembered:
    """``start_ticks`` is when it started, as the kernel counts; ``mark`` is an argument of its command line."""

    pid: int
    start_ticks: int
    mark: str

    def is_alive(self) -> bool:
        """Whether this very process runs: not another one that has got its number since."""
        if start_ticks(self.pid) != self.start_ticks:
            return False
        try:
            command = Path(f"/proc/{self.pid}/cmdline").read_bytes().decode(errors="replace").split("\0")
        except OSError:
            return False
        return self.mark in command

    def end(self, patience_s: float) -> bool:
        """SIGTERM, and SIGKILL after that time; whether there was anything to end. Returns when it is gone."""
        if not self.is_alive():
            return False
        for number, wait_s in ((signal.SIGTERM, patience_s), (signal.SIGKILL, patience_s)):
            try:
                os.kill(self.pid, number)
            except ProcessLookupError:
                return True
            if self.wait(wait_s):
                return True
        return True

    def wait(self, limit_s: float) -> bool:
        """Whether it is gone within that time."""
        end = time.monotonic() + limit_s
        while self.is_alive():
            if time.monotonic() > end:
                return False
            time.sleep(0.05)
        return True


def start_ticks(pid: int) -> int | None:
    """When that process started, in clock ticks since the machine did; None without a process, and for a zombie."""
    fields = stat_fields(pid) if is_running(pid) else None
    return None if fields is None else int(fields[_START_FIELD])


def remember(pid: int, mark: str) -> Remembered | None:
    """That process, if it runs."""
    started = start_ticks(pid)
    return None if started is None else Remembered(pid, started, mark)
