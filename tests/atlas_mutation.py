# SPDX-License-Identifier: Apache-2.0
"""Whether a passing claim of the atlas could fail: its expectation over other series that are published with it.

A series is one number of the runs of a profile: a metric, of a flow, at a point of the sweep or of a control.
One of the others of the same metric must make the claim fail: of those of its profile, or where that has none, of those
of its paper.
A comparison gets another series on either side, and its sides exchanged.
A trend, and an order that is compared with given numbers, is judged along other series over the same axis, or where
there is none with its axis turned round.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass, field
from typing import Any

from howdah.atlas.encoding import NeedsRunsError, holds
from howdah.claim.comparison import spearman
from howdah.claim.expectation import RANK_CORRELATION, correlated, is_flat, moves_by, other_number
from howdah.claim.judging import axis_order
from howdah.profile.claim import ClaimSection, SelectorSection
from howdah.profile.claim_check import completed
from howdah.record.claims import TrendRow
from tests.claim_rows import point_row

Key = tuple[object, ...]
Judged = list[tuple[ClaimSection, dict[str, Any]]]  # claims with their published rows


@dataclass(frozen=True)
class Series:
    """A published number or text; ``key`` tells it from others, ``control`` is part of it."""

    metric: str
    key: Key
    numbers: dict[str, Any] = field(compare=False)


@dataclass(frozen=True)
class Curve:
    """Published means along an axis."""

    metric: str
    axis: str
    key: Key
    values: tuple[str, ...] = field(compare=False)
    means: tuple[float, ...] = field(compare=False)


def series_of(claim: ClaimSection, row: dict[str, Any]) -> list[Series]:
    """What is published with a claim, of both sides and of its control; nothing of what is judged along an axis."""
    found: dict[Series, None] = {}
    if claim.value is None or claim.expect is None or claim.expect.over is not None:
        return []
    for control, side in (("", row), (claim.control or "", row.get("control") or {})):
        for point in (side.get("measured") or {}).get("points") or []:
            for selector, numbers in zip(completed(claim), (point, point.get("than")), strict=True):
                if selector is not None and numbers:
                    found[Series(selector.metric, _key(selector, point["at"], control), numbers)] = None
    return list(found)


def curves_of(claim: ClaimSection, row: dict[str, Any]) -> Iterator[Curve]:
    """The means along the axis of a claim, or of one that is judged at each value of an axis."""
    if claim.value is None or claim.expect is None:
        return
    axis = claim.expect.over or (claim.each[0] if len(claim.each) == 1 else None)
    if axis is None:
        return
    for selector, points in _along(claim, row, axis):
        if len(points) > 1 and all(mean is not None for _, mean in points):
            values, means = zip(*points, strict=True)
            yield Curve(selector.metric, axis, _key(selector, {}, ""), tuple(values), tuple(means))


def _along(claim: ClaimSection, row: dict[str, Any], axis: str) -> Iterator[tuple[SelectorSection, list[Any]]]:
    measured = (row.get("measured") or {}).get("points") or []
    value, than = completed(claim)
    if claim.expect is not None and claim.expect.over is not None:
        for point in measured:
            yield value, [(each["axis"], each["mean"]) for each in point.get("trend") or []]
        return
    for selector, side in ((value, None), (than, "than")):
        if selector is not None and axis not in selector.at:
            yield selector, [(str(point["at"][axis]), (point[side] if side else point)["mean"]) for point in measured]


def _key(selector: SelectorSection, at: dict[str, Any], control: str) -> Key:
    where = tuple(sorted((axis, str(value)) for axis, value in {**at, **selector.at}.items()))
    return selector.metric, selector.flow, selector.take, where, control


def can_fail(claim: ClaimSection, row: dict[str, Any], profile: Judged, paper: Judged) -> bool:
    """Whether a passing claim fails for another series that is published, of its profile or of its paper."""
    assert claim.expect is not None
    if claim.expect.over is not None:
        along = _trend_holds if claim.expect.trend is not None else _ranks_hold
        return any(not along(claim, curve) for curve in _other_curves(claim, row, profile))
    own = series_of(claim, row)
    points = row["measured"]["points"]
    mutants: list[dict[str, Any]] = []
    for published in (profile, paper):
        if not mutants:
            others = [each for one in published for each in series_of(*one) if each not in own]
            mutants = list(_mutants(claim, points, others))
    if claim.expect.compares:
        mutants += [_compared(point["than"], point) for point in points if point["than"]]
    return any(_fails(claim, mutant) for mutant in mutants)


def _fails(claim: ClaimSection, numbers: dict[str, Any]) -> bool:
    """Whether a series makes the claim fail for certain."""
    try:
        return not holds(claim, point_row(**numbers), {})
    except NeedsRunsError:
        return False


def _mutants(claim: ClaimSection, points: list[dict[str, Any]], others: list[Series]) -> Iterator[dict[str, Any]]:
    value, than = completed(claim)
    for other in others:
        if than is None:
            if other.metric == value.metric and (other.numbers["mean"] is None) == (points[0]["mean"] is None):
                yield other.numbers
            continue
        if other.numbers["mean"] is None:
            continue
        for point in points:
            if other.metric == value.metric:
                yield _compared(other.numbers, point["than"])
            if other.metric == than.metric:
                yield _compared(point, other.numbers)


def _compared(first: dict[str, Any], second: dict[str, Any]) -> dict[str, Any]:
    """A point at which these two are compared, by their means alone: their pairs are not published."""
    ratio = first["mean"] / second["mean"] if second["mean"] else None
    comparison = {
        "difference": first["mean"] - second["mean"],
        "ratio": ratio,
        **dict.fromkeys(("difference_low", "difference_high", "ratio_low", "ratio_high")),
        "paired": False,
    }
    return {**first, "than": second, "comparison": comparison}


def _other_curves(claim: ClaimSection, row: dict[str, Any], published: Judged) -> Iterator[Curve]:
    """Curves of the same metric over the same axis; where there is none, its own with the axis turned round."""
    [own] = list(curves_of(claim, row))
    others = {
        curve: None
        for one in published
        for curve in curves_of(*one)
        if (curve.metric, curve.axis) == (own.metric, own.axis) and curve != own
    }
    if others or (claim.expect and claim.expect.trend == "flat"):
        yield from others
    else:
        yield Curve(own.metric, own.axis, own.key, own.values, own.means[::-1])


def _trend_holds(claim: ClaimSection, curve: Curve) -> bool:
    expect = claim.expect
    assert expect is not None
    if expect.trend == "flat":
        return is_flat(expect, curve.means)
    order = axis_order(curve.values)
    points = sorted(zip(map(order, curve.values), curve.means, strict=True))
    means = [mean for _, mean in points]
    sign = 1 if expect.trend == "rises" else -1
    correlation = spearman([size for size, _ in points], means) or 0.0
    moved = sign * (means[-1] - means[0]) > 0 and sign * correlation >= RANK_CORRELATION - 1e-12
    return moved and moves_by(expect, means)


def _ranks_hold(claim: ClaimSection, curve: Curve) -> bool:
    expect = claim.expect
    assert expect is not None
    along = [
        TrendRow(axis=str(value), other=other_number(expect, value), mean=mean)
        for value, mean in zip(curve.values, curve.means, strict=True)
    ]
    return any(each.other is None for each in along) or correlated(expect, along)[0]
