# SPDX-License-Identifier: Apache-2.0
"""A twin's run over the recorded flow as one HTML file: three pictures, and what the twin does not explain."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from functools import cache
from pathlib import Path
from typing import Any

from markupsafe import Markup

from howdah.explain.chart import WIDTHS, Chart
from howdah.explain.delay import Reals
from howdah.explain.overlay import CURVES, Overlay
from howdah.foreign import visible
from howdah.number import significant
from howdah.place import REPORTS
from howdah.report.page import write
from howdah.report.template import framed, templates_of

_PLACE = REPORTS / "explain"
_SHARED = ("tokens.css", "page.css", "table.css", "print.css")
_STYLES = (*(REPORTS / "css" / name for name in _SHARED), _PLACE / "css/explain.css")
_BIND = 'howdah.theme.bind(); document.documentElement.dataset.ready = "true";'
_HEIGHT = 240
_SCALES = {"in_flight_packets": (1.0, "packets"), "acknowledged_bytes": (1e-6, "MB"), "rtt_s": (1e3, "ms")}


@dataclass(frozen=True)
class OverlayPicture:
    title: str
    drawing: Markup


@cache
def _template() -> Any:
    return templates_of(_PLACE / "templates").get_template("overlay.html.j2")


def write_overlay(name: str, found: list[Overlay], target: Path) -> Path:
    """Write the page of the nearest run at ``target``; the others are rows of its table. Raises HowdahError."""
    nearest = found[0]
    page = _template().render(
        title=visible(name),
        run=visible(nearest.run),
        unlike=[visible(each) for each in nearest.unlike],
        pictures=list(_pictures(nearest)),
        rows=[(visible(each.run), *_cells(each), len(each.unlike)) for each in found],
        curves=[title for title, _ in CURVES],
        **framed(_STYLES, _BIND),
    )
    return write(page, target)


def _cells(overlay: Overlay) -> Iterator[str]:
    for name, _ in CURVES:
        share = overlay.distances.get(name)
        yield "–" if share is None else f"{significant(100 * share, 2)} %"


def _pictures(overlay: Overlay) -> Iterator[OverlayPicture]:
    mine, theirs = overlay.recorded, overlay.reproduced
    if mine is None:
        return
    for title, field in CURVES:
        factor, unit = _SCALES[field]
        curves = [("recorded", mine.time_s, getattr(mine, field) * factor)]
        if theirs is not None:
            curves.append(("reproduced", theirs.time_s, getattr(theirs, field) * factor))
        drawings = [_drawn(f"{title}, {unit}", curves, css) for css in WIDTHS]
        yield OverlayPicture(f"{title[0].upper()}{title[1:]}, {unit}", Markup("".join(drawings)))


def _drawn(label: str, curves: list[tuple[str, Reals, Reals]], css: str) -> str:
    end = float(curves[0][1].max())
    most = 1.05 * max(float(value.max()) for _, _, value in curves if value.size) or 1.0
    chart = Chart(end, most, _HEIGHT, css)
    parts = []
    for name, times, values in curves:
        pairs = zip(chart.x(times).tolist(), chart.y(values).tolist(), strict=True)
        points = [f"{x:.1f} {y:.1f}" for x, y in pairs]
        if points:
            parts.append(f'<path d="M{"L".join(points)}" class="{name}"/>')
    return chart.drawn(f"{label}: recorded and reproduced over time", parts, "it began to connect")
