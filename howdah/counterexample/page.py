# SPDX-License-Identifier: Apache-2.0
"""search.html: candidates as lines across all fields, and the plane of the two most important fields."""

from __future__ import annotations

import textwrap
from collections.abc import Callable, Mapping
from dataclasses import replace
from pathlib import Path
from typing import Any
from xml.sax.saxutils import escape

from markupsafe import Markup

from howdah.counterexample.session import SearchResult
from howdah.counterexample.space import Candidate, Space, Variable
from howdah.counterexample.trial import Tried
from howdah.place import REPORTS
from howdah.record.directory import write_whole
from howdah.report.drawing import line, svg, text
from howdah.report.plot.canvas import Canvas, Size
from howdah.report.plot.model import PlotAxis
from howdah.report.plot.scale import LETTER_PIXELS, Tick
from howdah.report.plot.swept import field_name, place_words
from howdah.report.template import framed, templates_of

PAGE_NAME = "search.html"
_BEST = 20
_STYLES = tuple(
    REPORTS / "css" / name for name in ("tokens.css", "page.css", "chart.css", "table.css", "print.css", "search.css")
)
_WIDE, _NARROW = Size(1160, 380, "wide"), Size(360, 360, "narrow")
_PLANES = (Size(1160, 420, "wide"), Size(360, 320, "narrow"))
_EDGE, _TOP, _BOTTOM = 70.0, 46.0, 26.0  # margins around the parallel axes
_LETTER = 7.2
_ROW, _WORDS, _SIDE = 72.0, 124.0, 12.0  # narrow layout: height of a row, width of its name, right margin
_LINE = 15.0
_SPACE = 18.0  # between the names of adjacent axes


def write_page(found: SearchResult, space: Space, says: str, said: list[str], directory: Path) -> Path:
    """Write the page of a search beside its search.json."""
    template = templates_of(REPORTS / "templates").get_template("search.html.j2")
    rails = [each for each in space.variables.values() if len(each.values) > 1]
    best = sorted((each for each in found.tried if each.score.value is not None), key=lambda each: -_value(each))
    simplest = found.simplest
    plane = _most_important(found, rails)
    page = template.render(
        title=f"Search: {says}",
        said=said,
        found=found,
        values=_with_field_names({**simplest.candidate, **simplest.more}) if simplest is not None else [],
        proven=found.proven.directory if found.proven is not None else "",
        ways=Markup(_side_by_side(found, rails) + _below_each_other(found, rails)),
        section=Markup("".join(_section(found, *plane, size) for size in _PLANES)) if plane is not None else "",
        section_title=_title(*plane) if plane is not None else "",
        neighbours=[(_change_in_words(change, space), each) for change, each in found.neighbours],
        best=[(place_words(each.candidate), each) for each in best[:_BEST]],
        **framed(_STYLES),
    )
    target = directory / PAGE_NAME
    write_whole(target, page)
    return target


def _value(each: Tried) -> float:
    assert each.score.value is not None
    return each.score.value


def _with_field_names(values: Candidate) -> list[tuple[str, Any]]:
    return [(field_name(name), value) for name, value in values.items()]


def _title(one: Variable, other: Variable) -> str:
    words = f"{field_name(one.name)} and {field_name(other.name)}, which matter most"
    return f"{words[0].upper()}{words[1:]}"


def _change_in_words(change: str, space: Space) -> str:
    """A change such as ``path.rtt 40 ms``, with the field's name in words."""
    name = next((each for each in space.variables if change.startswith(f"{each} ")), "")
    return f"{field_name(name)}{change[len(name) :]}" if name else change


def _side_by_side(found: SearchResult, rails: list[Variable]) -> str:
    """Parallel axes, one per field; each candidate is a line across them."""
    width, bottom = _WIDE.width, _WIDE.height - _BOTTOM
    gap = (width - 2 * _EDGE) / max(len(rails) - 1, 1)
    names = [textwrap.wrap(field_name(each.name), max(int((gap - _SPACE) / _LETTER), 1)) for each in rails]
    top = _TOP + _LINE * (max(map(len, names), default=1) - 1)

    def at(number: int, share: float) -> tuple[float, float]:
        return _EDGE + gap * number, bottom - share * (bottom - top)

    parts = []
    for number, (each, name) in enumerate(zip(rails, names, strict=True)):
        x, _ = at(number, 0)
        parts.append(line(x, bottom, x, top, "rail"))
        parts += [text(x, bottom + 16, str(each.values[0]), "note"), text(x, top - 8, str(each.values[-1]), "note")]
        half = _LETTER * max(map(len, name)) / 2
        middle = max(half, min(x, width - half))
        parts += [text(middle, top - 26 - _LINE * up, part, "name") for up, part in enumerate(reversed(name))]
    return _candidate_lines(found, rails, at, parts, _WIDE)


def _below_each_other(found: SearchResult, rails: list[Variable]) -> str:
    """The same for a narrow screen: one row per field, with its name and ends to the left of the lines."""

    def at(number: int, share: float) -> tuple[float, float]:
        return _WORDS + share * (_NARROW.width - _WORDS - _SIDE), _ROW * (number + 0.5)

    parts = []
    for number, each in enumerate(rails):
        (x, y), (end, _) = at(number, 0), at(number, 1)
        parts.append(line(x, y, end, y, "rail"))
        letters = int((_WORDS - _SIDE) / LETTER_PIXELS)
        named = [(part, "name") for part in textwrap.wrap(field_name(each.name), letters)]
        ends = [(part, "note") for part in textwrap.wrap(_ends(each), letters)]
        first = y + _LINE * (0.7 - (len(named) + len(ends)) / 2)
        parts += [text(0, first + _LINE * down, part, css, "start") for down, (part, css) in enumerate(named + ends)]
    return _candidate_lines(found, rails, at, parts, replace(_NARROW, height=int(_ROW * len(rails))))


def _ends(rail: Variable) -> str:
    least, most = str(rail.values[0]), str(rail.values[-1])
    number, _, unit = least.partition(" ")
    return f"{number if unit and most.endswith(f' {unit}') else least} to {most}"


def _candidate_lines(
    found: SearchResult,
    rails: list[Variable],
    at: Callable[[int, float], tuple[float, float]],
    on: list[str],
    size: Size,
) -> str:
    """A line for each candidate through its values; ``on`` is drawn on top."""

    def candidate_line(candidate: Mapping[str, Any], kind: str, each: Tried) -> str:
        points = [
            at(number, _share(rail, candidate[rail.name]))
            for number, rail in enumerate(rails)
            if rail.name in candidate
        ]
        path = "L".join(f"{x:.1f} {y:.1f}" for x, y in points)
        return _with_link(each, candidate, f'<path class="way {kind}" d="M{path}"/>') if points else ""

    ordered = sorted(found.tried, key=lambda each: each.score.found)
    parts = [candidate_line(each.candidate, "shows" if each.score.found else "", each) for each in ordered] + on
    if found.simplest is not None and found.proven is not None:
        parts.append(candidate_line(found.simplest.candidate, "simplest", found.proven))
    label = f"{len(found.tried)} candidates"
    return svg(size.width, size.height, label, parts, f"chart candidates ways {size.css}", "group")


def _with_link(each: Tried, candidate: Mapping[str, Any], drawn: str) -> str:
    said = f"{place_words(candidate)}: {each.score.text}"
    name = escape(said, {'"': "&quot;"})
    return f'<a href="{escape(each.directory)}/" aria-label="{name}"><title>{escape(said)}</title>{drawn}</a>'


def _share(rail: Variable, value: Any) -> float:
    return rail.values.index(value) / (len(rail.values) - 1)


def _most_important(found: SearchResult, rails: list[Variable]) -> tuple[Variable, Variable] | None:
    ordered = sorted((each for each in rails if each.ordered), key=lambda each: -found.importances.get(each.name, 0.0))
    return (ordered[0], ordered[1]) if len(ordered) > 1 and found.importances else None


def _section(found: SearchResult, across: Variable, up: Variable, size: Size) -> str:
    """The plane of two fields, with a dot for each candidate; a field's values are equally spaced."""
    sides = ((across, 5 if size.css == "wide" else 3), (up, 5))
    canvas = Canvas(
        size, *(PlotAxis(field_name(each.name), (-0.05, 1.05), ticks=_places(each, of)) for each, of in sides)
    )
    canvas.ground()
    for each in sorted(found.tried, key=lambda each: each.score.found):
        if each.score.value is None or across.name not in each.candidate or up.name not in each.candidate:
            continue
        x, y = (_share(rail, each.candidate[rail.name]) for rail in (across, up))
        css = "shows" if each.score.found else "other"
        dot = f'<circle cx="{canvas.x.at(x):.1f}" cy="{canvas.y.at(y):.1f}" r="5" class="{css}"/>'
        canvas.parts.append(_with_link(each, each.candidate, dot))
    label = f"{field_name(up.name)} against {field_name(across.name)}"
    return svg(size.width, size.height, label, canvas.parts, f"chart candidates {size.css}", "group")


def _places(rail: Variable, wanted: int) -> list[Tick]:
    """Ticks at some of a field's equally spaced values."""
    last = len(rail.values) - 1
    numbers = sorted({round(last * place / wanted) for place in range(wanted + 1)})
    return [Tick(number / last, str(rail.values[number])) for number in numbers]
