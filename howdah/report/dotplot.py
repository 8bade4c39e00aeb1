# SPDX-License-Identifier: Apache-2.0
"""Ratios of the sides at each point of the sweep, as inline SVG without scripts. A dot is the ratio, a line the range
of the pairs of repetitions; a dot links to its run."""

from __future__ import annotations

from dataclasses import dataclass
from xml.sax.saxutils import escape

from howdah.metric import Metric
from howdah.number import between, significant
from howdah.report.contrast import Contrast, contrasts, headline_measures
from howdah.report.drawing import line, shortened, svg, text
from howdah.report.plot.canvas import ticks_below
from howdah.report.plot.scale import Scale, ticks
from howdah.report.plot.style import Style, mark, styles
from howdah.report.subject import Subject, sides

MOST_ROWS = 40  # of more points those at equal steps are drawn, from the first to the last
UNPLACED = "not swept"  # beside sweep points, a run of another experiment
_DIGITS = 3
_LEAST_SPAN = 1.25  # a scale that shows less makes equal things look different
_ROW, _TALL_ROW = 26, 46
_HEAD, _FOOT = 58, 42
_LETTER = 7.0
_LINE = 14  # from one text of a row to the next
_NUMBERS = 150  # pixels of a ratio with its spread
_BOTH = 130  # of two numbers without a ratio, and the mark of their side
_WIDTH, _NARROW = 1232, 340


@dataclass(frozen=True)
class DotPlot:
    """The drawings, one wide, and a narrow one per measure; ``title`` says what is compared and ``note`` how to read
    it."""

    title: str
    note: str
    wide: str
    narrow: list[str]
    legend: list[tuple[Style, str]]


@dataclass(frozen=True)
class _Panel:
    """One measure; ``rows`` has the contrasts of each place."""

    metric: Metric
    rows: list[list[Contrast]]
    least: float
    most: float
    styles: dict[str, Style]
    has_numbers: bool

    def without_ratio(self, row: list[Contrast]) -> list[Contrast]:
        """The contrasts without a ratio if there are several sides; with one side the row has its numbers anyway."""
        return [] if self.has_numbers else [each for each in row if not each.has_ratio]

    @property
    def most_without_ratio(self) -> int:
        return max((len(self.without_ratio(row)) for row in self.rows), default=0)


def dot_plot(subjects: list[Subject], linked: frozenset[str]) -> DotPlot | None:
    """The plot of the measures that answer the profile; None if there is nothing to compare. ``linked`` names the runs
    that the page can show."""
    shown, metrics = headline_measures(subjects)
    names = sides(shown)
    found = contrasts(shown, metrics)
    places = list(dict.fromkeys(each.place for each in found))
    if len(names) < 2 or not found:
        return None
    kept = places
    if len(places) > MOST_ROWS:
        kept = [places[number * (len(places) - 1) // (MOST_ROWS - 1)] for number in range(MOST_ROWS)]
    looks = side_styles(shown)
    panels = []
    for name in metrics:
        of_metric = [each for each in found if each.metric.name == name]
        rows = [[each for each in of_metric if each.place == place] for place in kept]
        if any(rows):
            panels.append(_panel(rows, looks, has_numbers=len(names) == 2))
    if not panels:
        return None
    whose = names[1] if len(names) == 2 else "Each"
    title = f"{whose} against {names[0]}{f' at each of {len(places)} sweep points' if len(places) > 1 else ''}"
    legend = [(looks[name], name) for name in names[1:]] if len(names) > 2 else []
    narrow = [_narrow(panel, kept, linked) for panel in panels]
    return DotPlot(title, _note(names, found, len(places) - len(kept)), _wide(panels, kept, linked), narrow, legend)


def side_styles(subjects: list[Subject]) -> dict[str, Style]:
    """The styles of the sides; variants have the colours of their curves."""
    return styles(sides(subjects), {each.side: each.algorithm for each in subjects if each.side == each.variant})


def _note(names: list[str], found: list[Contrast], left_out: int) -> str:
    sentences = [
        f"A dot is the median of the ratios to {names[0]}, repetition by repetition;"
        " its line spans what stands in brackets in the text above.",
        "A dot opens the curves of the run in the middle.",
    ]
    if any(not each.has_ratio for each in found):
        sentences.append("Where there is no ratio, because one of both is 0, both numbers stand beside the line.")
    if left_out:
        sentences.append(f"{left_out} more points are in the table.")
    return " ".join(sentences)


def _panel(rows: list[list[Contrast]], looks: dict[str, Style], *, has_numbers: bool) -> _Panel:
    """A panel whose scale covers every dot, and the lines as far as four times the dots' largest distance from 1 (in
    log)."""
    of = [each.of for row in rows for each in row if each.of.ratios]
    dots = [each.ratios.median for each in of if each.ratios and each.ratios.median > 0]
    reach = max([_LEAST_SPAN, *(max(dot, 1 / dot) for dot in dots)])
    ends = [end for each in of if (about := each.around) for end in (about.low, about.high) if end > 0]
    least = max(min([1 / _LEAST_SPAN, *dots, *ends]), reach**-4)
    most = min(max([_LEAST_SPAN, *dots, *ends]), reach**4)
    metric = next(each.metric for row in rows for each in row)
    return _Panel(metric, rows, least / 1.06, most * 1.06, looks, has_numbers)


def _wide(panels: list[_Panel], places: list[str], linked: frozenset[str]) -> str:
    longest = max(map(len, places))
    pitch = max([_ROW, *(_LINE * panel.most_without_ratio + 6 for panel in panels)])
    left = min(330.0, 16 + _LETTER * longest) if longest else 10.0
    step = (_WIDTH - left) / len(panels)
    parts = []
    for number, place in enumerate(_named(places)):
        middle = _HEAD + pitch * (number + 0.5)
        most = int((left - 16) / _LETTER)
        name = text(left - 14, middle + 4.5, shortened(place, most), "name", "end")
        parts.append(f"<g>{name}<title>{escape(place)}</title></g>")
    for number, panel in enumerate(panels):
        begin = left + step * number
        parts += _drawn(panel, begin + 4, begin + step - 20, pitch, linked)
    words = ", ".join(panel.metric.words for panel in panels)
    return svg(
        _WIDTH, _HEAD + pitch * len(places) + _FOOT, f"Ratios of {words} at each point", parts, "chart wide", "group"
    )


def _narrow(panel: _Panel, places: list[str], linked: frozenset[str]) -> str:
    parts = []
    pitch = _TALL_ROW + _LINE * max(panel.most_without_ratio - 1, 0)
    for number, place in enumerate(_named(places)):
        most = int((_NARROW - 110) / _LETTER)
        parts.append(text(8, _HEAD + pitch * number + 15, shortened(place, most), "name", "start"))
    parts += _drawn(panel, 8, _NARROW - 10, pitch, linked, tall=True)
    height = _HEAD + pitch * len(places) + _FOOT
    return svg(_NARROW, height, f"Ratios of {panel.metric.words} at each point", parts, "chart narrow", "group")


def _named(places: list[str]) -> list[str]:
    return [place or UNPLACED for place in places] if len(places) > 1 else places


def _drawn(
    panel: _Panel, begin: float, end: float, pitch: float, linked: frozenset[str], *, tall: bool = False
) -> list[str]:
    """Draw a panel between the pixels ``begin`` and ``end``. Tall rows have numbers above the line, others to the
    right."""
    beside = _NUMBERS if panel.has_numbers else _BOTH if panel.most_without_ratio else 0
    right = end - (0 if tall else beside)
    scale = Scale(panel.least, panel.most, begin + 8, right - 8, logarithmic=True)
    bottom = _HEAD + pitch * len(panel.rows)
    parts = [text(begin, 14, _title(panel.metric), "value", "start")]
    less, more = _directions(panel)
    in_a_line = _LETTER * (len(less) + len(more) + 2) < right - begin
    parts.append(text(begin, 32, less, "note", "start"))
    parts.append(text(right, 32 if in_a_line else 46, more, "note", "end"))
    parts += ticks_below(ticks(scale, 4 if tall else 5), scale, right + 20, bottom)
    for number, row in enumerate(panel.rows):
        top = _HEAD + pitch * number
        middle = top + (pitch - 13 if tall else pitch / 2)
        parts += _row(row, panel, scale, middle, tall, end, linked)
    return parts


def _title(metric: Metric) -> str:
    return f"{metric.words[0].upper()}{metric.words[1:]}, ratio"


def _directions(panel: _Panel) -> tuple[str, str]:
    """Labels for the left and right of 1: the side that is better there, or the side with less or more if neither is
    better."""
    both = next(each for row in panel.rows for each in row)
    side = both.side if panel.has_numbers else "these"
    if panel.metric.worse == "either":
        return f"← less with {side}", f"more with {side} →"
    ends = (side, both.other) if panel.metric.worse == "more" else (both.other, side)
    return f"← {ends[0]} better", f"{ends[1]} better →"


def _row(
    row: list[Contrast],
    panel: _Panel,
    scale: Scale,
    middle: float,
    tall: bool,
    end: float,
    linked: frozenset[str],
) -> list[str]:
    one, half = scale.at(1.0), 13
    parts = [line(scale.first, middle, scale.last, middle, "rail")]
    parts.append(line(one, middle - half, one, middle + half, "limit"))
    if not row:
        parts.append(text(scale.first, middle - 5, "not measured on both sides", "note", "start"))
    offset = min(6.0, ((_TALL_ROW if tall else _ROW) - 10) / max(len(row), 1))
    without = panel.without_ratio(row)
    for number, each in enumerate(row):
        style = panel.styles[each.side]
        drawn = ""
        if each.has_ratio:
            drawn = _dot(each, panel, scale, middle + (number - (len(row) - 1) / 2) * offset)
        elif each in without:
            down = _LINE * (without.index(each) - (len(without) - 1 if tall else (len(without) - 1) / 2))
            level = down + (middle - 22 if tall else middle)
            drawn = mark(end - _BOTH + 18, level, style.shape, _words(each), size=5.0)
            drawn += text(end, level + 4, _number(each), "note", "end")
        parts.append(_link(f"<g {style.attributes}>{drawn}</g>", each, linked))
        if panel.has_numbers and tall:
            parts.append(text(end, middle - 18, _number(each), "note", "end"))
        elif panel.has_numbers:
            parts.append(text(end - _NUMBERS + 8, middle + 4.5, _number(each), "note", "start"))
    return parts


def _dot(each: Contrast, panel: _Panel, scale: Scale, y: float) -> str:
    """The median ratio, on a line that spans the range of the pairs."""
    assert each.of.ratios is not None
    whisker = ""
    if (about := each.of.around) is not None:
        low, high = (scale.at(max(value, panel.least)) for value in (about.low, about.high))
        whisker = f'<path d="M{low:.1f} {y:.1f}H{high:.1f}" class="whisker"/>'
    at = scale.at(each.of.ratios.median)
    return whisker + mark(at, y, panel.styles[each.side].shape, _words(each), size=5.0)


def _link(group: str, each: Contrast, linked: frozenset[str]) -> str:
    """The group as a link to the curves of its run, if the page has them."""
    if each.run not in linked:
        return group
    label = escape(f"{_words(each)}: curves of {each.run}", {'"': "&quot;"})
    run = escape(each.run, {'"': "&quot;"})
    return f'<a href="#figures" data-run="{run}" aria-label="{label}">{group}</a>'


def _number(each: Contrast) -> str:
    """``0.872 (0.821 … 0.913)``, or both numbers if there is no ratio: ``5 against 0``."""
    if each.of.ratios is None or not each.has_ratio:
        return each.against
    if each.of.is_alike:
        return "the same"
    about = each.of.around
    spread = f" ({between(about.low, about.high, _DIGITS)})" if about else ""
    return f"{significant(each.of.ratios.median, _DIGITS)}{spread}"


def _words(each: Contrast) -> str:
    """The description of a dot, for its tooltip and for screen readers."""
    unit = each.metric.shown
    both = [
        f"{significant(value * each.metric.factor, _DIGITS)} {unit}".rstrip() for value in (each.of.mine, each.of.other)
    ]
    place = f"{each.place}: " if each.place else ""
    better = f"; {each.better} is better" if each.better else ""
    named = f"{each.side} {both[0]}, {each.other} {both[1]}"
    return f"{place}{each.metric.words}, {named}, ratio {_number(each)}{better}"
