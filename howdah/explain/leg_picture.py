# SPDX-License-Identifier: Apache-2.0
"""Delays of one leg over time, there and back, as inline SVG: packets that passed, and those that were lost."""

from __future__ import annotations

import math

import numpy as np

from howdah.explain.delay import Reals
from howdah.explain.joined import Leg
from howdah.explain.seen import Flags
from howdah.ingest.source import Integers
from howdah.report.plot.canvas import Canvas, Size

LEG_SIZES = (Size(1160, 240, "wide"), Size(400, 240, "narrow"))
_MOST_POINTS = 2500
_SQUARE, _CROSS = "m-0.9 -0.9h1.8v1.8h-1.8z", "m-3 -3l6 6m0 -6l-6 6"
LEAST_MS = 0.1  # the smallest delay that fills a picture


def leg_pictures(leg: Leg, size: Size) -> list[str]:
    """That of the data, and that of the ACKs where both taps have them. Times are those of the near tap's clock.

    Empty where nothing was lost and the delay is the same all the time: a line at zero shows nothing.
    """
    data = leg.data
    begin, end_s = int(data.near_ns[0]), max(float(np.ptp(data.near_ns)) / 1e9, 1e-3)
    there = _drawn(leg, f"from {leg.near} to {leg.far}", (data.near_ns - begin) / 1e9, data.passed, data.lost,
                   leg.clocks.data_ns, end_s, size)  # fmt: skip
    acks = leg.acks
    if acks is None or not leg.clocks.ack_ns.size:
        return [there]
    # An ACK that was lost has no time at the near tap: that of the one before it stands for it.
    came = _carried(acks.far_ns, acks.passed)
    back = _drawn(leg, f"back, from {leg.far} to {leg.near}", (came - begin) / 1e9, acks.passed, acks.lost,
                  leg.clocks.ack_ns, end_s, size)  # fmt: skip
    return [there, back]


def _carried(time_ns: Integers, passed: Flags) -> Integers:
    latest = np.maximum.accumulate(np.where(passed, np.arange(passed.size), -1))
    first = int(np.argmax(passed))
    return time_ns[np.where(latest >= 0, latest, first)]


def _drawn(
    leg: Leg, what: str, time_s: Reals, passed: Flags, lost: Flags, delay_ns: Reals, end_s: float, size: Size
) -> str:
    level_ms = np.zeros(passed.size)
    level_ms[passed] = delay_ns / 1e6
    latest = np.maximum.accumulate(np.where(passed, np.arange(passed.size), 0))
    level_ms = level_ms[latest]  # a lost packet met what the one before it met
    if float(level_ms.max()) < LEAST_MS and not lost.any():
        return ""
    most = max(1.05 * float(level_ms.max()), LEAST_MS)
    titles = (f"seconds since the first packet at {leg.near}", "delay beyond the least (ms)")
    canvas = Canvas(size, (0.0, end_s, False), (0.0, most, False), titles)
    canvas.ground()
    for css, rows, shape in (("passed", passed, _SQUARE), ("gone", lost, _CROSS)):
        chosen = np.flatnonzero(rows)
        chosen = chosen[:: max(math.ceil(chosen.size / _MOST_POINTS), 1)]
        pairs = zip(time_s[chosen].tolist(), level_ms[chosen].tolist(), strict=True)
        path = "".join(f"M{canvas.x.at(time):.1f} {canvas.y.at(level):.1f}{shape}" for time, level in pairs)
        if path:
            canvas.parts.append(f'<path d="{path}" class="{css}"/>')
    return canvas.svg(f"Delay beyond the least {what}, over time", "packets that passed both taps, and lost ones")
