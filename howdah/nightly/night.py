# SPDX-License-Identifier: Apache-2.0
"""A night: all cells and comparisons, one correction for their number, and its report as JSON and as text."""

from __future__ import annotations

import shlex
from collections import Counter
from collections.abc import Callable
from dataclasses import dataclass, field
from pathlib import Path
from typing import Protocol

from pydantic import Field

from howdah.errors import HowdahError
from howdah.nightly.change import FAILING, LEAST_PAIRS, CellResult, Comparison, change_text, label
from howdah.nightly.significance import ALPHA, OTHER_ALPHA, PRIMARY_ALPHA, can_prove, holm, pairs_to_prove
from howdah.nightly.suite import Suite
from howdah.number import counted, delay, rate, size
from howdah.plan.path import Path as PlannedPath
from howdah.record.model import FilePart, Scalar
from howdah.record.provenance import machine, software
from howdah.record.run import HostMachine, Software
from howdah.report.results import read_shown

FORMAT = 2
_FAMILIES = ((True, PRIMARY_ALPHA), (False, OTHER_ALPHA))  # is primary, and the family's part of ALPHA
_MOST_SHOWN = 8  # most reasons of a cell on the terminal; night.json has all


class NightCommit(FilePart):
    hash: str
    subject: str


class JudgedCommit(NightCommit):
    state: str | None = Field(description="good, bad or skip, as git bisect has it")


class NightRange(FilePart):
    """The commits that a night compared."""

    tree: str
    against: str
    start: NightCommit
    commits: list[JudgedCommit]
    first_bad: str | None


class NightCell(FilePart):
    id: str
    state: str
    experiment: str
    item: str
    kernel: str
    algorithm: str
    receiver: str
    axes: dict[str, Scalar]
    fails: bool
    reasons: list[str]
    regressions: list[str]
    differences: list[str]
    unproven: list[str]
    improvements: list[str]
    problem: str | None
    notes: list[str]
    pairs: int
    wall_s: float
    reproduce: str | None
    comparisons: list[Comparison]


class NightFile(FilePart):
    """night.json (docs/nightly.md)."""

    format: int
    suite: str
    started: str
    ended: str
    wall_s: float
    howdah: Software
    host: HostMachine
    baseline: str
    alpha: dict[str, float]
    tests: dict[str, int]
    allow_unproven: bool
    require_baseline: bool
    runs: dict[str, int]
    states: dict[str, int]
    problems: list[str]
    cells: list[NightCell]
    range: NightRange | None = Field(default=None, description="only of a night over a range of commits")


class NightSpan(Protocol):
    """A range of commits, as a night reports it."""

    @property
    def baseline(self) -> str:
        """A description of the commit that each is compared with."""

    def words(self, experiment: str) -> list[str]:
        """Options of ``howdah nightly`` that repeat the comparison of one commit's experiment."""

    def look(self, experiment: str) -> str:
        """The command that shows the commit."""

    def file(self) -> NightRange:
        """The commits with their states, and the first that fails."""


@dataclass
class Night:
    """A night. ``problems`` are failures outside the cells. With ``allow_unproven`` a change that is not proven fails
    nothing; with ``require_baseline`` a cell without a baseline fails. ``span`` is the compared range of commits, None
    for an ordinary night."""

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
    allow_unproven: bool = False
    require_baseline: bool = False
    span: NightSpan | None = None

    def settle(self) -> None:
        """Decide all cells, and estimate how many repetitions unproven changes would need."""
        self.decide()
        for is_primary, alpha in _FAMILIES:
            family = self._family(is_primary)
            for each in family:
                each.estimate(alpha, len(family))

    def decide(self) -> None:
        """Correct the p-values, give every comparison its outcome, and find the cells that cannot be judged.

        Primary measures are one family and all others another; each is corrected separately (Holm) at its part of
        ALPHA. Together they raise a false alarm with a chance of at most ALPHA, and the many other measures do not
        weaken what few repetitions can prove about the primary ones.
        """
        for is_primary, alpha in _FAMILIES:
            family = self._family(is_primary)
            corrected = holm([each.p for each in family if each.p is not None])
            for each, adjusted in zip(family, corrected, strict=True):
                each.settle(adjusted, alpha)
        tests = self.primary_tests
        for cell in self.cells:
            cell.untold = cell.untold if cell.pairs < LEAST_PAIRS else _untold(cell, tests)

    def _family(self, is_primary: bool) -> list[Comparison]:
        return [
            each
            for cell in self.cells
            for each in cell.comparisons
            if each.is_primary is is_primary and each.p is not None
        ]

    @property
    def primary_tests(self) -> int:
        return len(self._family(True))

    @property
    def tests(self) -> int:
        return self.primary_tests + len(self._family(False))

    @property
    def compared_nothing(self) -> bool:
        """Whether no cell had anything to compare with: on the first night, or if no kernel builds."""
        return not any(
            cell.comparisons or cell.broken or cell.untold or (cell.problem is not None and cell.was_built)
            for cell in self.cells
        )

    def fails(self, cell: CellResult) -> bool:
        if cell.state == "unproven":
            return not self.allow_unproven or cell.untold is not None
        if cell.state == "new":
            return self.require_baseline or self.compared_nothing
        return cell.state in FAILING or self.compared_nothing

    @property
    def failing(self) -> list[CellResult]:
        return [cell for cell in self.cells if self.fails(cell)]

    @property
    def lacks_only_baselines(self) -> bool:
        """Whether cells fail only because they have nothing to compare with."""
        return bool(self.failing) and all(cell.state in ("new", "not built", "gone") for cell in self.failing)

    def reasons(self, cell: CellResult) -> list[str]:
        """Descriptions of why a cell fails; empty if it does not."""
        if not self.fails(cell):
            return []
        if cell.state == "new":
            return ["it has no baseline: howdah nightly --accept stores one"]
        if cell.state == "not built":
            return [f"cannot be run, and neither could the baseline: {cell.problem}"]
        return cell.reasons or ["no cell of the night was compared with anything"]

    def hints(self, cell: CellResult) -> list[str]:
        """Descriptions of what is reported about a cell although it fails nothing."""
        return [*(cell.reasons if not self.fails(cell) else []), *cell.hints]

    @property
    def states(self) -> Counter[str]:
        return Counter(cell.state for cell in self.cells)

    def command(self, cell: CellResult) -> str:
        """The command that repeats the cell's runs and compares them with this baseline."""
        words = ["howdah", "nightly", *self.suite.words]
        if self.span is not None:
            words += [*self.span.words(cell.experiment), "--only", f"{cell.item}/{cell.slug}", "--again"]
            return shlex.join([*words, "--runs", str(self.runs)])
        # Claims are judged together, over all runs of their experiment.
        words += ["--only", cell.experiment if cell.is_claim else cell.id, "--again"]
        words += ["--baseline", str(self.baseline), "--runs", str(self.runs)]
        return shlex.join(words)

    @property
    def baseline_name(self) -> str:
        return str(self.baseline) if self.span is None else self.span.baseline

    def look(self, cell: CellResult) -> str:
        """The command that runs the cell's experiment alone, with a report; for a range, the command that shows the
        commit."""
        if self.span is not None:
            return self.span.look(cell.experiment)
        series = next((one for one in self.suite.series if one.name == cell.experiment), None)
        return shlex.join(series.command) if series else ""

    def file(self) -> NightFile:
        return NightFile.made_of(
            self,
            format=FORMAT,
            suite=self.suite.name,
            howdah=software(),
            host=machine(),
            baseline=self.baseline_name,
            alpha={"all": ALPHA, "primary": PRIMARY_ALPHA, "other": OTHER_ALPHA},
            tests={"primary": self.primary_tests, "other": self.tests - self.primary_tests},
            runs={"made": self.runs_made, "found": self.runs_found},
            states=dict(self.states),
            cells=[self._cell(cell) for cell in self.cells],
            **({"range": self.span.file()} if self.span is not None else {}),
        )

    def _cell(self, cell: CellResult) -> NightCell:
        return NightCell.made_of(
            cell,
            fails=self.fails(cell),
            reasons=self.reasons(cell),
            improvements=[change_text(each) for each in cell.of("improvement")],
            notes=cell.hints,
            wall_s=round(cell.wall_s, 3),
            reproduce=self.command(cell) if self.fails(cell) else None,
        )

    def text(self) -> str:
        """The summary for a terminal: failures and how to repeat them, improvements, and counts."""
        lines = []
        failing = self.failing
        for cell in failing:
            reasons = self.reasons(cell)
            lines.append(f"✕ {cell.id}  {label(cell.state)}")
            lines += [f"    {reason}" for reason in reasons[:_MOST_SHOWN]]
            if len(reasons) > _MOST_SHOWN:
                lines.append(f"    and {len(reasons) - _MOST_SHOWN} more")
            if cell.state not in ("new", "gone"):
                lines.append(f"    again: {self.command(cell)}")
        for cell in self.cells:
            better = cell.of("improvement")
            if better and cell not in failing:
                lines.append(f"↑ {cell.id}")
            if cell.state == "not built" and cell not in failing:
                lines.append(f"? {cell.id}  cannot be run, and neither could the baseline: {cell.problem}")
            hints = self.hints(cell)
            lines += [f"  {cell.id}: {hint}" for hint in hints[:_MOST_SHOWN]]
            if len(hints) > _MOST_SHOWN:
                lines.append(f"  {cell.id}: and {len(hints) - _MOST_SHOWN} more")
        lines += [f"! {problem}" for problem in self.problems]
        if self.states["new"]:
            lines.append(f"{self.states['new']} cells have no baseline; --accept stores one")
        counts = ", ".join(f"{number} {label(state)}" for state, number in sorted(self.states.items()))
        lines.append(
            f"{self.suite.name}: {counted(len(self.cells), 'cell')} ({counts}), "
            f"{self.primary_tests} primary comparisons and {self.tests - self.primary_tests} others; "
            f"{self.runs_made} runs made, {self.runs_found} reused"
        )
        return "\n".join(lines) + "\n"


def _untold(cell: CellResult, tests: int) -> str | None:
    """Why a cell's comparisons could not have proven any change of a primary measure among this many ``tests``; None if
    they could."""
    if cell.is_new or cell.is_gone or cell.problem is not None:
        return None
    if cell.comparisons and all(each.outcome == "equal" for each in cell.comparisons):
        return None  # all bits are equal, so more repetitions would show nothing
    primary = [each for each in cell.comparisons if each.is_primary]
    if not primary:
        return "it has none of the primary measures: list measures that it has under primary:"
    if all(each.outcome == "equal" for each in primary) or can_prove(tests, cell.pairs, PRIMARY_ALPHA):
        return None
    return (
        f"{cell.pairs} repetitions in both nights can prove no change among {tests} primary comparisons: "
        f"{pairs_to_prove(tests, PRIMARY_ALPHA)} could"
    )


def largest(comparisons: list[Comparison]) -> list[Comparison]:
    """Return the comparisons in the page's order: the most certain first, then the largest relative to the margin."""

    def key(each: Comparison) -> tuple[float, float]:
        beside = abs(each.difference or 0.0) / each.margin if each.margin else 0.0
        return (each.adjusted if each.adjusted is not None else 1.0, -beside)

    return sorted(comparisons, key=key)


def settings(night: Night) -> dict[str, str]:
    """Return a line for each experiment: the requested and the actual kernels, and the paths of its runs."""
    found = {}
    for experiment, kernel in sorted({cell.experiment: cell.kernel for cell in night.cells}.items()):
        words, path = [kernel], night.runs / experiment
        if (path / "experiment.json").exists():
            try:
                runs = [run for run in read_shown(path).runs if run.plan]
            except HowdahError:
                runs = []  # night.problems reports it
            words += sorted({run.kernel for run in runs} - {kernel})
            points: dict[str, list[PlannedPath]] = {}
            for run in runs:
                if run.plan:
                    points.setdefault(run.point, []).append(run.plan.path)
            words += dict.fromkeys(_of_a_point(paths) for paths in points.values())
        found[experiment] = "; ".join(words)
    return found


def _of_a_point(paths: list[PlannedPath]) -> str:
    """``50 Mbit/s, 39.9 ms … 40.1 ms, buffer 250 kB``: repetitions perturb the path of a point."""
    rates = _range([path.rate_bits_per_second for path in paths], rate)
    delays = _range([path.rtt_us for path in paths], delay)
    return f"{rates}, {delays}, buffer {_range([path.buffer_bytes for path in paths], size)}"


def _range(values: list[int], written: Callable[[int], str]) -> str:
    return " … ".join(dict.fromkeys((written(min(values)), written(max(values)))))
