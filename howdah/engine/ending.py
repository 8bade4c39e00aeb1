# SPDX-License-Identifier: Apache-2.0
"""How a guest ended: its exit status, the end of its console, its control files, and the agent's record of the run."""

from __future__ import annotations

import json
import os
import re
import tempfile
from dataclasses import dataclass
from pathlib import Path

from howdah.errors import EngineUnavailableError, RecordError, RunFailedError
from howdah.record.agent import AgentFailure, AgentRecord
from howdah.record.directory import RunDirectory, read_json
from howdah.record.kernel_log import console_tail
from howdah.record.model import checked
from howdah.record.run import Confinement

EXIT_FILE = "guest-exit.json"
BOUNDS_FILE = "guest-bounds.txt"
BOUNDS = ("files", "network", "privileges")


_SHORT = 60  # most characters of a directory's name: the path of a socket in it is limited to 107


_FLOW = re.compile(r"flow \d+")
_PLAIN = re.compile(r"[!-~]+")  # safe in a kernel command line: no space, no control character


@dataclass(frozen=True)
class Bounds:
    """How the launcher confined a guest's process (howdah/build/confine.h).

    ``kept_from`` lists the BOUNDS that this machine could enforce. ``addresses_fixed``: the process had the same
    addresses as in every other run; otherwise its memory differs between runs.
    """

    kept_from: tuple[str, ...]
    addresses_fixed: bool

    @staticmethod
    def read(path: Path) -> Bounds:
        """Read the launcher's line. Raises OSError."""
        words = path.read_text(encoding="ascii").split()
        return Bounds(tuple(name for name in BOUNDS if name in words), "addresses" in words)

    def described(self) -> Confinement:
        """Return the ``confinement`` of run.json."""
        return Confinement(kept_from=list(self.kept_from), addresses_fixed=self.addresses_fixed)


@dataclass(frozen=True)
class Ending:
    """How the guest's command ended: its exit status, or the signal that killed it."""

    exit_status: int | None
    signal: int | None
    wall_s: float
    memory_peak_bytes: int  # peak resident memory of the kernel's process
    bounds: Bounds | None = None  # None if the launcher does not confine the process


def runtime_base() -> Path:
    """Return the base for private directories: short and plain, because kernel command lines break at spaces.

    Raises EngineUnavailableError if no directory is suitable.
    """
    named = (os.environ.get("XDG_RUNTIME_DIR"), "/tmp", tempfile.gettempdir())
    for path in (Path(name) for name in named if name):
        short = _PLAIN.fullmatch(str(path)) and len(str(path)) < _SHORT
        if short and path.is_dir() and os.access(path, os.W_OK | os.X_OK):
            return path
    raise EngineUnavailableError(
        "no writable directory with a short name for a guest's control files (tried $XDG_RUNTIME_DIR and /tmp)",
        hint="Set XDG_RUNTIME_DIR to a directory you can write to, without spaces in its name.",
    )


def check_agent(directory: RunDirectory, ending: Ending, places: dict[str, str] | None = None) -> AgentRecord:
    """Return the agent's record of a successful run. Raises RunFailedError for any other.

    ``places`` are the plan's: they map a flow of programs to its line in the profile, for errors.
    """
    how = f"signal {ending.signal}" if ending.signal else f"status {ending.exit_status}"
    said = "\n    ".join(console_tail(directory.console))
    hint = f"Last lines of the console:\n    {said}" if said else None
    try:
        file = directory.raw / "agent.json"
        record = checked(AgentRecord, read_json(file), file)
    except FileNotFoundError:
        raise RunFailedError(
            f"the agent ended ({how}) without a record of its run", where=str(directory.console), hint=hint
        ) from None
    except ValueError as reason:
        why = reason.what if isinstance(reason, RecordError) else reason
        raise RunFailedError(
            f"the agent's record cannot be read ({why}); is the disk full?", where=str(directory.raw / "agent.json")
        ) from None
    if record.status != "ok":
        error = record.error or AgentFailure()
        operation = error.operation
        during = f" during {json.dumps(operation)}" if operation else ""
        flow = _FLOW.match(str(operation))
        place = (places or {}).get(flow[0]) if flow else None
        raise RunFailedError(
            f"the agent stopped{during}: {error.message or how}",
            where=place or str(directory.console),
            hint=None if error.message else hint,
        )
    if ending.exit_status != 0:
        raise RunFailedError(f"the agent ended with {how} after its run", where=str(directory.console), hint=hint)
    return record
