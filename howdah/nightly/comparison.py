# SPDX-License-Identifier: Apache-2.0
"""A cell of tonight against the same cell of the baseline, measure by measure, in pairs of equal repetitions."""

from __future__ import annotations

import math
from collections import Counter
from dataclasses import dataclass, field
from typing import Any, Literal

from howdah.claim.comparison import paired_difference
from howdah.nightly.effect import OF_LOSSES, TEXT, effect_of, worse
from howdah.nightly.sheet import CellSheet, Sheet, Value
from howdah.nightly.significance import paired_p, share_p

Outcome = Literal["equal", "unchanged", "regression", "improvement", "vanished", "appeared"]
State = Literal["regression", "not built", "improvement", "unchanged", "equal", "new", "gone"]
FAILING: tuple[State, ...] = ("regression",)
LEAST_PAIRS = 2


@dataclass
class Comparison:
    """One measure of one cell. ``p`` is None where nothing was tested; ``adjusted`` is it after Holm's correction.

    ``low`` and ``high`` are the 95 % interval of the mean difference (tonight less baseline), None where it has none.
    """

    metric: str
    flow: str
    unit: str
    pairs: int
    baseline: float | str | None
    tonight: float | str | None
    difference: float | None = None
    low: float | None = None
    high: float | None = None
    margin: float | None = None
    p: float | None = None
    adjusted: float | None = None
    is_worse: bool = True
    outcome: Outcome = "unchanged"

    @property
    def name(self) -> str:
        return f"{self.metric} of flow {self.flow}" if self.flow else self.metric

    def settle(self, adjusted: float, alpha: float) -> None:
        """The outcome, when all p-values of the night are known."""
        self.adjusted = adjusted
        if adjusted < alpha:
            self.outcome = "regression" if self.is_worse else "improvement"


@dataclass
class CellResult:
    """What became of a cell. ``broken`` are runs that counted in the baseline and do not tonight; ``notes`` are told
    and fail nothing."""

    experiment: str
    slug: str
    item: str
    kernel: str
    algorithm: str
    receiver: str
    axes: dict[str, Any] = field(default_factory=dict)
    comparisons: list[Comparison] = field(default_factory=list)
    broken: list[str] = field(default_factory=list)
    notes: list[str] = field(default_factory=list)
    problem: str | None = None
    is_new: bool = False
    is_gone: bool = False
    was_built: bool = False

    @property
    def id(self) -> str:
        return f"{self.experiment}/{self.slug}"

    def of(self, outcome: Outcome) -> list[Comparison]:
        return [each for each in self.comparisons if each.outcome == outcome]

    @property
    def regressions(self) -> list[str]:
        """Every reason why this cell fails, in words; empty if it does not."""
        found = []
        if self.problem is not None and self.was_built:
            found.append(f"cannot be run: {self.problem}")
        found += self.broken
        found += [f"{each.name} has vanished: {each.pairs} runs count and none has it" for each in self.of("vanished")]
        found += [change_text(each) for each in self.of("regression")]
        return found

    @property
    def state(self) -> State:
        if self.regressions:
            return "regression"
        if self.problem is not None:
            return "not built"
        if self.is_gone:
            return "gone"
        if self.is_new:
            return "new"
        if self.of("improvement"):
            return "improvement"
        return "equal" if all(each.outcome == "equal" for each in self.comparisons) else "unchanged"


def change_text(each: Comparison) -> str:
    """``retransmitted_packets of flow 1: 12 to 907 packets, +895 (95 %: +880 to +910), p = 0.001 corrected``."""
    p = f"p = {each.adjusted:.2g} corrected" if each.adjusted is not None else "not tested"
    if isinstance(each.baseline, str) or isinstance(each.tonight, str) or each.difference is None:
        return f"{each.name}: {each.baseline} to {each.tonight}, {p}"
    unit = f" {each.unit}" if each.unit and each.unit != "ratio" else ""
    interval = f" (95 %: {each.low:+.4g} to {each.high:+.4g})" if each.low is not None and each.high is not None else ""
    return f"{each.name}: {each.baseline:.4g} to {each.tonight:.4g}{unit}, {each.difference:+.4g}{interval}, {p}"


def compare_sheets(baseline: Sheet | None, tonight: Sheet, slugs: list[str]) -> list[CellResult]:
    """The cells that the suite asks of an experiment, then those that only the baseline has.

    Comparisons have no outcome yet where they have a p-value: that takes those of all cells.
    """
    found = []
    of_baseline = baseline.cells if baseline is not None else {}
    units = {**(baseline.units if baseline is not None else {}), **tonight.units}
    was_built = baseline is not None and baseline.problem is None
    for slug in slugs:
        before, after = of_baseline.get(slug), tonight.cells.get(slug)
        cell = after or before or CellSheet({}, "", "")
        result = CellResult(
            tonight.experiment, slug, tonight.item, tonight.kernel, cell.algorithm, cell.receiver, cell.axes
        )
        result.problem, result.was_built = tonight.problem, was_built
        if tonight.problem is None:
            _compare_cell(before, after, units, result)
        found.append(result)
    return found


def gone_cells(baseline: Sheet, slugs: list[str]) -> list[CellResult]:
    """Cells of the baseline that the suite does not ask for any more."""
    return [
        CellResult(
            *(baseline.experiment, slug, baseline.item, baseline.kernel, cell.algorithm, cell.receiver, cell.axes),
            is_gone=True,
        )
        for slug, cell in baseline.cells.items()
        if slug not in slugs
    ]


def _compare_cell(before: CellSheet | None, after: CellSheet | None, units: dict[str, str], result: CellResult) -> None:
    there = after.repetitions if after is not None else {}
    if before is None:
        result.is_new = True
        bad = [
            f"repetition {number} is {each.verdict}: {each.why}" for number, each in there.items() if not each.counts
        ]
        result.notes += bad
        return
    for number, each in sorted(before.repetitions.items()):
        now = there.get(number)
        if each.counts and (now is None or not now.counts):
            what = f"is {now.verdict}: {now.why}" if now is not None else "was not made"
            result.broken.append(f"repetition {number} {what}")
    if after is not None and before.plan and after.plan and before.plan != after.plan:
        result.notes.append("the plan is not that of the baseline any more: it was run with other settings")
    pairs = [
        (each, there[number])
        for number, each in sorted(before.repetitions.items())
        if number in there and each.counts and there[number].counts and each.seed == there[number].seed
    ]
    if len(pairs) < LEAST_PAIRS:
        result.notes.append(f"only {len(pairs)} repetitions are in both nights with the same seed: nothing to compare")
        return
    names = dict.fromkeys(name for side in zip(*pairs, strict=True) for each in side for name in each.metrics)
    for name in names:
        values = [(left.metrics.get(name), right.metrics.get(name)) for left, right in pairs]
        found = _compare(name, values, units)
        if found is not None:
            result.comparisons.append(found)


def _compare(name: str, values: list[tuple[Value, Value]], units: dict[str, str]) -> Comparison | None:
    metric, _, flow = name.partition("@")
    unit = units.get(metric, "")
    count = len(values)
    had, has = (sum(pair[side] is not None for pair in values) for side in (0, 1))
    if not had and not has:
        return None
    both = [(left, right) for left, right in values if left is not None and right is not None]
    found = Comparison(metric, flow, unit, count, None, None)
    if had != has and (len(both) < LEAST_PAIRS or abs(had - has) * 2 >= count):
        return _presence(found, had, has)
    if len(both) < LEAST_PAIRS:
        found.baseline, found.tonight = f"in {had} of {count}", f"in {has} of {count}"
        return found
    found.pairs = len(both)
    texts = [(str(left), str(right)) for left, right in both if isinstance(left, str) or isinstance(right, str)]
    if texts:
        return _texts(found, [(str(left), str(right)) for left, right in both])
    return _numbers(found, [(float(left), float(right)) for left, right in both])


def _presence(found: Comparison, had: int, has: int) -> Comparison:
    """A measure that is there less, or more, often: a flow that does not leave slow start any more has no exit."""
    found.baseline, found.tonight = f"in {had} of {found.pairs}", f"in {has} of {found.pairs}"
    if found.metric in OF_LOSSES:
        found.p, found.is_worse = share_p(had, has, found.pairs), has > had
    elif not has and 2 * had >= found.pairs:
        found.outcome = "vanished"
    elif not had:
        found.outcome = "appeared"
    else:
        found.p, found.is_worse = share_p(had, has, found.pairs), has < had
    return found


def _texts(found: Comparison, both: list[tuple[str, str]]) -> Comparison:
    """How often the baseline's most frequent text is there; from one text to another is neither better nor worse, and
    nobody meant it."""
    usual = Counter(left for left, _ in both).most_common(1)[0][0]
    found.baseline, found.tonight = (_shares([pair[side] for pair in both]) for side in (0, 1))
    found.p = share_p(sum(left == usual for left, _ in both), sum(right == usual for _, right in both), len(both))
    found.margin = TEXT.absolute
    if all(left == right for left, right in both):
        found.outcome = "equal"
    return found


def _shares(texts: list[str]) -> str:
    counts = Counter(texts)
    if len(counts) == 1:
        return texts[0]
    return ", ".join(f"{text} {counts[text]}" for text in sorted(counts, key=lambda text: (-counts[text], text)))


def _numbers(found: Comparison, both: list[tuple[float, float]]) -> Comparison:
    count = len(both)
    before, after = (math.fsum(pair[side] for pair in both) / count for side in (0, 1))
    interval = paired_difference([(right, left) for left, right in both])
    found.baseline, found.tonight, found.difference = before, after, interval.value
    found.low, found.high = interval.low, interval.high
    found.margin = effect_of(found.metric, found.unit).margin(before)
    scale = max(max(abs(left), abs(right)) for left, right in both)
    if all(left == right for left, right in both):
        found.outcome, found.p = "equal", 1.0
        return found
    found.p = paired_p([right - left for left, right in both], found.margin, scale)
    bad = worse(found.metric)
    found.is_worse = bad == "either" or (interval.value > 0) == (bad == "more")
    return found
