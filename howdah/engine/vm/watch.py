# SPDX-License-Identifier: Apache-2.0
"""Detects whether a virtual machine makes progress, from its console, its progress port and QEMU's processor time.

An emulated machine that hangs is as busy as one that works, and the time for any step depends on the load of this
machine. Therefore processor time is limited; wall time has only a generous limit.
"""

from __future__ import annotations

import time
from pathlib import Path

from howdah.engine.life import processor_s
from howdah.linux import progress_port

UP = b"howdah-init: the system is up"
BOOT, SILENCE = "boot", "silence"
_EXAMINE_EVERY_S = 0.5


class MachineWatch:
    """Watches one machine. ``position()`` is the progress to display; ``trouble()`` is why it must be ended, or None.

    ``boot_s`` and ``silent_s`` limit the processor seconds until the machine is up, and then between two signs of life;
    wall time is limited to ``patience`` times as much.
    """

    def __init__(
        self, launcher: int, console: Path, signs: Path, boot_s: float, silent_s: float, patience: float = 20.0
    ) -> None:
        self._launcher = launcher
        self._console = console
        self._signs = signs
        self._limits = {BOOT: boot_s, SILENCE: silent_s}
        self._patience = patience
        self._phase, self._done_us, self._of_us = BOOT, 0, 0
        self._read = 0
        self._unread = b""
        self._up = False
        self._since_s = self._examined_s = time.monotonic()
        self._spent_s = self._used_s = 0.0

    def position(self) -> tuple[str, int, int]:
        """Return phase, simulated microseconds since the machine started, and their total (0: not yet known)."""
        self._listen()
        return self._phase, self._done_us, self._of_us

    def trouble(self) -> str | None:
        now_s = time.monotonic()
        if now_s - self._examined_s < _EXAMINE_EVERY_S:
            return None
        self._examined_s = now_s
        self._used_s = max(self._used_s, processor_s(self._launcher))
        self._look_at_console()
        kind = SILENCE if self._up else BOOT
        limit_s = self._limits[kind]
        if self._up and self._done_us == 0:
            return None  # it has no progress port: only the wall-clock limit applies
        if self._used_s - self._spent_s <= limit_s and now_s - self._since_s <= limit_s * self._patience:
            return None
        used = f"{self._used_s - self._spent_s:.0f} s of processor time in {now_s - self._since_s:.0f} s"
        if kind == BOOT:
            return f"did not come up: its kernel has not started the first program after {used}"
        return f"hangs: nothing new from it for {used} ({self.where()})"

    def where(self) -> str:
        """Describe phase and clock."""
        of = f" of {self._of_us / 1e6:.1f}" if self._of_us else ""
        return f"phase {self._phase}, {self._done_us / 1e6:.1f}{of} s of its own time"

    def _alive(self) -> None:
        self._since_s, self._spent_s = time.monotonic(), self._used_s

    def _look_at_console(self) -> None:
        if self._up:
            return
        try:
            self._up = UP in self._console.read_bytes()
        except OSError:
            return
        if self._up:
            self._phase = "setup"
            self._alive()

    def _listen(self) -> None:
        try:
            with self._signs.open("rb") as file:
                file.seek(self._read)
                new = file.read()
        except OSError:
            return
        if not new:
            return
        self._read += len(new)
        *lines, self._unread = (self._unread + new).split(b"\n")
        for text in lines:
            found = progress_port.parse(text)
            if found is None:
                continue
            phase, time_us = found
            if phase == progress_port.END:
                self._of_us = time_us
            else:
                self._phase, self._done_us, self._up = phase, time_us, True
            self._alive()
