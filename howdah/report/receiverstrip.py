# SPDX-License-Identifier: Apache-2.0
"""The receivers' behaviour: a strip for each measure, and a sentence on the differences."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from statistics import median

from howdah.metric import Metric, known_metrics
from howdah.number import significant
from howdah.record.result import Run
from howdah.report.plot.canvas import UNCOUNTED, RowCanvas
from howdah.report.plot.model import PlotAxis
from howdah.report.variant import Variants

_DRAWN = (
    "segments_per_ack",
    "ack_delay_p95_us",
    "sack_blocks_per_ack",
    "offered_window_least_bdp",
    "offered_window_most_bdp",
    "receive_window_limited_s",
)
_COMPARED = (*_DRAWN, "exit_cwnd_bdp")  # the exit has strips of its own
_ALIKE = 0.05  # values are alike that lie no further apart than this share of the largest
_DIGITS = 3


@dataclass(frozen=True)
class ReceiverMark:
    """A measure of one flow of one run, in the unit shown; ``variant`` selects the colour."""

    value: float
    run: str
    flow: int
    counts: bool
    variant: int


@dataclass(frozen=True)
class ReceiverStrip:
    """One measure. ``rows`` has the marks for each value of an axis; ``most`` is the right edge of the scale."""

    metric: Metric
    rows: dict[str, list[ReceiverMark]]
    most: float


def receiver_strips(runs: list[Run], variants: Variants, value_of: Callable[[Run], str]) -> list[ReceiverStrip]:
    """A strip for each measure that a run has, with rows in the order of the runs; none if no receiver was captured.

    The scale of a measure covers all runs, so it is the same whichever axis gives the rows.
    """
    return _strips(runs, variants, value_of, _DRAWN) if _captured(runs) else []


def what_differs(
    runs: list[Run], variants: Variants, value_of: Callable[[Run], str], label: str, rest_of: Callable[[Run], str]
) -> str:
    """``By receiver these differ: segments an ACK from 1 (quick-ack) to 7.9 (stretch-ack). Within 5 %: …``.

    Compares medians of the runs that count, and only among runs that agree in everything else, which ``rest_of`` names.
    From several such sets it reports the one in which a measure differs most. Empty if the axis has one value, or if no
    receiver was captured.
    """
    if not _captured(runs):
        return ""
    sets: dict[str, list[Run]] = {}
    for run in runs:
        if run.counts:
            sets.setdefault(rest_of(run), []).append(run)
    spreads: dict[str, list[_Spread]] = {}
    for place, mine in sets.items():
        for strip in _strips(mine, variants, value_of, _COMPARED):
            if found := _spread(strip, place if len(sets) > 1 else ""):
                spreads.setdefault(strip.metric.name, []).append(found)
    known = known_metrics()
    apart, alike = [], []
    for name in (name for name in _COMPARED if name in spreads):
        metric = known[name]
        widest = max(spreads[name], key=lambda each: each.share)
        if widest.share <= _ALIKE:
            alike.append(metric.words)
        else:
            apart.append(f"{metric.words} {widest.text(metric.shown)}")
    sentences = [f"By {label} these differ: {'; '.join(apart)}."] if apart else []
    if alike:
        begin = "Within 5 % are" if apart else f"By {label}, within 5 % are"
        sentences.append(f"{begin}: {'; '.join(alike)}.")
    return " ".join(sentences)


@dataclass(frozen=True)
class _Spread:
    """The least and greatest median of a measure and their row names; ``place`` is what the runs share."""

    low: float
    least: str
    high: float
    most: str
    place: str

    @property
    def share(self) -> float:
        return (self.high - self.low) / self.high if self.high > 0 else 0.0

    def text(self, unit: str) -> str:
        high = f"{significant(self.high, _DIGITS)} {unit}".rstrip()
        place = f", at {self.place}" if self.place else ""
        return f"from {significant(self.low, _DIGITS)} ({self.least}) to {high} ({self.most}{place})"


def _spread(strip: ReceiverStrip, place: str) -> _Spread | None:
    middles = sorted((median(mark.value for mark in marks), name) for name, marks in strip.rows.items() if marks)
    return _Spread(*middles[0], *middles[-1], place) if len(middles) > 1 else None


def _captured(runs: list[Run]) -> bool:
    return any(row.metric == _DRAWN[0] and row.value is not None for run in runs for row in run.metrics)


def _strips(
    runs: list[Run], variants: Variants, value_of: Callable[[Run], str], names: tuple[str, ...]
) -> list[ReceiverStrip]:
    known = known_metrics()
    found = []
    for name in names:
        metric = known[name]
        rows: dict[str, list[ReceiverMark]] = {}
        for run in runs:
            marks = rows.setdefault(value_of(run), [])
            variant = variants.index(run)
            for row in run.metrics:
                if row.metric == name and row.number is not None and row.flow is not None:
                    value = float(row.number) * metric.factor
                    marks.append(ReceiverMark(value, run.name, row.flow, run.counts, variant))
        values = [mark.value for marks in rows.values() for mark in marks]
        if values:
            found.append(ReceiverStrip(metric, rows, max(values) * 1.04 or 1.0))
    return found


def receiver_drawing(strip: ReceiverStrip, left: float, *, narrow: bool) -> str:
    """Inline SVG: a line for each row from 0, a mark for each flow of each run. ``left`` is the room for labels."""
    axis = PlotAxis("", (0.0, strip.most))
    canvas = RowCanvas(len(strip.rows), axis, left, narrow=narrow, pitch=42 if narrow else 26)
    canvas.ticks()
    for number, (label, marks) in enumerate(strip.rows.items()):
        canvas.row(number, label, "" if marks else "not measured")
        for mark in marks:
            words = f"{label}, flow {mark.flow}, {mark.run}: {significant(mark.value)} {strip.metric.shown}".rstrip()
            words += "" if mark.counts else UNCOUNTED
            css = f"variant-{mark.variant}" + ("" if mark.counts else " invalid")
            canvas.mark(number, mark.value, css, words)
    return canvas.svg(strip.metric.title)
