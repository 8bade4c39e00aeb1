# SPDX-License-Identifier: Apache-2.0
"""Score candidates: by how much a claim fails, or by how large or small a number is."""

from __future__ import annotations

import math
from dataclasses import dataclass
from typing import Any, Protocol

from howdah.claim.comparison import Interval
from howdah.claim.expectation import Compared, bounds, compare
from howdah.claim.finding import FAIL, PASS, metric_named, missing_text, number_text
from howdah.claim.judging import Judging
from howdah.claim.sample import ClaimRuns, SelectionError, sample
from howdah.engine.crash import is_crash
from howdah.measure.statistics import statistic
from howdah.metric import RATIO, Metric
from howdah.profile.claim import ClaimSection, RangeSection, SelectorSection
from howdah.profile.search import GoalSection, SearchSection
from howdah.record.claims import ComparisonRow, PointRow

SMALLEST = 1e-12


@dataclass(frozen=True)
class CandidateScore:
    """The score of a candidate. ``value`` is larger for a better counterexample, or None if its runs have no result;
    ``found`` tells whether it is a counterexample.

    ``text`` is the measured number in words, or why it is missing; ``written`` is the number in the form of a claim.
    """

    value: float | None
    found: bool
    text: str
    written: str = ""


class Goal(Protocol):
    def score(self, runs: ClaimRuns) -> CandidateScore:
        """The score of one candidate's runs."""
        ...

    def keeps(self, before: CandidateScore, now: CandidateScore) -> bool:
        """Whether a simpler candidate shows (nearly) the same as the one before."""
        ...

    @property
    def says(self) -> str:
        """The goal in words."""
        ...


KEPT_SHARE = 0.9  # share of the found value that a simpler candidate must reach


@dataclass(frozen=True)
class Falsify:
    """Make ``claim`` fail. The score is the distance from the bound, relative to it; negative while the claim holds."""

    claim: ClaimSection

    @property
    def says(self) -> str:
        return f"the claim {self.claim.id} fails ({self.claim.says})"

    def score(self, runs: ClaimRuns) -> CandidateScore:
        judging = Judging(self.claim, runs, quick=False)
        found = judging.judge()
        verdict, measured = found.verdict, found.measured
        text = measured.text if measured else found.why
        if verdict not in (PASS, FAIL) or measured is None:
            return CandidateScore(None, False, found.why or text)
        points = measured.points
        margins = [margin for point in points if (margin := self._margin(point)) is not None]
        without = next((why for point in points if (why := judging.missing(point.at))), "")
        if without or len(margins) < len(points):  # no score if any run lacks the value
            return CandidateScore(None, False, without or found.why or text)
        margin = (min if self.claim.hold == "any" else max)(margins)
        if found.than:
            text = f"{text} against {found.than.text}"
        ok = verdict == FAIL
        return CandidateScore(max(margin, SMALLEST) if ok else min(margin, -SMALLEST), ok, text)

    def keeps(self, before: CandidateScore, now: CandidateScore) -> bool:
        assert before.value is not None
        return now.found and now.value is not None and now.value >= before.value / 2

    def _margin(self, point: PointRow) -> float | None:
        expect = self.claim.expect
        assert expect is not None and self.claim.value is not None
        metric = metric_named(self.claim.value.metric)
        if expect.is_ is not None:
            return 1.0 if point.verdict == FAIL else -1.0
        compared = point.comparison
        if expect.word is not None:
            return None if compared is None else _by_word(expect.word, point.mean, compared)
        if expect.ratio is not None:
            return None if compared is None else _miss(expect.ratio, RATIO, compared.ratio)
        if expect.difference is not None:
            return None if compared is None else _miss(expect.difference, metric, compared.difference)
        return _miss(expect, metric, point.mean)


def _miss(expect: RangeSection, metric: Metric, value: float | None) -> float | None:
    """The distance from a value to the nearer bound of a range, relative to the bound; negative inside the range."""
    if value is None:
        return None
    low, high = bounds(expect, metric)
    misses = [
        (sign * (bound - value)) / (abs(bound) or 1.0) for sign, bound in ((1, low), (-1, high)) if bound is not None
    ]
    return max(misses)


def _by_word(word: str, mean: float | None, compared: ComparisonRow) -> float | None:
    if mean is None:
        return None
    than = mean - compared.difference
    scale = abs(than) or 1.0
    factor = {"much more": 2.0, "more": 1.0, "less": 1.0, "much less": 0.5}.get(word)
    if factor is None:
        return abs(mean - than) / scale - 0.1
    difference = (factor * than - mean) / scale
    return difference if "more" in word else -difference


@dataclass(frozen=True)
class Extreme:
    """Make a number, or a comparison of two, as large (sign 1) or as small (sign -1) as possible."""

    goal: GoalSection
    sign: int

    @property
    def metric(self) -> Metric:
        return metric_named(self.goal.metric)

    @property
    def says(self) -> str:
        most = "the largest" if self.sign > 0 else "the smallest"
        what = f"{self.goal.by} of {self.goal.metric}" if self.goal.than is not None else self.goal.metric
        return f"{most} {what}"

    def score(self, runs: ClaimRuns) -> CandidateScore:
        first, second = self.goal.sides
        value = self._side(runs, first)
        if isinstance(value, str):
            return CandidateScore(None, False, value)
        if second is None:
            mean = statistic(value.numbers()).mean
            text = number_text(mean, self.metric)
            return CandidateScore(self.sign * mean, True, text, text)
        than = self._side(runs, second)
        if isinstance(than, str):
            return CandidateScore(None, False, than)
        return self._compared(compare(value, than))

    def keeps(self, before: CandidateScore, now: CandidateScore) -> bool:
        assert before.value is not None
        if now.value is None:
            return False
        allowed = abs(before.value) * (1 - KEPT_SHARE)
        return now.value >= before.value - allowed

    def _compared(self, found: Compared) -> CandidateScore:
        sides = f"{number_text(found.first, self.metric)} against {number_text(found.second, self.metric)}"
        shown: Interval | None = found.ratio if self.goal.by == "ratio" else found.difference
        if shown is None:
            return CandidateScore(None, False, f"{sides}: of 0 there is no ratio")
        metric = RATIO if self.goal.by == "ratio" else self.metric
        value = math.log(shown.value) if self.goal.by == "ratio" and shown.value > 0 else shown.value
        text = number_text(shown.value, metric)
        return CandidateScore(self.sign * value, True, f"{text} ({sides})", text)

    def _side(self, runs: ClaimRuns, side: SelectorSection) -> Any:
        """The sample of one side, or the reason why it is missing."""
        try:
            found = sample(runs.at(side.at), side)
        except SelectionError as error:
            return str(error)
        if not found.enough:
            return "; ".join(sorted(set(found.left_out.values()))) or "there is no such run"
        if found.missing:
            return missing_text(found)
        if any(isinstance(value, str) for value in found.values.values()):
            return f"{side.metric} is a text"
        return found


@dataclass(frozen=True)
class Crash:
    """The kernel crashes. No search aims at this, but a crash that happens is kept and shrunk."""

    says = "the guest's kernel crashes"

    def score(self, _runs: ClaimRuns) -> CandidateScore:
        """No value: a run that crashes has no measures."""
        return CandidateScore(None, False, "")

    def keeps(self, _before: CandidateScore, now: CandidateScore) -> bool:
        return is_crash(now.text)


def read_goal(search: SearchSection, claims: list[ClaimSection]) -> Goal:
    """The goal of a checked profile."""
    if search.falsify is not None:
        return Falsify(next(each for each in claims if each.id == search.falsify))
    goal = search.maximise or search.minimise
    assert goal is not None
    return Extreme(goal, 1 if search.maximise is not None else -1)
