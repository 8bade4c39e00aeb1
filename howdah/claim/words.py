# SPDX-License-Identifier: Apache-2.0
"""What a claim expects, in words."""

from __future__ import annotations

from howdah.claim.expectation import USUAL_TOLERANCE, bounds
from howdah.claim.finding import metric_called
from howdah.profile.claim import ClaimSection, RangeSection


def expected_text(claim: ClaimSection) -> str:
    """``870 ± 10 %``; ``much more than at algorithm = standard``; ``ack-train in all of the repetitions``; ``0 packets
    in at least 90 % of the repetitions``; ``rises with path.buffer``."""
    expect = claim.expect
    assert expect is not None
    text = ""
    if expect.word is not None:
        joint = {"similar": "to"}.get(expect.word, "than")
        text = f"{expect.word} {joint} {than_text(claim)}"
    elif expect.ratio is not None:
        text = f"ratio to {than_text(claim)}: {range_text(expect.ratio)}"
    elif expect.difference is not None:
        text = f"difference from {than_text(claim)}: {range_text(expect.difference)}"
    elif expect.is_ is not None:
        share = expect.in_at_least
        text = f"{expect.is_} in {f'at least {share}' if share else 'all'} of the repetitions"
    elif expect.trend is not None:
        words = {"rises": "rises with", "falls": "falls with", "flat": "does not change with"}
        text = f"{words[expect.trend]} {expect.over}"
        if expect.by is not None:
            text += f" by {expect.by} at least"
        elif expect.within is not None:
            text += f" by more than {expect.within}"
    elif expect.rank_correlation is not None:
        text = f"rank correlation with {len(expect.with_ or ())} given numbers over {expect.over}: "
        text += range_text(expect.rank_correlation)
    elif expect.in_at_least is not None:
        text = f"{_one_range_text(claim, expect)} in at least {expect.in_at_least} of the repetitions"
    else:
        text = range_text(expect)
    if claim.each:
        over = " and ".join(claim.each)
        text += {
            "all": f", at each {over}",
            "any": f", at one {over} at least",
            "max": f", the largest over {over}",
            "min": f", the smallest over {over}",
            "mean": f", in the mean over {over}",
        }[claim.hold]
    return text


def range_text(expect: RangeSection) -> str:
    if expect.equals is not None:
        return f"{expect.equals} ± {expect.within or USUAL_TOLERANCE}"
    if expect.between is not None:
        return f"{expect.between[0]} to {expect.between[1]}"
    words = {"above": "above", "below": "below", "at_least": "at least", "at_most": "at most"}
    name = expect.given[0]
    return f"{words[name]} {getattr(expect, name)}"


def _one_range_text(claim: ClaimSection, expect: RangeSection) -> str:
    """A range for the value of each repetition; of a single number that number alone: ``0 packets``."""
    assert claim.value is not None
    low, high = bounds(expect, metric_called(claim.value.metric))
    return expect.equals if expect.equals is not None and low == high else range_text(expect)


def than_text(claim: ClaimSection) -> str:
    """What tells the other side from the first: ``algorithm = standard``, ``flow second``."""
    than = claim.than
    assert than is not None
    parts = [than.metric] if than.metric is not None else []
    if than.flow is not None:
        of = {"sum": "the sum of ", "mean": "the mean of ", "min": "the least of ", "max": "the largest of "}
        taken = of.get(than.take or "", "")
        parts.append(f"{taken}{'all flows' if than.flow == 'all' else f'flow {than.flow}'}")
    parts += [f"{axis} = {value}" for axis, value in than.at.items()]
    return ", ".join(parts)
