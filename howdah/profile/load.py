# SPDX-License-Identifier: Apache-2.0
"""Load a profile: parse it, apply overrides, expand the sweep, and check every field before anything runs."""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from dataclasses import dataclass, replace
from functools import partial
from pathlib import Path
from typing import Any

from pydantic import ValidationError

from howdah.errors import ProfileError, nearest
from howdah.profile.check import check_changes, check_changes_together, check_scenario
from howdah.profile.claim_check import ClaimCheck
from howdah.profile.control import (
    GridPoint,
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
from howdah.profile.end import apply_sender
from howdah.profile.experiment import (
    REPETITIONS,
    SECTIONS,
    ExperimentSections,
    apply_quick,
    bare,
    check_quick,
    read_sections,
)
from howdah.profile.figure_check import FigureCheck
from howdah.profile.like import resolve_like
from howdah.profile.link import set_link_rates
from howdah.profile.model import Scenario
from howdah.profile.module import check_modules_used
from howdah.profile.override import apply_override
from howdah.profile.profile import Check, PointScenario, Profile, Sweep, SweepPart, to_yaml
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
    applied = list(overrides)
    read = _read(path, applied, quick=quick)
    document, axes, sections = read.document, read.axes, read.sections
    controls = _controls(read)
    grid = _grid(read, unknowns=unknowns)
    added = sum(count_control_cells(each.axes, each.document, read.repetitions) for each in controls)
    if unknowns and sections.unknown is not None:
        added += count_grid_cells(document, axes, sections.unknown, grid, read.repetitions)
    _check_values(read, controls, confirmed_runs)
    whole = _count_runs(read, added, confirmed_runs) <= MOST_CELLS
    directory = (directory or path.parent).resolve()
    check = partial(_checked, directory=directory)
    parts = [SweepPart(Points(document, axes), check, read.fewer, whole=whole)]
    parts += [
        SweepPart(control_points(each.document, each.axes, each.name), check, read.fewer, whole=whole)
        for each in controls
    ]
    parts += _grid_parts(read, grid, check, unknowns=unknowns, whole=whole)
    chosen = [point for part in parts for point in part.chosen.values()]
    if whole:
        check_changes_together(((point.scenario, point.scenario.repetitions) for point in chosen), document)
    check_modules_used(chosen, directory)
    ordinary = list(parts[0].chosen.values())
    _check_sections(read, [point.scenario for point in ordinary])
    return Profile(
        path=directory / path.name if directory != path.resolve().parent else path,
        text=to_yaml(read.whole.data) if applied or quick else document.text,
        axes={axis.name: [str(value) for value in axis.values] for axis in read.all_axes},
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


@dataclass(frozen=True)
class _ReadProfile:
    """A profile after ``quick`` and overrides: ``whole``, and ``document`` without the ``sections``.

    ``written_axes`` and ``written_repetitions`` are the sweep as written, ``axes`` the sweep as it is now. ``fewer`` is
    the number of repetitions, if ``quick`` reduces it.
    """

    whole: Document
    document: Document
    sections: ExperimentSections
    written_axes: list[Axis]
    written_repetitions: Any
    axes: list[Axis]
    fewer: int | None

    @property
    def all_axes(self) -> list[Axis]:
        """The axes with the values of both sweeps."""
        found = {axis.path: list(axis.values) for axis in self.written_axes}
        for axis in self.axes:
            values = found.setdefault(axis.path, [])
            known = {axis_key(value) for value in values}
            values += [value for value in axis.values if axis_key(value) not in known]
        return [Axis(path, tuple(values)) for path, values in found.items()]

    @property
    def repetitions(self) -> int:
        written = self.document.data.get("repetitions", 1)
        return self.fewer or (written if isinstance(written, int) else 1)


def _read(path: Path, overrides: list[str], *, quick: bool) -> _ReadProfile:
    document = read_document(path)
    check_quick(document)
    written = find_axes(bare(document)) if any(document.data.get(name) for name in SECTIONS) else []
    written_repetitions = document.data.get("repetitions", 1)
    fewer = apply_quick(document) if quick else None
    for override in overrides:
        fewer = None if apply_override(document, override) == REPETITIONS else fewer
    sections = read_sections(document)
    without = bare(document)
    return _ReadProfile(document, without, sections, written, written_repetitions, find_axes(without), fewer)


@dataclass(frozen=True)
class _Control:
    """A control: its profile, and the axes of the sweep that it runs; None if it has no point."""

    name: str
    document: Document
    axes: list[Axis] | None


def _controls(read: _ReadProfile) -> list[_Control]:
    given = read.sections.controls
    for name, control in given.items():
        check_at(read.document, read.all_axes, control.at, ("controls", name, "at"))
    documents = {name: control_document(read.document, name, control) for name, control in given.items()}
    return [
        _Control(name, changed, control_axes(read.document, read.axes, given[name].at))
        for name, changed in documents.items()
    ]


def _check_sections(read: _ReadProfile, scenarios: list[Scenario]) -> None:
    sections = read.sections
    claims = ClaimCheck(read.document, read.all_axes, scenarios, sections.controls)
    claims.check(sections.claims)
    if sections.search is not None:
        claims.check_search(sections.search, sections.claims)
    FigureCheck(read.document, read.all_axes, scenarios, sections.controls).check_figures(sections.figures)


def _checked(some: Iterable[Point], directory: Path) -> list[PointScenario]:
    """Points of the sweep, or of a control, as checked scenarios. Raises ProfileError."""
    checked = []
    for point in some:
        whole = resolve_like(point, directory)
        at_point = _with_chosen_places(whole, point.chosen)
        set_link_rates(at_point, directory)
        apply_sender(at_point)
        try:
            scenario = Scenario.model_validate(at_point.data)
        except ValidationError as error:
            raise profile_error(error, whole, point.chosen, beside=SECTIONS) from None
        check_changes(scenario, at_point)
        algorithms = check_scenario(scenario, at_point, directory)
        checked.append(PointScenario(point.slug, point.axes, scenario, algorithms, at_point))
    return checked


def _grid(read: _ReadProfile, *, unknowns: bool) -> list[GridPoint]:
    """The grid of unknowns; empty without any. Raises ProfileError."""
    section, document = read.sections.unknown, read.document
    if section is None:
        return []
    check_at(document, read.all_axes, section.at, ("unknown", "at"))
    # The present repetitions limit the grid's only if the grid is run.
    repetitions = document.data.get("repetitions", 1) if unknowns else read.written_repetitions
    return check_unknowns(document, section, repetitions)


def _grid_parts(
    read: _ReadProfile, grid: list[GridPoint], check: Check, *, unknowns: bool, whole: bool
) -> Iterator[SweepPart]:
    """The points of the sweep at each point of the grid; without ``unknowns`` only check the first of them."""
    section = read.sections.unknown
    for open_point in grid:
        assert section is not None
        points = unknown_points(unknown_document(read.document, open_point), read.axes, section, open_point)
        if unknowns:
            yield SweepPart(points, check, read.fewer or section.repetitions, whole=whole)
        else:
            check(points[:1])


def _count_runs(read: _ReadProfile, added: int, confirmed_runs: int | None) -> int:
    """Return the number of runs, ``added`` by controls and the grid. Raise ProfileError for too many."""
    count = count_cells(read.axes, read.repetitions) + added
    if count <= MOST_CELLS or count == confirmed_runs:
        return count
    factors = [f"{len(axis.values)} of {axis.name}" for axis in read.axes] + [f"{read.repetitions} repetitions"]
    further = f", and {added} of controls and of what is unknown" if added else ""
    what = f"the sweep has {count} runs ({' x '.join(factors)}{further}), more than {MOST_CELLS}"
    place = read.document.place(read.axes[0].path if read.axes else ("repetitions",))
    hint = f"shorten a list, or split the profile; to make them all, add --confirm-runs {count}"
    if confirmed_runs is not None:
        hint = f"--confirm-runs {confirmed_runs} is not their number: {hint}"
    raise ProfileError(what, where=place, hint=hint)


def _check_values(read: _ReadProfile, controls: list[_Control], confirmed_runs: int | None) -> None:
    """Raise ProfileError for a sweep that would take many seconds to check, point by point and value by value."""
    points = count_cells(read.axes, 1) + sum(count_control_cells(each.axes, each.document, 1) for each in controls)
    values = count_values(read.document.data)
    is_small = points == 1 or points * values <= MOST_VALUES_TOGETHER
    if is_small or points > MOST_CELLS or confirmed_runs is not None:  # _count_runs refuses too many points
        return
    what = f"the sweep has {points} points of {values} values each, together more than {MOST_VALUES_TOGETHER}"
    hint = "shorten a list, split the profile, or write many flows as a group and many steps as a trace"
    place = read.document.place(read.axes[0].path if read.axes else ())
    raise ProfileError(what, where=place, hint=f"{hint}; --confirm-runs N, the number of runs, reads it all the same")


def _cross_check(checked: list[PointScenario]) -> list[PointScenario]:
    """The point that ``cross_check:`` adds: a point of the sweep with other traffic, run only once."""
    wanted = checked[0].scenario.cross_check
    if wanted is None:
        return []
    for point in checked:
        if wanted.algorithm in (None, point.scenario.algorithm):
            traffic = TrafficSection(source=wanted.traffic, sink=wanted.traffic)
            return [
                replace(
                    point,
                    slug=f"{point.slug}-{wanted.traffic}",
                    axes={**point.axes, "traffic": wanted.traffic},
                    scenario=point.scenario.model_copy(update={"traffic": traffic}),
                )
            ]
    here = list(dict.fromkeys(point.scenario.algorithm for point in checked))
    close = nearest(str(wanted.algorithm), here)
    raise ProfileError(
        f"cross_check names {wanted.algorithm}, which no run of this profile has",
        where=checked[0].document.place(("cross_check", "algorithm")),
        hint=f"{f'did you mean {close}? ' if close else ''}the algorithms here: {', '.join(here)}",
    )


def _with_chosen_places(document: Document, chosen: dict[tuple[str | int, ...], int]) -> Document:
    """The document with the place of each swept field set to the place of its chosen value."""
    if not chosen:
        return document
    places = dict(document.places)
    places.update({path: document.place((*path, index)) for path, index in chosen.items()})
    return Document(document.data, places, document.text)
