# SPDX-License-Identifier: Apache-2.0
"""A night: all cells, all comparisons, one correction for their number, and what it says as JSON and as text."""

from __future__ import annotations

import shlex
from collections import Counter
from dataclasses import asdict, dataclass, field
from pathlib import Path
from typing import Any

from howdah.nightly.comparison import FAILING, CellResult, Comparison, change_text
from howdah.nightly.significance import holm
from howdah.nightly.suite import Suite
from howdah.run.provenance import machine, software

FORMAT = 1
ALPHA = 0.05  # the chance of any false alarm on a night on which nothing has changed
_MOST_SHOWN = 8  # reasons of one cell on the terminal; night.json has all


@dataclass
class Night:
    """``problems`` are what went wrong beside the cells; ``again`` the options that a command needs to find this."""

    suite: Suite
    started: str
    ended: str = ""
    wall_s: float = 0.0
    runs_made: int = 0
    runs_found: int = 0
    baseline: Path = Path()
    runs: Path = Path()
    cells: list[CellResult] = field(default_factory=list)
    problems: list[str] = field(default_factory=list)

    def settle(self, alpha: float = ALPHA) -> None:
        """Correct all p-values of the night together and give every comparison its outcome."""
        tested = [each for cell in self.cells for each in cell.comparisons if each.p is not None]
        for each, adjusted in zip(tested, holm([each.p for each in tested if each.p is not None]), strict=True):
            each.settle(adjusted, alpha)

    @property
    def tests(self) -> int:
        return sum(each.p is not None for cell in self.cells for each in cell.comparisons)

    @property
    def failing(self) -> list[CellResult]:
        return [cell for cell in self.cells if cell.state in FAILING]

    @property
    def states(self) -> Counter[str]:
        return Counter(cell.state for cell in self.cells)

    def command(self, cell: CellResult) -> str:
        """The command that makes the cell's runs anew and compares them with this baseline."""
        words = ["howdah", "nightly", str(self.suite.path), "--only", cell.id, "--again"]
        words += ["--baseline", str(self.baseline), "--runs", str(self.runs)]
        return shlex.join(words)

    def look(self, cell: CellResult) -> str:
        """The command that runs the cell's experiment by itself, with a report."""
        series = next((one for one in self.suite.series if one.name == cell.experiment), None)
        return shlex.join(series.command) if series else ""

    def to_json(self) -> dict[str, Any]:
        return {
            "format": FORMAT,
            "suite": self.suite.name,
            "started": self.started,
            "ended": self.ended,
            "wall_s": self.wall_s,
            "howdah": software(),
            "host": machine(),
            "baseline": str(self.baseline),
            "alpha": ALPHA,
            "tests": self.tests,
            "runs": {"made": self.runs_made, "found": self.runs_found},
            "states": dict(self.states),
            "problems": self.problems,
            "cells": [self._cell(cell) for cell in self.cells],
        }

    def _cell(self, cell: CellResult) -> dict[str, Any]:
        return {
            "id": cell.id,
            "state": cell.state,
            **{name: getattr(cell, name) for name in ("experiment", "item", "kernel", "algorithm", "receiver", "axes")},
            "regressions": cell.regressions,
            "improvements": [change_text(each) for each in cell.of("improvement")],
            "problem": cell.problem,
            "notes": cell.notes,
            "reproduce": self.command(cell) if cell.state in FAILING else None,
            "comparisons": [asdict(each) for each in cell.comparisons],
        }

    def text(self) -> str:
        """What a person reads in the morning: what failed and how to see it again, what got better, and the counts."""
        lines = []
        for cell in self.failing:
            lines.append(f"✕ {cell.id}")
            lines += [f"    {reason}" for reason in cell.regressions[:_MOST_SHOWN]]
            if len(cell.regressions) > _MOST_SHOWN:
                lines.append(f"    and {len(cell.regressions) - _MOST_SHOWN} more")
            lines.append(f"    again: {self.command(cell)}")
        for cell in self.cells:
            better = cell.of("improvement")
            if better and cell not in self.failing:
                lines.append(f"↑ {cell.id}")
                lines += [f"    {change_text(each)}" for each in better[:_MOST_SHOWN]]
            if cell.state == "not built":
                lines.append(f"? {cell.id}  cannot be run, nor could the baseline: {cell.problem}")
            lines += [f"  {cell.id}: {note}" for note in cell.notes]
        lines += [f"! {problem}" for problem in self.problems]
        if self.states["new"]:
            lines.append(f"{self.states['new']} cells have no baseline; --accept stores one")
        counts = ", ".join(f"{number} {state}" for state, number in sorted(self.states.items()))
        lines.append(f"{self.suite.name}: {len(self.cells)} cells ({counts}), {self.tests} comparisons")
        return "\n".join(lines) + "\n"


def largest(comparisons: list[Comparison]) -> list[Comparison]:
    """Those that a page shows first: the surest, then the largest beside its margin."""

    def key(each: Comparison) -> tuple[float, float]:
        beside = abs(each.difference or 0.0) / each.margin if each.margin else 0.0
        return (each.adjusted if each.adjusted is not None else 1.0, -beside)

    return sorted(comparisons, key=key)
