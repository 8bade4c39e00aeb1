# SPDX-License-Identifier: Apache-2.0
"""What a profile runs, apart from what it claims; and claims whose encoding changed, judged again from published data.

Words, sources and figures of a profile may change without a run. So may what a claim expects: the numbers it was judged
by are published. A claim that measures something else needs runs.
"""

from __future__ import annotations

import json
from collections.abc import Container
from typing import Any

from howdah.claim.claims import as_declared
from howdah.claim.comparison import Interval, extremes
from howdah.claim.contradiction import decided
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
from howdah.claim.finding import DEPENDS, DIFFERS, FAIL, IMPLEMENTED, PASS, metric_called
from howdah.claim.mechanism import reverse_of, summed_up, verdict_over
from howdah.claim.words import expected_text
from howdah.metric import Metric
from howdah.profile.claim import ClaimSection, ExpectSection
from howdah.profile.source import parse_yaml
from howdah.record.provenance import sha256_text

NOT_RUN = "not run"
_NO_RUNS = ("description", "sources", "claims", "figures", "quick", "unknown", "controls")
_MEASURED = ("value", "than", "each")
_LEFT_OUT = ("than",)  # what remains of a claim without it is published


class NeedsRunsError(Exception):
    """The published numbers do not decide what is expected now."""


def experiment_sha256(profile_text: str) -> str:
    """A hash of what decides the runs of a profile as it is written: not of what it says, claims and draws, nor of the
    grid of what its source leaves open. Its controls have hashes of their own."""
    data, _ = parse_yaml(profile_text, "profile")
    return _sha256_of({name: value for name, value in data.items() if name not in _NO_RUNS})


def controls_sha256(profile_text: str) -> dict[str, str]:
    """A hash of each control of a profile, apart from words, by its name."""
    data, _ = parse_yaml(profile_text, "profile")
    return {name: _sha256_of({**each, "what": ""}) for name, each in (data.get("controls") or {}).items()}


def unknown_sha256(profile_text: str) -> str:
    """A hash of the grid of what a profile's source leaves open, apart from words; empty without one."""
    data, _ = parse_yaml(profile_text, "profile")
    section = data.get("unknown")
    if not section:
        return ""
    fields = {name: {**each, "what": ""} for name, each in section["fields"].items()}
    return _sha256_of({**section, "fields": fields})


def _sha256_of(data: dict[str, Any]) -> str:
    return sha256_text(json.dumps(data, sort_keys=True, default=str))


def without_grid(row: dict[str, Any]) -> dict[str, Any]:
    """A published row as if its claim had not been judged over the grid."""
    if row["verdict"] in (DIFFERS, DEPENDS) and (row.get("unknown") or {}).get("holds"):
        row = {**row, "verdict": FAIL}
    return {**row, "unknown": None}


def encoding(claim: ClaimSection) -> dict[str, Any]:
    """What a claim measures and expects, as plain values."""
    kept = {"id", *_MEASURED, "control", "expect", "hold", "contradiction"}
    return claim.model_dump(mode="json", exclude_none=True, by_alias=True, include=kept)


def renewed(
    claim: ClaimSection, row: dict[str, Any], before: dict[str, Any], other_controls: Container[str] = ()
) -> dict[str, Any]:
    """A published row as the claim is written now: its words; its verdict where only what is expected has changed.

    ``other_controls`` are the controls whose runs are not those that are published; a claim that holds needs none.
    ``renewed`` marks a row that is not as it was published.
    Where the published numbers do not decide, the verdict is *not run*, with the reason.
    """
    found = {**row, **_says(claim), **_renewed(claim, row, before, other_controls)}
    return {**found, "verdict": as_declared(claim, found["verdict"])}


def _renewed(
    claim: ClaimSection, row: dict[str, Any], before: dict[str, Any], other_controls: Container[str]
) -> dict[str, Any]:
    """What of a row is not as it was published."""
    now = encoding(claim)
    if claim.unsupported is not None:
        return {**_open(claim, claim.unsupported), "verdict": "unsupported"}
    control = claim.control
    other_control = control is not None and (control in other_controls or control != before.get("control"))
    holds_now = row["verdict"] in (PASS, IMPLEMENTED)
    try:
        if now == before and (not other_control or holds_now or row["verdict"] == NOT_RUN):
            return _by_grid(claim, row)
        if any(now.get(name) != before.get(name) for name in _MEASURED if name in now or name not in _LEFT_OUT):
            raise NeedsRunsError("it measures something else than when its results were published")
        found = _judged(claim, row, before)
        if other_control and found["verdict"] != PASS:
            raise NeedsRunsError(f"the results of its control {control} are not published")
        return {**found, "renewed": True}
    except NeedsRunsError as error:
        return {**_open(claim, str(error)), "renewed": True}


def _by_grid(claim: ClaimSection, row: dict[str, Any]) -> dict[str, Any]:
    """What the published points of the grid show; nothing where the verdict is not theirs. Raises NeedsRunsError."""
    unknown = row.get("unknown")
    if not unknown or row["verdict"] not in (FAIL, DIFFERS, DEPENDS):
        return {}
    if reverse_of(claim) is not None and any("reverse" not in point for point in unknown["points"]):
        raise NeedsRunsError("where its reverse holds on the grid is not published")
    summed = summed_up(unknown["points"])
    return {"unknown": summed, "verdict": verdict_over(summed)}


def unpublished(claim: ClaimSection) -> dict[str, Any]:
    """A claim that is newer than the published results."""
    row: dict[str, Any] = {"id": claim.id, **_says(claim), "renewed": True, "runs": []}
    if claim.unsupported is not None:
        return {**row, **_open(claim, claim.unsupported), "verdict": "unsupported"}
    return {**row, **_open(claim, "it is newer than the published results")}


def _says(claim: ClaimSection) -> dict[str, Any]:
    """The words of a claim."""
    return {
        "entries": claim.entry,
        "says": claim.says,
        "source": claim.source,
        "because": claim.because or "",
        "contradiction": claim.contradiction or "",
        "note": claim.note or "",
        "chosen_after": claim.chosen_after or "",
    }


def _open(claim: ClaimSection, why: str) -> dict[str, Any]:
    text = expected_text(claim) if claim.expect is not None else ""
    nothing = dict.fromkeys(("measured", "than", "comparison", "control", "unknown"))
    expected = {"text": text, "low": None, "high": None, "unit": ""}
    return {"verdict": NOT_RUN, "why": why, "expected": expected, **nothing}


def _judged(claim: ClaimSection, row: dict[str, Any], before: dict[str, Any]) -> dict[str, Any]:
    """Verdict, expectation and points by the published numbers. Raises NeedsRunsError."""
    found = _by_control(claim, row, before)
    verdict, why = decided(claim, found["verdict"], found["why"])
    return {**found, "verdict": verdict, "why": why}


def _by_control(claim: ClaimSection, row: dict[str, Any], before: dict[str, Any]) -> dict[str, Any]:
    """As _judged, of a source that does not contradict itself."""
    assert claim.expect is not None
    earlier = before.get("expect") or {}
    measured, verdict = _side(claim, row["measured"], earlier)
    found: dict[str, Any] = {"verdict": verdict, "measured": measured, "why": "", "unknown": None}
    if claim.than is None:
        found |= {"than": None, "comparison": None}
    found["expected"] = {"text": expected_text(claim), "low": None, "high": None, "unit": row["expected"]["unit"]}
    control = row.get("control") if claim.control is not None else None
    if verdict == PASS or not control or not control.get("measured"):
        return {**found, "control": None if verdict == PASS else control}
    again, outcome = _side(claim, control["measured"], earlier)
    found["control"] = {**control, "measured": again, "verdict": outcome}
    if outcome == PASS:
        found["verdict"] = DIFFERS
    return found


def _side(claim: ClaimSection, measured: dict[str, Any] | None, earlier: dict[str, Any]) -> tuple[dict[str, Any], str]:
    """The published points and the verdict over them; ``earlier`` is what was expected when they were published."""
    if not measured or not measured.get("points"):
        raise NeedsRunsError("no number of it was published")
    points = [
        {**point, "verdict": PASS if holds(claim, point, earlier) else FAIL, "why": ""} for point in measured["points"]
    ]
    verdicts = [point["verdict"] for point in points]
    if claim.hold not in ("all", "any") and len(points) > 1:
        raise NeedsRunsError(f"the {claim.hold} of several points is not published")
    held = PASS in verdicts if claim.hold == "any" else FAIL not in verdicts
    return {**measured, "points": points}, PASS if held else FAIL


def holds(claim: ClaimSection, point: dict[str, Any], earlier: dict[str, Any]) -> bool:
    """Whether a claim holds at a published point. Raises NeedsRunsError where its numbers do not decide."""
    expect = claim.expect
    assert expect is not None and claim.value is not None
    metric: Metric = metric_called(claim.value.metric)
    if expect.trend is not None:
        return _trend_holds(expect, point, earlier)
    if expect.rank_correlation is not None:
        return _ranks_hold(expect, point)
    if expect.is_ is not None:
        if "counts" not in point:
            raise NeedsRunsError("how often each text was found is not published")
        counts = point["counts"]
        return in_enough(expect, counts.get(expect.is_, 0) / (sum(counts.values()) + point.get("missing", 0)))
    if point["mean"] is None:
        raise NeedsRunsError("no number of it was published")
    if expect.counts:
        return _counted_holds(expect, metric, point)
    if not expect.compares:
        return judge_range(expect, metric, Interval(point["mean"], point["low"], point["high"]))[0]
    if not point.get("comparison") or not point.get("than"):
        raise NeedsRunsError("no comparison of it was published")
    each = point["comparison"]
    ratio = None if each["ratio"] is None else Interval(each["ratio"], each["ratio_low"], each["ratio_high"])
    difference = Interval(each["difference"], each["difference_low"], each["difference_high"])
    compared = Compared(point["mean"], point["than"]["mean"], difference, ratio, each["paired"])
    return judge_compared(expect, metric, compared)[0]


def _counted_holds(expect: ExpectSection, metric: Metric, point: dict[str, Any]) -> bool:
    """The repetitions are not published one by one. They decide it all the same where none can lie on the other side
    of the range: equal ones, or those whose interval is narrow enough."""
    if point.get("missing"):
        raise NeedsRunsError("some repetitions have no number")
    least, largest = point["mean"], point["mean"]
    if point["low"] is not None:
        least, largest = extremes(point["mean"], (point["high"] - point["low"]) / 2, point["n"])
    ok = [judge_range(expect, metric, Interval(end))[0] for end in (least, largest)]
    if all(ok):
        return True
    low, high = bounds(expect, metric)
    outside = (low is not None and largest < low) or (high is not None and least > high)
    if any(ok) or not outside:
        raise NeedsRunsError("the numbers of the single repetitions are not published")
    return in_enough(expect, 0.0)


def _ranks_hold(expect: ExpectSection, point: dict[str, Any]) -> bool:
    """The means are published, and the numbers that they are compared with may have changed."""
    along = [{**each, "with": other_number(expect, each["axis"])} for each in point.get("trend") or []]
    along = [each for each in along if each["with"] is not None]
    if len(along) < len(expect.with_ or ()) or any(each["mean"] is None for each in along):
        raise NeedsRunsError("no number of it was published at some value of its axis")
    return correlated(expect, along)[0]


def _trend_holds(expect: ExpectSection, point: dict[str, Any], earlier: dict[str, Any]) -> bool:
    """*flat* is decided by the means, and so is ``by``; that the ends differ is what the published verdict says."""
    means = [each["mean"] for each in point.get("trend") or []]
    if not means or None in means:
        raise NeedsRunsError("no number of it was published")
    if expect.trend == "flat":
        return is_flat(expect, means)
    if earlier.get("trend") != expect.trend or "by" in earlier:
        raise NeedsRunsError("a trend is not decided by the means alone")
    return bool(point["verdict"] == PASS) and moves_by(expect, means)
