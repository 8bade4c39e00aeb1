# SPDX-License-Identifier: Apache-2.0
"""What the engine needs of a machine of a lab, virtual or not: commands over SSH, and NICs by the wires they are on."""

from __future__ import annotations

import subprocess
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import IO, Protocol


class Machine(Protocol):
    """``howdah/lab/fleet.py`` has the one that SSH reaches. ``role`` is ``sender``, ``emulator`` or ``receiver``.

    ``interfaces`` holds, by wire, the name and the MAC address of the NIC on it; a wire joins those that name it.
    """

    @property
    def name(self) -> str: ...

    @property
    def role(self) -> str: ...

    @property
    def interfaces(self) -> Mapping[str, tuple[str, str]]: ...

    @property
    def kernel_release(self) -> str: ...

    def run(
        self, argv: Sequence[str], timeout_s: float, input: bytes | None = None
    ) -> subprocess.CompletedProcess[bytes]:
        """Run a command to its end. Raises HowdahError when the machine cannot be reached, or at the timeout."""
        ...

    def put(self, local: Path, remote: str) -> None:
        """Copy a file to the machine."""
        ...

    def get(self, remote: str, local: Path) -> None:
        """Copy a file from the machine."""
        ...

    def spawn(self, argv: Sequence[str], errors: IO[bytes]) -> subprocess.Popen[bytes]:
        """Start a command with pipes to its input and output. It ends when they are closed."""
        ...


class Fleet(Protocol):
    """All machines of a lab, by name, in the order of the lab file."""

    @property
    def name(self) -> str: ...

    @property
    def machines(self) -> Mapping[str, Machine]: ...
