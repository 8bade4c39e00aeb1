# SPDX-License-Identifier: Apache-2.0
"""One line of a paper figure: its origin, its points as in the tables, and its look without colour."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

import numpy as np

from howdah.plan.plan import Flow
from howdah.record.result import Run
from howdah.record.sample import Float64
from howdah.report.ackwindow import WindowExit, flow_start_ns
from howdah.report.codec import extremes
from howdah.report.drawn import BEYOND_EXIT, DECADE
from howdah.report.source import shown_us

# No two lines share dash and mark, so that a copy in grey is read as well. The first lines differ in both.
DASHES: tuple[Any, ...] = (
    "-",
    (0, (5, 1.6)),
    (0, (1.2, 1.2)),
    (0, (6, 1.4, 1.2, 1.4)),
    (0, (9, 2)),
    (0, (3, 1, 1, 1, 1, 1)),
)
MARKS = ("o", "s", "^", "D", "v", "P", "X")
MOST_LINES = 8
# Seconds since a time, here the flow's start, and values of a flow of a run; None where there are none.
Points = Callable[[Run, Flow, float], tuple[Float64, Float64] | None]
_MOST_POINTS = 2400  # of a line: more than a column has dots, fewer than would make the file large


@dataclass(frozen=True)
class PaperLine:
    """``x`` is in seconds since the flow's start, ``y`` in the unit of the figure.

    ``alike`` are the counting runs of the same variant and sweep point, this one included if it counts.
    """

    label: str
    number: int
    colour: str
    run: Run
    flow: Flow
    x: Float64
    y: Float64
    exit: WindowExit | None = None
    repetitions: tuple[Run, ...] = ()

    @property
    def dash(self) -> Any:
        return DASHES[self.number % len(DASHES)]

    @property
    def mark(self) -> str:
        return MARKS[self.number % len(MARKS)]


def shown_part(x: Float64, y: Float64, end_s: float | None) -> tuple[Float64, Float64]:
    """The points from the start to ``until_s`` and the first one after it."""
    keep = x >= 0
    if end_s is not None:
        end = int(np.searchsorted(x, end_s, side="right")) + 1
        keep &= np.arange(len(x)) < end
    keep &= ~np.isnan(y)
    return x[keep], y[keep]


def thinned(x: Float64, y: Float64) -> tuple[Float64, Float64]:
    """At most about as many points as print can resolve, each one a point of the table."""
    if len(y) <= _MOST_POINTS:
        return x, y
    kept = extremes(y, _MOST_POINTS)
    return x[kept], y[kept]


def span_decades(lines: list[PaperLine]) -> bool:
    """Whether the peaks differ so much that the smaller lines would lie on the floor of a linear axis."""
    peaks = [float(np.max(line.y)) for line in lines if len(line.y) and np.max(line.y) > 0]
    return len(peaks) > 1 and max(peaks) >= DECADE * min(peaks)


_LEAST_RTTS = 3
_WITHOUT_EXIT_RTTS = 12
_BESIDE_EXITS_RTTS = 6  # of its own, of a line without an exit beside others that have one


def end_s(lines: list[PaperLine], *, whole: bool) -> float | None:
    """The end of the start-up of all lines: a little after the last exit, and not before the first round trips of a
    line without one. For whole runs the end of the shown part; None means the last record."""
    if whole:
        if any(line.run.plan and shown_us(line.run) == line.run.plan.duration_us for line in lines):
            return None
        return max(shown_us(line.run) / 1e6 - flow_start_ns(line.run, line.flow) / 1e9 for line in lines)
    rtt_s = max(line.flow.rtt_us for line in lines) / 1e6
    exits = [line.exit.after_start_s for line in lines if line.exit is not None]
    if exits:
        stayed = [_BESIDE_EXITS_RTTS * line.flow.rtt_us / 1e6 for line in lines if line.exit is None]
        return max([max(exits) * (1 + BEYOND_EXIT), _LEAST_RTTS * rtt_s, *stayed])
    return _WITHOUT_EXIT_RTTS * rtt_s


def axis_end_s(lines: list[PaperLine], *, whole: bool) -> float:
    """The end of the axis."""
    until = end_s(lines, whole=whole)
    return until if until is not None else max(float(line.x[-1]) for line in lines if len(line.x))
