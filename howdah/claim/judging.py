# SPDX-License-Identifier: Apache-2.0
"""Judge one claim over the ordinary runs of an experiment, the runs of a control, or those of a grid point."""

from __future__ import annotations

import itertools
import math
from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace
from typing import Any

from howdah.claim.expectation import USUAL_TOLERANCE, bounds, judge_point, judge_ranks, judge_trend, other_number
from howdah.claim.finding import (
    FAIL,
    INVALID,
    PASS,
    UNSUPPORTED,
    At,
    Finding,
    metric_named,
    missing_text,
    number_text,
    summary,
)
from howdah.claim.sample import ClaimRuns, Sample, SelectionError, sample
from howdah.profile.claim import LEAST_RANKS, ClaimSection, ExpectSection, RangeSection, SelectorSection
from howdah.profile.claim_check import completed
from howdah.profile.control import CONTROL_AXIS, UNKNOWN_AXIS
from howdah.quantity import BufferSize, QuantityError, parse_duration, parse_rate, parse_ratio, parse_size
from howdah.record.claims import ComparisonRow, MeasuredRow, PointRow, SampleRow
from howdah.record.table import point_text


def expected_text(claim: ClaimSection) -> str:
    """The expectation in words: ``870 ± 10 %``; ``much more than at algorithm = standard``; ``ack-train in all of the
    repetitions``; ``0 packets in at least 90 % of the repetitions``; ``rises with path.buffer``."""
    assert claim.expect is not None
    text = _form_text(claim, claim.expect)
    if not claim.each:
        return text
    over = " and ".join(claim.each)
    where = {
        "all": f"at each {over}",
        "any": f"at one {over} at least",
        "max": f"the largest over {over}",
        "min": f"the smallest over {over}",
        "mean": f"in the mean over {over}",
    }
    return f"{text}, {where[claim.hold]}"


def _form_text(claim: ClaimSection, expect: ExpectSection) -> str:
    if expect.word is not None:
        joint = {"similar": "to"}.get(expect.word, "than")
        return f"{expect.word} {joint} {than_text(claim)}"
    if expect.ratio is not None:
        return f"ratio to {than_text(claim)}: {range_text(expect.ratio)}"
    if expect.difference is not None:
        return f"difference from {than_text(claim)}: {range_text(expect.difference)}"
    if expect.is_ is not None:
        share = expect.in_at_least
        return f"{expect.is_} in {f'at least {share}' if share else 'all'} of the repetitions"
    if expect.trend is not None:
        words = {"rises": "rises with", "falls": "falls with", "flat": "does not change with"}
        by = f" by {expect.by} at least" if expect.by is not None else ""
        by = by or (f" by more than {expect.within}" if expect.within is not None else "")
        return f"{words[expect.trend]} {expect.over}{by}"
    if expect.rank_correlation is not None:
        numbers = f"{len(expect.with_ or ())} given numbers over {expect.over}"
        return f"rank correlation with {numbers}: {range_text(expect.rank_correlation)}"
    if expect.in_at_least is not None:
        return f"{_one_range_text(claim, expect)} in at least {expect.in_at_least} of the repetitions"
    return range_text(expect)


def range_text(expect: RangeSection) -> str:
    if expect.equals is not None:
        return f"{expect.equals} ± {expect.within or USUAL_TOLERANCE}"
    if expect.between is not None:
        return f"{expect.between[0]} to {expect.between[1]}"
    words = {"above": "above", "below": "below", "at_least": "at least", "at_most": "at most"}
    name = expect.given[0]
    return f"{words[name]} {getattr(expect, name)}"


def _one_range_text(claim: ClaimSection, expect: RangeSection) -> str:
    """A range for single repetitions; just the number if the range is one number: ``0 packets``."""
    assert claim.value is not None
    low, high = bounds(expect, metric_named(claim.value.metric))
    return expect.equals if expect.equals is not None and low == high else range_text(expect)


def than_text(claim: ClaimSection) -> str:
    """How the other side differs from the first: ``algorithm = standard``, ``flow second``."""
    than = claim.than
    assert than is not None
    parts = [than.metric] if than.metric is not None else []
    if than.flow is not None:
        of = {"sum": "the sum of ", "mean": "the mean of ", "min": "the least of ", "max": "the largest of "}
        taken = of.get(than.take or "", "")
        parts.append(f"{taken}{'all flows' if than.flow == 'all' else f'flow {than.flow}'}")
    parts += [f"{axis} = {value}" for axis, value in than.at.items()]
    return ", ".join(parts)


_LEFT_OUT_QUICK = "left out of the quick atlas"
_LEFT_OUT = "its points were left out of the sweep"
_WORST_FIRST = (FAIL, INVALID, UNSUPPORTED, PASS)


@dataclass(frozen=True)
class ClaimResult:
    """The result of judging a claim over some runs; ``runs`` are their names."""

    verdict: str
    why: str
    runs: list[str]
    measured: MeasuredRow | None = None
    than: SampleRow | None = None
    comparison: ComparisonRow | None = None


class Judging:
    """Judges one claim over the ordinary runs, the runs of a control, or those of a grid point."""

    def __init__(
        self, claim: ClaimSection, runs: ClaimRuns, quick: bool, control: str | None = None, unknown: str | None = None
    ) -> None:
        assert claim.expect is not None and claim.value is not None
        self.claim, self.all_runs, self.quick, self.control, self.unknown = claim, runs, quick, control, unknown
        self.metric = metric_named(claim.value.metric)
        self.expect = claim.expect
        self.value, self.than = completed(claim)
        self.used: dict[str, None] = {}

    def judge(self) -> ClaimResult:
        points, left_out = self._points()
        try:
            findings = [each for each in map(self._finding, points) if each is not None]
        except SelectionError as error:
            return self._result(INVALID, str(error), [], None)
        if not findings:
            return self._result(UNSUPPORTED, _LEFT_OUT_QUICK if self.quick else _LEFT_OUT, [], None)
        verdict, why, chosen = self._over_points(findings)
        missing = left_out + len(points) - len(findings)
        notes = [why, *dict.fromkeys(each.note for each in findings if each.note and each.note != why)]
        if missing:
            of = "left out of the quick atlas" if self.quick else "left out of the sweep"
            notes.append(f"{missing} of {missing + len(findings)} points {of}")
        return self._result(verdict, "; ".join(filter(None, notes)), findings, chosen)

    def _points(self) -> tuple[list[At], int]:
        """Every combination of the values of ``each`` that was run, and how many of the profile's were not."""
        values: list[list[At]] = []
        for axis in self.claim.each:
            here = self.all_runs.values(axis, self.control, self.unknown)
            # A control that sets the axis has a single point instead of its values.
            values.append([{axis: value} for value in here] or [{}])
        points = [
            dict(itertools.chain.from_iterable(each.items() for each in some)) for some in itertools.product(*values)
        ]
        if self._is_variant:
            return points, 0
        full = 1
        for axis in self.claim.each:
            full *= len(self.all_runs.axes.get(axis, ())) or 1
        return points, max(0, full - len(points))

    def _at(self, selector: SelectorSection, point: At, **more: str) -> At:
        own = {CONTROL_AXIS: self.control, UNKNOWN_AXIS: self.unknown}
        return {**point, **more, **selector.at, **{axis: name for axis, name in own.items() if name is not None}}

    @property
    def _is_variant(self) -> bool:
        """Whether the runs are those of a control or grid point, which may lack points of the profile."""
        return self.control is not None or self.unknown is not None

    def _sample(self, selector: SelectorSection, at: At) -> Sample | None:
        runs = self.all_runs.at(at)
        if not runs:
            return None
        self.used.update(dict.fromkeys(made.name for made in runs))
        return sample(runs, selector)

    def missing(self, point: At) -> str:
        """Why runs at a point have no value; empty if all runs that count have one."""
        sides = [self._sample(side, self._at(side, point)) for side in (self.value, self.than) if side is not None]
        return next((missing_text(each) for each in sides if each is not None and each.missing), "")

    def _finding(self, point: At) -> Finding | None:
        if self.expect.over is not None:
            return self._trend(point)
        value = self._sample(self.value, self._at(self.value, point))
        than = self._sample(self.than, self._at(self.than, point)) if self.than else None
        if value is None or (self.than is not None and than is None):
            return None
        return judge_point(self.expect, self.metric, point, value, than)

    def _trend(self, point: At) -> Finding | None:
        axis = str(self.expect.over)
        along = []
        here = self.all_runs.values(axis, self.control, self.unknown)
        wanted: Sequence[str] = self.all_runs.axes.get(axis, ())
        if self.expect.rank_correlation is not None:
            here = [each for each in here if other_number(self.expect, each) is not None]
            wanted = list(self.expect.with_ or ())
        for value in here:
            found = self._sample(self.value, self._at(self.value, point, **{axis: value}))
            if found is not None:
                along.append((value, found))
        if len(along) < (2 if self.expect.trend else LEAST_RANKS):
            return None
        if self.expect.rank_correlation and len({other_number(self.expect, value) for value, _ in along}) < 2:
            return None  # the other numbers of these points are all equal, so they have no order
        if self.expect.trend:
            trend = judge_trend(self.expect, self.metric, point, along, axis_order([value for value, _ in along]))
        else:
            trend = judge_ranks(self.expect, point, along)
        absent = len(wanted) - len(along) if not self._is_variant else 0
        if absent > 0:
            left = f"without {absent} of {absent + len(along)} values of {axis}"
            trend = replace(trend, note="; ".join(filter(None, (trend.note, left))))
        return trend

    def _over_points(self, findings: list[Finding]) -> tuple[str, str, Finding]:
        """The verdict over all points, the reason, and the point that decides it."""
        hold = self.claim.hold
        if hold in ("max", "min", "mean"):
            chosen = self._over_reduced(findings)
            at = _at_text(chosen.at) if chosen.why and hold != "mean" and len(findings) > 1 else ""
            return chosen.verdict, f"{chosen.why}{at}", chosen
        verdicts = [each.verdict for each in findings]
        if hold == "any":
            verdict = PASS if PASS in verdicts else (INVALID if INVALID in verdicts else FAIL)
        else:
            verdict = next(each for each in _WORST_FIRST if each in verdicts)
        chosen = next(each for each in findings if each.verdict == verdict)
        if len(findings) == 1:
            return verdict, chosen.why, chosen
        if verdict == PASS and hold == "all":
            return verdict, "", chosen
        word = {PASS: "holds", FAIL: "fails"}.get(verdict, "cannot be judged")
        count = f"{word} at {verdicts.count(verdict)} of {len(findings)} points"
        return verdict, f"{count}:{f' {chosen.why}' if chosen.why else ''}{_at_text(chosen.at)}", chosen

    def _over_reduced(self, findings: list[Finding]) -> Finding:
        unusable = [each for each in findings if each.extent is None]
        if unusable:
            return next((each for each in unusable if each.verdict == INVALID), unusable[0])
        if self.claim.hold == "mean":
            value = pooled([each.value for each in findings])
            than = pooled([each.than for each in findings if each.than is not None]) if self.than else None
            return judge_point(self.expect, self.metric, {}, value, than)
        pick: Callable[..., Finding] = max if self.claim.hold == "max" else min
        return pick(findings, key=lambda each: each.extent)

    def _result(self, verdict: str, why: str, findings: list[Finding], chosen: Finding | None) -> ClaimResult:
        if chosen is None:
            return ClaimResult(verdict, why, list(self.used))
        measured, than = self._measured(findings, chosen), None
        if chosen.than is not None and self.than is not None:
            than = summary(chosen.than, metric_named(self.than.metric))
            than.text = f"{than.text} ({than_text(self.claim)})"
            if len(findings) > 1 and self.claim.hold == "all" and verdict == PASS:
                than.text = than_text(self.claim)  # the rows of the points have the numbers
        why = "" if why == measured.text else why
        return ClaimResult(verdict, why, list(self.used), measured, than, chosen.comparison)

    def _measured(self, findings: list[Finding], chosen: Finding) -> MeasuredRow:
        points = []
        for each in findings:
            other = summary(each.than, metric_named(self.than.metric)) if each.than and self.than else None
            shown = _set_fields(self._shown(each))
            found = {"verdict": each.verdict, "why": each.why, "than": other, "comparison": each.comparison}
            points.append(PointRow(**{"at": each.at, **shown, **found}))
        deciding = self._shown(chosen)
        means = [point.mean for point in points if point.mean is not None]
        if len(findings) > 1 and self.claim.hold == "all" and chosen.verdict == PASS and len(means) == len(points):
            deciding.text = f"{number_text(min(means), self.metric)} to {number_text(max(means), self.metric)}"
            deciding.text += f" at {len(points)} points"
        elif len(findings) > 1 and self.claim.hold != "mean":
            deciding.text += _at_text(chosen.at)
        return MeasuredRow(**_set_fields(deciding), points=points)

    def _shown(self, finding: Finding) -> SampleRow:
        shown = summary(finding.value, self.metric)
        if finding.trend:
            shown.text, shown.trend = finding.why, finding.trend
        return shown


def _set_fields(row: SampleRow) -> dict[str, Any]:
    """The fields of a row that are set, to copy them into a row with more fields."""
    return {name: getattr(row, name) for name in row.model_fields_set}


def _at_text(at: At) -> str:
    return f" at {point_text(at)}" if at else ""


def pooled(samples: Sequence[Sample]) -> Sample:
    """The mean over the points, within each repetition. Repetitions that any point lacks are left out."""
    found = Sample(samples[0].unit)
    for each in samples:
        found.runs += each.runs
        found.left_out |= each.left_out
        found.missing |= each.missing
    common = set.intersection(*(set(each.values) for each in samples))
    for repetition in sorted(common):
        found.values[repetition] = math.fsum(float(each.values[repetition]) for each in samples) / len(samples)
    return found


def axis_order(values: Sequence[Any]) -> Callable[[Any], float]:
    """A sort key for an axis' values: their size if all are quantities of one kind, otherwise the written order."""
    for read in (_number, parse_duration, parse_rate, parse_size, _bdp, _packets, parse_ratio):
        try:
            sizes = {str(value): float(read(value)) for value in values}
        except (QuantityError, ValueError):
            continue
        return lambda value: sizes[str(value)]
    places = {str(value): float(index) for index, value in enumerate(values)}
    return lambda value: places[str(value)]


def _number(value: object) -> float:
    return float(str(value))


def _bdp(value: object) -> float:
    return _buffer(value, "bdp")


def _packets(value: object) -> float:
    return _buffer(value, "packets")


def _buffer(value: object, unit: str) -> float:
    size = BufferSize.parse(value)
    if size.unit != unit:
        raise QuantityError(f"{value!r} is not in {unit}")
    return float(size.amount)
