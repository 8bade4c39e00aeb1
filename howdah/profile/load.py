# SPDX-License-Identifier: Apache-2.0
"""Reading a profile: text, overrides, sweep, fields, what they mean together. All is checked before anything runs."""

from __future__ import annotations

import dataclasses
from collections.abc import Iterable
from pathlib import Path

from pydantic import ValidationError

from howdah.errors import ProfileError
from howdah.profile.check import check_scenario
from howdah.profile.like import check_queues, take_path
from howdah.profile.model import Scenario, TrafficSection
from howdah.profile.override import apply_override
from howdah.profile.profile import PointScenario, Profile, to_yaml
from howdah.profile.report import profile_error
from howdah.profile.source import Document, read_document
from howdah.profile.sweep import MOST_CELLS, count_cells, find_axes, points


def load(path: str | Path, overrides: Iterable[str] = (), *, large_sweep_confirmed: bool = False) -> Profile:
    """Read and check a profile; ``overrides`` are ``field.field=value`` texts, applied in order.

    A sweep of more than 1000 runs is refused unless ``large_sweep_confirmed``. Raises ProfileError, which names the
    file and line (or the override), what was expected and the nearest valid name.
    """
    path = Path(path)
    document = read_document(path)
    applied = list(overrides)
    for override in applied:
        apply_override(document, override)
    axes = find_axes(document)
    repetitions = document.data.get("repetitions", 1)
    cells = count_cells(axes, repetitions if isinstance(repetitions, int) else 1)
    if cells > MOST_CELLS and not large_sweep_confirmed:
        factors = [f"{len(axis.values)} of {axis.name}" for axis in axes] + [f"{repetitions} repetitions"]
        what = f"the sweep has {cells} runs ({' x '.join(factors)}), more than {MOST_CELLS}"
        place = document.place(axes[0].path if axes else ("repetitions",))
        raise ProfileError(what, where=place, hint="shorten a list, or split the profile")
    checked = []
    for point in points(document, axes):
        whole = take_path(document, point, path.resolve().parent)
        try:
            scenario = Scenario.model_validate(point.data)
        except ValidationError as error:
            raise profile_error(error, whole, point.chosen) from None
        at_point = _at(whole, point.chosen)
        algorithms = check_scenario(scenario, at_point, path.resolve().parent)
        checked.append(PointScenario(point.slug, point.axes, scenario, algorithms, at_point))
    check_queues(document, [point.scenario.path for point in checked])
    checked += _cross_check(checked)
    return Profile(path, to_yaml(document.data) if applied else document.text, checked)


def _cross_check(checked: list[PointScenario]) -> list[PointScenario]:
    """The point that ``cross_check:`` adds: a point of the sweep with other traffic, its first repetition only."""
    asked = checked[0].scenario.cross_check
    if asked is None:
        return []
    for point in checked:
        if asked.algorithm in (None, point.scenario.algorithm):
            traffic = TrafficSection(source=asked.traffic, sink=asked.traffic)
            return [
                dataclasses.replace(
                    point,
                    slug=f"{point.slug}-{asked.traffic}",
                    axes={**point.axes, "traffic": asked.traffic},
                    scenario=point.scenario.model_copy(update={"traffic": traffic}),
                    only_first_repetition=True,
                )
            ]
    raise ProfileError(
        f"cross_check names {asked.algorithm}, which no run of this profile has",
        where=checked[0].document.place(("cross_check", "algorithm")),
        hint=f"the algorithms here: {', '.join(dict.fromkeys(point.scenario.algorithm for point in checked))}",
    )


def _at(document: Document, chosen: dict[tuple[str | int, ...], int]) -> Document:
    """The document with the place of each swept field moved to the value chosen."""
    if not chosen:
        return document
    places = dict(document.places)
    places.update({path: document.place((*path, index)) for path, index in chosen.items()})
    return Document(document.data, places, document.text)
