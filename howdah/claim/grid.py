# SPDX-License-Identifier: Apache-2.0
"""Claims over the grid of what a source leaves open: where each holds, and whether all hold at one point."""

from __future__ import annotations

import math
from collections.abc import Sequence
from typing import Any

from howdah.claim.finding import DIFFERS, FAIL, PASS, UNSUPPORTED
from howdah.claim.judging import Judging
from howdah.claim.sample import Field
from howdah.number import listed
from howdah.profile.claim import ClaimSection
from howdah.profile.unknown import UNKNOWN_AXIS, GridPoint, default_point, grid

Rows = Sequence[dict[str, Any]]


def judge_grid(claims: Sequence[ClaimSection], rows: Rows, field: Field, quick: bool) -> dict[str, Any] | None:
    """Judge over the grid each claim that fails as the profile is written.

    Its row gets ``unknown``; it *differs* if it holds somewhere.

    Returns what is open, and the point at which all claims hold; None where nothing is open.
    """
    if field.unknowns is None:
        return None
    open_points = grid(field.data, field.unknowns)
    made = {made.axes.get(UNKNOWN_AXIS) for made in field.runs if made.run is not None}
    points = [point for point in open_points if point.label in made]
    default = default_point(field.data, field.unknowns)
    found: dict[str, Any] = {
        "fields": {name: each.what for name, each in field.unknowns.fields.items()},
        "made": len(points),
        "of": len(open_points),
        "together": None,
        "most": None,
        "text": "",
    }
    verdicts: dict[str, dict[str, str]] = {}
    for claim, row in zip(claims, rows, strict=True):
        if row["verdict"] in (UNSUPPORTED, DIFFERS):
            continue  # a control explains what differs, everywhere on the grid
        over = [_at(default, row), *(_judged(claim, field, quick, point) for point in points)]
        verdicts[claim.id] = {_key(each["at"]): each["verdict"] for each in over}
        judged_at = [each for each in over if each["verdict"] != UNSUPPORTED]
        if row["verdict"] == FAIL and len(judged_at) > 1:
            row["unknown"] = summed_up(judged_at)
            if row["unknown"]["holds"]:
                row["verdict"] = DIFFERS
    if points and verdicts:
        found |= _together([default, *points], verdicts)
    return found


def summed_up(over: list[dict[str, Any]]) -> dict[str, Any]:
    """Where a claim holds of the points at which it was judged, in words; their number and share."""
    holding = [point["at"] for point in over if point["verdict"] == PASS]
    where = _where(holding, [point["at"] for point in over])
    share = f"{len(holding)} of {len(over)} points of what is left open"
    text = f"holds {where} ({share})" if holding else f"holds at none of {len(over)} points of what is left open"
    return {"text": text, "holds": len(holding), "of": len(over), "share": len(holding) / len(over), "points": over}


def _where(holding: list[dict[str, str]], everywhere: list[dict[str, str]]) -> str:
    """``where path-rate is 90 or 95 Mbit/s and buffer is 100 packets``; the first such point if that is not all."""
    if not holding:
        return ""
    names = list(everywhere[0])
    values = {name: list(dict.fromkeys(at[name] for at in holding)) for name in names}
    every = {name: {at[name] for at in everywhere} for name in names}
    parts = [f"{name} is {listed(values[name], 'or')}" for name in names if set(values[name]) != every[name]]
    if math.prod(len(each) for each in values.values()) == len(holding) and parts:
        return f"where {' and '.join(parts)}"
    return f"for example where {' and '.join(f'{name} is {value}' for name, value in holding[0].items())}"


def _together(points: list[GridPoint], over: dict[str, dict[str, str]]) -> dict[str, Any]:
    """The point at which all claims hold; without one that at which most do.

    A claim that could not be judged at each of the points takes no part: where it has no verdict, nothing is known of
    all claims together. Such are the claims on runs that the grid leaves out (``unknown.at``) and on controls.
    """
    verdicts = {name: each for name, each in over.items() if UNSUPPORTED not in each.values()}
    left_out = len(over) - len(verdicts)
    if not verdicts:
        return {"text": "no claim is judged at every point of the grid"}
    found = _of_those(points, verdicts)
    if left_out:
        claims = "1 claim is" if left_out == 1 else f"{left_out} claims are"
        found["text"] += f"; {claims} not judged at every point"
    return found


def _of_those(points: list[GridPoint], verdicts: dict[str, dict[str, str]]) -> dict[str, Any]:
    held = {_key(point.at): sum(each[_key(point.at)] == PASS for each in verdicts.values()) for point in points}
    best = max(points, key=lambda point: held[_key(point.at)])
    number = held[_key(best.at)]
    shown = ", ".join(f"{name} {value}" for name, value in best.at.items())
    most = {"at": best.at, "holds": number, "of": len(verdicts)}
    if number == len(verdicts):
        return {"together": best.at, "most": most, "text": f"all {number} claims hold together at {shown}"}
    text = f"no point of the grid has all claims hold together; most, {number} of {len(verdicts)}, do at {shown}"
    return {"together": None, "most": most, "text": text}


def _judged(claim: ClaimSection, field: Field, quick: bool, point: GridPoint) -> dict[str, Any]:
    return _at(point, Judging(claim, field, quick, unknown=point.label).judge())


def _at(point: GridPoint, found: dict[str, Any]) -> dict[str, Any]:
    """What a claim found at a point of the grid."""
    measured, than = found["measured"], found["than"]
    text = measured["text"] if measured else found["why"]
    if than:
        text += f", against {than['text']}"
    return {"at": point.at, "verdict": found["verdict"], "text": text}


def _key(at: dict[str, str]) -> str:
    return "; ".join(f"{name} {value}" for name, value in at.items())
