# SPDX-License-Identifier: Apache-2.0
"""The change of a measure between two nights (its size, certainty and outcome), and the result of a cell: its
comparisons, its state, and the reasons why it fails."""

from __future__ import annotations

import math
import re
from collections import Counter
from collections.abc import Sequence
from dataclasses import dataclass, field
from typing import Literal, get_args

from howdah.claim.comparison import paired_difference
from howdah.measure.statistics import FEW, statistic
from howdah.nightly.sheet import Value
from howdah.nightly.significance import (
    OFTEN,
    effect_of,
    is_better_absent,
    paired_p,
    pairs_to_decide,
    pairs_to_decide_share,
    share_p,
    worse,
)
from howdah.record.model import Scalar

Tested = Literal["unchanged", "regression", "improvement", "unproven"]  # outcomes that p-values decide
Outcome = Literal[Tested, "equal", "vanished", "appeared", "not repeatable", "howdah changed"]
Pairs = Sequence[tuple[Value, Value]]  # values of one measure: baseline, tonight
LEAST_PAIRS = 2


@dataclass
class Comparison:
    """One measure of one cell. ``p`` is None without a test; ``adjusted`` is ``p`` after Holm's correction.

    ``low`` and ``high`` are the 95 % interval of the mean difference (tonight minus baseline), or with few pairs the
    smallest and largest difference (howdah/measure/statistics.py); None if all differences are equal. ``deviation`` is
    the standard deviation of the paired differences. ``before`` and ``after`` are shares of the repetitions, if the
    comparison is of how often something occurs. ``beyond``: the change is larger than the smallest that matters.
    ``needed`` is the number of repetitions that would decide an unproven change. ``differing`` is the number of pairs
    that differ, if the two nights must be equal.
    """

    metric: str
    flow: str
    unit: str
    pairs: int
    baseline: float | str | None = None
    tonight: float | str | None = None
    difference: float | None = None
    low: float | None = None
    high: float | None = None
    margin: float | None = None
    deviation: float | None = None
    before: float | None = None
    after: float | None = None
    differing: int | None = None
    p: float | None = None
    adjusted: float | None = None
    needed: int | None = None
    is_primary: bool = False
    is_worse: bool = True
    beyond: bool = False
    outcome: Outcome = "unchanged"

    @property
    def name(self) -> str:
        return f"{self.metric} of flow {self.flow}" if self.flow else self.metric

    @property
    def spread_words(self) -> str:
        """A label for ``low`` and ``high``."""
        return f"{self.pairs} pairs" if self.pairs < FEW else "95 %"

    def settle(self, adjusted: float, alpha: float) -> None:
        """Decide the outcome from the p-value corrected within its family. May be called again with another one."""
        self.adjusted = adjusted
        if self.outcome not in get_args(Tested):
            return
        if adjusted < alpha:
            self.outcome = "regression" if self.is_worse else "improvement"
        else:
            self.outcome = "unproven" if self.beyond else "unchanged"

    def estimate(self, alpha: float, tests: int) -> None:
        """Estimate how many repetitions would decide an unproven change among this many ``tests``."""
        if self.outcome != "unproven":
            return
        if self.before is not None and self.after is not None:
            self.needed = pairs_to_decide_share(self.before, self.after, tests, alpha)
        elif self.difference is not None and self.margin is not None:
            self.needed = pairs_to_decide(abs(self.difference) - self.margin, self.deviation or 0.0, tests, alpha)


def change_text(each: Comparison) -> str:
    """``retransmitted_packets of flow 1: 12 to 907 packets, +895 (95 %: +880 to +910), p = 0.001 corrected``; with few
    pairs ``(3 pairs: +880 to +910)``."""
    sure = f", p = {each.adjusted:.2g} corrected" if each.adjusted is not None else ""
    if each.outcome == "unproven":
        sure += ": changed, too few repetitions"
        sure += f" (about {each.needed} would decide)" if each.needed is not None else ""
    if each.differing is not None:
        sure = f", differs in {each.differing} of {each.pairs} repetitions"
    if isinstance(each.baseline, str) or isinstance(each.tonight, str) or each.difference is None:
        return f"{each.name}: {each.baseline} to {each.tonight}{sure}"
    unit = f" {each.unit}" if each.unit and each.unit != "ratio" else ""
    apart = ""
    if each.low is not None and each.high is not None:
        apart = f" ({each.spread_words}: {_digits(each.low, '+')} to {_digits(each.high, '+')})"
    change = f"{_digits(each.baseline or 0.0)} to {_digits(each.tonight or 0.0)}{unit}, {_digits(each.difference, '+')}"
    return f"{each.name}: {change}{apart}{sure}"


def _digits(value: float, sign: str = "") -> str:
    """Format a number with four significant digits in ASCII, without an exponent: ``1823000``."""
    text = f"{value:{sign}.4g}"
    return f"{float(text):{sign}.12f}".rstrip("0").rstrip(".") if "e" in text else text


def compare_measure(name: str, unit: str, values: Pairs) -> list[Comparison]:
    """Compare a measure between two kernels: none to two comparisons, whose outcome depends on the p-values of all
    cells.

    A measure that some repetitions lack is compared twice: how often it exists, and its value in the repetitions in
    which both nights have it.
    """
    metric, _, flow = name.partition("@")
    had, has = (sum(pair[side] is not None for pair in values) for side in (0, 1))
    found = []
    if 0 < had + has < 2 * len(values):
        found.append(_presence(Comparison(metric, flow, unit, len(values)), had, has))
    both = [(left, right) for left, right in values if left is not None and right is not None]
    if len(both) >= LEAST_PAIRS:
        found.append(_described(Comparison(metric, flow, unit, len(both)), both))
    return found


def compare_exactly(name: str, unit: str, values: Pairs, otherwise: Outcome) -> list[Comparison]:
    """Compare a measure between nights that must be equal in every repetition: none or one comparison, without a test.

    Its outcome is ``otherwise`` if any value differs or exists in one night only.
    """
    metric, _, flow = name.partition("@")
    had, has = (sum(pair[side] is not None for pair in values) for side in (0, 1))
    if not had and not has:
        return []
    count = len(values)
    found = Comparison(metric, flow, unit, count, f"in {had} of {count}", f"in {has} of {count}")
    if had == has == count:
        _described(found, [(left, right) for left, right in values if left is not None and right is not None])
    found.p = None
    found.outcome = "equal"
    differing = sum(left != right for left, right in values)
    if differing:
        found.outcome, found.differing = otherwise, differing
    return [found]


def _presence(found: Comparison, had: int, has: int) -> Comparison:
    """Compare how often a measure exists: a flow that no longer leaves slow start has no exit."""
    found.baseline, found.tonight = f"in {had} of {found.pairs}", f"in {has} of {found.pairs}"
    if not is_better_absent(found.metric):
        if not has and 2 * had >= found.pairs:
            found.outcome = "vanished"
            return found
        if not had:
            found.outcome = "appeared"
            return found
    found.is_worse = has > had if is_better_absent(found.metric) else has < had
    _shares(found, had, has, found.pairs)
    return found


def _shares(found: Comparison, had: int, has: int, count: int) -> None:
    found.before, found.after = had / count, has / count
    found.margin = OFTEN.absolute
    found.beyond = abs(has - had) > OFTEN.absolute * count
    found.p = share_p(had, has, count)


def _described(found: Comparison, both: list[tuple[float | str, float | str]]) -> Comparison:
    if any(isinstance(value, str) for pair in both for value in pair):
        return _texts(found, [(str(left), str(right)) for left, right in both])
    return _numbers(found, [(float(left), float(right)) for left, right in both])


def _texts(found: Comparison, both: list[tuple[str, str]]) -> Comparison:
    """Compare how often the text occurs whose share has changed most. A change of text is neither better nor worse, but
    unintended. With more than two texts, the p-value is corrected for the choice (Bonferroni)."""
    before, after = (Counter(pair[side] for pair in both) for side in (0, 1))
    found.baseline, found.tonight = _listed(before), _listed(after)
    texts = sorted(before | after)
    most = max(texts, key=lambda text: abs(after[text] - before[text]))
    _shares(found, before[most], after[most], len(both))
    if len(texts) > 2 and found.p is not None:
        found.p = min(1.0, found.p * len(texts))
    if all(left == right for left, right in both):
        found.outcome = "equal"
    return found


def _listed(counts: Counter[str]) -> str:
    if len(counts) == 1:
        return next(iter(counts))
    return ", ".join(f"{text} {counts[text]}" for text in sorted(counts, key=lambda text: (-counts[text], text)))


def _numbers(found: Comparison, both: list[tuple[float, float]]) -> Comparison:
    count = len(both)
    before, after = (math.fsum(pair[side] for pair in both) / count for side in (0, 1))
    interval = paired_difference([(right, left) for left, right in both])
    found.baseline, found.tonight, found.difference = before, after, interval.value
    found.margin = effect_of(found.metric, found.unit).margin(before)
    found.beyond = abs(interval.value) > found.margin
    differences = [right - left for left, right in both]
    if interval.low is not None and (spread := statistic(differences).about_mean()) is not None:
        found.low, found.high = spread.low, spread.high
    if count > 1:
        found.deviation = math.sqrt(math.fsum((each - interval.value) ** 2 for each in differences) / (count - 1))
    if all(left == right for left, right in both):
        found.outcome, found.p = "equal", 1.0
        return found
    found.p = paired_p(differences, found.margin, max(max(abs(left), abs(right)) for left, right in both))
    bad = worse(found.metric)
    found.is_worse = bad == "either" or (interval.value > 0) == (bad == "more")
    return found


_NOT_TEXT = re.compile(r"[\x00-\x1f\x7f]+")
_NAMED = 6  # most measures named in one line

Failing = Literal["regression", "not repeatable", "howdah changed", "cannot tell"]  # with any option of the night
State = Literal[Failing, "unproven", "not built", "improvement", "unchanged", "equal", "new", "gone"]
FAILING: tuple[Failing, ...] = get_args(Failing)  # Night.fails decides about other states
LABELS = {"unproven": "changed, too few repetitions"}  # other states are their own labels


def label(state: str) -> str:
    """The label of a state, or of a comparison's outcome, for readers."""
    return LABELS.get(state, state)


@dataclass
class CellResult:
    """A cell's result. ``broken`` are runs that counted in the baseline but not tonight; ``untold`` says why the cell
    cannot be judged; ``notes`` fail nothing. ``pairs`` are repetitions that count in both nights; ``wall_s`` is the
    wall time that tonight's runs took, whenever they were made."""

    experiment: str
    slug: str
    item: str
    kernel: str
    algorithm: str
    receiver: str
    axes: dict[str, Scalar] = field(default_factory=dict)
    comparisons: list[Comparison] = field(default_factory=list)
    broken: list[str] = field(default_factory=list)
    notes: list[str] = field(default_factory=list)
    untold: str | None = None
    problem: str | None = None
    is_new: bool = False
    is_gone: bool = False
    was_built: bool = False
    is_claim: bool = False
    pairs: int = 0
    wall_s: float = 0.0

    @property
    def id(self) -> str:
        return f"{self.experiment}/{self.slug}"

    def of(self, *outcomes: Outcome) -> list[Comparison]:
        return [each for each in self.comparisons if each.outcome in outcomes]

    @property
    def regressions(self) -> list[str]:
        """Descriptions of everything that is proven to be worse."""
        found = []
        if self.problem is not None and self.was_built:
            found.append(f"cannot be run: {self.problem}")
        found += self.broken
        found += [f"{each.name} has vanished: {each.pairs} runs count and none has it" for each in self.of("vanished")]
        found += [change_text(each) for each in self.of("regression")]
        return found

    @property
    def differences(self) -> list[str]:
        """Descriptions of differences despite the same kernel and plan in virtual time."""
        found = [f"not repeatable: {change_text(each)}" for each in self.of("not repeatable")]
        return found + [f"howdah changed: {change_text(each)}" for each in self.of("howdah changed")]

    @property
    def unproven(self) -> list[str]:
        """Descriptions of primary measures' changes that matter if they are real."""
        return [change_text(each) for each in self.of("unproven") if each.is_primary]

    @property
    def reasons(self) -> list[str]:
        """Everything that counts against the cell, the most certain first; empty if nothing does."""
        return [*self.regressions, *self.differences, *self.unproven, *([self.untold] if self.untold else [])]

    @property
    def hints(self) -> list[str]:
        """Descriptions of what the page reports although it fails nothing."""
        found = [f"better: {change_text(each)}" for each in self.of("improvement")]
        others = [each.name for each in self.of("unproven") if not each.is_primary]
        if others:
            count = f"{len(others)} other measure{'s' if others[1:] else ''}"
            more = f" and {len(others) - _NAMED} more" if others[_NAMED:] else ""
            found.append(f"for information: {count} changed, not proven: {', '.join(others[:_NAMED])}{more}")
        return found + self.notes

    @property
    def state(self) -> State:
        if self.regressions:
            return "regression"
        if self.of("not repeatable"):
            return "not repeatable"
        if self.of("howdah changed"):
            return "howdah changed"
        if self.unproven:
            return "unproven"
        if self.problem is not None:
            return "not built"
        if self.is_gone:
            return "gone"
        if self.is_new:
            return "new"
        if self.untold is not None:
            return "cannot tell"
        if self.of("improvement"):
            return "improvement"
        return "equal" if all(each.outcome == "equal" for each in self.comparisons) else "unchanged"


def one_line(text: str) -> str:
    """Replace line ends and terminal control characters by spaces."""
    return _NOT_TEXT.sub(" ", text)
