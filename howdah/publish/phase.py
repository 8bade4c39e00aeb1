# SPDX-License-Identifier: Apache-2.0
"""Progress of experiments and runs: what is done, failed, in progress and waiting. Read from disk alone, without asking
any process."""

from __future__ import annotations

import json
import os
import statistics
from dataclasses import dataclass, field
from pathlib import Path

from howdah.record.directory import PARTIAL, RunDirectory, read_json
from howdah.record.index import IndexedRun, read_index
from howdah.record.run import read_record
from howdah.record.verdict import read_verdict

# In order. The first two are the engine's, those up to "collect" the agent's, the others are stages of the analysis.
PHASES = (
    *("prepare", "boot", "setup", "calibrate-before", "flows", "quiesce", "calibrate-after", "collect"),
    *("ingest", "measure", "judge", "conclude"),
)
_LOCKS = Path("/proc/locks")
_FIRST_BUILT = ("kernel", "tree", "tool", "module")


@dataclass(frozen=True)
class Position:
    """The progress of a run. Simulated time counts from the guest's boot; ``of_us`` is 0 until the end is known."""

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
    """The running stage of the analysis, judged by the files of earlier stages."""
    for phase, left in (("conclude", directory.verdict), ("judge", directory.metrics)):
        if left.exists():
            return phase
    return "measure" if directory.ingested.exists() else "ingest"


@dataclass(frozen=True)
class ExperimentPhase:
    """An experiment that a command is working on: runs made, total runs (0: not known yet), and what is being built."""

    path: Path
    made: int
    of: int
    building: tuple[str, ...]


def held_experiments(runs: Path, cache: Path) -> list[ExperimentPhase]:
    """The experiments whose lock is held. Taken from the kernel's list: trying a lock could make a command fail."""
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
    """Process ids by device and inode (proc_locks(5)): ``1: FLOCK ADVISORY WRITE 123 fe:00:456 0 EOF``."""
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
    """The kinds of objects that this process is building in the cache, slowest first."""
    kinds = {entry.parent.name for entry in cache.glob(f"*/{PARTIAL}*-{holder}")}
    return tuple(sorted(kinds, key=lambda kind: (kind not in _FIRST_BUILT, kind)))


_MOST_NAMES = 12
_REPEATED = ("repetition",)


@dataclass(frozen=True)
class Queue:
    """The runs of an experiment. ``verdicts`` counts finished runs by verdict, or by status (``failed``) without one;
    ``to_come`` names the first of the ``waiting`` runs; ``left_s`` is wall time."""

    verdicts: dict[str, int]
    in_progress: int
    waiting: int
    to_come: list[str]
    left_s: float | None


@dataclass(frozen=True)
class _Made:
    verdict: str
    wall_s: float | None


@dataclass
class Queues:
    """Reads each finished run only once, so that it is fast enough for a scrape a second."""

    _made: dict[tuple[Path, int], _Made] = field(default_factory=dict)  # by the time at which run.json was written

    def of(self, experiment: Path) -> Queue | None:
        """The queue of an experiment; None until experiment.json lists its runs."""
        try:
            rows = [(cell.run, _kind(cell)) for cell in read_index(experiment / "experiment.json").cells]
            partial = [entry.name.removeprefix(PARTIAL) for entry in experiment.glob(f"{PARTIAL}*")]
        except (OSError, ValueError, KeyError, TypeError):
            return None
        verdicts: dict[str, int] = {}
        walls: dict[str, list[float]] = {}
        waiting: list[tuple[str, str]] = []
        begun: list[str] = []
        for name, kind in rows:
            made = self._of_run(experiment / name)
            if made is not None:
                verdicts[made.verdict] = verdicts.get(made.verdict, 0) + 1
                if made.wall_s is not None:
                    walls.setdefault(kind, []).append(made.wall_s)
            elif any(each.startswith(f"{name}-") for each in partial):
                begun.append(kind)
            else:
                waiting.append((name, kind))
        return Queue(
            verdicts,
            len(begun),
            len(waiting),
            [name for name, _kind in waiting[:_MOST_NAMES]],
            _left(waiting, begun, walls),
        )

    def _of_run(self, run: Path) -> _Made | None:
        try:
            key = (run, (run / "run.json").stat().st_mtime_ns)
            if key not in self._made:
                record = read_record(RunDirectory(run))
                wall = record.wall_s
                verdict: str = record.status
                if verdict == "finished":
                    verdict = read_verdict(RunDirectory(run)).verdict
                self._made[key] = _Made(verdict, float(wall) if isinstance(wall, int | float) else None)
        except (OSError, ValueError, KeyError, TypeError, AttributeError):
            return None
        return self._made[key]


def _kind(cell: IndexedRun) -> str:
    """What the repetitions of a run have in common; they take about equally long."""
    axes = {name: value for name, value in cell.axes.items() if name not in _REPEATED}
    return json.dumps([cell.algorithm, axes], sort_keys=True)


def _left(waiting: list[tuple[str, str]], begun: list[str], walls: dict[str, list[float]]) -> float | None:
    """Estimate the wall time until all runs are made, with as many at once as now; None before the first run is made. A
    run takes the median time of its repetitions, else of all runs; a run in progress needs half of that."""
    every = [wall for of_kind in walls.values() for wall in of_kind]
    if not every or not (waiting or begun):
        return None
    usual = statistics.median(every)
    took = {kind: statistics.median(of_kind) for kind, of_kind in walls.items()}
    work = sum(took.get(kind, usual) for _name, kind in waiting) + sum(took.get(kind, usual) / 2 for kind in begun)
    return work / max(1, len(begun))
