# SPDX-License-Identifier: Apache-2.0
"""Runs of a twin over the recording that it was written from: lines for a terminal, an object of JSON, a page."""

from __future__ import annotations

from pathlib import Path
from typing import Any

from howdah.profile.experiment import sections_of_experiment
from howdah.record.result import Experiment

TWIN_PAGE = "twin.html"


def laid_over(path: Path, made: Experiment, *, page: bool) -> tuple[list[str], dict[str, Any] | None]:
    """Lines about the runs of an experiment, and the same as JSON; nothing where its profile is not a twin or no run
    counts. With ``page`` the page is written."""
    sections = sections_of_experiment(path)
    if sections.recorded is None:
        return [], None
    from howdah.explain.overlay import overlays, told, write_overlay  # only a twin needs them

    found = overlays(sections.recorded, made.runs)
    if not found:
        return [], None
    open_fields = list(sections.unknown.fields) if sections.unknown is not None else []
    lines = told(found[0], len(found) - 1, open_fields)
    if page:
        lines.append(f"recorded and reproduced: {write_overlay(made.name, found, path / TWIN_PAGE)}")
    return lines, {
        "page": str(path / TWIN_PAGE) if page else None,
        "runs": [
            {"run": each.run, "distance": each.distance, "distances": each.distances, "not_explained": each.unlike}
            for each in found
        ],
    }
