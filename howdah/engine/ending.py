# SPDX-License-Identifier: Apache-2.0
"""How a guest ends: its exit status, the last lines of its console, and where its control files live."""

from __future__ import annotations

import os
import re
import tempfile
from dataclasses import dataclass
from pathlib import Path

from howdah.errors import EngineUnavailableError
from howdah.record.run import Confinement

EXIT_FILE = "guest-exit.json"
BOUNDS_FILE = "guest-bounds.txt"
BOUNDS = ("files", "network", "privileges")


_SHORT = 60  # characters: a socket in the directory has a name of at most 107


_PLAIN = re.compile(r"[!-~]+")  # what a kernel command line carries unharmed: no space, no control character


@dataclass(frozen=True)
class Bounds:
    """What the launcher kept a guest's process from (howdah/build/confine.h).

    ``kept_from`` has those of BOUNDS that this machine allows. ``addresses_fixed`` says whether the process had the
    same addresses as in every other run, without which its memory differs.
    """

    kept_from: tuple[str, ...]
    addresses_fixed: bool

    @staticmethod
    def read(path: Path) -> Bounds:
        """From the launcher's line. Raises OSError."""
        words = path.read_text(encoding="ascii").split()
        return Bounds(tuple(name for name in BOUNDS if name in words), "addresses" in words)

    def described(self) -> Confinement:
        """``confinement`` of run.json."""
        return Confinement(kept_from=list(self.kept_from), addresses_fixed=self.addresses_fixed)


@dataclass(frozen=True)
class Ending:
    """How the guest's command ended: its exit status, or the signal that killed it."""

    exit_status: int | None
    signal: int | None
    wall_s: float
    memory_peak_bytes: int  # resident, of the kernel's process
    bounds: Bounds | None = None  # where the launcher confines the process


def runtime_base() -> Path:
    """Where private directories go: short and without spaces, because kernel command lines break at spaces."""
    named = (os.environ.get("XDG_RUNTIME_DIR"), "/tmp", tempfile.gettempdir())
    for path in (Path(name) for name in named if name):
        short = _PLAIN.fullmatch(str(path)) and len(str(path)) < _SHORT
        if short and path.is_dir() and os.access(path, os.W_OK | os.X_OK):
            return path
    raise EngineUnavailableError(
        "no writable directory with a short name for a guest's control files (tried $XDG_RUNTIME_DIR and /tmp)",
        hint="Set XDG_RUNTIME_DIR to a directory you can write to, without spaces in its name.",
    )
