# SPDX-License-Identifier: Apache-2.0
"""How a measure is distributed over the connections of a group, as inline SVG: share of the connections that have at
most so much. It needs no script."""

from __future__ import annotations

import math
from dataclasses import dataclass
from xml.sax.saxutils import escape

from howdah.number import significant
from howdah.record.result import Experiment
from howdah.report.drawing import line, svg, text
from howdah.report.plot.scale import Scale, thinned
from howdah.report.plot.scale import ticks as round_ticks
from howdah.report.variant import Variants

# Measure of each connection, what the axis says, whether it is logarithmic.
MEASURES = (
    ("completion_time_s", "completion time (s)", True),
    ("retransmission_ratio", "share of segments that were retransmissions", False),
)
_LEAST_DECADE = 10  # below it, equal steps of a logarithmic axis look like a linear one with odd numbers
_MOST_STEPS = 400
_LEAST_CONNECTIONS = 5
_WIDTH = 1232  # as a page has it, so that letters have their size


@dataclass(frozen=True)
class Distribution:
    """One measure of one group at one sweep point: sorted values of all repetitions that count, by variant. ``counted``
    are what the values are of."""

    point: str
    group: str
    words: str
    logarithmic: bool
    curves: list[tuple[int, str, list[float]]]
    counted: str = "connections"


def distributions(experiments: list[Experiment], variants: Variants) -> list[Distribution]:
    """Of every group with some connections that were measured one by one."""
    found: dict[tuple[str, str, str], dict[str, list[float]]] = {}
    for experiment in experiments:
        for run in experiment.runs:
            for row in run.metrics if run.counts else []:
                if row["flow"] is not None and row.get("group") and isinstance(row["value"], int | float):
                    key = (run.point, str(row["group"]), str(row["metric"]))
                    found.setdefault(key, {}).setdefault(variants.key(run), []).append(float(row["value"]))
    result = []
    for point, group in dict.fromkeys((point, group) for point, group, _ in found):
        for measure, words, logarithmic in MEASURES:
            values = found.get((point, group, measure), {})
            curves = [
                (index, variant.label, sorted(values[variant.key]))
                for index, variant in enumerate(variants.all)
                if len(values.get(variant.key, [])) >= _LEAST_CONNECTIONS
            ]
            if curves and max(curve[2][-1] for curve in curves) > 0:
                result.append(Distribution(point, group, words, logarithmic, curves))
    return result


@dataclass(frozen=True)
class _Frame:
    """Pixels of the plot, and the values at its left and right edge."""

    left: float
    right: float
    top: float
    bottom: float
    least: float
    most: float
    logarithmic: bool

    def across(self, value: float) -> float:
        if self.logarithmic:
            share = math.log(max(value, self.least) / self.least) / math.log(self.most / self.least)
        else:
            share = (value - self.least) / (self.most - self.least)
        return self.left + (self.right - self.left) * share

    def up(self, share: float) -> float:
        return self.bottom - (self.bottom - self.top) * share


def _ends(shown: Distribution) -> tuple[float, float]:
    values = [curve[2] for curve in shown.curves]
    return min(curve[0] for curve in values), max(curve[-1] for curve in values)


def is_logarithmic(shown: Distribution) -> bool:
    """Whether its axis is: where that is wanted, and the values span a decade."""
    least, most = _ends(shown)
    return shown.logarithmic and most >= _LEAST_DECADE * max(least, 1e-6)


def distribution_drawing(shown: Distribution, narrow: bool) -> str:
    """A step curve for each variant; its median is in the curve's title."""
    least, most = _ends(shown)
    logarithmic = is_logarithmic(shown)
    if logarithmic:
        least, most = max(least, 1e-6) / 1.05, most * 1.05
    else:
        least, most = 0.0, most * 1.02
    frame = _Frame(52, 324 if narrow else _WIDTH - 26, 14, 214, least, most, logarithmic)
    parts = _axes(frame, 4 if narrow else 9)
    for index, label, curve in shown.curves:
        middle = curve[len(curve) // 2]
        words = f"{label}: {len(curve)} {shown.counted}, median {significant(middle)}"
        path = _steps(frame, curve)
        parts.append(f'<path d="{path}" class="curve variant-{index}"><title>{escape(words)}</title></path>')
    parts.append(
        text(frame.right, frame.bottom + 33, f"{shown.words}{', logarithmic' if logarithmic else ''}", "note", "end")
    )
    label = f"Distribution over the {shown.counted} of {shown.group}: {shown.words}"
    return svg(340 if narrow else _WIDTH, frame.bottom + 40, label, parts, "narrow" if narrow else "wide")


def _axes(frame: _Frame, ticks: int) -> list[str]:
    parts = []
    for share in (0.0, 0.25, 0.5, 0.75, 1.0):
        parts.append(line(frame.left, frame.up(share), frame.right, frame.up(share), "rail"))
        parts.append(text(frame.left - 6, frame.up(share) + 4, f"{share:.0%}".replace("%", " %"), "note", "end"))
    scale = Scale(frame.least, frame.most, frame.left, frame.right, frame.logarithmic)
    for tick in thinned(round_ticks(scale, ticks), scale, frame.right + 14):
        x = frame.across(tick.value)
        parts.append(line(x, frame.bottom, x, frame.bottom + 4, "tick"))
        parts += [text(x, frame.bottom + 17, tick.text, "note")] if tick.text else []
    return parts


def _steps(frame: _Frame, curve: list[float]) -> str:
    count = len(curve)
    every = max(1, count // _MOST_STEPS)
    path = f"M{frame.across(curve[0]):.1f} {frame.up(0):.1f}"
    for number in [*range(every - 1, count - 1, every), count - 1]:
        path += f"H{frame.across(curve[number]):.1f}V{frame.up((number + 1) / count):.1f}"
    return path + f"H{frame.right:g}"
