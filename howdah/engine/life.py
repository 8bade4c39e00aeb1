# SPDX-License-Identifier: Apache-2.0
"""Signs of life of a running guest: wall clock, processor time, and the agent's progress."""

from __future__ import annotations

import math
import os
import time
from pathlib import Path

from howdah.engine.processor import busiest, command_of
from howdah.record.directory import read_json
from howdah.running import stat_fields

_EXAMINE_EVERY_S = 0.5
_TICK_S = 1 / os.sysconf("SC_CLK_TCK")


def descendants(pid: int) -> list[int]:
    """Return the process and all its descendants, as far as /proc shows them."""
    found = [pid]
    for parent in found:
        try:
            tasks = list(Path(f"/proc/{parent}/task").iterdir())
            for task in tasks:
                found.extend(int(child) for child in (task / "children").read_text().split())
        except OSError:
            continue
    return found


def _statistics(pid: int) -> tuple[str, float] | None:
    """Return state and processor seconds (/proc/PID/stat, proc_pid_stat(5))."""
    fields = stat_fields(pid)
    return None if fields is None else (fields[0], (int(fields[11]) + int(fields[12])) * _TICK_S)


def processor_s(pid: int) -> float:
    """Return the processor seconds used by the process and its descendants."""
    found = (_statistics(each) for each in descendants(pid))
    return sum(one[1] for one in found if one is not None)


class Life:
    """Watches one guest. ``trouble()`` returns why it must be ended, or None.

    ``limit_s`` limits the wall time without progress of simulated time, not that of the whole run: on a slow machine a
    run may take long, but only a hung guest takes long for one simulated second.

    A program that polls without waiting stops simulated time; ``busy_limit_s`` of processor time detects that long
    before ``limit_s``. The message names the program if it is one of the guest's (processor.py), and ``pollers``, the
    suspects that the plan knows.
    """

    def __init__(
        self,
        launcher: int,
        progress: Path,
        limit_s: float,
        stalled_after_s: float,
        pollers: tuple[str, ...] = (),
        busy_limit_s: float = math.inf,
    ) -> None:
        self.launcher = launcher
        self.progress = progress
        self.limit_s = limit_s
        self.stalled_after_s = stalled_after_s
        self._moved = self._active = self._examined = time.monotonic()
        self._position = ("boot", 0, 0)
        self._modified_ns = 0
        self._processor_s = self._moved_at_processor_s = 0.0
        self._used_s: dict[int, float] = {}  # processor seconds of each process
        self._moved_at_used_s: dict[int, float] = {}
        self._pollers = pollers
        self._busy_limit_s = busy_limit_s

    def position(self) -> tuple[str, int, int]:
        """Return phase, simulated microseconds done, and their total, as the agent last wrote them."""
        try:
            modified = self.progress.stat().st_mtime_ns
            if modified != self._modified_ns:
                value = read_json(self.progress)
                position = (str(value["phase"]), int(value["time_us"]), int(value["of_us"]))
                self._active = time.monotonic()
                if position != self._position:
                    self._moved = self._active
                    self._moved_at_processor_s = self._processor_s
                    self._moved_at_used_s = self._used_s
                self._position, self._modified_ns = position, modified
        except (OSError, ValueError, KeyError, TypeError):
            pass  # not yet written, or being rewritten: keep the last position
        return self._position

    @property
    def computes(self) -> bool:
        """Whether the guest used the processor recently."""
        return time.monotonic() - self._active <= self.stalled_after_s

    @property
    def busy_s(self) -> float:
        """Processor seconds since simulated time last advanced."""
        return self._processor_s - self._moved_at_processor_s

    def trouble(self) -> str | None:
        now = time.monotonic()
        if now - self._moved > self.limit_s:
            return (
                f"the guest was ended at its wall-clock limit of {self.limit_s:g} s without simulated time passing "
                f"({self.where()}): {self._busiest_program() or 'it'} never stops computing"
            )
        if now - self._examined >= _EXAMINE_EVERY_S:
            self._examined = now
            self._examine(now)
            busy_s = self.busy_s
            if busy_s > self._busy_limit_s and (polls := self._suspect()):
                return (
                    f"simulated time stands still ({self.where()}) while {polls} uses the "
                    f"processor, {busy_s:.0f} s of it: a program that polls without waiting lets no time pass"
                )
        if now - self._active > self.stalled_after_s:
            return (
                f"the guest stood still for {self.stalled_after_s:g} s, no processor time used ({self.where()}): "
                "nothing was pending in it"
            )
        return None

    def _suspect(self) -> str:
        """Return the plan's name for what may be polling, and the busiest command; empty if neither is known."""
        named, command = " or ".join(self._pollers), self._busiest_program() or ""
        return f"{named} ({command})" if named and command else named or command

    def _busiest_program(self) -> str | None:
        """Return the command of the guest's program that was busiest since simulated time last advanced."""
        most = busiest(self._moved_at_used_s, self._used_s)
        command = None if most is None else command_of(most[0])
        return None if command is None else f"'{command}'"

    def _examine(self, now: float) -> None:
        processor_s, waiting_for_disk = 0.0, False
        self._used_s = {}
        for pid in descendants(self.launcher):
            statistics = _statistics(pid)
            if statistics:
                processor_s += statistics[1]
                self._used_s[pid] = statistics[1]
                waiting_for_disk |= statistics[0] in "DT"
        if waiting_for_disk or abs(processor_s - self._processor_s) > _TICK_S / 2:
            self._active = now
        self._processor_s = processor_s

    def where(self) -> str:
        """Describe phase and clock."""
        phase, done_us, of_us = self._position
        return f"phase {phase}, {done_us / 1e6:.1f} of {of_us / 1e6:.1f} simulated seconds"
