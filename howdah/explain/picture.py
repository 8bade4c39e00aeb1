# SPDX-License-Identifier: Apache-2.0
"""The time-sequence picture of a flow as inline SVG: sent, sent again, acknowledged, SACKed, and the receive window."""

from __future__ import annotations

import math
from collections.abc import Iterator
from dataclasses import dataclass

import numpy as np

from howdah.explain.delay import Reals
from howdah.explain.explained import Explained
from howdah.explain.seen import AGAIN, FILLS
from howdah.ingest.source import Integers
from howdah.number import significant, size
from howdah.report.drawing import line, svg, text

START_UP, WHOLE = "start-up", "whole"
_WIDTH, _NARROW, _HEIGHT, _LEFT, _BOTTOM, _TOP = 900, 400, 360, 70, 40, 12
_MOST_POINTS = 2500
_AFTER_EXIT = 4  # round trips
_TICKS = 6


@dataclass(frozen=True)
class _Canvas:
    begin_ns: int
    end_ns: int
    most: float
    width: int

    def x(self, time_ns: Integers | int) -> Reals:
        share = (np.asarray(time_ns, np.float64) - self.begin_ns) / max(self.end_ns - self.begin_ns, 1)
        return np.asarray(_LEFT + share * (self.width - _LEFT - 10))

    def y(self, offset: Integers | float) -> Reals:
        share = np.asarray(offset, np.float64) / max(self.most, 1.0)
        return np.asarray(_HEIGHT - _BOTTOM - share * (_HEIGHT - _BOTTOM - _TOP))


def time_sequence(flow: Explained, part: str, *, narrow: bool) -> str:
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
    frame = _Canvas(begin, end, 1.05 * float(seen.sent.end[sent].max()), _NARROW if narrow else _WIDTH)
    parts = list(_axes(frame))
    window = seen.acks.una + seen.acks.window_bytes
    if seen.acks.window_bytes.min() >= 0:
        parts.append(_steps(frame, seen.acks.time_ns[acks], np.minimum(window[acks], round(frame.most)), "window"))
    fresh = np.flatnonzero(sent & ~np.isin(seen.sent.kind, (AGAIN, FILLS)))
    parts.append(_points(frame, seen.sent.time_ns[_some(fresh)], seen.sent.end[_some(fresh)]))
    parts += _sacked(frame, seen.acks.time_ns, seen.acks.una, seen.acks.sack_top, acks)
    parts.append(_steps(frame, seen.acks.time_ns[acks], seen.acks.una[acks], "acked"))
    again = _some(np.flatnonzero(sent & np.isin(seen.sent.kind, (AGAIN, FILLS))))
    parts.append(_crosses(frame, seen.sent.time_ns[again], seen.sent.begin[again]))
    if start.at is not None and int(way.time_ns[start.at]) <= end:
        x = float(frame.x(int(way.time_ns[start.at])))
        parts.append(line(x, _TOP, x, _HEIGHT - _BOTTOM, "left"))
    css = "narrow" if narrow else "wide"
    return svg(frame.width, _HEIGHT, f"Sequence numbers of the flow over time, {part}", parts, css)


def _some(rows: Integers) -> Integers:
    return rows[:: max(math.ceil(rows.size / _MOST_POINTS), 1)]


def _axes(frame: _Canvas) -> Iterator[str]:
    step = tick_step((frame.end_ns - frame.begin_ns) / 1e9)
    for number in range(int((frame.end_ns - frame.begin_ns) / 1e9 / step) + 1):
        x = float(frame.x(frame.begin_ns + round(number * step * 1e9)))
        yield line(x, _HEIGHT - _BOTTOM, x, _HEIGHT - _BOTTOM + 4, "tick")
        yield text(x, _HEIGHT - _BOTTOM + 18, significant(number * step), "note")
    yield text(frame.width - 10, _HEIGHT - 4, "seconds since the first packet", "note", "end")
    step = tick_step(frame.most)
    for number in range(int(frame.most / step) + 1):
        y = float(frame.y(number * step))
        yield line(_LEFT, y, frame.width - 10, y, "rail")
        yield text(_LEFT - 6, y + 4, size(number * step) if number else "0", "note", "end")


def tick_step(span: float) -> float:
    """Between ticks: 1, 2 or 5 of a power of ten."""
    raw = max(span, 1e-9) / _TICKS
    power = 10.0 ** math.floor(math.log10(raw))
    return next(each * power for each in (1, 2, 5, 10) if each * power >= raw)


def _steps(frame: _Canvas, time_ns: Integers, value: Integers, css: str) -> str:
    rows = _some(np.arange(time_ns.size))
    x, y = frame.x(time_ns[rows]), frame.y(value[rows])
    parts = [f"M{x[0]:.1f} {y[0]:.1f}"]
    parts += [f"H{a:.1f}V{b:.1f}" for a, b in zip(x[1:].tolist(), y[1:].tolist(), strict=True)]
    return f'<path d="{"".join(parts)}" class="{css}"/>'


def _points(frame: _Canvas, time_ns: Integers, value: Integers) -> str:
    pairs = zip(frame.x(time_ns).tolist(), frame.y(value).tolist(), strict=True)
    return f'<path d="{"".join(f"M{x - 0.9:.1f} {y - 0.9:.1f}h1.8v1.8h-1.8z" for x, y in pairs)}" class="sent"/>'


def _crosses(frame: _Canvas, time_ns: Integers, value: Integers) -> str:
    pairs = zip(frame.x(time_ns).tolist(), frame.y(value).tolist(), strict=True)
    shapes = "".join(f"M{x - 3:.1f} {y - 3:.1f}l6 6M{x + 3:.1f} {y - 3:.1f}l-6 6" for x, y in pairs)
    return f'<path d="{shapes}" class="again"/>'


def _sacked(frame: _Canvas, time_ns: Integers, una: Integers, top: Integers, acks: np.ndarray) -> Iterator[str]:
    rows = _some(np.flatnonzero(acks & (top > una)))
    pairs = zip(frame.x(time_ns[rows]).tolist(), frame.y(top[rows]).tolist(), strict=True)
    shapes = "".join(f"M{x:.1f} {y:.1f}v3" for x, y in pairs)
    if shapes:
        yield f'<path d="{shapes}" class="sacked"/>'
