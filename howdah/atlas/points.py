# SPDX-License-Identifier: Apache-2.0
"""The points of published figures, stored with the published results, so that figures can be drawn without a run.

Without points, a figure of numbers (bars, sweeps, tables) is drawn from the numbers of published claims.
"""

from __future__ import annotations

import json
from collections import Counter
from collections.abc import Sequence
from pathlib import Path
from typing import Any

from howdah.atlas.published import Published, runs_key
from howdah.errors import HowdahError
from howdah.generated import compact_json
from howdah.measure.statistics import FEW
from howdah.number import rounded
from howdah.profile import Profile
from howdah.profile.claim import ClaimSection, SelectorSection
from howdah.profile.claim_check import completed
from howdah.profile.control import CONTROL_AXIS, UNKNOWN_AXIS, axis_key
from howdah.profile.figure import FigureSection
from howdah.record.claims import MeasuredRow, SampleRow
from howdah.record.directory import read_json, write_whole
from howdah.record.provenance import sha256_text
from howdah.record.result import Experiment
from howdah.report.plot.draw import title_of
from howdah.report.plot.kept import kept_figure, kept_numbers, measures_of
from howdah.report.plot.sample import NothingToDrawError
from howdah.report.plot.stored import Mean, StoredExperiment, StoredPoint, points_of

FORMAT = 1
FOLDER = "points"
_WORDS = {"title", "note", "entry", "paper", "id", "log"}
_DIGITS = 9  # digits of stored numbers, enough to distinguish ends that are close together
_ALGORITHM = "algorithm"
OF_RUNS = "Drawn from published points."
OF_CLAIMS = "Drawn from the numbers of published claims; where no claim has a number, none is shown."


def _drawn_of(figure: FigureSection) -> str:
    """Return a hash of the fields that decide the points of a figure."""
    data = figure.model_dump(mode="json", exclude=_WORDS)
    return sha256_text(json.dumps(data, sort_keys=True, default=str))[:16]


def write_points(experiment: Experiment, profile: Profile, directory: Path) -> Path | None:
    """Write the points of a profile's figures to ``directory``/points; None for a profile without figures."""
    if not profile.figures:
        return None
    points = points_of(profile)
    figures: dict[str, Any] = {}
    for figure in profile.figures:
        try:
            kept = kept_figure(figure, experiment)
        except NothingToDrawError:
            continue
        kept_numbers(figure, experiment, points)
        figures[figure.id] = {"of": _drawn_of(figure), "title": title_of(figure, experiment), **kept}
    data = {
        "format": FORMAT,
        "profile": profile.name,
        "runs_sha256": runs_key(experiment.runs),
        "figures": figures,
        "numbers": [_row(point, key, number) for point in points for key, number in point.numbers.items()],
        "missing": [[point.slug, *key, Counter(why)] for point in points for key, why in point.missing.items()],
    }
    file = directory / FOLDER / f"{profile.name}.json"
    file.parent.mkdir(parents=True, exist_ok=True)
    write_whole(file, compact_json(data, rows=("curves", "numbers", "missing")))
    return file


def _row(point: StoredPoint, key: tuple[Any, ...], number: Mean | dict[str, int]) -> list[Any]:
    if not isinstance(number, Mean):
        return [point.slug, *key, number]
    ends = [] if number.low is None or number.high is None else [number.low, number.high]
    return [point.slug, *key, number.count, *(rounded(each, _DIGITS) for each in (number.mean, *ends))]


def stored_figures(profile: Profile, published: Published, directory: Path) -> dict[str, StoredExperiment]:
    """Return the data of each figure that can be drawn, by its id: published points, or numbers of claims.

    Raise HowdahError for an unreadable file of points.
    """
    whole = _read(profile, published, directory)
    of_claims = _of_claims(profile, published)
    found = {}
    for figure in profile.figures:
        if figure.id in whole.figures:
            found[figure.id] = whole
        elif measures_of(figure) and not figure.relative_to and _has_numbers(figure, of_claims):
            found[figure.id] = of_claims
    return found


def _read(profile: Profile, published: Published, directory: Path) -> StoredExperiment:
    """Return the points if they are of the published runs, for figures that still show the same."""
    file = directory / FOLDER / f"{profile.name}.json"
    points = points_of(profile)
    others = published.other_controls(profile.text)
    nothing = StoredExperiment(points)
    try:
        data = read_json(file)
        if data["format"] != FORMAT:
            raise ValueError(f"format {data['format']}, known is {FORMAT}")
        if data["runs_sha256"] != published.runs_sha256:
            return nothing
        current = {figure.id: _drawn_of(figure) for figure in profile.figures if not _names(figure, others)}
        figures = {name: each for name, each in data["figures"].items() if current.get(name) == each["of"]}
        by_slug = {point.slug: point for point in points if point.axes.get(CONTROL_AXIS) not in others}
        for slug, metric, flow, take, to, *number in data["numbers"]:
            if slug in by_slug:
                by_slug[slug].numbers[metric, flow, take, to] = number[0] if number[1:] == [] else Mean(*number)
        for slug, metric, flow, take, to, reasons in data["missing"]:
            if slug in by_slug:
                by_slug[slug].missing[metric, flow, take, to] = list(Counter(reasons).elements())
    except FileNotFoundError:
        return nothing
    except (ValueError, KeyError, TypeError) as error:
        raise HowdahError(f"this is not a file of figure points: {error}", where=str(file)) from error
    return StoredExperiment(points, figures, OF_RUNS)


def _names(figure: FigureSection, controls: set[str]) -> bool:
    """Whether a figure shows the runs of one of these controls."""
    named = figure.at.get(CONTROL_AXIS, [])
    return not controls.isdisjoint(named if isinstance(named, list) else [named])


def _has_numbers(figure: FigureSection, experiment: StoredExperiment) -> bool:
    """Whether at least two numbers of a figure are known: one alone shows nothing."""
    found = [
        point
        for point in _shown_by(figure, experiment.runs)
        for measure in measures_of(figure)
        if point.key(*measure) in point.numbers
    ]
    return len(found) > 1


def _shown_by(figure: FigureSection, points: Sequence[StoredPoint]) -> list[StoredPoint]:
    wanted = {
        axis: [axis_key(value) for value in (each if isinstance(each, list) else [each])]
        for axis, each in figure.at.items()
    }
    return [point for point in points if all(_value(point, axis) in some for axis, some in wanted.items())]


def _value(point: StoredPoint, axis: str) -> str:
    if axis == _ALGORITHM:
        return axis_key(point.algorithm)
    return axis_key(point.axes.get(axis, "none"))


def _of_claims(profile: Profile, published: Published) -> StoredExperiment:
    experiment = StoredExperiment(points_of(profile), source=OF_CLAIMS)
    rows = {row.id: row for row in published.claims}
    for claim in profile.claims:
        row = rows.get(claim.id)
        if row is not None and claim.value is not None and claim.expect is not None and not row.renewed:
            _take(claim, row.measured, "", experiment.runs)
            if claim.control is not None and row.control is not None:
                _take(claim, row.control.measured, claim.control, experiment.runs)
    return experiment


def _take(claim: ClaimSection, side: MeasuredRow | None, control: str, points: list[StoredPoint]) -> None:
    """Store the numbers of a claim, from its own runs or from those of its control."""
    value, than = completed(claim)
    assert claim.expect is not None
    for point in side.points if side is not None else ():
        if claim.expect.over is not None:
            continue  # means over an axis have no spread
        for selector, numbers in ((value, point), (than, point.than)):
            if selector is not None and numbers is not None:
                _put(selector, {**point.at, **selector.at}, control, numbers, points)


def _put(
    selector: SelectorSection, at: dict[str, Any], control: str, numbers: SampleRow, points: list[StoredPoint]
) -> None:
    """Store the numbers at their point, if it is unambiguous."""
    wanted = {CONTROL_AXIS: control or "none", UNKNOWN_AXIS: "none", "traffic": "none", **at}
    here = [point for point in points if all(_value(point, axis) == axis_key(each) for axis, each in wanted.items())]
    if len(here) != 1:
        return
    key = here[0].key(selector.metric, selector.flow, selector.take)
    if numbers.mean is None:
        if numbers.counts:
            here[0].numbers[key] = numbers.counts
    elif numbers.n >= FEW or numbers.low is None:  # with fewer, least and largest are not published
        here[0].numbers[key] = Mean(numbers.n, numbers.mean, numbers.low, numbers.high)
        here[0].units[selector.metric] = numbers.unit
