# SPDX-License-Identifier: Apache-2.0
"""When a grid of what a source leaves open shows why a claim does not hold, and when it holds there by chance.

A grid shows a mechanism if both hold:

1. What is open decides it. At some value of one field the claim holds whatever the others are, or the points at which
   it holds, two at least, are exactly those with certain values of several fields.
2. Its reverse, where it has one, is measured at fewer points than the claim.

A claim that holds at some point of such a grid *differs*. One that holds at some point of another grid *depends* on
what is open: nothing shows which of its values the source had. docs/claims.md says the same to readers.
"""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from typing import Any

from howdah.claim.expectation import bounds
from howdah.claim.finding import DEPENDS, DIFFERS, FAIL, PASS, metric_called
from howdah.metric import RATIO, Metric
from howdah.number import listed
from howdah.profile.claim import ClaimSection, ExpectSection, RangeSection
from howdah.record.claims import GridPointRow, GridRow

At = Mapping[str, str]
_WORDS_REVERSED = {"more": "less", "much more": "less", "less": "more", "much less": "more"}
_TRENDS_REVERSED = {"rises": "falls", "falls": "rises"}


def reverse_of(claim: ClaimSection) -> ClaimSection | None:
    """The claim with its direction turned; None where it has none, as ``similar`` and a number by itself."""
    expect = claim.expect
    reverse = None if expect is None or claim.value is None else _reverse(expect, metric_called(claim.value.metric))
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
        beyond = _beyond(expect.ratio, RATIO, 1.0)
        return {"ratio": {beyond: "1"}} if beyond else None
    if expect.rank_correlation is not None:
        turned = {"below": "at_most", "above": "at_least"}.get(_beyond(expect.rank_correlation, RATIO, 0.0))
        return {"rank_correlation": {turned: "0"}, "over": expect.over, "with": expect.with_} if turned else None
    if expect.difference is not None:
        beyond = _beyond(expect.difference, metric, 0.0)
        return {"difference": {beyond: f"0 {metric.shown}".strip()}} if beyond else None
    return None


def _beyond(expect: RangeSection, metric: Metric, same: float) -> str:
    """On which side of ``same`` the reverse lies; empty where the range is on both."""
    low, high = bounds(expect, metric)
    if low is not None and low >= same:
        return "below"
    return "above" if high is not None and high <= same else ""


def summed_up(over: Sequence[GridPointRow]) -> GridRow:
    """Where a claim holds of the points at which it was judged, in words; how often it does, and its reverse."""
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
    """The verdict of a claim that fails as its profile is written, by its grid."""
    if not summed.holds:
        return FAIL
    return DIFFERS if summed.mechanism else DEPENDS


def _decides(holding: Sequence[At], everywhere: Sequence[At]) -> bool:
    """Whether values of what is open say where it holds (rule 1)."""
    for name in everywhere[0]:
        for value in {at[name] for at in holding}:
            if all(at in holding for at in everywhere if at[name] == value):
                return True
    return len(holding) > 1 and _is_product(holding)


def _is_product(holding: Sequence[At]) -> bool:
    """Whether these points are all combinations of the values that occur in them."""
    return math.prod(len({at[name] for at in holding}) for name in holding[0]) == len(holding)


def _where(holding: Sequence[At], everywhere: Sequence[At]) -> str:
    """``where path-rate is 90 or 95 Mbit/s and buffer is 100 packets``; the first such point if that is not all."""
    if not holding:
        return ""
    names = list(everywhere[0])
    values = {name: list(dict.fromkeys(at[name] for at in holding)) for name in names}
    every = {name: {at[name] for at in everywhere} for name in names}
    parts = [f"{name} is {listed(values[name], 'or')}" for name in names if set(values[name]) != every[name]]
    if _is_product(holding) and parts:
        return f"where {' and '.join(parts)}"
    return f"for example where {' and '.join(f'{name} is {value}' for name, value in holding[0].items())}"
