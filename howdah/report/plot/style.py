# SPDX-License-Identifier: Apache-2.0
"""How lines are distinguished: by colour and its dashes, by the shape of their marks; flows by dashes."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from xml.sax.saxutils import escape

from howdah.report.variant import Colour, Variants, colours, dashes

_SHAPES = 6


@dataclass(frozen=True)
class Style:
    """The colour on light and dark pages, the index of the mark's shape, and the dash pattern."""

    colour: Colour
    shape: int = 0
    dash: tuple[int, ...] = ()

    @property
    def attributes(self) -> str:
        """The attributes of the element that holds the marks, from which reports/css/chart.css takes the colour."""
        return f'class="line" style="--on-light:{self.colour.light};--on-dark:{self.colour.dark}"'

    @property
    def dashed(self) -> str:
        """The dash attribute of a path, or nothing."""
        return f' stroke-dasharray="{" ".join(map(str, self.dash))}"' if self.dash else ""


def token(name: str, *dash: int) -> Style:
    """A style with a colour from reports/css/tokens.css."""
    return Style(Colour(f"var(--{name})", f"var(--{name})"), dash=dash)


INK = token("quiet")  # of what is nobody's


def styles(labels: list[str], algorithms: Mapping[str, str] | None = None) -> dict[str, Style]:
    """A style for each label. Given all algorithms of an experiment in the order of its runs, the colours are those of
    its report. ``algorithms`` maps labels that are not algorithm names to their algorithm.
    """
    chosen = colours([(label, (algorithms or {}).get(label, label)) for label in labels])
    return dict(zip(labels, _of_colours(chosen[label] for label in labels), strict=True))


def variant_styles(variants: Variants) -> list[Style]:
    """The styles of a page's variants, in their order."""
    return _of_colours(each.colour for each in variants.all)


def _of_colours(chosen: Iterable[Colour]) -> list[Style]:
    return [Style(each, number % _SHAPES, flow_dash(each.dashes)) for number, each in enumerate(chosen)]


def flow_dash(number: int) -> tuple[int, ...]:
    """The dash pattern of the flow with this number, counted from 0; the first is solid."""
    patterns = dashes()
    return tuple(patterns[number % len(patterns)])


def mark(x: float, y: float, shape: int, title: str = "", *, hollow: bool = False, size: float = 4.2) -> str:
    """A mark at a point: filled, or hollow for printed numbers."""
    css = "mark hollow" if hollow else "mark"
    words = f"<title>{escape(title)}</title>" if title else ""
    if shape == 0:
        return f'<circle cx="{x:.1f}" cy="{y:.1f}" r="{size:g}" class="{css}">{words}</circle>'
    s = size * 1.12
    outlines = {
        1: [(-s, -s), (s, -s), (s, s), (-s, s)],
        2: [(0, -1.3 * s), (1.2 * s, s), (-1.2 * s, s)],
        3: [(0, -1.4 * s), (1.4 * s, 0), (0, 1.4 * s), (-1.4 * s, 0)],
        4: [(-1.2 * s, -s), (1.2 * s, -s), (0, 1.3 * s)],
        5: [(-1.5 * s, -0.7 * s), (1.5 * s, -0.7 * s), (1.5 * s, 0.7 * s), (-1.5 * s, 0.7 * s)],
    }
    points = "L".join(f"{x + dx:.1f} {y + dy:.1f}" for dx, dy in outlines[shape])
    return f'<path d="M{points}Z" class="{css}">{words}</path>'


def cross(x: float, y: float, title: str) -> str:
    """The sign for a missing number."""
    path = f"M{x - 4:.1f} {y - 4:.1f}l8 8m0 -8l-8 8"
    return f'<path d="{path}" class="missing-mark"><title>{escape(title)}</title></path>'


_SAMPLES = {
    "bar": '<rect x="7" y="1" width="12" height="12" class="bar"/>',
    "points": '<path d="M3 6h2v2h-2zM12 6h2v2h-2zM21 6h2v2h-2z" class="points"/>',
    "crosses": '<path d="M10 4l6 6M16 4l-6 6" class="crosses"/>',
    "strokes": '<path d="M13 3v8" class="strokes"/>',
}


def key(style: Style, *drawn: str) -> str:
    """The sample of a legend with the shapes in ``drawn``: line, stairs, faint, instant, mark, hollow, bar, points,
    crosses, strokes."""
    parts = {
        "line": f'<path d="M0 7H26" class="curve"{style.dashed}/>',
        "stairs": f'<path d="M0 7H26" class="curve"{style.dashed}/>',
        "faint": f'<path d="M0 7H26" class="curve faint"{style.dashed}/>',
        "instant": '<path d="M13 0V14" class="instant"/>',
        "mark": mark(13, 7, style.shape),
        "hollow": mark(13, 7, style.shape, hollow=True),
        **_SAMPLES,
    }
    inner = "".join(parts[name] for name in drawn)
    return f'<svg viewBox="0 0 26 14" width="26" height="14" aria-hidden="true"><g {style.attributes}>{inner}</g></svg>'
