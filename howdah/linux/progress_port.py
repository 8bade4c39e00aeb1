# SPDX-License-Identifier: Apache-2.0
"""The progress of a run, reported by a virtual machine through an I/O port, a few bytes each simulated second.

A byte written to the port (QEMU's isa-debugcon) costs the machine one instruction and no interrupt. Nothing waits for a
reader, so watching a run in virtual time does not change it. A line is a letter, ``a`` for the first of ``PHASES``, and
the time since the machine started in tenths of a second; ``=`` instead of the letter gives the end of the run.
"""

from __future__ import annotations

import os

PORT = 0xE9
PHASES = ("setup", "calibrate-before", "flows", "quiesce", "calibrate-after", "collect", "done")
END = "="
_DEVICE = "/dev/port"
_TENTH_NS = 100_000_000


def line(phase: str, time_ns: int) -> bytes:
    """Format a report; ``phase`` may be END, and an unknown phase counts as the first."""
    letter = END if phase == END else chr(ord("a") + (PHASES.index(phase) if phase in PHASES else 0))
    return f"{letter}{time_ns // _TENTH_NS}\n".encode()


def parse(text: bytes) -> tuple[str, int] | None:
    """Parse a line into phase (or END) and microseconds; None for any other text."""
    letter, number = text[:1].decode(errors="replace"), text[1:].strip()
    if not number.isdigit():
        return None
    if letter == END:
        return END, int(number) * 100_000
    place = ord(letter) - ord("a")
    return (PHASES[place], int(number) * 100_000) if 0 <= place < len(PHASES) else None


class ProgressPort:
    """Writes reports to the port; does nothing if the kernel has no /dev/port (CONFIG_DEVPORT)."""

    def __init__(self, port: int = PORT) -> None:
        self._port = port
        try:
            self._device: int | None = os.open(_DEVICE, os.O_WRONLY | os.O_CLOEXEC)
        except OSError:
            self._device = None

    def tell(self, phase: str, time_ns: int) -> None:
        if self._device is None:
            return
        for byte in line(phase, time_ns):  # one byte a write: the device increments the port with each byte
            os.pwrite(self._device, bytes((byte,)), self._port)
