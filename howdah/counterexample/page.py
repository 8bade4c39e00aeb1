# SPDX-License-Identifier: Apache-2.0
"""search.html: every candidate as a line from field to field, and the two fields that matter most as a plane."""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path
from typing import Any
from xml.sax.saxutils import escape

from markupsafe import Markup

from howdah.counterexample.session import SearchResult
from howdah.counterexample.space import Space, Variable, words
from howdah.counterexample.trial import Tried
from howdah.place import REPORTS
from howdah.record.directory import write_whole
from howdah.report.drawing import line, svg, text
from howdah.report.plot.canvas import Canvas, Size
from howdah.report.plot.scale import Tick
from howdah.report.template import framed, templates_of

PAGE_NAME = "search.html"
_BEST = 20
_STYLES = tuple(
    REPORTS / "css" / name for name in ("tokens.css", "page.css", "chart.css", "table.css", "print.css", "search.css")
)
_SIZES = (Size(1100, 380, "wide"), Size(360, 360, "narrow"))
_PLANES = (Size(900, 400, "wide"), Size(360, 320, "narrow"))
_EDGE, _TOP, _BOTTOM = 70.0, 46.0, 26.0  # around the fields that stand side by side
_LETTER = 7.2
_ROW, _SIDE = 64.0, 16.0  # of a field that lies below another, and beside it


def write_page(found: SearchResult, space: Space, says: str, said: list[str], directory: Path) -> Path:
    """The page of a search, beside its search.json."""
    template = templates_of(REPORTS / "templates").get_template("search.html.j2")
    rails = [each for each in space.variables.values() if len(each.values) > 1]
    best = sorted((each for each in found.tried if each.score.value is not None), key=lambda each: -_value(each))
    simplest = found.simplest
    plane = _most_important(found, rails)
    page = template.render(
        title=f"Search: {says}",
        said=said,
        found=found,
        values=list({**simplest.candidate, **simplest.more}.items()) if simplest is not None else [],
        proven=found.proven.directory if found.proven is not None else "",
        ways=Markup("".join(_ways(found, rails, size) for size in _SIZES)),
        section=Markup("".join(_section(found, *plane, size) for size in _PLANES)) if plane is not None else "",
        section_title=f"{plane[0].name} and {plane[1].name}, which matter most" if plane is not None else "",
        neighbours=found.neighbours,
        best=[(words(each.candidate), each) for each in best[:_BEST]],
        **framed(_STYLES),
    )
    target = directory / PAGE_NAME
    write_whole(target, page)
    return target


def _value(each: Tried) -> float:
    assert each.score.value is not None
    return each.score.value


def _ways(found: SearchResult, rails: list[Variable], size: Size) -> str:
    """Fields side by side, or on a phone below each other; each candidate is a line from one to the next."""
    upright = size.css == "wide"
    height = size.height if upright else _ROW * len(rails) + _BOTTOM
    gap = (size.width - 2 * _EDGE) / max(len(rails) - 1, 1)

    def at(number: int, share: float) -> tuple[float, float]:
        if upright:
            return _EDGE + gap * number, height - _BOTTOM - share * (height - _BOTTOM - _TOP)
        return _SIDE + share * (size.width - 2 * _SIDE), _ROW * (number + 0.5)

    parts = []
    for number, each in enumerate(rails):
        (x, y), (end, top) = at(number, 0), at(number, 1)
        parts.append(line(x, y, end, top, "rail"))
        least, most = str(each.values[0]), str(each.values[-1])
        if upright:
            parts += [text(x, y + 16, least, "note"), text(x, top - 8, most, "note")]
            half = _LETTER * len(each.name) / 2
            parts.append(text(max(half, min(x, size.width - half)), top - 26, each.name, "name"))
        else:
            parts += [
                text(x, y + 16, least, "note over-curves", "start"),
                text(end, y + 16, most, "note over-curves", "end"),
            ]
            parts.append(text(x, y - 10, each.name, "name over-curves", "start"))

    def way(candidate: Mapping[str, Any], kind: str, each: Tried) -> str:
        points = [
            at(number, _share(rail, candidate[rail.name]))
            for number, rail in enumerate(rails)
            if rail.name in candidate
        ]
        path = "L".join(f"{x:.1f} {y:.1f}" for x, y in points)
        return _linked(each, candidate, f'<path class="way {kind}" d="M{path}"/>') if points else ""

    ordered = sorted(found.tried, key=lambda each: each.score.found)
    parts = [way(each.candidate, "shows" if each.score.found else "", each) for each in ordered] + parts
    if found.simplest is not None and found.proven is not None:
        parts.append(way(found.simplest.candidate, "simplest", found.proven))
    label = f"{len(found.tried)} candidates"
    return svg(size.width, height, label, parts, f"chart candidates ways {size.css}", "group")


def _linked(each: Tried, candidate: Mapping[str, Any], drawn: str) -> str:
    said = f"{words(candidate)}: {each.score.text}"
    name = escape(said, {'"': "&quot;"})
    return f'<a href="{escape(each.directory)}/" aria-label="{name}"><title>{escape(said)}</title>{drawn}</a>'


def _share(rail: Variable, value: Any) -> float:
    return rail.values.index(value) / (len(rail.values) - 1)


def _most_important(found: SearchResult, rails: list[Variable]) -> tuple[Variable, Variable] | None:
    ordered = sorted((each for each in rails if each.ordered), key=lambda each: -found.importances.get(each.name, 0.0))
    return (ordered[0], ordered[1]) if len(ordered) > 1 and found.importances else None


def _section(found: SearchResult, across: Variable, up: Variable, size: Size) -> str:
    """The plane of two fields, with a dot for each candidate; values stand at equal steps."""
    ends = (-0.05, 1.05, False)
    canvas = Canvas(size, ends, ends, (across.name, up.name), _places(up, 5))
    canvas.ground(_places(across, 5))
    for each in sorted(found.tried, key=lambda each: each.score.found):
        if each.score.value is None or across.name not in each.candidate or up.name not in each.candidate:
            continue
        x, y = (_share(rail, each.candidate[rail.name]) for rail in (across, up))
        css = "shows" if each.score.found else "other"
        dot = f'<circle cx="{canvas.x.at(x):.1f}" cy="{canvas.y.at(y):.1f}" r="5" class="{css}"/>'
        canvas.parts.append(_linked(each, each.candidate, dot))
    label = f"{across.name} against {up.name}"
    return svg(size.width, size.height, label, canvas.parts, f"chart candidates {size.css}", "group")


def _places(rail: Variable, wanted: int) -> list[Tick]:
    """Values at equal steps along a side."""
    last = len(rail.values) - 1
    numbers = sorted({round(last * place / wanted) for place in range(wanted + 1)})
    return [Tick(number / last, str(rail.values[number])) for number in numbers]
