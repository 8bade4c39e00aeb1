# SPDX-License-Identifier: Apache-2.0
"""Claims over the grid of what a source leaves open: where each holds, and whether all hold at one point."""

from __future__ import annotations

from collections.abc import Sequence

from howdah.claim.finding import DIFFERS, FAIL, PASS, UNSUPPORTED
from howdah.claim.judging import Judging
from howdah.claim.mechanism import reverse_of, summed_up, verdict_over
from howdah.claim.sample import Field
from howdah.profile.claim import ClaimSection
from howdah.profile.unknown import UNKNOWN_AXIS, GridPoint, default_point, grid
from howdah.record.claims import ClaimRow, GridPointRow, Judged, MostRow, OpenRow


def judge_grid(claims: Sequence[ClaimSection], rows: Sequence[ClaimRow], field: Field, quick: bool) -> OpenRow | None:
    """Judge over the grid each claim that fails as the profile is written.

    Its row gets ``unknown``; where it holds somewhere, its verdict is what the grid shows (mechanism.py).

    Returns what is open, and the point at which all claims hold; None where nothing is open.
    """
    if field.unknowns is None:
        return None
    open_points = grid(field.document, field.unknowns)
    made = {made.axes.get(UNKNOWN_AXIS) for made in field.runs if made.run is not None}
    points = [point for point in open_points if point.label in made]
    default = default_point(field.document, field.unknowns)
    found = OpenRow(
        fields={name: each.what for name, each in field.unknowns.fields.items()},
        made=len(points),
        of=len(open_points),
        together=None,
        most=None,
        text="",
    )
    verdicts: dict[str, dict[str, str]] = {}
    for claim, row in zip(claims, rows, strict=True):
        if row.verdict in (UNSUPPORTED, DIFFERS):
            continue  # a control explains what differs, everywhere on the grid
        over = [_judged(claim, field, quick, default, row), *(_judged(claim, field, quick, point) for point in points)]
        verdicts[claim.id] = {_key(each.at): each.verdict for each in over}
        judged_at = [each for each in over if each.verdict != UNSUPPORTED]
        if row.verdict == FAIL and len(judged_at) > 1:
            row.unknown = summed_up(judged_at)
            row.verdict = verdict_over(row.unknown)
    if points and verdicts:
        _put_together(found, [default, *points], verdicts)
    return found


def _put_together(found: OpenRow, points: list[GridPoint], over: dict[str, dict[str, str]]) -> None:
    """Say the point at which all claims hold; without one that at which most do.

    A claim that could not be judged at each of the points takes no part: where it has no verdict, nothing is known of
    all claims together. Such are the claims on runs that the grid leaves out (``unknown.at``) and on controls.
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


def _judged(
    claim: ClaimSection, field: Field, quick: bool, point: GridPoint, row: ClaimRow | None = None
) -> GridPointRow:
    """What a claim found at a point of the grid, and whether its reverse holds there; ``row`` of the default."""
    label = None if row is not None else point.label
    found: Judged = row if row is not None else Judging(claim, field, quick, unknown=label).judge()
    text = found.measured.text if found.measured else found.why
    if found.than:
        text += f", against {found.than.text}"
    reverse = reverse_of(claim) if found.verdict == FAIL else None
    reversed_there = reverse is not None and Judging(reverse, field, quick, unknown=label).judge().verdict == PASS
    return GridPointRow(at=point.at, verdict=found.verdict, reverse=reversed_there, text=text)


def _key(at: dict[str, str]) -> str:
    return "; ".join(f"{name} {value}" for name, value in at.items())
