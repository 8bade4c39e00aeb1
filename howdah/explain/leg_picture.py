# SPDX-License-Identifier: Apache-2.0
"""Delays of one leg over time, there and back, as inline SVG: packets that passed, and those that were lost."""

from __future__ import annotations

import numpy as np

from howdah.explain.chart import Chart, some
from howdah.explain.delay import Reals
from howdah.explain.joined import Leg
from howdah.explain.seen import Flags
from howdah.ingest.source import Integers

_HEIGHT = 200
_LEAST_MS = 0.1  # the smallest delay that fills a picture


def leg_pictures(leg: Leg, css: str) -> list[str]:
    """That of the data, and that of the ACKs where both taps have them. Times are those of the near tap's clock."""
    data = leg.data
    begin, end_s = int(data.near_ns[0]), max(float(np.ptp(data.near_ns)) / 1e9, 1e-3)
    there = _drawn(leg, f"from {leg.near} to {leg.far}", (data.near_ns - begin) / 1e9, data.passed, data.lost,
                   leg.clocks.data_ns, end_s, css)  # fmt: skip
    acks = leg.acks
    if acks is None or not leg.clocks.ack_ns.size:
        return [there]
    # An ACK that was lost has no time at the near tap: that of the one before it stands for it.
    came = _carried(acks.far_ns, acks.passed)
    back = _drawn(leg, f"back, from {leg.far} to {leg.near}", (came - begin) / 1e9, acks.passed, acks.lost,
                  leg.clocks.ack_ns, end_s, css)  # fmt: skip
    return [there, back]


def _carried(time_ns: Integers, passed: Flags) -> Integers:
    latest = np.maximum.accumulate(np.where(passed, np.arange(passed.size), -1))
    first = int(np.argmax(passed))
    return time_ns[np.where(latest >= 0, latest, first)]


def _drawn(
    leg: Leg, what: str, time_s: Reals, passed: Flags, lost: Flags, delay_ns: Reals, end_s: float, css: str
) -> str:
    level_ms = np.zeros(passed.size)
    level_ms[passed] = delay_ns / 1e6
    latest = np.maximum.accumulate(np.where(passed, np.arange(passed.size), 0))
    level_ms = level_ms[latest]  # a lost packet met what the one before it met
    chart = Chart(end_s, max(1.05 * float(level_ms.max()), _LEAST_MS), _HEIGHT, css)
    rows, gone = some(np.flatnonzero(passed)), some(np.flatnonzero(lost))
    parts = [chart.points(time_s[rows], level_ms[rows], "sent")]
    if gone.size:
        parts.append(chart.crosses(time_s[gone], level_ms[gone], "again"))
    return chart.drawn(f"Delay beyond the least {what}, over time", parts, f"the first packet at {leg.near}")
