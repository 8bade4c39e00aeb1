# SPDX-License-Identifier: Apache-2.0
"""Draw the time-sequence picture of a flow (sent, sent again, acknowledged, SACKed, receive window), and the delays of
a leg in both directions, with its losses.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np
from markupsafe import Markup

from howdah.explain.delay import Reals
from howdah.explain.explained import Explained
from howdah.explain.joined import Leg
from howdah.explain.seen import AGAIN, FILLS, Flags
from howdah.ingest.source import Integers
from howdah.report.plot.canvas import Size
from howdah.report.plot.model import LineLook, Panel, PlotAxis, PlotLine
from howdah.report.plot.style import Style, key, token
from howdah.report.plot.svg import panel_svg
from howdah.report.sequence import ACKED, ALLOWED, SACKED, SENT, SERIES
from howdah.report.sequence import RETRANSMITTED as SENT_AGAIN

START_UP, WHOLE = "start-up", "whole"
SIZES = (Size(1160, 400, "wide"), Size(400, 330, "narrow"))
LEG_SIZES = (Size(1160, 240, "wide"), Size(400, 240, "narrow"))
LEAST_MS = 0.1  # the smallest delay that fills a picture
_AFTER_EXIT = 4  # round trips after the exit that the picture of the start-up shows
_EXIT_STYLE = token("bad")
_LEGEND = list(SERIES)


@dataclass(frozen=True)
class ShownPicture:
    """A picture; ``keys`` are its legend: a sample of each series, and its name."""

    title: str
    drawing: Markup
    keys: list[tuple[Markup, str]]


def shown(title: str, panel: Panel, sizes: Sequence[Size]) -> ShownPicture:
    """Draw a panel in each size, with its legend."""
    drawing = "".join(panel_svg(panel, size, panel.title) for size in sizes)
    lines = sorted(panel.lines, key=lambda line: _LEGEND.index(line.label) if line.label in SERIES else 0)
    keys = [(key(line.style, line.look or "line"), line.label) for line in lines]
    keys += [(key(style, "instant"), "end of the start-up") for _, style in panel.instants]
    return ShownPicture(title, Markup(drawing), [(Markup(sample), name) for sample, name in keys])


def time_sequence(flow: Explained, part: str) -> Panel | None:
    """The time-sequence panel of a flow; None if there are no packets, or if the start-up is the whole flow."""
    if flow.parts is None:
        return None
    seen, trips, course, start = flow.parts
    begin = next((stamp for stamp in seen.syn_ns if stamp is not None), int(seen.sent.time_ns[0]))
    end = int(seen.acks.time_ns[-1])
    if part == START_UP:
        edge = start.end if start.end is not None else start.at
        most = int(trips.rtt_ns.max()) if trips.rtt_ns.size else 0
        until = int(course.time_ns[edge]) + _AFTER_EXIT * most if edge is not None else end
        if until >= end or not most:
            return None
        end = until
    sent = (seen.sent.time_ns >= begin) & (seen.sent.time_ns <= end)
    acks = seen.acks.time_ns <= end
    if not sent.any() or not acks.any() or end <= begin:
        return None
    most_bytes = 1.05 * float(seen.sent.end[sent].max())
    unit, bytes_each = ("MB", 1e6) if most_bytes >= 1e6 else ("kB", 1e3)
    panel = Panel(
        f"Sequence numbers of the flow over time, {part}",
        PlotAxis("seconds since the first packet", (0.0, (end - begin) / 1e9)),
        PlotAxis(f"bytes from the first one ({unit})", (0.0, most_bytes / bytes_each)),
        [],
        words="Bytes from the first one, over time",
    )

    def add(label: str, look: LineLook, time_ns: Integers, offset: Integers, keep: Flags) -> None:
        if keep.any():
            x, y = (time_ns[keep] - begin) / 1e9, offset[keep] / bytes_each
            line = PlotLine(label, SERIES[label].style, x.tolist(), y.tolist(), spoken=label, look=look)
            panel.lines.append(line)

    window = seen.acks.una + seen.acks.window_bytes
    known = acks & (seen.acks.window_bytes.min() >= 0)
    again = sent & np.isin(seen.sent.kind, (AGAIN, FILLS))
    told = acks & (seen.acks.sack_top > seen.acks.una)
    of_acks, of_data = seen.acks.time_ns, seen.sent.time_ns
    add(ALLOWED, "stairs", of_acks, window, known)
    add(SENT, "points", of_data, seen.sent.end, sent & ~again)
    add(SACKED, "strokes", of_acks, seen.acks.sack_top, told)
    add(ACKED, "stairs", of_acks, seen.acks.una, acks)
    add(SENT_AGAIN, "crosses", of_data, seen.sent.begin, again)
    if start.at is not None and int(course.time_ns[start.at]) <= end:
        panel.instants.append(((int(course.time_ns[start.at]) - begin) / 1e9, _EXIT_STYLE))
    return panel


def leg_pictures(leg: Leg) -> list[Panel | None]:
    """The panels of the data and, if both taps have them, of the ACKs. Times are those of the near tap's clock.

    None stands for a direction without a loss whose delay does not vary.
    """
    data = leg.data
    begin, end_s = int(data.near_ns[0]), max(float(np.ptp(data.near_ns)) / 1e9, 1e-3)
    there = f"from {leg.near} to {leg.far}"
    found = [_delays(leg, there, (data.near_ns - begin) / 1e9, data.passed, data.lost, leg.clocks.data_ns, end_s)]
    acks = leg.acks
    if acks is not None and leg.clocks.ack_ns.size:
        # A lost ACK has no time at the near tap; it is drawn at that of the one before it.
        came = (_carried(acks.far_ns, acks.passed) - begin) / 1e9
        back = f"back, from {leg.far} to {leg.near}"
        found.append(_delays(leg, back, came, acks.passed, acks.lost, leg.clocks.ack_ns, end_s))
    return found


def _carried(time_ns: Integers, passed: Flags) -> Integers:
    latest = np.maximum.accumulate(np.where(passed, np.arange(passed.size), -1))
    first = int(np.argmax(passed))
    return time_ns[np.where(latest >= 0, latest, first)]


def _delays(
    leg: Leg, direction: str, time_s: Reals, passed: Flags, lost: Flags, delay_ns: Reals, end_s: float
) -> Panel | None:
    level_ms = np.zeros(passed.size)
    level_ms[passed] = delay_ns / 1e6
    latest = np.maximum.accumulate(np.where(passed, np.arange(passed.size), 0))
    level_ms = level_ms[latest]  # a lost packet is drawn at the delay of the one before it
    if float(level_ms.max()) < LEAST_MS and not lost.any():
        return None
    drawn: list[tuple[str, Style, LineLook, Flags]] = [
        ("passed both taps", token("ink"), "points", passed),
        ("lost between them", token("bad"), "crosses", lost),
    ]
    title = f"Delay beyond the least {direction}, over time"
    return Panel(
        title,
        PlotAxis(f"seconds since the first packet at {leg.near}", (0.0, end_s)),
        PlotAxis("delay beyond the least (ms)", (0.0, max(1.05 * float(level_ms.max()), LEAST_MS))),
        [
            PlotLine(name, style, time_s[rows].tolist(), level_ms[rows].tolist(), spoken=name, look=look)
            for name, style, look, rows in drawn
            if rows.any()
        ],
        words=title,
    )
