# SPDX-License-Identifier: Apache-2.0
"""The time-sequence picture of a flow as inline SVG: sent, sent again, acknowledged, SACKed, and the receive window."""

from __future__ import annotations

from collections.abc import Iterator

import numpy as np

from howdah.explain.chart import Chart, some
from howdah.explain.delay import Reals
from howdah.explain.explained import Explained
from howdah.explain.seen import AGAIN, FILLS, Flags
from howdah.ingest.source import Integers
from howdah.number import size

START_UP, WHOLE = "start-up", "whole"
_HEIGHT = 360
_AFTER_EXIT = 4  # round trips


def time_sequence(flow: Explained, part: str, css: str) -> str:
    """Empty where there are no packets, or the start-up is the whole flow."""
    if flow.parts is None:
        return ""
    seen, trips, way, start = flow.parts
    begin = next((stamp for stamp in seen.syn_ns if stamp is not None), int(seen.sent.time_ns[0]))
    end = int(seen.acks.time_ns[-1])
    if part == START_UP:
        edge = start.end if start.end is not None else start.at
        most = int(trips.rtt_ns.max()) if trips.rtt_ns.size else 0
        until = int(way.time_ns[edge]) + _AFTER_EXIT * most if edge is not None else end
        if until >= end or not most:
            return ""
        end = until
    sent = (seen.sent.time_ns >= begin) & (seen.sent.time_ns <= end)
    acks = seen.acks.time_ns <= end
    if not sent.any() or not acks.any():
        return ""
    left_s, heard_s = (seen.sent.time_ns - begin) / 1e9, (seen.acks.time_ns - begin) / 1e9
    chart = Chart((end - begin) / 1e9, 1.05 * float(seen.sent.end[sent].max()), _HEIGHT, css)
    parts = []
    window = seen.acks.una + seen.acks.window_bytes
    if seen.acks.window_bytes.min() >= 0:
        parts.append(_steps(chart, heard_s[acks], np.minimum(window[acks], round(chart.most)), "window"))
    fresh = some(np.flatnonzero(sent & ~np.isin(seen.sent.kind, (AGAIN, FILLS))))
    parts.append(chart.points(left_s[fresh], seen.sent.end[fresh], "sent"))
    parts += _sacked(chart, heard_s, seen.acks.una, seen.acks.sack_top, acks)
    parts.append(_steps(chart, heard_s[acks], seen.acks.una[acks], "acked"))
    again = some(np.flatnonzero(sent & np.isin(seen.sent.kind, (AGAIN, FILLS))))
    parts.append(chart.crosses(left_s[again], seen.sent.begin[again], "again"))
    if start.at is not None and int(way.time_ns[start.at]) <= end:
        parts.append(chart.upright((int(way.time_ns[start.at]) - begin) / 1e9, "left"))
    return chart.drawn(f"Sequence numbers of the flow over time, {part}", parts, "the first packet", size)


def _steps(chart: Chart, time_s: Reals, value: Integers, css: str) -> str:
    rows = some(np.arange(time_s.size))
    x, y = chart.x(time_s[rows]), chart.y(value[rows])
    parts = [f"M{x[0]:.1f} {y[0]:.1f}"]
    parts += [f"H{a:.1f}V{b:.1f}" for a, b in zip(x[1:].tolist(), y[1:].tolist(), strict=True)]
    return f'<path d="{"".join(parts)}" class="{css}"/>'


def _sacked(chart: Chart, time_s: Reals, una: Integers, top: Integers, acks: Flags) -> Iterator[str]:
    rows = some(np.flatnonzero(acks & (top > una)))
    pairs = zip(chart.x(time_s[rows]).tolist(), chart.y(top[rows]).tolist(), strict=True)
    shapes = "".join(f"M{x:.1f} {y:.1f}v3" for x, y in pairs)
    if shapes:
        yield f'<path d="{shapes}" class="sacked"/>'
