# SPDX-License-Identifier: Apache-2.0
"""Time-sequence pictures as inline SVG: of a flow what was sent, sent again, acknowledged, SACKed, and the receive
window; of a leg the delays there and back, of packets that passed and those that were lost.
"""

from __future__ import annotations

import math
from collections.abc import Iterator

import numpy as np

from howdah.explain.delay import Reals
from howdah.explain.explained import Explained
from howdah.explain.joined import Leg
from howdah.explain.seen import AGAIN, FILLS, Flags
from howdah.ingest.source import Integers
from howdah.report.drawing import line
from howdah.report.plot.canvas import Canvas, Size

START_UP, WHOLE = "start-up", "whole"
SIZES = (Size(1160, 400, "wide"), Size(400, 330, "narrow"))
_MOST_POINTS = 2500
_AFTER_EXIT = 4  # round trips
# By the class of what is drawn: a sample of it, and its name.
_KEYS = {
    "sent": ("M3 6h2v2h-2zM12 6h2v2h-2zM21 6h2v2h-2z", "sent"),
    "again": ("M10 4l6 6M16 4l-6 6", "sent again"),
    "acked": ("M0 7H26", "acknowledged"),
    "sacked": ("M13 3v8", "reported by SACK"),
    "window": ("M0 7H26", "what the receive window allows"),
    "left": ("M13 0V14", "end of the start-up"),
    "passed": ("M3 6h2v2h-2zM12 6h2v2h-2zM21 6h2v2h-2z", "passed both taps"),
    "gone": ("M10 4l6 6M16 4l-6 6", "lost between them"),
    "recorded": ("M0 7H26", "recorded"),
    "reproduced": ("M0 7H26", "reproduced by the twin"),
}


def keys(drawing: str) -> list[tuple[str, str]]:
    """Samples and names of what is on a drawing."""
    return [
        (
            f'<svg viewBox="0 0 26 14" width="26" height="14" aria-hidden="true"><path d="{d}" class="{css}"/></svg>',
            name,
        )
        for css, (d, name) in _KEYS.items()
        if f'class="{css}"' in drawing
    ]


def time_sequence(flow: Explained, part: str, size: Size) -> str:
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
    if not sent.any() or not acks.any() or end <= begin:
        return ""
    most_bytes = 1.05 * float(seen.sent.end[sent].max())
    unit, bytes_each = ("MB", 1e6) if most_bytes >= 1e6 else ("kB", 1e3)
    titles = ("seconds since the first packet", f"bytes from the first one ({unit})")
    canvas = Canvas(size, (0.0, (end - begin) / 1e9, False), (0.0, most_bytes / bytes_each, False), titles)
    canvas.ground()

    def at(time_ns: Integers, offset: Integers) -> Iterator[tuple[float, float]]:
        rows = slice(None, None, max(math.ceil(time_ns.size / _MOST_POINTS), 1))
        for time, value in zip(((time_ns[rows] - begin) / 1e9).tolist(), offset[rows].tolist(), strict=True):
            yield canvas.x.at(time), canvas.y.at(value / bytes_each)

    def add(css: str, shapes: Iterator[str]) -> None:
        if path := "".join(shapes):
            canvas.parts.append(f'<path d="{path}" class="{css}"/>')

    window = seen.acks.una + seen.acks.window_bytes
    if seen.acks.window_bytes.min() >= 0:
        add("window", _steps(at(seen.acks.time_ns[acks], window[acks])))
    fresh = sent & ~np.isin(seen.sent.kind, (AGAIN, FILLS))
    add(
        "sent",
        (f"M{x - 0.9:.1f} {y - 0.9:.1f}h1.8v1.8h-1.8z" for x, y in at(*_rows(seen.sent.time_ns, seen.sent.end, fresh))),
    )
    told = acks & (seen.acks.sack_top > seen.acks.una)
    add("sacked", (f"M{x:.1f} {y:.1f}v3" for x, y in at(*_rows(seen.acks.time_ns, seen.acks.sack_top, told))))
    add("acked", _steps(at(seen.acks.time_ns[acks], seen.acks.una[acks])))
    again = sent & np.isin(seen.sent.kind, (AGAIN, FILLS))
    crosses = at(*_rows(seen.sent.time_ns, seen.sent.begin, again))
    add("again", (f"M{x - 3:.1f} {y - 3:.1f}l6 6M{x + 3:.1f} {y - 3:.1f}l-6 6" for x, y in crosses))
    if start.at is not None and int(way.time_ns[start.at]) <= end:
        x = canvas.x.at((int(way.time_ns[start.at]) - begin) / 1e9)
        canvas.parts.append(line(x, canvas.top, x, canvas.bottom, "left"))
    return canvas.svg(
        f"Sequence numbers of the flow over time, {part}", ", ".join(name for _, name in keys("".join(canvas.parts)))
    )


def _rows(time_ns: Integers, value: Integers, keep: np.ndarray) -> tuple[Integers, Integers]:
    return time_ns[keep], value[keep]


def _steps(places: Iterator[tuple[float, float]]) -> Iterator[str]:
    first = next(places, None)
    if first is not None:
        yield f"M{first[0]:.1f} {first[1]:.1f}"
        yield from (f"H{x:.1f}V{y:.1f}" for x, y in places)


LEG_SIZES = (Size(1160, 240, "wide"), Size(400, 240, "narrow"))
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
