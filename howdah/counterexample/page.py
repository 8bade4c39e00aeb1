# SPDX-License-Identifier: Apache-2.0
"""search.html: every candidate as a line from field to field, and the two fields that matter most as a plane."""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path
from typing import Any

from markupsafe import Markup, escape

from howdah.assets import style
from howdah.counterexample.session import SearchResult
from howdah.counterexample.space import Space, Variable, words
from howdah.counterexample.trial import Tried
from howdah.place import REPORTS
from howdah.record.directory import write_whole
from howdah.report.drawing import svg
from howdah.report.template import templates_of

PAGE_NAME = "search.html"
_BEST = 20
_WIDTH, _HEIGHT, _TOP, _BOTTOM, _SIDE = 1100, 360, 40, 330, 70
_PLANE = 420


def write_page(found: SearchResult, space: Space, says: str, said: list[str], directory: Path) -> Path:
    """The page of a search, beside its search.json."""
    template = templates_of(REPORTS / "templates").get_template("search.html.j2")
    rails = [each for each in space.variables.values() if len(each.values) > 1]
    best = sorted((each for each in found.tried if each.score.value is not None), key=lambda each: -_value(each))
    simplest = found.simplest
    plane = _most_important(found, rails)
    text = template.render(
        title=f"Search: {says}",
        style=Markup(style()),
        said=said,
        found=found,
        values=list({**simplest.candidate, **simplest.more}.items()) if simplest is not None else [],
        proven=found.proven.directory if found.proven is not None else "",
        ways=Markup(_ways(found, rails)),
        section=Markup(_section(found, *plane)) if plane is not None else "",
        section_title=f"{plane[0].name} and {plane[1].name}, which matter most" if plane is not None else "",
        neighbours=found.neighbours,
        best=[(words(each.candidate), each) for each in best[:_BEST]],
    )
    target = directory / PAGE_NAME
    write_whole(target, text)
    return target


def _value(each: Tried) -> float:
    assert each.score.value is not None
    return each.score.value


def _ways(found: SearchResult, rails: list[Variable]) -> str:
    gap = (_WIDTH - 2 * _SIDE) / max(len(rails) - 1, 1)
    places = {each.name: _SIDE + at * gap for at, each in enumerate(rails)}
    parts = []
    for each in rails:
        x = places[each.name]
        parts.append(f'<path class="rail" d="M{x:g} {_TOP}V{_BOTTOM}"/>')
        for y, content in ((_TOP - 22, each.name), (_TOP - 8, each.values[-1]), (_BOTTOM + 16, each.values[0])):
            parts.append(f'<text x="{x:g}" y="{y}" text-anchor="middle">{escape(str(content))}</text>')
    ordered = sorted(found.tried, key=lambda each: each.score.found)
    parts += [_way(each.candidate, rails, places, "shows" if each.score.found else "", each) for each in ordered]
    if found.simplest is not None and found.proven is not None:
        parts.append(_way(found.simplest.candidate, rails, places, "simplest", found.proven))
    return svg(_WIDTH, _HEIGHT, f"{len(found.tried)} candidates", parts, "candidates")


def _way(
    candidate: Mapping[str, Any], rails: list[Variable], places: Mapping[str, float], kind: str, each: Tried
) -> str:
    points = [f"{places[rail.name]:g} {_y(rail, candidate[rail.name]):g}" for rail in rails if rail.name in candidate]
    if not points:
        return ""
    line = f'<path class="way {kind}" d="M{"L".join(points)}"/>'
    title = f"<title>{escape(words(candidate))}: {escape(each.score.text)}</title>"
    return f'<a href="{escape(each.directory)}/">{title}{line}</a>'


def _share(rail: Variable, value: Any) -> float:
    return rail.values.index(value) / (len(rail.values) - 1)


def _y(rail: Variable, value: Any) -> float:
    return _BOTTOM - _share(rail, value) * (_BOTTOM - _TOP)


def _most_important(found: SearchResult, rails: list[Variable]) -> tuple[Variable, Variable] | None:
    ordered = sorted((each for each in rails if each.ordered), key=lambda each: -found.importances.get(each.name, 0.0))
    return (ordered[0], ordered[1]) if len(ordered) > 1 and found.importances else None


def _section(found: SearchResult, across: Variable, up: Variable) -> str:
    low, high = 60, _PLANE - 30
    parts = [f'<path class="rail" d="M{low} {30}V{high}H{_PLANE}"/>']
    for x, content in ((low, across.values[0]), (_PLANE - 20, across.values[-1])):
        parts.append(f'<text x="{x}" y="{high + 16}" text-anchor="middle">{escape(str(content))}</text>')
    for y, content in ((high, up.values[0]), (36, up.values[-1])):
        parts.append(f'<text x="{low - 6}" y="{y}" text-anchor="end">{escape(str(content))}</text>')
    parts.append(f'<text x="{_PLANE / 2}" y="{high + 16}" text-anchor="middle">{escape(across.name)}</text>')
    parts.append(f'<text x="{low}" y="20" text-anchor="start">{escape(up.name)}</text>')
    for each in sorted(found.tried, key=lambda each: each.score.found):
        if each.score.value is None or across.name not in each.candidate or up.name not in each.candidate:
            continue
        right = low + _share(across, each.candidate[across.name]) * (_PLANE - 20 - low)
        above = high - _share(up, each.candidate[up.name]) * (high - 36)
        colour = "var(--bad)" if each.score.found else "var(--quiet)"
        title = f"<title>{escape(words(each.candidate))}: {escape(each.score.text)}</title>"
        dot = f'<circle cx="{right:.1f}" cy="{above:.1f}" r="5" fill="{colour}"/>'
        parts.append(f'<a href="{escape(each.directory)}/">{title}{dot}</a>')
    return svg(_PLANE + 20, _PLANE, f"{across.name} against {up.name}", parts, "candidates")
