# SPDX-License-Identifier: Apache-2.0
"""How far a run is, told out of a virtual machine through an I/O port, a few bytes each simulated second.

A byte written to the port (QEMU's isa-debugcon) costs the machine one instruction and no interrupt. So nothing waits
for whoever reads it, and in virtual time a run that is looked at is the run that is not. A line is a letter, ``a`` for
the first of ``PHASES``, and the tenths of a second since the machine started; ``=`` instead of the letter says when the
run will end.
"""

from __future__ import annotations

import os

PORT = 0xE9
PHASES = ("setup", "calibrate-before", "flows", "quiesce", "calibrate-after", "collect", "done")
END = "="
_DEVICE = "/dev/port"
_TENTH_NS = 100_000_000


def line(phase: str, time_ns: int) -> bytes:
    """``phase`` may be END; an unknown one counts as the first."""
    letter = END if phase == END else chr(ord("a") + (PHASES.index(phase) if phase in PHASES else 0))
    return f"{letter}{time_ns // _TENTH_NS}\n".encode()


def parse(text: bytes) -> tuple[str, int] | None:
    """Phase (or END) and microseconds of a line; None for what is none."""
    letter, number = text[:1].decode(errors="replace"), text[1:].strip()
    if not number.isdigit():
        return None
    if letter == END:
        return END, int(number) * 100_000
    place = ord(letter) - ord("a")
    return (PHASES[place], int(number) * 100_000) if 0 <= place < len(PHASES) else None


class ProgressPort:
    """Writes to the port; silent where the kernel has no /dev/port (CONFIG_DEVPORT)."""

    def __init__(self, port: int = PORT) -> None:
        self._port = port
        try:
            self._device: int | None = os.open(_DEVICE, os.O_WRONLY | os.O_CLOEXEC)
        except OSError:
            self._device = None

    def tell(self, phase: str, time_ns: int) -> None:
        if self._device is None:
            return
        for byte in line(phase, time_ns):  # the device counts the port up with each byte of a write
            os.pwrite(self._device, bytes((byte,)), self._port)
