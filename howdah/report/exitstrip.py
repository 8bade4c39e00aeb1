# SPDX-License-Identifier: Apache-2.0
"""Drawings of cwnd at the slow-start exits, against the BDP and the buffer; they need no script."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass

from howdah.number import significant
from howdah.plan.plan import BACKGROUND
from howdah.record.result import Experiment, Run
from howdah.report.ackwindow import exit_of
from howdah.report.axis import ABSENT, RunAxis
from howdah.report.dotplot import UNPLACED
from howdah.report.drawing import line, text
from howdah.report.plot.canvas import LONGEST_LABEL, UNCOUNTED, RowCanvas
from howdah.report.plot.model import PlotAxis
from howdah.report.plot.swept import place_title
from howdah.report.table import cause_text
from howdah.report.variant import Variants

_FAR = 20  # times the least share: beyond it the marks of a linear axis crowd at 0
_MOST_ROWS_IN_ONE = 40
_MOST_MARKS = 1500  # beyond which a page has the rows of variants alone


@dataclass(frozen=True)
class ExitMark:
    """Where one flow of one run left slow start. ``share`` is cwnd / BDP; ``variant`` is an index and selects the
    colour."""

    share: float
    run: str
    repetition: int
    flow: str
    first_flow: bool
    cause: str
    packets: float
    counts: bool
    variant: int


@dataclass(frozen=True)
class ExitRow:
    """The exits of some runs. ``full`` is (BDP + buffer) / BDP; ``without`` says why flows have no exit, and is empty
    if all have one."""

    label: str
    full: float
    marks: list[ExitMark]
    without: str


@dataclass(frozen=True)
class ExitStrip:
    """Rows that differ along one axis; ``title`` is what their runs have in common."""

    title: str
    rows: list[ExitRow]


@dataclass(frozen=True)
class Arrangement:
    """All exits of the page, with the values of one axis as rows; ``label`` names that axis."""

    label: str
    strips: list[ExitStrip]


@dataclass(frozen=True)
class StripScale:
    """The scale that all strips of a page share: the BDP shares at both ends, and the room for labels in pixels."""

    least: float
    most: float
    logarithmic: bool
    left: float


def arrangements(experiments: list[Experiment], variants: Variants, axes: list[RunAxis]) -> list[Arrangement]:
    """Every arrangement of the exits: by variant, by each axis of the sweep, and all in one strip."""
    runs = [run for experiment in experiments for run in experiment.runs if run.plan]
    swept = [axis for axis in axes if not axis.of_variants]
    own = [axis.label for axis in axes if axis.of_variants]
    found = [_arranged(", ".join(own), runs, variants, swept, None)]
    if sum(len(row.marks) for strip in found[0].strips for row in strip.rows) > _MOST_MARKS:
        return found
    for axis in swept:
        common = [each for each in swept if each is not axis]
        found += [_arranged(axis.label, runs, variants, common, axis)]
    if swept and (whole := _in_one(runs, variants, swept)):
        found.append(whole)
    return found


def _arranged(
    label: str, runs: list[Run], variants: Variants, common: list[RunAxis], axis: RunAxis | None
) -> Arrangement:
    """Make the values of ``axis`` (None: the variants) the rows; each strip holds the runs that agree in the other
    axes."""
    strips: dict[str, dict[str, list[Run]]] = {}
    for run in runs:
        place = [place_title(each.name, each.value_of(run)) for each in common if each.value_of(run) != ABSENT]
        if axis is not None and len(variants.all) > 1:
            place.insert(0, variants.key(run))
        row = variants.key(run) if axis is None else axis.value_of(run)
        strips.setdefault(", ".join(place), {}).setdefault(row, []).append(run)
    order = {value: place for place, value in enumerate(axis.values)} if axis else {}
    found = []
    for title, rows in strips.items():
        drawn = [exit_row(name, rows[name], variants) for name in sorted(rows, key=lambda name: order.get(name, 0))]
        if drawn := [row for row in drawn if row.marks or row.without]:
            found.append(ExitStrip(title or (UNPLACED if len(strips) > 1 else ""), drawn))
    return Arrangement(label, found)


def _in_one(runs: list[Run], variants: Variants, swept: list[RunAxis]) -> Arrangement | None:
    """One strip with a row for each variant at each point; None if there are too many rows, or too few to need it."""
    rows: dict[str, list[Run]] = {}
    for run in runs:
        place = ", ".join(each.value_of(run) for each in swept)
        rows.setdefault(f"{place} · {variants.key(run)}" if len(variants.all) > 1 else place, []).append(run)
    if len(rows) > _MOST_ROWS_IN_ONE or (len(swept) < 2 and len(variants.all) < 2):
        return None
    return Arrangement("all in one", [ExitStrip("", [exit_row(name, mine, variants) for name, mine in rows.items()])])


def exit_row(label: str, runs: list[Run], variants: Variants) -> ExitRow:
    """The exits of the measured flows of some runs."""
    marks = []
    absent = False
    full = 1.0
    for run in runs:
        assert run.plan is not None
        path = run.plan.path
        full = max(full, path.full_share)
        flows = [flow for flow in run.plan.flows if flow.group is None and flow.role != BACKGROUND]
        for number, flow in enumerate(flows):
            found = exit_of(run, flow)
            if found is None or found.cwnd_packets is None or found.share is None:
                absent = True
                continue
            mark = ExitMark(
                share=found.share,
                run=run.name,
                repetition=run.repetition,
                flow=flow.name,
                first_flow=number == 0,
                cause=cause_text(found.cause),
                packets=found.cwnd_packets,
                counts=run.counts,
                variant=variants.index(run),
            )
            marks.append(mark)
    return ExitRow(label, full, marks, _without(runs) if absent else "")


def _without(runs: list[Run]) -> str:
    failed = sum(run.status == "failed" for run in runs)
    if failed == len(runs):
        return "the run failed" if failed == 1 else f"all {failed} runs failed"
    return f"no exit seen; {failed} of {len(runs)} runs failed" if failed else "no exit seen"


def strip_ends(shares: list[float], most: float) -> tuple[float, float, bool]:
    """Both ends of an axis of shares that reaches at least to ``most``, and whether it is logarithmic: it is if exits
    would crowd at 0 on a linear one."""
    most = max([most * 1.06, *(share * 1.04 for share in shares)])
    least = min((share for share in shares if share > 0), default=most)
    return (least / 1.3, most * 1.1, True) if least * _FAR < most else (0.0, most, False)


def scale_of(arranged: list[Arrangement]) -> StripScale:
    """One scale for every strip of a page, so that they can be compared by eye."""
    rows = [row for each in arranged for strip in each.strips for row in strip.rows]
    shares = [mark.share for row in rows for mark in row.marks]
    longest = max((min(len(row.label), LONGEST_LABEL) for row in rows), default=0)
    return StripScale(*strip_ends(shares, max((row.full for row in rows), default=1.0)), min(390.0, 20 + 7.4 * longest))


def exit_strip(strip: ExitStrip, scale: StripScale, *, narrow: bool, named: bool = True, titled: bool = True) -> str:
    """Inline SVG: a line for each row from 0 to beyond BDP + buffer, a mark for each flow of each repetition.

    ``named`` labels the limits and is off below another strip; ``titled`` labels the axis and is off above another
    strip.
    """
    title = f"exit cwnd / BDP{', logarithmic' if scale.logarithmic else ''}" if titled else ""
    axis = PlotAxis(title, (scale.least, scale.most), scale.logarithmic)
    pitch, top = 48 if narrow else 32, 30 if named else 4
    canvas = RowCanvas(len(strip.rows), axis, scale.left, narrow=narrow, pitch=pitch, top=top)
    for number, row in enumerate(strip.rows):
        canvas.parts += _ground(row, canvas, canvas.top + pitch * number)
    canvas.parts += _limits(strip.rows, canvas, named=named)
    canvas.ticks()
    for number, row in enumerate(strip.rows):
        canvas.row(number, row.label, "" if row.marks else row.without, " over")
        _marks(canvas, number, row)
    words = "Window at which each flow left slow start, as a share of the BDP"
    return canvas.svg(", ".join(filter(None, (words, strip.title))))


def _ground(row: ExitRow, canvas: RowCanvas, top: float) -> Iterator[str]:
    """Shade the share that fits the path and the share that queues in the buffer."""
    for first, last, css in ((0.0, 1.0, "fits"), (1.0, row.full, "queues")):
        x, width = canvas.x.at(first), canvas.x.at(last) - canvas.x.at(first)
        yield f'<rect x="{x:.1f}" y="{top:g}" width="{width:.1f}" height="{canvas.pitch:g}" class="{css}"/>'


def _limits(rows: list[ExitRow], canvas: RowCanvas, *, named: bool) -> Iterator[str]:
    """Lines at the BDP and at the end of each row's buffer."""
    at, top, pitch = canvas.x.at, canvas.top, canvas.pitch
    full = rows[0].full
    names = [(1.0, "BDP"), *([(full, "BDP + buffer")] if full > 1 else [])] if named else []
    above = 6 if named else 0
    yield line(at(1.0), top - above, at(1.0), canvas.bottom, "limit")
    for number, row in enumerate(rows):
        begin = top - above if number == 0 else top + pitch * number
        yield line(at(row.full), begin, at(row.full), top + pitch * (number + 1), "limit")
    for share, name in names:
        near = at(share) > canvas.x.last - 42  # a centred label would stick out of the drawing
        x, anchor = (canvas.x.last + 14, "end") if near else (at(share), "middle")
        if share > 1 and x - at(1.0) < 62 and anchor == "middle":  # nor may it run into the other
            x, anchor = at(1.0) + 20, "start"
        yield text(x, top - 11, name, "note", anchor)


def _marks(canvas: RowCanvas, number: int, row: ExitRow) -> None:
    """Draw the marks; repetitions are shifted vertically so that equal exits can be counted by eye."""
    repetitions = sorted({mark.repetition for mark in row.marks})
    pitch = min(4.0, 16 / max(1, len(repetitions) - 1))
    for mark in sorted(row.marks, key=lambda each: each.first_flow):
        css = f"variant-{mark.variant}" + ("" if mark.first_flow else " later") + ("" if mark.counts else " invalid")
        words = f"{row.label}, {mark.flow}, {mark.run}: {significant(mark.packets)} packets, {mark.cause}"
        words += "" if mark.counts else UNCOUNTED
        off = (repetitions.index(mark.repetition) - (len(repetitions) - 1) / 2) * pitch
        canvas.mark(number, mark.share, css, words, off)
