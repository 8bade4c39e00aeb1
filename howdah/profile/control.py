# SPDX-License-Identifier: Apache-2.0
"""Controls: further runs of the same experiment with one mechanism changed, to tell why a claim fails."""

from __future__ import annotations

import copy
import math
import re
from collections.abc import Sequence
from typing import Annotated, Any

from pydantic import Field

from howdah.errors import ProfileError, nearest
from howdah.profile.case import AnySettings, Settings, set_by_case
from howdah.profile.dotted import canonical
from howdah.profile.field import Section, Text, fixed
from howdah.profile.figure import AxisValues
from howdah.profile.override import field_value, set_field
from howdah.profile.source import Document, Path_
from howdah.profile.sweep import Axis, Point, Points, find_axes, slug_of

CONTROL_AXIS = "control"
MOST_CONTROLS = 32
_QUANTITY = re.compile(r"\d+(\.\d+)?[A-Za-z/%]*", re.ASCII)


ControlName = Annotated[str, Field(pattern=r"^[a-z0-9]+(-[a-z0-9]+)*$", max_length=40)]


class ControlSection(Section):
    """Runs with a mechanism changed. A control's runs have the axis `control`; the others have none."""

    what: Text = fixed(description="description of the change")
    set: Settings = fixed(
        description="field.field: value, as --set takes them; a swept field gets the one value at every point"
    )
    at: AxisValues = fixed(
        default_factory=dict, description="only these points of the sweep: axis name: value, or list of values"
    )


def axis_key(value: Any) -> str:
    """What two spellings of an axis' value have in common: ``100 ms`` and ``100ms`` are the same point.

    A quantity may also have the spelling of a run's name: ``400mbit``, ``1mb``, ``0.5percent``. No two units differ in
    capitals alone.
    """
    text = "".join(str(value).split())
    return slug_of(text) if _QUANTITY.fullmatch(text) else text


def control_document(document: Document, name: str, control: ControlSection) -> Document:
    """The profile as this control runs it. Raises ProfileError where a setting is not one value."""
    return changed_document(document, control.set, ("controls", name, "set"), f"the control {name}")


def changed_document(document: Document, settings: AnySettings, at: Path_, who: str) -> Document:
    """The profile with ``settings`` in it, which stand at ``at`` and are those of ``who``.

    Raises ProfileError where a setting is not one value.
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
    """The axes of the sweep with the values that ``at`` leaves; None if it leaves no point."""
    found = []
    for axis in axes:
        wanted = _wanted(at, axis.name)
        values = [value for value in axis.values if wanted is None or axis_key(value) in wanted]
        found.append(Axis(axis.path, tuple(values)))
    for name in at:  # a field that has one value, perhaps by --set
        wanted = _wanted(at, name)
        single = name not in [axis.name for axis in axes]
        if single and wanted is not None and axis_key(_single(document, name)) not in wanted:
            return None
    return found if all(axis.values for axis in found) else None


def _wanted(at: AxisValues, name: str) -> list[str] | None:
    if name not in at:
        return None
    values = at[name]
    return [axis_key(value) for value in (values if isinstance(values, list) else [values])]


def _single(document: Document, name: str) -> Any:
    value = field_value(document.data, name)
    return "cubic" if value is None and name == "algorithm" else value


def check_at(document: Document, written: list[Axis], at: AxisValues, place: Path_) -> None:
    """Every axis and value of ``at``, which stands at ``place``, is one of the sweep as it was written.

    Raises ProfileError.
    """
    axes = {axis.name: [str(value) for value in axis.values] for axis in written}
    for axis, wanted in at.items():
        where = document.place((*place, axis))
        if set_by_case(document, axis) is not None:
            raise ProfileError(f"case decides {axis}", where=where, hint="give the case instead")
        single = _single(document, axis)
        known = axes.get(axis) or ([] if single is None or isinstance(single, dict | list) else [str(single)])
        if not known:
            close = nearest(axis, list(axes))
            hint = f"did you mean {close}?" if close else f"its axes: {', '.join(axes) or 'none'}"
            raise ProfileError(f"this profile does not sweep over {axis}", where=where, hint=hint)
        for value in wanted if isinstance(wanted, list) else [wanted]:
            if axis_key(value) not in map(axis_key, known):
                what = f"{axis} is never {value} in this profile"
                raise ProfileError(what, where=where, hint=f"its values: {', '.join(known)}")


def control_points(document: Document, axes: list[Axis] | None, name: str) -> Sequence[Point]:
    """The points of a control. ``document`` is that of ``control_document``; ``axes`` those of ``control_axes``.

    An axis that ``set`` replaces is none any more: its points fall together.
    """
    if axes is None:
        return ()
    left = {axis.path: axis.values for axis in find_axes(document)}
    chosen_axes = [axis for axis in axes if axis.path in left]

    def change(point: Point) -> Point:
        # The place of a value is counted in the list as it is written.
        chosen: dict[Path_, int] = {}
        for axis in chosen_axes:
            chosen[axis.path] = left[axis.path].index(axis.values[point.chosen[axis.path]])
        return Point(chosen, {CONTROL_AXIS: name, **point.axes}, point.document, f"{point.slug}-{name}")

    return Points(document, chosen_axes, change)


def count_control_cells(axes: list[Axis] | None, changed: Document, repetitions: int) -> int:
    """How many runs a control adds."""
    left = [axis.path for axis in find_axes(changed)]
    return 0 if axes is None else math.prod(len(axis.values) for axis in axes if axis.path in left) * repetitions
