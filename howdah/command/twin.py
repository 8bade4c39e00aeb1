# SPDX-License-Identifier: Apache-2.0
"""Compare the runs of a twin with the recording it was made from: as lines, as JSON and as a page."""

from __future__ import annotations

from pathlib import Path

from pydantic import Field

from howdah.profile.experiment import sections_of_experiment
from howdah.record.model import FilePart
from howdah.record.result import Experiment

TWIN_PAGE = "twin.html"


class TwinRun(FilePart):
    """One run of a twin compared with the recorded flow."""

    run: str
    distance: float | None = Field(description="the largest of 'distances'; null if the recording has no time series")
    distances: dict[str, float] = Field(
        description="of each curve (in flight, acknowledged, round trip): mean difference / recorded mean"
    )
    not_explained: list[str] = Field(description="differences of the run, in sentences")


class Twin(FilePart):
    page: str | None
    runs: list[TwinRun] = Field(description="the nearest first")


def compare_with_recording(path: Path, made: Experiment, *, page: bool) -> tuple[list[str], Twin | None]:
    """Compare an experiment's runs with the recording of its twin profile. Return lines for a terminal and the object
    for JSON, both empty if the profile is not a twin or no run counts. With ``page``, write the page."""
    sections = sections_of_experiment(path)
    if sections.recorded is None:
        return [], None
    from howdah.explain.overlay import overlay_lines, overlays, write_overlay  # only needed for twins

    found = overlays(sections.recorded, made.runs)
    if not found:
        return [], None
    open_fields = list(sections.unknown.fields) if sections.unknown is not None else []
    lines = overlay_lines(found[0], len(found) - 1, open_fields)
    if page:
        lines.append(f"recorded and reproduced: {write_overlay(made.name, found, path / TWIN_PAGE)}")
    runs = [
        TwinRun(run=each.run, distance=each.distance, distances=each.distances, not_explained=each.unlike)
        for each in found
    ]
    return lines, Twin(page=str(path / TWIN_PAGE) if page else None, runs=runs)
