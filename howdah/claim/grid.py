# SPDX-License-Identifier: Apache-2.0
"""Judge claims over the grid of what a source leaves open: where each holds, and whether all hold at one point.

The grid tells a mechanism from chance. It shows a mechanism if both hold:

1. The open values decide. Either the claim holds at some value of one field, whatever the other fields are. Or it holds
   at two points or more, which are exactly those with certain values of several fields.
2. Its reverse, if it has one, holds at fewer points than the claim itself.

A claim that holds at some point of such a grid *differs*. One that holds at some point of another grid *depends* on
what is open: nothing shows which values the source used. docs/claims.md explains this to readers.
"""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from typing import Any

from howdah.claim.expectation import bounds
from howdah.claim.finding import DEPENDS, DIFFERS, FAIL, PASS, UNSUPPORTED, metric_named
from howdah.claim.judging import Judging
from howdah.claim.sample import ClaimRuns
from howdah.metric import RATIO, Metric
from howdah.number import listed
from howdah.profile.claim import ClaimSection, ExpectSection, RangeSection
from howdah.profile.control import UNKNOWN_AXIS, GridPoint, default_point, grid
from howdah.record.claims import ClaimRow, GridPointRow, GridRow, Judged, MostRow, OpenRow

At = Mapping[str, str]
_WORDS_REVERSED = {"more": "less", "much more": "less", "less": "more", "much less": "more"}
_TRENDS_REVERSED = {"rises": "falls", "falls": "rises"}


def reverse_of(claim: ClaimSection) -> ClaimSection | None:
    """The claim with the opposite direction; None if it has no direction, such as ``similar`` or a number."""
    expect = claim.expect
    reverse = None if expect is None or claim.value is None else _reverse(expect, metric_named(claim.value.metric))
    if reverse is None:
        return None
    return claim.model_copy(update={"expect": ExpectSection.model_validate(reverse)})


def _reverse(expect: ExpectSection, metric: Metric) -> dict[str, Any] | None:
    if expect.word is not None:
        word = _WORDS_REVERSED.get(expect.word)
        return {"word": word} if word else None
    if expect.trend is not None:
        trend = _TRENDS_REVERSED.get(expect.trend)
        return {"trend": trend, "over": expect.over} if trend else None
    if expect.ratio is not None:
        beyond = _reverse_side(expect.ratio, RATIO, 1.0)
        return {"ratio": {beyond: "1"}} if beyond else None
    if expect.rank_correlation is not None:
        turned = {"below": "at_most", "above": "at_least"}.get(_reverse_side(expect.rank_correlation, RATIO, 0.0))
        return {"rank_correlation": {turned: "0"}, "over": expect.over, "with": expect.with_} if turned else None
    if expect.difference is not None:
        beyond = _reverse_side(expect.difference, metric, 0.0)
        return {"difference": {beyond: f"0 {metric.shown}".strip()}} if beyond else None
    return None


def _reverse_side(expect: RangeSection, metric: Metric, same: float) -> str:
    """The side of ``same`` on which the reverse lies; empty if the range covers both sides."""
    low, high = bounds(expect, metric)
    if low is not None and low >= same:
        return "below"
    return "above" if high is not None and high <= same else ""


def summarise_grid(over: Sequence[GridPointRow]) -> GridRow:
    """How often a claim and its reverse hold on the points at which it was judged, and, in words, where it holds."""
    holding = [point.at for point in over if point.verdict == PASS]
    reverse = sum(bool(point.reverse) for point in over)
    everywhere = [point.at for point in over]
    where = _where(holding, everywhere)
    also = f"; the reverse at {reverse}" if reverse else ""
    text = (
        f"holds {where} ({len(holding)} of {len(over)} points of what is left open{also})"
        if holding
        else f"holds at none of {len(over)} points of what is left open{also}"
    )
    return GridRow(
        text=text,
        holds=len(holding),
        reverse=reverse,
        of=len(over),
        share=len(holding) / len(over),
        mechanism=reverse < len(holding) and _decides(holding, everywhere),
        points=list(over),
    )


def verdict_over(summed: GridRow) -> str:
    """The verdict, by its grid, of a claim that fails with the profile as written."""
    if not summed.holds:
        return FAIL
    return DIFFERS if summed.mechanism else DEPENDS


def _decides(holding: Sequence[At], everywhere: Sequence[At]) -> bool:
    """Whether open values determine where the claim holds (rule 1 above)."""
    for name in everywhere[0]:
        for value in {at[name] for at in holding}:
            if all(at in holding for at in everywhere if at[name] == value):
                return True
    return len(holding) > 1 and _is_product(holding)


def _is_product(holding: Sequence[At]) -> bool:
    """Whether the points are all combinations of the values that occur in them."""
    return math.prod(len({at[name] for at in holding}) for name in holding[0]) == len(holding)


def _where(holding: Sequence[At], everywhere: Sequence[At]) -> str:
    """``where path-rate is 90 or 95 Mbit/s and buffer is 100 packets``; one example if that is not exact."""
    if not holding:
        return ""
    names = list(everywhere[0])
    values = {name: list(dict.fromkeys(at[name] for at in holding)) for name in names}
    every = {name: {at[name] for at in everywhere} for name in names}
    parts = [f"{name} is {listed(values[name], 'or')}" for name in names if set(values[name]) != every[name]]
    if _is_product(holding) and parts:
        return f"where {' and '.join(parts)}"
    return f"for example where {' and '.join(f'{name} is {value}' for name, value in holding[0].items())}"


def judge_grid(
    claims: Sequence[ClaimSection], rows: Sequence[ClaimRow], runs: ClaimRuns, quick: bool
) -> OpenRow | None:
    """Judge over the grid each claim that fails with the profile as written.

    Set ``unknown`` in its row, and, if it holds at some point, replace its verdict by that of the grid (rules above).

    Return what is open, and the point at which all claims hold; None if nothing is open.
    """
    if runs.unknowns is None:
        return None
    open_points = grid(runs.document, runs.unknowns)
    made = {made.axes.get(UNKNOWN_AXIS) for made in runs.runs if made.run is not None}
    points = [point for point in open_points if point.label in made]
    default = default_point(runs.document, runs.unknowns)
    found = OpenRow(
        fields={name: each.what for name, each in runs.unknowns.fields.items()},
        made=len(points),
        of=len(open_points),
        together=None,
        most=None,
        text="",
    )
    verdicts: dict[str, dict[str, str]] = {}
    for claim, row in zip(claims, rows, strict=True):
        if row.verdict in (UNSUPPORTED, DIFFERS):
            continue  # a control explains it at every point
        over = [
            _judge_at(claim, runs, quick, default, row),
            *(_judge_at(claim, runs, quick, point) for point in points),
        ]
        verdicts[claim.id] = {_key(each.at): each.verdict for each in over}
        judged_at = [each for each in over if each.verdict != UNSUPPORTED]
        if row.verdict == FAIL and len(judged_at) > 1:
            row.unknown = summarise_grid(judged_at)
            row.verdict = verdict_over(row.unknown)
    if points and verdicts:
        _find_common_point(found, [default, *points], verdicts)
    return found


def _find_common_point(found: OpenRow, points: list[GridPoint], over: dict[str, dict[str, str]]) -> None:
    """Set the point at which all claims hold, or else the point at which most do.

    Claims that were not judged at every point are left out, because nothing is known of all claims together where one
    has no verdict. These are claims on runs that the grid excludes (``unknown.at``), and on controls.
    """
    verdicts = {name: each for name, each in over.items() if UNSUPPORTED not in each.values()}
    left_out = len(over) - len(verdicts)
    if not verdicts:
        found.text = "no claim is judged at every point of the grid"
        return
    held = {_key(point.at): sum(each[_key(point.at)] == PASS for each in verdicts.values()) for point in points}
    best = max(points, key=lambda point: held[_key(point.at)])
    number = held[_key(best.at)]
    shown = ", ".join(f"{name} {value}" for name, value in best.at.items())
    found.most = MostRow(at=best.at, holds=number, of=len(verdicts))
    if number == len(verdicts):
        found.together = best.at
        found.text = f"all {number} claims hold together at {shown}"
    else:
        found.text = (
            f"no point of the grid has all claims hold together; most, {number} of {len(verdicts)}, do at {shown}"
        )
    if left_out:
        claims = "1 claim is" if left_out == 1 else f"{left_out} claims are"
        found.text += f"; {claims} not judged at every point"


def _judge_at(
    claim: ClaimSection, runs: ClaimRuns, quick: bool, point: GridPoint, row: ClaimRow | None = None
) -> GridPointRow:
    """Judge a claim and its reverse at a point of the grid. ``row`` is the claim's row if that is the default."""
    label = None if row is not None else point.label
    found: Judged = row if row is not None else Judging(claim, runs, quick, unknown=label).judge()
    text = found.measured.text if found.measured else found.why
    if found.than:
        text += f", against {found.than.text}"
    reverse = reverse_of(claim) if found.verdict == FAIL else None
    reversed_there = reverse is not None and Judging(reverse, runs, quick, unknown=label).judge().verdict == PASS
    return GridPointRow(at=point.at, verdict=found.verdict, reverse=reversed_there, text=text)


def _key(at: dict[str, str]) -> str:
    return "; ".join(f"{name} {value}" for name, value in at.items())
