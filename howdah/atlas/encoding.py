# SPDX-License-Identifier: Apache-2.0
"""Hashes of what decides a profile's runs, and new verdicts of published claims whose encoding changed since.

Words, sources and figures of a profile may change without a run. So may the expectation of a claim, as the numbers it
was judged by are published. A claim that measures something else needs runs.
"""

from __future__ import annotations

import json
from collections.abc import Container, Mapping
from typing import Any

from howdah.claim.claims import as_declared, final_verdict, row_of
from howdah.claim.comparison import Interval, extremes
from howdah.claim.expectation import (
    Compared,
    bounds,
    correlated,
    in_enough,
    is_flat,
    judge_compared,
    judge_range,
    moves_by,
    other_number,
)
from howdah.claim.finding import DEPENDS, DIFFERS, FAIL, IMPLEMENTED, PASS, UNSUPPORTED, metric_named
from howdah.claim.grid import reverse_of, summarise_grid, verdict_over
from howdah.claim.judging import expected_text
from howdah.metric import Metric
from howdah.profile.claim import ClaimSection, ExpectSection
from howdah.profile.source import parse_yaml
from howdah.record.claims import ClaimRow, ExpectedRow, MeasuredRow, PointRow
from howdah.record.provenance import sha256_text

NOT_RUN = "not run"
_NO_RUNS = ("description", "sources", "claims", "figures", "quick", "unknown", "controls")
_WORDS = ("entries", "says", "source", "because", "contradiction", "note", "chosen_after")
_MEASURED = ("value", "than", "each")
Encoding = dict[str, Any]  # what a claim measures and expects, as fields of its profile
_LEFT_OUT = ("than",)  # fields that a claim may lose: the rest of it is published


class NeedsRunsError(Exception):
    """The published numbers do not decide the current expectation."""


def experiment_sha256(profile_text: str) -> str:
    """Return a hash of the fields that decide the runs of a profile: without words, claims and figures, and without the
    grid of what its source leaves open. Its controls have hashes of their own."""
    data, _ = parse_yaml(profile_text, "profile")
    return _sha256_of({name: value for name, value in data.items() if name not in _NO_RUNS})


def controls_sha256(profile_text: str) -> dict[str, str]:
    """Return a hash of each control of a profile, without its words, by name."""
    data, _ = parse_yaml(profile_text, "profile")
    return {name: _sha256_of({**each, "what": ""}) for name, each in (data.get("controls") or {}).items()}


def unknown_sha256(profile_text: str) -> str:
    """Return a hash of the grid of what a profile's source leaves open, without its words; empty without a grid."""
    data, _ = parse_yaml(profile_text, "profile")
    section = data.get("unknown")
    if not section:
        return ""
    fields = {name: {**each, "what": ""} for name, each in section["fields"].items()}
    return _sha256_of({**section, "fields": fields})


def _sha256_of(data: Mapping[str, Any]) -> str:
    return sha256_text(json.dumps(data, sort_keys=True, default=str))


def without_grid(row: ClaimRow) -> ClaimRow:
    """Return a published row as if its claim had not been judged over the grid."""
    of_grid = row.verdict in (DIFFERS, DEPENDS) and row.unknown is not None and row.unknown.holds
    return row.model_copy(update={"verdict": FAIL if of_grid else row.verdict, "unknown": None})


def encoding(claim: ClaimSection) -> Encoding:
    """Return the current encoding of a claim."""
    kept = {"id", *_MEASURED, "control", "expect", "hold", "contradiction"}
    return claim.model_dump(mode="json", exclude_none=True, by_alias=True, include=kept)


def renewed(claim: ClaimSection, row: ClaimRow, before: Encoding, other_controls: Container[str] = ()) -> ClaimRow:
    """Return a published row for the current claim: with its words, and with a new verdict if only the expectation
    changed.

    ``other_controls`` are the controls whose runs are not the published ones; a claim that holds needs none.
    ``renewed`` marks a row that differs from the published one. If the published numbers do not decide, the verdict is
    *not run*, with the reason.
    """
    found = _says(claim, _renewed(claim, row, before, other_controls))
    found.verdict = as_declared(claim, found.verdict)
    return found


def _renewed(claim: ClaimSection, row: ClaimRow, before: Encoding, other_controls: Container[str]) -> ClaimRow:
    """Return the row with its current verdict and expectation."""
    now = encoding(claim)
    if claim.unsupported is not None:
        return _open(claim, row, UNSUPPORTED, claim.unsupported)
    control = claim.control
    other_control = control is not None and (control in other_controls or control != before.get("control"))
    holds_now = row.verdict in (PASS, IMPLEMENTED)
    try:
        if now == before and (not other_control or holds_now or row.verdict == NOT_RUN):
            return _by_grid(claim, row)
        if any(now.get(name) != before.get(name) for name in _MEASURED if name in now or name not in _LEFT_OUT):
            raise NeedsRunsError("it measures something else than when its results were published")
        found = _judged(claim, row, before)
        if other_control and found.verdict != PASS:
            raise NeedsRunsError(f"the results of its control {control} are not published")
    except NeedsRunsError as error:
        found = _open(claim, row, NOT_RUN, str(error))
    found.renewed = True
    return found


def _by_grid(claim: ClaimSection, row: ClaimRow) -> ClaimRow:
    """Return the row with the result over its grid, if its verdict comes from the grid. Raise NeedsRunsError."""
    if row.unknown is None or row.verdict not in (FAIL, DIFFERS, DEPENDS):
        return row.model_copy()
    if reverse_of(claim) is not None and any(point.reverse is None for point in row.unknown.points):
        raise NeedsRunsError("where its reverse holds on the grid is not published")
    summed = summarise_grid(row.unknown.points)
    return row.model_copy(update={"unknown": summed, "verdict": verdict_over(summed)})


def unpublished(claim: ClaimSection) -> ClaimRow:
    """Return the row of a claim that is newer than the published results."""
    text = expected_text(claim) if claim.expect is not None else ""
    if claim.unsupported is not None:
        row = row_of(claim, UNSUPPORTED, claim.unsupported, text)
    else:
        row = row_of(claim, NOT_RUN, "it is newer than the published results", text)
    row.renewed = True
    return row


def _says(claim: ClaimSection, row: ClaimRow) -> ClaimRow:
    """Return the row with the words of the claim."""
    now = row_of(claim, row.verdict, row.why)
    return row.model_copy(update={name: getattr(now, name) for name in _WORDS})


def _open(claim: ClaimSection, row: ClaimRow, verdict: str, why: str) -> ClaimRow:
    """Return the row of a claim that the published numbers do not decide; it keeps its runs."""
    text = expected_text(claim) if claim.expect is not None else ""
    found = row_of(claim, verdict, why, text)
    found.runs = row.runs
    return found


def _judged(claim: ClaimSection, row: ClaimRow, before: Encoding) -> ClaimRow:
    """Return verdict, expectation and points by the published numbers. Raise NeedsRunsError."""
    found = _by_control(claim, row, before)
    found.verdict, found.why = final_verdict(claim, found.verdict, found.why)
    return found


def _by_control(claim: ClaimSection, row: ClaimRow, before: Encoding) -> ClaimRow:
    """As _judged, for a source without contradictions."""
    assert claim.expect is not None
    earlier = before.get("expect") or {}
    found = row.model_copy()
    found.measured, found.verdict = _side(claim, row.measured, earlier)
    found.why, found.unknown = "", None
    if claim.than is None:
        found.than = found.comparison = None
    found.expected = ExpectedRow(text=expected_text(claim), low=None, high=None, unit=row.expected.unit)
    if found.verdict == PASS or claim.control is None:
        found.control = None
    elif row.control is not None and row.control.measured is not None:
        found.control = row.control.model_copy()
        found.control.measured, found.control.verdict = _side(claim, row.control.measured, earlier)
        if found.control.verdict == PASS:
            found.verdict = DIFFERS
    return found


def _side(claim: ClaimSection, measured: MeasuredRow | None, earlier: Encoding) -> tuple[MeasuredRow, str]:
    """Return the published points and the verdict over them; ``earlier`` is the expectation at their publication."""
    if measured is None or not measured.points:
        raise NeedsRunsError("no number of it was published")
    points = [
        point.model_copy(update={"verdict": PASS if holds(claim, point, earlier) else FAIL, "why": ""})
        for point in measured.points
    ]
    verdicts = [point.verdict for point in points]
    if claim.hold not in ("all", "any") and len(points) > 1:
        raise NeedsRunsError(f"the {claim.hold} of several points is not published")
    held = PASS in verdicts if claim.hold == "any" else FAIL not in verdicts
    return measured.model_copy(update={"points": points}), PASS if held else FAIL


def holds(claim: ClaimSection, point: PointRow, earlier: Encoding) -> bool:
    """Whether a claim holds at a published point. Raise NeedsRunsError if its numbers do not decide."""
    expect = claim.expect
    assert expect is not None and claim.value is not None
    metric: Metric = metric_named(claim.value.metric)
    if expect.trend is not None:
        return _trend_holds(expect, point, earlier)
    if expect.rank_correlation is not None:
        return _ranks_hold(expect, point)
    if expect.is_ is not None:
        if point.counts is None:
            raise NeedsRunsError("how often each text was found is not published")
        return in_enough(expect, point.counts.get(expect.is_, 0) / (sum(point.counts.values()) + point.missing))
    if point.mean is None:
        raise NeedsRunsError("no number of it was published")
    if expect.counts:
        return _counted_holds(expect, metric, point, point.mean)
    if not expect.compares:
        return judge_range(expect, metric, Interval(point.mean, point.low, point.high))[0]
    each = point.comparison
    if each is None or point.than is None or point.than.mean is None:
        raise NeedsRunsError("no comparison of it was published")
    ratio = None if each.ratio is None else Interval(each.ratio, each.ratio_low, each.ratio_high)
    difference = Interval(each.difference, each.difference_low, each.difference_high)
    compared = Compared(point.mean, point.than.mean, difference, ratio, each.paired)
    return judge_compared(expect, metric, compared)[0]


def _counted_holds(expect: ExpectSection, metric: Metric, point: PointRow, mean: float) -> bool:
    """Whether enough repetitions hold. Single repetitions are not published, but decide if all must be on the same side
    of the range: equal ones, or those with a narrow interval."""
    if point.missing:
        raise NeedsRunsError("some repetitions have no number")
    least, largest = mean, mean
    if point.low is not None and point.high is not None:
        least, largest = extremes(mean, (point.high - point.low) / 2, point.n)
    ok = [judge_range(expect, metric, Interval(end))[0] for end in (least, largest)]
    if all(ok):
        return True
    low, high = bounds(expect, metric)
    outside = (low is not None and largest < low) or (high is not None and least > high)
    if any(ok) or not outside:
        raise NeedsRunsError("the numbers of the single repetitions are not published")
    return in_enough(expect, 0.0)


def _ranks_hold(expect: ExpectSection, point: PointRow) -> bool:
    """Whether the published means correlate with the numbers to compare, which may have changed."""
    along = [each.model_copy(update={"other": other_number(expect, each.axis)}) for each in point.trend or []]
    along = [each for each in along if each.other is not None]
    if len(along) < len(expect.with_ or ()) or any(each.mean is None for each in along):
        raise NeedsRunsError("no number of it was published at some value of its axis")
    return correlated(expect, along)[0]


def _trend_holds(expect: ExpectSection, point: PointRow, earlier: Encoding) -> bool:
    """Whether the trend holds. The means decide *flat* and ``by``; the published verdict, whether the ends differ."""
    means = [each.mean for each in point.trend or [] if each.mean is not None]
    if not means or len(means) < len(point.trend or []):
        raise NeedsRunsError("no number of it was published")
    if expect.trend == "flat":
        return is_flat(expect, means)
    if earlier.get("trend") != expect.trend or "by" in earlier:
        raise NeedsRunsError("a trend is not decided by the means alone")
    return point.verdict == PASS and moves_by(expect, means)
