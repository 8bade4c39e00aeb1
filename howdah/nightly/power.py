# SPDX-License-Identifier: Apache-2.0
"""Which regressions a suite would find: simulated nights are drawn from its own baseline, with changes planted in them,
and decided by the code that decides every night."""

from __future__ import annotations

import math
import random
from collections.abc import Container, Iterator, Sequence
from dataclasses import dataclass, replace
from typing import Literal

from howdah.errors import HowdahError, ProfileError
from howdah.layout import headed
from howdah.nightly.change import CellResult, Comparison
from howdah.nightly.comparison import compare_sheets
from howdah.nightly.night import Night
from howdah.nightly.sheet import Baseline, CellSheet, NightSheet, Repetition, Value
from howdah.nightly.significance import (
    PRIMARY_ALPHA,
    Measures,
    can_prove,
    comparisons_provable,
    effect_of,
    least_p,
    pairs_to_prove,
)
from howdah.nightly.suite import Suite, SuiteExperiment, Wanted, slugs_of
from howdah.record.model import FilePart

REPETITIONS = (3, 5, 10, 20)
SHARES = (0.1, 0.2, 0.5)
TRIALS = 200
Kernel = Literal["the same", "another, alike", "another, scattered"]
KERNELS: tuple[Kernel, ...] = ("the same", "another, alike", "another, scattered")


@dataclass(frozen=True)
class Plant:
    """A regression: ``metric`` of one flow or run changes by a share of itself, up or down."""

    name: str
    metric: str
    sign: int


PLANTS = (
    Plant("exit", "exit_cwnd_packets", -1),
    Plant("retransmissions", "retransmitted_packets", 1),
    Plant("utilisation", "utilisation", -1),
)


@dataclass(frozen=True)
class Share:
    """Shares of simulated nights: in ``proven`` the planted change is a regression (or not repeatable); in ``failed``
    the planted cell fails for any reason. With nothing planted, both count nights with any such cell."""

    proven: float
    failed: float


@dataclass(frozen=True)
class PlantedRow:
    """One planted change (``share`` 0: none) on one kind of kernel, for each number of repetitions."""

    kernel: Kernel
    plant: str
    share: float
    found: list[Share]

    @property
    def planted(self) -> str:
        return f"{self.plant}, {100 * self.share:.0f} %" if self.share else "nothing"


class Power(FilePart):
    suite: str
    cells: int
    tests: int
    measured: int
    trials: int
    repetitions: list[int]
    accepted: list[bool]
    rows: list[PlantedRow]
    left_out: list[str]

    def text(self) -> str:
        """A Markdown table with a heading that explains it."""
        suite = ["accepted" if each else "refused" for each in self.accepted]
        lines = [
            *self._heading("regressions proven / cells that fail"),
            "| kernel | planted | " + " | ".join(f"{count} repetitions" for count in self.repetitions) + " |",
            "|" + "---|" * (2 + len(self.repetitions)),
            "| | a suite of this size is | " + " | ".join(suite) + " |",
        ]
        for row in self.rows:
            cells = [f"{each.proven:.0%} / {each.failed:.0%}".replace("%", " %") for each in row.found]
            lines.append(f"| {row.kernel} | {row.planted} | " + " | ".join(cells) + " |")
        return "\n".join(lines) + "\n"

    def table(self) -> str:
        """The table for a terminal."""
        rows = [["kernel", "planted", *(f"n = {count}" for count in self.repetitions)]]
        rows.append(["", "a suite of this size is", *("accepted" if each else "refused" for each in self.accepted)])
        for row in self.rows:
            cells = [f"{100 * each.proven:.0f} / {100 * each.failed:.0f}" for each in row.found]
            rows.append([row.kernel, row.planted, *cells])
        lines = self._heading("regressions proven / cells that fail, in %; n is the number of repetitions")
        return "\n".join([*lines, *headed(rows, labels=1)]) + "\n"

    def _heading(self, figures: str) -> list[str]:
        return [
            f"{self.suite}: {self.cells} cells, {self.tests} primary comparisons; the spread is that of "
            f"{self.measured} repetitions of each cell.",
            f"Each figure is of {self.trials} simulated nights: {figures}.",
            *(f"{name} has no baseline and is left out." for name in self.left_out),
            "",
        ]


@dataclass(frozen=True)
class _BaselinePart:
    """The source of simulated nights: an experiment's baseline, those of its cells that the suite has, and its primary
    measures."""

    sheet: NightSheet
    slugs: list[str]
    measures: Measures


def power_of(
    baseline: Baseline,
    suite: Suite,
    wanted: Wanted,
    repetitions: Sequence[int] = REPETITIONS,
    kernels: Sequence[Kernel] = KERNELS,
    trials: int = TRIALS,
) -> Power:
    """Simulate nights of the suite. Figures depend only on the baseline, not on which others are requested.

    Raises HowdahError if no cell has a baseline.
    """
    parts, left_out = [], []
    for one in suite.series:
        if one.name not in wanted:
            continue
        part = _part(baseline, one, wanted[one.name])
        if part is None:
            left_out.append(one.name)
        else:
            parts.append(part)
    if not parts:
        raise HowdahError(
            "there is no baseline to take the spread of repetitions from",
            where=str(baseline.directory),
            hint="'howdah nightly --accept' makes one; --baseline DIR names another place.",
        )
    nights = _Nights(suite, parts)
    counts = [len(_counting(part.sheet.cells[slug])) for part in parts for slug in part.slugs]
    tests = nights.unplanted(random.Random(0), max(REPETITIONS), "another, alike").primary_tests
    rows = []
    for kernel in kernels:
        columns = [nights.column(kernel, count, trials) for count in repetitions]
        for plant, share in columns[0]:
            rows.append(PlantedRow(kernel, plant, share, [column[plant, share] for column in columns]))
    return Power(
        suite=suite.name,
        cells=len(counts),
        tests=tests,
        measured=min(counts),
        trials=trials,
        repetitions=list(repetitions),
        accepted=[can_prove(tests, count, PRIMARY_ALPHA) for count in repetitions],
        rows=rows,
        left_out=left_out,
    )


def _part(baseline: Baseline, series: SuiteExperiment, wanted: set[str] | None) -> _BaselinePart | None:
    sheet = baseline.read(series.name)
    if sheet is None:
        return None
    slugs = [
        slug
        for slug in dict.fromkeys(slugs_of(series))
        if (wanted is None or slug in wanted) and slug in sheet.cells and len(_counting(sheet.cells[slug])) > 1
    ]
    primary = frozenset(metric for metric in series.measures.primary if series.measures.compares(metric))
    return _BaselinePart(sheet, slugs, Measures(primary, primary)) if slugs else None


def _counting(cell: CellSheet) -> list[Repetition]:
    return [each for _, each in sorted(cell.repetitions.items()) if each.counts]


class _Nights:
    """Simulated nights. Repetitions are drawn, with replacement, from those of the baseline.

    ``the same`` kernel gives the same values; so does ``another, alike`` except for the planted change. ``another,
    scattered`` draws tonight's repetitions independently, so that the two of a pair have nothing in common.
    """

    def __init__(self, suite: Suite, parts: list[_BaselinePart]) -> None:
        self.suite = suite
        self.parts = parts

    def unplanted(self, rng: random.Random, count: int, kernel: Kernel) -> Night:
        night, _ = self._draw(rng, count, kernel)
        return night

    def column(self, kernel: Kernel, count: int, trials: int) -> dict[tuple[str, float], Share]:
        """Return the shares for every planted change with ``count`` repetitions."""
        names = [("nothing", 0.0), *((plant.name, share) for plant in PLANTS for share in SHARES)]
        proven, failed = dict.fromkeys(names, 0), dict.fromkeys(names, 0)
        for trial in range(trials):
            rng = random.Random(f"{kernel} {count} {trial}")
            night, drawn = self._draw(rng, count, kernel)
            proven["nothing", 0.0] += any(_proven(cell) for cell in night.cells)
            failed["nothing", 0.0] += bool(night.failing)
            for plant in PLANTS:
                index, name = rng.choice(_places(drawn, plant))
                for share in SHARES:
                    planted = replace(night, cells=list(night.cells))
                    planted.cells[index] = drawn[index].planted(night.cells[index], name, 1 + plant.sign * share)
                    planted.decide()
                    proven[plant.name, share] += _proven(planted.cells[index], name)
                    failed[plant.name, share] += planted.fails(planted.cells[index])
        return {name: Share(proven[name] / trials, failed[name] / trials) for name in names}

    def _draw(self, rng: random.Random, count: int, kernel: Kernel) -> tuple[Night, list[_Drawn]]:
        drawn = [
            _Drawn.draw(part, slug, rng, count, kernel)
            for part in self.parts
            for slug in part.slugs
        ]  # fmt: skip
        night = Night(self.suite, "", cells=[each.compare() for each in drawn])
        night.decide()
        return night, drawn


@dataclass(frozen=True)
class _Drawn:
    """One cell in two simulated nights."""

    part: _BaselinePart
    slug: str
    before: list[Repetition]
    after: list[Repetition]
    kernel: Kernel

    @staticmethod
    def draw(part: _BaselinePart, slug: str, rng: random.Random, count: int, kernel: Kernel) -> _Drawn:
        there = _counting(part.sheet.cells[slug])
        before = rng.choices(there, k=count)
        after = rng.choices(there, k=count) if kernel == "another, scattered" else before
        return _Drawn(part, slug, before, after, kernel)

    def names(self, metric: str) -> Iterator[str]:
        """Yield the measure's names, for each flow, if all repetitions have it and the smallest of SHARES matters."""
        effect = effect_of(metric, self.part.sheet.units.get(metric, ""))
        there = _counting(self.part.sheet.cells[self.slug])
        for name in there[0].metrics:
            if name.partition("@")[0] != metric:
                continue
            values = [each.metrics.get(name) for each in there]
            numbers = [value for value in values if isinstance(value, float)]
            mean = math.fsum(numbers) / len(values)
            if len(numbers) == len(values) and min(SHARES) * abs(mean) > effect.margin(mean):
                yield name

    def compare(self) -> CellResult:
        """Compare the two nights like real ones."""
        return self._compared(*([each.metrics for each in side] for side in (self.before, self.after)))

    def planted(self, unplanted: CellResult, name: str, factor: float) -> CellResult:
        """Return the result with tonight's measure ``name`` multiplied by ``factor``. Only that measure is compared
        again."""
        before = [{name: each.metrics.get(name)} for each in self.before]
        after = [_scaled(each.metrics, name, factor) for each in self.after]
        again = iter(self._compared(before, after).comparisons)
        kept = [next(again) if _name(each) == name else each for each in unplanted.comparisons]
        return replace(unplanted, comparisons=kept)

    def _compared(self, before: list[dict[str, Value]], after: list[dict[str, Value]]) -> CellResult:
        """Compare two nights with these measures; all repetitions count."""
        tonight = self._sheet(after, "baseline" if self.kernel == "the same" else "tonight")
        (found,) = compare_sheets(self._sheet(before, "baseline"), tonight, [self.slug], self.part.measures)
        return found

    def _sheet(self, metrics: list[dict[str, Value]], kernel: str) -> NightSheet:
        cell = self.part.sheet.cells[self.slug]
        origin = replace(cell.origin, guest=kernel, virtual_clock=True)
        runs = {
            number: Repetition("pass", number, each, key=f"{kernel} {number}", plan=str(number))
            for number, each in enumerate(metrics)
        }
        return replace(self.part.sheet, cells={self.slug: replace(cell, origin=origin, repetitions=runs)})


def _places(drawn: list[_Drawn], plant: Plant) -> list[tuple[int, str]]:
    """Return where a change can be planted: positions of cells, and names of the measure. Raises HowdahError if
    nowhere."""
    found = [(index, name) for index, each in enumerate(drawn) for name in each.names(plant.metric)]
    if not found:
        raise HowdahError(
            f"no cell of the baseline has {plant.metric} in all repetitions, and so large that a change of "
            f"{min(SHARES):.0%} matters: nothing can be planted"
        )
    return found


def _scaled(metrics: dict[str, Value], name: str, factor: float) -> dict[str, Value]:
    value = metrics.get(name)
    return {name: value * factor if isinstance(value, float) else value}


def _name(each: Comparison) -> str:
    """The measure's name in a sheet: ``goodput_bits_per_second@1``."""
    return f"{each.metric}@{each.flow}".rstrip("@")


def _proven(cell: CellResult, name: str = "") -> bool:
    """Whether a comparison (of the measure ``name``, or any if empty) is a proven regression."""
    return any(
        each.outcome in ("regression", "not repeatable") for each in cell.comparisons if not name or _name(each) == name
    )


def primary_comparisons(series: SuiteExperiment, slugs: Container[str] | None = None) -> int:
    """The largest number of primary comparisons of these cells (None: all) that the profile allows."""
    known = {point.slug: point.scenario for point in series.profile.points}
    wanted = [slug for slug in dict.fromkeys(slugs_of(series)) if slugs is None or slug in slugs]
    return sum(series.measures.most_comparisons(known[slug]) for slug in wanted)


def check_provable(suite: Suite, wanted: Wanted, nights: int = 1) -> None:
    """Refuse a night, or several that are corrected together, if it could not tell even the largest change of a primary
    measure from chance.

    Raises ProfileError with the line of the suite that has too few repetitions, and how many are needed.
    """
    asked = [one for one in suite.series if one.name in wanted and one.claims is None]  # claims have no p-values
    tests = nights * sum(primary_comparisons(one, wanted[one.name]) for one in asked)
    for one in asked:
        pairs = one.profile.repetitions
        if can_prove(tests, pairs, PRIMARY_ALPHA):
            continue
        least = least_p(pairs)
        room = comparisons_provable(pairs, PRIMARY_ALPHA)
        few = f"{room} comparison{'' if room == 1 else 's'} at most" if room else "no comparison at all"
        raise ProfileError(
            f"{pairs} repetitions can prove no change: the smallest p-value that they can give is {least:.2g}, "
            f"corrected for {tests} primary comparisons {min(1.0, tests * least):.2g}, and it has to be below "
            f"{PRIMARY_ALPHA:g}",
            where=one.place,
            hint=f"Make it {pairs_to_prove(tests, PRIMARY_ALPHA)} repetitions. Or name fewer measures with primary: "
            f"(or fewer cells): {pairs} repetitions suffice for {few}.",
        )
