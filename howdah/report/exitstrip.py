# SPDX-License-Identifier: Apache-2.0
"""A drawing of the windows at which flows left slow start, against the BDP and the buffer. It needs no script."""

from __future__ import annotations

from dataclasses import dataclass
from xml.sax.saxutils import escape

from howdah.plan.plan import Plan
from howdah.publish.experiment import Experiment
from howdah.report.ackwindow import exit_of
from howdah.report.drawing import line, svg, text
from howdah.report.number import significant
from howdah.report.table import cause_text
from howdah.report.variant import Variants

_STEPS = (0.25, 0.5, 1, 2, 5, 10, 20, 50, 100, 1000, 1e4, 1e6)


@dataclass(frozen=True)
class ExitMark:
    """Where one flow of one run left slow start. ``share`` is the window over the BDP."""

    share: float
    run: str
    repetition: int
    flow: str
    first_flow: bool
    cause: str
    packets: float
    counts: bool


@dataclass(frozen=True)
class ExitRow:
    """The exits of one variant. ``without`` counts flows that have none."""

    label: str
    index: int
    marks: list[ExitMark]
    without: int


@dataclass(frozen=True)
class _Frame:
    """Where things lie: pixels from the left of the drawing, and the share of the BDP at the right edge."""

    left: float
    right: float
    top: float
    bottom: float
    most: float

    def across(self, share: float) -> float:
        return self.left + (self.right - self.left) * share / self.most


def exit_rows(experiments: list[Experiment], variants: Variants, point: str) -> list[ExitRow]:
    """Exits of every run of a sweep point, by variant."""
    rows = []
    runs = [run for experiment in experiments for run in experiment.runs if run.point == point]
    for index, variant in enumerate(variants.all):
        marks, without = [], 0
        for run in runs:
            if run.plan is None or variants.key(run) != variant.key:
                continue
            for number, flow in enumerate(flow for flow in run.plan.flows if flow.group is None):
                found = exit_of(run, flow)
                if found is None or found.cwnd_packets is None:
                    without += 1
                    continue
                mark = ExitMark(
                    share=found.cwnd_packets / max(1, run.plan.path.bdp_packets),
                    run=run.name,
                    repetition=run.repetition,
                    flow=flow.name,
                    first_flow=number == 0,
                    cause=cause_text(found.cause),
                    packets=found.cwnd_packets,
                    counts=run.counts,
                )
                marks.append(mark)
        if marks or without:
            rows.append(ExitRow(variant.label, index, marks, without))
    return rows


def exit_strip(rows: list[ExitRow], plan: Plan, narrow: bool) -> str:
    """Inline SVG: a line for each variant from 0 to beyond BDP + buffer, a mark for each flow of each repetition."""
    full = 1 + plan.path.buffer_bytes / max(1, plan.path.bdp_bytes)
    most = max([full * 1.06] + [mark.share * 1.04 for row in rows for mark in row.marks])
    longest = max(len(row.label) for row in rows)
    pitch = 48 if narrow else 32
    left = 10.0 if narrow else min(360.0, 20 + 7.4 * longest)
    top = 30
    frame = _Frame(left, 324 if narrow else 1200, top, top + pitch * len(rows), most)
    parts = _ground(frame, full, 5 if narrow else 12)
    for index, row in enumerate(rows):
        middle = top + pitch * (index + 0.5) + (9 if narrow else 0)
        if narrow:
            parts.append(text(frame.left, middle - 15, row.label, "name", "start"))
        else:
            parts.append(text(frame.left - 10, middle + 4.5, row.label, "name", "end"))
        parts.append(line(frame.left, middle, frame.right, middle, "rail"))
        parts += _marks(row, frame, middle)
    label = "Window at which each flow left slow start, as a share of the BDP"
    return svg(340 if narrow else 1232, frame.bottom + 38, label, parts, "narrow" if narrow else "wide")


def _ground(frame: _Frame, full: float, ticks: int) -> list[str]:
    """What fits the path, what queues in the buffer, the scale."""
    height = frame.bottom - frame.top
    parts = []
    for first, last, css in ((0.0, 1.0, "fits"), (1.0, full, "queues")):
        x, width = frame.across(first), frame.across(last) - frame.across(first)
        parts.append(f'<rect x="{x:.1f}" y="{frame.top:g}" width="{width:.1f}" height="{height:g}" class="{css}"/>')
    step = next((each for each in _STEPS if frame.most / each <= ticks), frame.most)
    for number in range(int(frame.most / step) + 1):
        x = frame.across(number * step)
        parts.append(line(x, frame.bottom, x, frame.bottom + 4, "tick"))
        parts.append(text(x, frame.bottom + 17, significant(number * step), "note"))
    parts.append(text(frame.right, frame.bottom + 33, "exit cwnd / BDP", "note", "end"))
    for share, name in ((1.0, "BDP"), (full, "BDP + buffer")):
        parts.append(line(frame.across(share), frame.top - 6, frame.across(share), frame.bottom, "limit"))
        near = frame.across(share) > frame.right - 42  # a centred label would stick out of the drawing
        x, anchor = (frame.right + 14, "end") if near else (frame.across(share), "middle")
        parts.append(text(x, frame.top - 11, name, "note", anchor))
    return parts


def _marks(row: ExitRow, frame: _Frame, middle: float) -> list[str]:
    """Repetitions lie a little above each other, so that equal exits are still counted by eye."""
    if not row.marks:
        return [text(frame.left + 6, middle - 4, "no exit seen", "note", "start")]
    parts = []
    repetitions = sorted({mark.repetition for mark in row.marks})
    pitch = min(4.0, 16 / max(1, len(repetitions) - 1))
    for mark in sorted(row.marks, key=lambda each: each.first_flow):
        css = f"mark variant-{row.index}" + ("" if mark.first_flow else " later") + ("" if mark.counts else " invalid")
        words = f"{row.label}, {mark.flow}, {mark.run}: {significant(mark.packets)} packets, {mark.cause}"
        words += "" if mark.counts else " (this run does not count)"
        y = middle + (repetitions.index(mark.repetition) - (len(repetitions) - 1) / 2) * pitch
        parts.append(
            f'<circle cx="{frame.across(mark.share):.1f}" cy="{y:.1f}" r="4.5" class="{css}">'
            f"<title>{escape(words)}</title></circle>"
        )
    return parts
