# SPDX-License-Identifier: Apache-2.0
"""A twin's run over the recorded flow as one HTML file: three pictures, and what the twin does not explain."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from functools import cache
from pathlib import Path
from typing import Any

from markupsafe import Markup

from howdah.explain.delay import Reals
from howdah.explain.overlay import CURVES, Overlay
from howdah.explain.picture import keys
from howdah.foreign import visible
from howdah.number import significant
from howdah.place import REPORTS
from howdah.report.page import write
from howdah.report.plot.canvas import Canvas, Size
from howdah.report.template import framed, templates_of

_PLACE = REPORTS / "explain"
_SHARED = ("tokens.css", "page.css", "chart.css", "table.css", "print.css")
_STYLES = (*(REPORTS / "css" / name for name in _SHARED), _PLACE / "css/explain.css")
_SIZES = (Size(1160, 260, "wide"), Size(400, 260, "narrow"))
_SCALES = {"in_flight_packets": (1.0, "packets"), "acknowledged_bytes": (1e-6, "MB"), "rtt_s": (1e3, "ms")}


@dataclass(frozen=True)
class OverlayPicture:
    """``keys`` are samples of what is drawn, with their names."""

    title: str
    drawing: Markup
    keys: list[tuple[Markup, str]]


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
        **framed(_STYLES),
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
        drawing = "".join(_drawn(title, unit, curves, size) for size in _SIZES)
        shown = [(Markup(key), name) for key, name in keys(drawing)]
        yield OverlayPicture(f"{title[0].upper()}{title[1:]}", Markup(drawing), shown)


def _drawn(label: str, unit: str, curves: list[tuple[str, Reals, Reals]], size: Size) -> str:
    end = float(curves[0][1].max())
    most = 1.05 * max(float(value.max()) for _, _, value in curves if value.size) or 1.0
    titles = ("seconds since it began to connect", unit)
    canvas = Canvas(size, (0.0, end, False), (0.0, most, False), titles)
    canvas.ground()
    for css, times, values in curves:
        places = zip(times.tolist(), values.tolist(), strict=True)
        pairs = [f"{canvas.x.at(time):.1f} {canvas.y.at(value):.1f}" for time, value in places if time <= end]
        if pairs:
            canvas.parts.append(f'<path d="M{"L".join(pairs)}" class="{css}"/>')
    return canvas.svg(f"{label}: recorded and reproduced over time", f"{label} in {unit}")
