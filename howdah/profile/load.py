# SPDX-License-Identifier: Apache-2.0
"""Load a profile: parse it, apply overrides, expand the sweep, and check every field before anything runs."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import replace
from pathlib import Path
from typing import Any

from pydantic import ValidationError

from howdah.errors import ProfileError, nearest
from howdah.profile.check import check_changes, check_changes_together, check_scenario
from howdah.profile.claim_check import ClaimCheck
from howdah.profile.control import (
    GridPoint,
    UnknownsSection,
    axis_key,
    check_at,
    check_unknowns,
    control_axes,
    control_document,
    control_points,
    count_control_cells,
    count_grid_cells,
    unknown_document,
    unknown_points,
)
from howdah.profile.end import take_sender
from howdah.profile.experiment import REPETITIONS, SECTIONS, apply_quick, bare, check_quick, read_sections
from howdah.profile.figure_check import FigureCheck
from howdah.profile.like import take_path
from howdah.profile.link import take_links
from howdah.profile.model import Scenario
from howdah.profile.module import check_modules_used
from howdah.profile.override import apply_override
from howdah.profile.profile import PointScenario, Profile, Sweep, SweepPart, to_yaml
from howdah.profile.report import profile_error
from howdah.profile.source import Document, read_document
from howdah.profile.sweep import (
    MOST_CELLS,
    MOST_VALUES_TOGETHER,
    Axis,
    Point,
    Points,
    count_cells,
    count_values,
    find_axes,
)
from howdah.profile.traffic import TrafficSection


def load(
    path: str | Path,
    overrides: Iterable[str] = (),
    *,
    confirmed_runs: int | None = None,
    quick: bool = False,
    unknowns: bool = False,
    directory: Path | None = None,
) -> Profile:
    """Read and check a profile.

    ``overrides`` are ``field.field=value`` texts, applied in order. ``quick`` first applies the profile's ``quick:``
    section. ``unknowns`` adds the runs of the grid of ``unknown:``. Relative paths in the profile start at
    ``directory``, by default the profile's own.

    A sweep of more than 1000 runs is refused unless ``confirmed_runs`` equals their number. Raises ProfileError, which
    names the file and line (or the override), what was expected, and the nearest valid name.
    """
    path = Path(path)
    document = read_document(path)
    check_quick(document)
    written = find_axes(bare(document)) if any(document.data.get(name) for name in SECTIONS) else []
    applied = list(overrides)
    repetitions = document.data.get("repetitions", 1)
    fewer = apply_quick(document) if quick else None
    for override in applied:
        fewer = None if apply_override(document, override) == REPETITIONS else fewer
    whole_document = document
    sections = read_sections(document)
    document = bare(document)
    axes = find_axes(document)
    for name, control in sections.controls.items():
        check_at(document, _union(written, axes), control.at, ("controls", name, "at"))
    controls = {name: control_document(document, name, control) for name, control in sections.controls.items()}
    restricted = {name: control_axes(document, axes, sections.controls[name].at) for name in controls}
    if unknowns:  # fewer than the profile has are fewer than the grid asks for only where the grid is made
        repetitions = document.data.get("repetitions", 1)
    grid = _grid(document, _union(written, axes), sections.unknown, repetitions)
    often = fewer or _repetitions(document)
    more = sum(count_control_cells(restricted[name], changed, often) for name, changed in controls.items())
    more += count_grid_cells(document, axes, sections.unknown, grid, often) if unknowns and sections.unknown else 0
    count = _check_size(document, axes, controls, restricted, often, more, confirmed_runs)
    directory = (directory or path.parent).resolve()
    whole = count <= MOST_CELLS

    def part(points: Sequence[Point], often: int | None) -> SweepPart:
        return SweepPart(points, lambda some: _checked(some, directory), often, whole=whole)

    parts = [part(Points(document, axes), fewer)]
    parts += [part(control_points(changed, restricted[name], name), fewer) for name, changed in controls.items()]
    for open_point in grid if sections.unknown is not None else ():
        assert sections.unknown is not None
        some = unknown_points(unknown_document(document, open_point), axes, sections.unknown, open_point)
        if unknowns:
            parts.append(part(some, fewer or sections.unknown.repetitions))
        else:
            _checked(some[:1], directory)
    chosen = [point for each in parts for point in each.chosen.values()]
    if whole:
        check_changes_together(((point.scenario, point.scenario.repetitions) for point in chosen), document)
    check_modules_used(chosen, directory)
    both = _union(written, axes)
    ordinary = list(parts[0].chosen.values())
    scenarios = [point.scenario for point in ordinary]
    checking = ClaimCheck(document, both, scenarios, sections.controls)
    checking.check(sections.claims)
    if sections.search is not None:
        checking.check_search(sections.search, sections.claims)
    FigureCheck(document, both, scenarios, sections.controls).check_figures(sections.figures)
    return Profile(
        path=directory / path.name if directory != path.resolve().parent else path,
        text=to_yaml(whole_document.data) if applied or quick else document.text,
        axes={axis.name: [str(value) for value in axis.values] for axis in both},
        points=Sweep([*parts, SweepPart(_cross_check(ordinary), list, 1, whole=True)], whole=whole),
        is_quick=quick,
        quick=sections.quick,
        controls=sections.controls,
        unknown=sections.unknown,
        grid=grid,
        with_unknowns=unknowns and bool(grid),
        claims=sections.claims,
        figures=sections.figures,
        search=sections.search,
        recorded=sections.recorded,
    )


def _checked(some: Iterable[Point], directory: Path) -> list[PointScenario]:
    """Points of the sweep, or of a control, as checked scenarios. Raises ProfileError."""
    checked = []
    for point in some:
        whole = take_path(point, directory)
        at_point = _at(whole, point.chosen)
        take_links(at_point, directory)
        take_sender(at_point)
        try:
            scenario = Scenario.model_validate(at_point.data)
        except ValidationError as error:
            raise profile_error(error, whole, point.chosen, beside=SECTIONS) from None
        check_changes(scenario, at_point)
        algorithms = check_scenario(scenario, at_point, directory)
        checked.append(PointScenario(point.slug, point.axes, scenario, algorithms, at_point))
    return checked


def _grid(
    document: Document, written: list[Axis], unknowns: UnknownsSection | None, repetitions: Any
) -> list[GridPoint]:
    """The grid of unknowns, for a profile with this number of repetitions. Raises ProfileError."""
    if unknowns is None:
        return []
    check_at(document, written, unknowns.at, ("unknown", "at"))
    return check_unknowns(document, unknowns, repetitions)


def _repetitions(document: Document) -> int:
    written = document.data.get("repetitions", 1)
    return written if isinstance(written, int) else 1


def _check_size(
    document: Document,
    axes: list[Axis],
    controls: dict[str, Document],
    restricted: dict[str, list[Axis] | None],
    repetitions: int,
    more: int,
    confirmed_runs: int | None,
) -> int:
    """Return the number of runs. Raise ProfileError for too many, before the sweep is expanded; ``more`` are the runs
    of controls and of the grid.
    """
    _check_values(document, axes, controls, restricted, confirmed_runs)
    cells = count_cells(axes, repetitions)
    if cells + more <= MOST_CELLS or cells + more == confirmed_runs:
        return cells + more
    factors = [f"{len(axis.values)} of {axis.name}" for axis in axes] + [f"{repetitions} repetitions"]
    further = f", and {more} of controls and of what is unknown" if more else ""
    what = f"the sweep has {cells + more} runs ({' x '.join(factors)}{further}), more than {MOST_CELLS}"
    place = document.place(axes[0].path if axes else ("repetitions",))
    hint = f"shorten a list, or split the profile; to make them all, add --confirm-runs {cells + more}"
    if confirmed_runs is not None:
        hint = f"--confirm-runs {confirmed_runs} is not their number: {hint}"
    raise ProfileError(what, where=place, hint=hint)


def _check_values(
    document: Document,
    axes: list[Axis],
    controls: dict[str, Document],
    restricted: dict[str, list[Axis] | None],
    confirmed_runs: int | None,
) -> None:
    """Raise ProfileError for a sweep whose checks would take many seconds, because each point is checked value by
    value."""
    points = count_cells(axes, 1)
    points += sum(count_control_cells(restricted[name], changed, 1) for name, changed in controls.items())
    values = count_values(document.data)
    # Where there are more runs than may be, that is what is said.
    if points == 1 or points > MOST_CELLS or points * values <= MOST_VALUES_TOGETHER or confirmed_runs is not None:
        return
    what = f"the sweep has {points} points of {values} values each, together more than {MOST_VALUES_TOGETHER}"
    hint = "shorten a list, split the profile, or write many flows as a group and many steps as a trace"
    place = document.place(axes[0].path if axes else ())
    raise ProfileError(what, where=place, hint=f"{hint}; --confirm-runs N, the number of runs, reads it all the same")


def _union(written: list[Axis], now: list[Axis]) -> list[Axis]:
    """The axes with the values of both sweeps, as written and after overrides."""
    found = {axis.path: list(axis.values) for axis in written}
    for axis in now:
        values = found.setdefault(axis.path, [])
        known = {axis_key(value) for value in values}
        values += [value for value in axis.values if axis_key(value) not in known]
    return [Axis(path, tuple(values)) for path, values in found.items()]


def _cross_check(checked: list[PointScenario]) -> list[PointScenario]:
    """The point that ``cross_check:`` adds: a point of the sweep with other traffic. Only its first repetition is
    run."""
    asked = checked[0].scenario.cross_check
    if asked is None:
        return []
    for point in checked:
        if asked.algorithm in (None, point.scenario.algorithm):
            traffic = TrafficSection(source=asked.traffic, sink=asked.traffic)
            return [
                replace(
                    point,
                    slug=f"{point.slug}-{asked.traffic}",
                    axes={**point.axes, "traffic": asked.traffic},
                    scenario=point.scenario.model_copy(update={"traffic": traffic}),
                )
            ]
    here = list(dict.fromkeys(point.scenario.algorithm for point in checked))
    close = nearest(str(asked.algorithm), here)
    raise ProfileError(
        f"cross_check names {asked.algorithm}, which no run of this profile has",
        where=checked[0].document.place(("cross_check", "algorithm")),
        hint=f"{f'did you mean {close}? ' if close else ''}the algorithms here: {', '.join(here)}",
    )


def _at(document: Document, chosen: dict[tuple[str | int, ...], int]) -> Document:
    """The document with the place of each swept field set to the place of its chosen value."""
    if not chosen:
        return document
    places = dict(document.places)
    places.update({path: document.place((*path, index)) for path, index in chosen.items()})
    return Document(document.data, places, document.text)
