# SPDX-License-Identifier: Apache-2.0
"""The band behind a line of a paper figure: the range of all repetitions, from least to greatest."""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np

from howdah.report.ackwindow import flow_start_ns
from howdah.report.band import Band, Envelope
from howdah.report.paper.line import PaperLine, Points

if TYPE_CHECKING:
    from matplotlib.axes import Axes
    from matplotlib.patches import Patch

_CELLS = 600  # across the sheet: a column of a paper has no more dots that are told apart
_INK = 0.22  # of a band's colour, so that lines and other bands are seen through it


def bands_of(lines: list[PaperLine], points: Points, end_s: float) -> list[tuple[PaperLine, Band]]:
    """The lines whose repetitions differ, with their bands from the flow's start to ``until_s``."""
    found = []
    for line in lines:
        envelope = Envelope(np.linspace(0.0, end_s, _CELLS + 1))
        for run in line.repetitions if len(line.repetitions) > 1 else ():
            assert run.plan is not None
            flow = next((each for each in run.plan.flows if each.id == line.flow.id), None)
            curve = points(run, flow, flow_start_ns(run, flow) / 1e9) if flow else None
            if curve is not None:
                envelope.add(*curve)
        band = envelope.band()
        if band is not None:
            found.append((line, band))
    return found


def draw_bands(axes: Axes, bands: list[tuple[PaperLine, Band]]) -> None:
    """Draw the bands below all lines."""
    for line, band in bands:
        low, high = (np.append(side, side[-1]) for side in (band.low, band.high))
        axes.fill_between(
            *(band.edges, low, high),
            step="post",
            color=line.colour,
            alpha=_INK,
            linewidth=0,
            zorder=1,
            gid=f"band-{line.number}",
        )


def band_legend(bands: list[tuple[PaperLine, Band]]) -> tuple[list[Patch], list[str]]:
    """One grey legend entry for all bands; empty if there is no band."""
    from matplotlib.patches import Patch

    if not bands:
        return [], []
    counts = sorted({band.count for _line, band in bands})
    several = str(counts[0]) if len(counts) == 1 else f"{counts[0]} to {counts[-1]}"
    return [Patch(facecolor="#808080", alpha=2 * _INK, linewidth=0)], [f"{several} repetitions, least to largest"]
