# SPDX-License-Identifier: Apache-2.0
"""Additional runs of an experiment: controls, which each change one mechanism to tell why a claim fails, and the grid
of unknowns.

An unknown is a field that a source leaves open; its values are fixed before the first run, and the profile's own value
is the default. The grid is every other combination of values. Its runs are made if a claim fails at the default, or on
request; docs/claims.md says how claims are judged over it.
"""

from __future__ import annotations

import copy
import itertools
import math
import re
from collections.abc import Sequence
from dataclasses import dataclass
from functools import reduce
from operator import or_
from typing import Annotated, Any

from pydantic import BeforeValidator, Field, WithJsonSchema, model_validator

from howdah.errors import ProfileError, did_you_mean
from howdah.profile.field import FieldError, Section, Text, fixed
from howdah.profile.figure import AxisName, AxisValues
from howdah.profile.override import AnySettings, Settings, canonical, field_value, set_by_case, set_field
from howdah.profile.source import Document, Path_
from howdah.profile.sweep import Axis, Point, Points, count_cells, find_axes, slug_of

CONTROL_AXIS = "control"
MOST_CONTROLS = 32
_QUANTITY = re.compile(r"\d+(\.\d+)?[A-Za-z/%]*", re.ASCII)


ControlName = Annotated[str, Field(pattern=r"^[a-z0-9]+(-[a-z0-9]+)*$", max_length=40)]


class ControlSection(Section):
    """Runs with one mechanism changed. They have the axis `control`; other runs do not."""

    what: Text = fixed(description="description of the change")
    set: Settings = fixed(description="field.field: value, as for --set; a swept field gets this value at every point")
    at: AxisValues = fixed(
        default_factory=dict, description="only these points of the sweep: axis name: value, or list of values"
    )


def axis_key(value: Any) -> str:
    """A form of an axis' value that is the same for all its spellings: ``100 ms`` and ``100ms`` are one point.

    A quantity may also be spelled as in a run's name: ``400mbit``, ``1mb``, ``0.5percent``. No two units differ only in
    case.
    """
    text = "".join(str(value).split())
    return slug_of(text) if _QUANTITY.fullmatch(text) else text


def control_document(document: Document, name: str, control: ControlSection) -> Document:
    """The profile with the control's settings applied. Raises ProfileError for a setting that sweeps."""
    return changed_document(document, control.set, ("controls", name, "set"), f"the control {name}")


def changed_document(document: Document, settings: AnySettings, at: Path_, who: str) -> Document:
    """A copy of the profile with ``settings`` applied. They are written at ``at``; ``who`` names their owner in errors.

    Raises ProfileError for a setting that sweeps.
    """
    changed = document.copy()
    for field, value in settings.items():
        place = (*at, field)
        where = document.place(place)
        swept = [axis.name for axis in find_axes(document)]
        if isinstance(value, list) and canonical(document.data, field) in swept:
            what = f"{who} lists several values for {field}, which is swept"
            raise ProfileError(what, where=where, hint="give one value, and restrict the points with at")
        set_field(changed, field, copy.deepcopy(value), document.below(place) or {(): where}, where)
        for axis in find_axes(changed):
            if axis.name not in swept:
                raise ProfileError(f"{who} sweeps {axis.name}; it sets one value", where=where)
    return changed


def control_axes(document: Document, axes: list[Axis], at: AxisValues) -> list[Axis] | None:
    """The axes of the sweep restricted to the values that ``at`` selects; None if no point is left."""
    found = []
    for axis in axes:
        wanted = _selected_keys(at, axis.name)
        values = [value for value in axis.values if wanted is None or axis_key(value) in wanted]
        found.append(Axis(axis.path, tuple(values)))
    for name in at:  # a field with one value, perhaps from --set
        wanted = _selected_keys(at, name)
        single = name not in [axis.name for axis in axes]
        if single and wanted is not None and axis_key(_single_value(document, name)) not in wanted:
            return None
    return found if all(axis.values for axis in found) else None


def _selected_keys(at: AxisValues, name: str) -> list[str] | None:
    if name not in at:
        return None
    values = at[name]
    return [axis_key(value) for value in (values if isinstance(values, list) else [values])]


def _single_value(document: Document, name: str) -> Any:
    value = field_value(document.data, name)
    return "cubic" if value is None and name == "algorithm" else value


def check_at(document: Document, written: list[Axis], at: AxisValues, place: Path_) -> None:
    """Raise ProfileError unless every axis and value of ``at``, which is written at ``place``, is one of the written
    sweep.
    """
    axes = {axis.name: [str(value) for value in axis.values] for axis in written}
    for axis, wanted in at.items():
        where = document.place((*place, axis))
        if set_by_case(document, axis) is not None:
            raise ProfileError(f"case decides {axis}", where=where, hint="give the case instead")
        single = _single_value(document, axis)
        known = axes.get(axis) or ([] if single is None or isinstance(single, dict | list) else [str(single)])
        if not known:
            hint = did_you_mean(axis, axes, f"its axes: {', '.join(axes) or 'none'}")
            raise ProfileError(f"this profile does not sweep over {axis}", where=where, hint=hint)
        for value in wanted if isinstance(wanted, list) else [wanted]:
            if axis_key(value) not in map(axis_key, known):
                what = f"{axis} is never {value} in this profile"
                raise ProfileError(what, where=where, hint=f"its values: {', '.join(known)}")


def control_points(document: Document, axes: list[Axis] | None, name: str) -> Sequence[Point]:
    """The points of a control, from the results of ``control_document`` and ``control_axes``.

    An axis that ``set`` replaces is dropped, so its points become one.
    """
    if axes is None:
        return ()
    left = {axis.path: axis.values for axis in find_axes(document)}
    chosen_axes = [axis for axis in axes if axis.path in left]

    def change(point: Point) -> Point:
        # The index of a value refers to the list as written.
        chosen: dict[Path_, int] = {}
        for axis in chosen_axes:
            chosen[axis.path] = left[axis.path].index(axis.values[point.chosen[axis.path]])
        return Point(chosen, {CONTROL_AXIS: name, **point.axes}, point.document, f"{point.slug}-{name}")

    return Points(document, chosen_axes, change)


def count_control_cells(axes: list[Axis] | None, changed: Document, repetitions: int) -> int:
    """The number of runs that a control adds."""
    left = [axis.path for axis in find_axes(changed)]
    return 0 if axes is None else math.prod(len(axis.values) for axis in axes if axis.path in left) * repetitions


UNKNOWN_AXIS = "unknown"
MOST_GRID_POINTS = 64
AS_WRITTEN = "as in the profile"


def _value(value: object) -> object:
    if isinstance(value, list | dict) or value is None:
        raise ValueError("expected single values; settings: {name: {field.field: value}} takes any other")
    return value


OpenValue = Annotated[
    Any, BeforeValidator(_value), WithJsonSchema({"type": ["string", "number", "boolean"], "x-value": "value"})
]


class UnknownSection(Section):
    """One thing that a source leaves open: a field and its values, or named settings of several fields."""

    what: Text = fixed(description="what the source does not state, and why these values")
    field: AxisName | None = fixed(None, description="field.field; its value in the profile is the default")
    values: list[OpenValue] = fixed(default_factory=list, description="with field: its other values")
    settings: dict[str, Settings] = fixed(
        default_factory=dict, description="instead of field: name: {field.field: value}, as for --set"
    )

    @model_validator(mode="after")
    def _one_form(self) -> UnknownSection:
        if (self.field is None) == (not self.settings):
            raise FieldError("give field with values, or settings")
        if (self.field is None) != (not self.values):
            missing, present = ("values", "field") if not self.values else ("field", "values")
            raise FieldError(f"field and values belong together; {missing} is missing", present)
        return self


class UnknownsSection(Section):
    """What a source leaves open, and the grid over which a claim is judged that fails with the profile as written."""

    fields: dict[ControlName, UnknownSection] = fixed(
        description="the open fields, by name; the grid has every combination of values"
    )
    repetitions: Annotated[int, Field(ge=1)] | None = fixed(
        None, description="repetitions of each grid point; default: the profile's"
    )
    at: AxisValues = fixed(
        default_factory=dict, description="only these points of the sweep: axis name: value, or list of values"
    )

    @model_validator(mode="after")
    def _some(self) -> UnknownsSection:
        if not self.fields:
            raise FieldError("nothing is open; give the name of what is", "fields")
        return self


@dataclass(frozen=True)
class GridPoint:
    """One combination of values. ``at`` has every unknown with its value in words; ``settings`` are the changes."""

    at: dict[str, str]
    settings: AnySettings

    def __or__(self, other: GridPoint) -> GridPoint:
        return GridPoint(self.at | other.at, self.settings | other.settings)

    @property
    def label(self) -> str:
        """The value of the axis ``unknown`` in this point's runs."""
        return ", ".join(f"{name} {value}" for name, value in self.at.items())


def default_point(document: Document, unknowns: UnknownsSection) -> GridPoint:
    """The point of the profile as written: every unknown has its default."""
    return GridPoint({name: _default(document, each) for name, each in unknowns.fields.items()}, {})


def grid(document: Document, unknowns: UnknownsSection) -> list[GridPoint]:
    """Every combination of values except the default. A value equal to the default is not counted twice."""
    choices = []
    for name, each in unknowns.fields.items():
        default = _default(document, each)
        some = [GridPoint({name: default}, {})]
        if each.field is not None:
            further = [value for value in each.values if axis_key(value) != axis_key(default)]
            some += [GridPoint({name: str(value)}, {each.field: value}) for value in further]
        else:
            some += [GridPoint({name: label}, settings) for label, settings in each.settings.items()]
        choices.append(some)
    found = [reduce(or_, chosen) for chosen in itertools.product(*choices)]
    return [point for point in found if point.settings]


def _default(document: Document, each: UnknownSection) -> str:
    value = field_value(document.data, each.field) if each.field is not None else None
    return AS_WRITTEN if value is None or isinstance(value, list | dict) else str(value)


def check_unknowns(document: Document, unknowns: UnknownsSection, repetitions: Any) -> list[GridPoint]:
    """The grid. Raises ProfileError for an unknown that is swept, a grid that is too large, or wrong repetitions.

    ``document`` is the profile without the sections of ``ExperimentSections``, but with the places of all of them.
    """
    swept = [axis.name for axis in find_axes(document)]
    for name, each in unknowns.fields.items():
        for field in [each.field, *(field for settings in each.settings.values() for field in settings)]:
            if field is not None and canonical(document.data, field) in swept:
                what = f"{field} is swept, so it is not left open"
                hint = "give each of claims the axis, or leave one value in the sweep"
                raise ProfileError(what, where=document.place(("unknown", "fields", name)), hint=hint)
    found = grid(document, unknowns)
    if len(found) > MOST_GRID_POINTS:
        what = f"the grid of what is unknown has {len(found)} points, more than {MOST_GRID_POINTS}"
        raise ProfileError(what, where=document.place(("unknown",)), hint="leave values out")
    if unknowns.repetitions is not None and isinstance(repetitions, int):
        place = document.place(("unknown", "repetitions"))
        if unknowns.repetitions > repetitions:
            what = f"the grid asks for {unknowns.repetitions} repetitions, the profile for {repetitions}"
            raise ProfileError(what, where=place)
        if unknowns.repetitions == 1 < repetitions:
            raise ProfileError("one repetition has no interval", where=place, hint="give at least 2")
    return found


def unknown_document(document: Document, point: GridPoint) -> Document:
    """The profile with the settings of a grid point applied. Raises ProfileError for a setting that sweeps."""
    return changed_document(document, point.settings, ("unknown",), "what is unknown")


def unknown_points(changed: Document, axes: list[Axis], unknowns: UnknownsSection, point: GridPoint) -> Sequence[Point]:
    """The points of the sweep at one point of the grid; their runs have the axis ``unknown``.

    ``changed`` is the result of ``unknown_document``; ``axes`` are those of the profile.
    """

    def change(each: Point) -> Point:
        slug = f"{each.slug}-{slug_of(point.label)}"
        return Point(each.chosen, {UNKNOWN_AXIS: point.label, **each.axes}, each.document, slug)

    restricted = _restricted(changed, axes, unknowns)
    return Points(changed, restricted, change) if restricted is not None else ()


def count_grid_cells(
    document: Document, axes: list[Axis], unknowns: UnknownsSection, found: list[GridPoint], repetitions: int
) -> int:
    """The number of runs that the grid adds."""
    restricted = _restricted(document, axes, unknowns)
    return 0 if restricted is None else len(found) * count_cells(restricted, unknowns.repetitions or repetitions)


def _restricted(document: Document, axes: list[Axis], unknowns: UnknownsSection) -> list[Axis] | None:
    """The axes of the sweep that the grid runs; None if no point is left."""
    return control_axes(document, axes, unknowns.at)
