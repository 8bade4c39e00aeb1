# SPDX-License-Identifier: Apache-2.0
"""How far the clocks of two taps are apart, and how fast they part, by packets that passed both, either way.

Nothing in a capture tells how the least delays there and back divide, so that the offset lies between both. How fast
the clocks part is the slope of the line under the delays of one way (Moon, Skelly and Towsley, 1999).
"""

from __future__ import annotations

from dataclasses import dataclass
from itertools import pairwise

import numpy as np

from howdah.explain.delay import Reals
from howdah.explain.estimate import Estimate, absent
from howdah.explain.matched import Matched

_MOST_PPM = 500.0  # a crystal is nearer; the kernel's adjtimex() allows no more
_FEW = 8
_HULL_POINTS = 2000


@dataclass(frozen=True)
class Clocks:
    """``offset_ns``: the far tap's clock less the near one's when the first packet passed; ``skew_ppm``: how fast that
    grows. ``data_ns``, ``ack_ns``: one-way delays beyond the least, of packets that passed, and their least."""

    offset_ns: Estimate
    skew_ppm: Estimate
    data_ns: Reals
    ack_ns: Reals
    data_least_ns: Estimate


def clocks_of(data: Matched, acks: Matched | None, step_ns: int) -> Clocks:
    """``step_ns`` is how coarse the stamps are."""
    there = data.passed
    begin = int(data.near_ns[there][0])
    x = (data.near_ns[there] - begin).astype(np.float64)
    forward = (data.far_ns[there] - data.near_ns[there]).astype(np.float64)
    if acks is None or acks.passed.sum() < _FEW:
        reason = "the ACKs at the two taps are not the same packets"
        least = float(forward.min())
        return Clocks(absent(reason), absent(reason), forward - least, np.zeros(0), absent(reason))
    back = acks.passed
    y = (acks.far_ns[back] - begin).astype(np.float64)
    backward = (acks.far_ns[back] - acks.near_ns[back]).astype(np.float64)
    skew = _skew(x, forward, y, backward, step_ns)
    slope = (skew.value or 0.0) * 1e-6
    forward = forward - slope * x
    backward = backward + slope * y
    least, other = float(forward.min()), float(backward.min())
    whole = max(least + other, 0.0)
    how = "half of the least there and back; nothing tells how that divides"
    offset = Estimate((least - other) / 2, -other - step_ns, least + step_ns, "the same way there and back supposed")
    one_way = Estimate(whole / 2, 0.0, whole + 2 * step_ns, how)
    return Clocks(offset, skew, forward - least, backward - other, one_way)


def _skew(x: Reals, forward: Reals, y: Reals, backward: Reals, step_ns: int) -> Estimate:
    span = float(min(np.ptp(x), np.ptp(y)))
    if span <= 0:
        return absent("all packets passed at once")
    finest = (2 * step_ns + 1000) / span * 1e6
    found = [slope * 1e6 for slope in (_floor_slope(x, forward), -_floor_slope(y, backward))]
    good = [each for each in found if abs(each) <= _MOST_PPM + finest]
    if not good:
        return absent("the least delays change by more than clocks do")
    value = good[-1]  # that of the ACKs, which seldom meet a queue
    low, high = min(good) - finest, max(good) + finest
    if low <= 0 <= high:
        return Estimate(0.0, low, high, "within what the stamps tell")
    return Estimate(value, low, high, "the slope of the least delays")


def _floor_slope(time_ns: Reals, delay_ns: Reals) -> float:
    """Of the line that is nowhere above the delays and as close to them as it can be: the edge of their lower hull
    over the middle of the times."""
    order = np.argsort(time_ns, kind="stable")
    x, y = time_ns[order], delay_ns[order]
    x, y = _lowest(x, y)
    hull: list[tuple[float, float]] = []
    for point in zip(x.tolist(), y.tolist(), strict=True):
        while len(hull) > 1 and _turns(hull[-2], hull[-1], point):
            hull.pop()
        hull.append(point)
    middle = float(time_ns.mean())
    for first, second in pairwise(hull):
        if second[0] >= middle:
            return (second[1] - first[1]) / (second[0] - first[0]) if second[0] > first[0] else 0.0
    return 0.0


def _lowest(x: Reals, y: Reals) -> tuple[Reals, Reals]:
    """Of many points the lowest of each stretch: no other is on the hull by much."""
    if x.size <= _HULL_POINTS:
        return x, y
    edges = np.linspace(0, x.size, _HULL_POINTS + 1).astype(np.int64).tolist()
    places = np.array([begin + int(np.argmin(y[begin:end])) for begin, end in pairwise(edges)])
    return x[places], y[places]


def _turns(a: tuple[float, float], b: tuple[float, float], c: tuple[float, float]) -> bool:
    return (b[0] - a[0]) * (c[1] - a[1]) <= (c[0] - a[0]) * (b[1] - a[1])
