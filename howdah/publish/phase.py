# SPDX-License-Identifier: Apache-2.0
"""Reads from disk how far experiments and runs are, without asking any process."""

from __future__ import annotations

import os
from dataclasses import dataclass
from pathlib import Path

from howdah.record.directory import PARTIAL, RunDirectory, read_json

# In order. The first two are the engine's, those up to "collect" the agent's, the others are stages of the analysis.
PHASES = (
    *("prepare", "boot", "setup", "calibrate-before", "flows", "quiesce", "calibrate-after", "collect"),
    *("ingest", "measure", "judge", "conclude"),
)
_LOCKS = Path("/proc/locks")
_FIRST_BUILT = ("kernel", "tree", "tool", "module")


@dataclass(frozen=True)
class Position:
    """Where a run is. Simulated time counts from the guest's boot; ``of_us`` is 0 before the agent knows the end."""

    phase: str
    time_us: int = 0
    of_us: int = 0

    @property
    def share(self) -> float:
        return min(1.0, max(0.0, self.time_us / self.of_us)) if self.of_us else 0.0


def position(directory: RunDirectory) -> Position:
    """The position of a run in progress."""
    said = _said(directory.raw / "progress.json")
    if said is None:
        return Position("boot" if directory.console.exists() else "prepare")
    if said.phase != "done":
        return said
    return Position(_analysis_phase(directory), said.time_us, said.of_us)


def _said(file: Path) -> Position | None:
    try:
        value = read_json(file)
        return Position(str(value["phase"]), int(value["time_us"]), int(value["of_us"]))
    except (OSError, ValueError, KeyError, TypeError):
        return None  # not there yet


def _analysis_phase(directory: RunDirectory) -> str:
    """The running stage of the analysis, from the files that earlier stages left."""
    for phase, left in (("conclude", directory.verdict), ("judge", directory.metrics)):
        if left.exists():
            return phase
    return "measure" if directory.ingested.exists() else "ingest"


@dataclass(frozen=True)
class ExperimentPhase:
    """An experiment that a command works in: its runs made, of how many (0: not known yet), and what is being built."""

    path: Path
    made: int
    of: int
    building: tuple[str, ...]


def held_experiments(runs: Path, cache: Path) -> list[ExperimentPhase]:
    """Experiments whose lock is held, by the kernel's list, because trying a lock could make a command fail."""
    holders = _flock_holders()
    found = []
    for lock in sorted(runs.glob("*/.lock")):
        if lock.parent.is_symlink():
            continue
        try:
            state = lock.stat()
        except OSError:
            continue
        holder = holders.get((os.major(state.st_dev), os.minor(state.st_dev), state.st_ino))
        if holder is not None:
            made, of = _cells(lock.parent)
            found.append(ExperimentPhase(lock.parent, made, of, _building(cache, holder)))
    return found


def _flock_holders() -> dict[tuple[int, int, int], int]:
    """Process by device and inode (proc_locks(5)): ``1: FLOCK ADVISORY WRITE 123 fe:00:456 0 EOF``."""
    found: dict[tuple[int, int, int], int] = {}
    try:
        lines = _LOCKS.read_text(encoding="ascii").splitlines()
    except OSError:
        return found
    for line in lines:
        words = line.split()
        if len(words) >= 6 and words[1] == "FLOCK":
            major, minor, inode = words[5].split(":")
            found[int(major, 16), int(minor, 16), int(inode)] = int(words[4])
    return found


def _cells(experiment: Path) -> tuple[int, int]:
    try:
        cells = read_json(experiment / "experiment.json")["cells"]
        return sum((experiment / str(cell["run"]) / "run.json").exists() for cell in cells), len(cells)
    except (OSError, ValueError, KeyError, TypeError):
        return 0, 0


def _building(cache: Path, holder: int) -> tuple[str, ...]:
    """The kinds of what this process is building in the cache, slowest first."""
    kinds = {entry.parent.name for entry in cache.glob(f"*/{PARTIAL}*-{holder}")}
    return tuple(sorted(kinds, key=lambda kind: (kind not in _FIRST_BUILT, kind)))
