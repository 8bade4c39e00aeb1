# SPDX-License-Identifier: Apache-2.0
"""Unknowns: fields that a source leaves open, each with its values fixed before the first run.

The profile's own value is the default. The grid is every other combination of the values. Its runs are made where a
claim fails at the default, or where they are asked for; docs/claims.md says how claims are judged over it.
"""

from __future__ import annotations

import itertools
from collections.abc import Sequence
from dataclasses import dataclass
from functools import reduce
from operator import or_
from typing import Annotated, Any

from pydantic import BeforeValidator, Field, WithJsonSchema, model_validator

from howdah.errors import ProfileError
from howdah.profile.case import AnySettings, Settings
from howdah.profile.control import ControlName, axis_key, changed_document, control_axes
from howdah.profile.dotted import canonical
from howdah.profile.field import FieldError, Section, Text, fixed
from howdah.profile.figure import AxisName, AxisValues
from howdah.profile.override import field_value
from howdah.profile.source import Document
from howdah.profile.sweep import Axis, Point, Points, count_cells, find_axes, slug_of

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
    """One thing that a source leaves open: a field with its values, or named settings of several fields."""

    what: Text = fixed(description="what is not stated, and why these values")
    field: AxisName | None = fixed(None, description="field.field; its value in the profile is the default")
    values: list[OpenValue] = fixed(default_factory=list, description="of field: its further values")
    settings: dict[str, Settings] = fixed(
        default_factory=dict, description="instead of field: name: {field.field: value}, as --set takes them"
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
    """What a source leaves open, and the grid over which a claim is judged that fails as the profile is written."""

    fields: dict[ControlName, UnknownSection] = fixed(description="name: what is open; the grid has every combination")
    repetitions: Annotated[int, Field(ge=1)] | None = fixed(
        None, description="of each point of the grid; those of the profile by default"
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
    """A combination of values. ``at`` has every unknown with its value in words; ``settings`` is what it changes."""

    at: dict[str, str]
    settings: AnySettings

    def __or__(self, other: GridPoint) -> GridPoint:
        return GridPoint(self.at | other.at, self.settings | other.settings)

    @property
    def label(self) -> str:
        """What its runs have as value of the axis ``unknown``."""
        return ", ".join(f"{name} {value}" for name, value in self.at.items())


def default_point(document: Document, unknowns: UnknownsSection) -> GridPoint:
    """The profile as it is written."""
    return GridPoint({name: _default(document, each) for name, each in unknowns.fields.items()}, {})


def grid(document: Document, unknowns: UnknownsSection) -> list[GridPoint]:
    """Every combination but the default. A value that is the default is no further one."""
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
    """The grid, of a bare document. Raises ProfileError for a swept field, a grid too large, or too many repetitions.

    ``document`` is the profile without the sections of the experiment, with the places of all.
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
    """The profile as a point of the grid has it. Raises ProfileError where a setting is not one value."""
    return changed_document(document, point.settings, ("unknown",), "what is unknown")


def unknown_points(changed: Document, axes: list[Axis], unknowns: UnknownsSection, point: GridPoint) -> Sequence[Point]:
    """The points of the sweep at one point of the grid; their runs have the axis ``unknown``.

    ``changed`` is of ``unknown_document``, ``axes`` are those of the profile.
    """

    def change(each: Point) -> Point:
        slug = f"{each.slug}-{slug_of(point.label)}"
        return Point(each.chosen, {UNKNOWN_AXIS: point.label, **each.axes}, each.document, slug)

    restricted = _restricted(changed, axes, unknowns)
    return Points(changed, restricted, change) if restricted is not None else ()


def count_grid_cells(
    document: Document, axes: list[Axis], unknowns: UnknownsSection, found: list[GridPoint], repetitions: int
) -> int:
    """How many runs the grid adds."""
    restricted = _restricted(document, axes, unknowns)
    return 0 if restricted is None else len(found) * count_cells(restricted, unknowns.repetitions or repetitions)


def _restricted(document: Document, axes: list[Axis], unknowns: UnknownsSection) -> list[Axis] | None:
    """The axes of the sweep as they are made on the grid; None if no point is left."""
    return control_axes(document, axes, unknowns.at)
