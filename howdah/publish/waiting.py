# SPDX-License-Identifier: Apache-2.0
"""The queue of an experiment that is being made: runs done, failed, in progress and to come, as the disk has them."""

from __future__ import annotations

import json
import statistics
from dataclasses import dataclass, field
from pathlib import Path

from howdah.record.directory import PARTIAL, RunDirectory
from howdah.record.index import IndexedRun, read_index
from howdah.record.run import read_record
from howdah.record.verdict import read_verdict

_MOST_NAMES = 12
_REPEATED = ("repetition",)


@dataclass(frozen=True)
class Queue:
    """Runs of an experiment. ``verdicts`` counts those made by verdict, and by status (``failed``) without one;
    ``to_come`` names the first that are neither made nor in progress, of ``waiting``; ``left_s`` is wall time."""

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
    """Reads each finished run once, so that a look is quick enough for a scrape a second."""

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
    """What repetitions of a run have in common, because they take about as long."""
    axes = {name: value for name, value in cell.axes.items() if name not in _REPEATED}
    return json.dumps([cell.algorithm, axes], sort_keys=True)


def _left(waiting: list[tuple[str, str]], begun: list[str], walls: dict[str, list[float]]) -> float | None:
    """Wall time until all runs are made, as many at once as now. A run takes as long as its repetitions did, else as
    the median of all; one in progress half of it. None before any run is made."""
    every = [wall for of_kind in walls.values() for wall in of_kind]
    if not every or not (waiting or begun):
        return None
    usual = statistics.median(every)
    took = {kind: statistics.median(of_kind) for kind, of_kind in walls.items()}
    work = sum(took.get(kind, usual) for _name, kind in waiting) + sum(took.get(kind, usual) / 2 for kind in begun)
    return work / max(1, len(begun))
