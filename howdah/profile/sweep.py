# SPDX-License-Identifier: Apache-2.0
"""Sweeps: a list in a field that takes one value means one run per value; several lists mean all combinations."""

from __future__ import annotations

import hashlib
import itertools
import math
import re
import types
import typing
from abc import abstractmethod
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from functools import cache
from typing import Any, TypeVar, overload

from pydantic import BaseModel
from pydantic.fields import FieldInfo

from howdah.errors import ProfileError
from howdah.profile.field import ShortSection
from howdah.profile.model import Scenario
from howdah.profile.override import CASE, case_names, dotted, keys_of, set_by_case, set_field
from howdah.profile.queue import TAG
from howdah.profile.source import Document, Path_, Scalar
from howdah.profile.unsayable import unsayable

Member = TypeVar("Member", covariant=True)


class Computed(Sequence[Member]):
    """A sequence whose members are computed on demand. Subclasses define ``at`` and ``__len__``; a slice is a list."""

    @abstractmethod
    def at(self, index: int) -> Member:
        """The member with this non-negative index."""

    @overload
    def __getitem__(self, index: int) -> Member: ...
    @overload
    def __getitem__(self, index: slice) -> list[Member]: ...
    def __getitem__(self, index: int | slice) -> Member | list[Member]:
        if isinstance(index, slice):
            return [self.at(each) for each in range(len(self))[index]]
        return self.at(range(len(self))[index])


MOST_CELLS = 1000
MOST_VALUES_TOGETHER = 250_000  # values of the profile at all points; each is checked again, in a second or two
_LONGEST_SLUG = 96


@dataclass(frozen=True)
class Axis:
    """A swept field: its path in the profile and its values in the order written."""

    path: Path_
    values: tuple[Any, ...]

    @property
    def name(self) -> str:
        return dotted(self.path)


@dataclass(frozen=True)
class Point:
    """One combination of values: the index of the value on each axis, and the profile with these values."""

    chosen: dict[Path_, int]
    axes: dict[str, Scalar]
    document: Document
    slug: str


class SweptMapping(str):
    """An axis value that is a mapping with a kind. Its text is the kind, followed by the other fields if the list has
    the kind more than once. ``position`` is its index in the list, because a control or unknown may change the mapping
    itself."""

    position: int


def find_axes(document: Document) -> list[Axis]:
    """The swept fields, in document order. Raises ProfileError for a list that cannot be a sweep."""
    axes = list(_axes_of(Scenario, document.data, (), document))
    for axis in axes:
        decided = set_by_case(document, axis.name) if axis.path != (CASE,) else None
        if decided is not None:
            what = f"case.{decided[0]} sets {decided[1]}, and {axis.name} is swept; give only one"
            raise ProfileError(what, where=document.place((CASE, *decided)))
    return axes


def case_document(document: Document, name: str) -> Document:
    """A copy of the profile with the settings of this case. Raises ProfileError for an invalid setting."""
    changed = document.copy()
    for field, value in changed.data.pop(CASE)[name].items():
        place = (CASE, name, field)
        where = document.place(place)
        set_field(changed, field, value, document.below(place) or {(): where}, where)
    return changed


def _case_axis(document: Document) -> Axis:
    """The axis of cases. Raises ProfileError for a case that sets a fixed field."""
    names = case_names(document)
    for name in names:
        for field in document.data[CASE][name]:
            first = keys_of(str(field))[0]
            known = _shapes_of(Scenario).get(first)
            if known is not None and is_fixed(known[0]):
                what = f"{first} belongs to the whole profile, and a case cannot set it"
                raise ProfileError(what, where=document.place((CASE, name, field)))
    return Axis((CASE,), names)


def _axes_of(model: type[BaseModel], value: Any, path: Path_, document: Document) -> Iterator[Axis]:
    fields = _shapes_of(model)
    for key, item in value.items():
        if model is Scenario and key == CASE and isinstance(item, dict):
            yield _case_axis(document)
        elif key in fields:
            info, shape = fields[key]
            yield from _axes_in(shape, item, (*path, key), document, info)


@cache
def _shapes_of(model: type[BaseModel]) -> dict[str, tuple[FieldInfo, tuple[str, Any]]]:
    """The fields of a section, by their names in profiles, with their shapes."""
    return {info.alias or name: (info, shape_of(info.annotation)) for name, info in model.model_fields.items()}


def _axes_in(of_field: tuple[str, Any], value: Any, path: Path_, document: Document, info: FieldInfo) -> Iterator[Axis]:
    shape, inner = of_field
    if shape == "section":
        if isinstance(value, dict):
            yield from _axes_of(inner, value, path, document)
        elif isinstance(value, list) and issubclass(inner, ShortSection):
            yield _axis(value, path, document, fixed=is_fixed(info))
    elif shape == "choice":
        if isinstance(value, dict):
            kind = value.get(TAG)
            yield from _axes_of(inner.get(str(kind), next(iter(inner.values()))), value, path, document)
        elif isinstance(value, list):
            yield _axis(_choices(value), path, document, fixed=is_fixed(info))
    elif shape == "list":
        if isinstance(value, list) and shape_of(inner)[0] == "section":
            for index, item in enumerate(value):
                yield from _axes_in(shape_of(inner), item, (*path, index), document, info)
    elif shape == "mapping":
        if isinstance(value, dict):
            for key, item in value.items():
                yield from _axes_in(shape_of(inner), item, (*path, key), document, info)
    elif isinstance(value, list):
        yield _axis(value, path, document, fixed=is_fixed(info))


def _choices(values: list[Any]) -> list[Any]:
    kinds = [value.get(TAG) if isinstance(value, dict) else value for value in values]
    found: list[Any] = []
    for position, (value, kind) in enumerate(zip(values, kinds, strict=True)):
        if isinstance(value, dict) and isinstance(kind, str):
            rest = [f"{name} {item}" for name, item in value.items() if name != TAG]
            chosen = SweptMapping(", ".join([kind, *rest]) if kinds.count(kind) > 1 else kind)
            chosen.position = position
            value = chosen
        found.append(value)
    return found


def shape_of(annotation: Any) -> tuple[str, Any]:
    """The shape of a field's type: ``("section", model)``, ``("choice", models by kind)``, ``("list", item)``,
    ``("mapping", value)`` or ``("value", annotation)``."""
    if typing.get_origin(annotation) is typing.Annotated:
        return shape_of(typing.get_args(annotation)[0])
    if typing.get_origin(annotation) in (typing.Union, types.UnionType):
        members = [member for member in typing.get_args(annotation) if member is not type(None)]
        if len(members) > 1 and all(isinstance(each, type) and issubclass(each, BaseModel) for each in members):
            return "choice", {typing.get_args(each.model_fields[TAG].annotation)[0]: each for each in members}
        return shape_of(members[0]) if len(members) == 1 else ("value", annotation)
    if isinstance(annotation, type) and issubclass(annotation, BaseModel):
        return "section", annotation
    if typing.get_origin(annotation) is list:
        return "list", typing.get_args(annotation)[0]
    if typing.get_origin(annotation) is dict:
        return "mapping", typing.get_args(annotation)[1]
    return "value", annotation


def is_fixed(info: FieldInfo) -> bool:
    """Whether the field applies to the whole profile and cannot be swept."""
    extra = info.json_schema_extra
    return isinstance(extra, dict) and bool(extra.get("x-fixed"))


def _axis(values: list[Any], path: Path_, document: Document, *, fixed: bool) -> Axis:
    name = dotted(path)
    where = document.place(path)
    if fixed:
        lacking = unsayable(f"several {path[-1]}", path[:-1])
        hint = lacking.hint() if lacking else None
        raise ProfileError(f"{name} cannot be swept; expected one value, not a list", where=where, hint=hint)
    if not values:
        raise ProfileError(f"{name} is an empty list; expected one value, or a list of values to sweep", where=where)
    seen: set[str] = set()
    for index, value in enumerate(values):
        if isinstance(value, list | dict):
            what = f"{name} sweeps over single values; this is a {'list' if isinstance(value, list) else 'mapping'}"
            raise ProfileError(what, where=document.place((*path, index)))
        written = str(value)
        if written in seen:
            raise ProfileError(f"{name} lists {value} twice", where=document.place((*path, index)))
        seen.add(written)
    return Axis(path, tuple(values))


def count_cells(axes: list[Axis], repetitions: int) -> int:
    return math.prod(len(axis.values) for axis in axes) * repetitions


def count_values(data: Any) -> int:
    """The number of values in a profile's data, including mappings and lists."""
    inner = data.values() if isinstance(data, dict) else data if isinstance(data, list) else ()
    return 1 + sum(count_values(value) for value in inner)


class Points(Computed[Point]):
    """Every combination of the axes' values; the last axis varies fastest.

    ``change``, if given, is applied to each point.
    """

    def __init__(
        self, document: Document, axes: Sequence[Axis], change: Callable[[Point], Point] | None = None
    ) -> None:
        self._document, self._axes, self._change = document, list(axes), change
        self._counts = [len(axis.values) for axis in self._axes]
        self._distinct_slugs = _distinct_slugs(self._axes)

    def __len__(self) -> int:
        return math.prod(self._counts)

    def at(self, index: int) -> Point:
        chosen = self.indices(index)
        document = self._with_case(chosen)
        for axis, place in zip(self._axes, chosen, strict=True):
            if axis.path != (CASE,):
                _replace(document.data, axis.path, axis.values[place])
        values = {axis.name: _scalar(axis.values[place]) for axis, place in zip(self._axes, chosen, strict=True)}
        slug = slug_of(*values.values()) if self._axes else slug_of(_algorithm_of(document))
        slug = self._distinct_slugs.get(index, slug)
        places = {axis.path: place for axis, place in zip(self._axes, chosen, strict=True)}
        point = Point(places, values, document, slug)
        return point if self._change is None else self._change(point)

    def _with_case(self, chosen: Sequence[int]) -> Document:
        for axis, place in zip(self._axes, chosen, strict=True):
            if axis.path == (CASE,):
                return case_document(self._document, axis.values[place])
        return self._document.copy()

    def indices(self, index: int) -> tuple[int, ...]:
        """The index of the point's value on each axis."""
        found = []
        for count in reversed(self._counts):
            index, place = divmod(index, count)
            found.append(place)
        return tuple(reversed(found))

    def lines(self) -> list[list[int]]:
        """For each axis, the points that have each of its values and the first value of every other axis."""
        lines, step = [], len(self)
        for count in self._counts:
            step //= count or 1
            lines.append([place * step for place in range(count)])
        return lines


def _distinct_slugs(axes: list[Axis]) -> dict[int, str]:
    """New names for points whose plain name equals an earlier one, because file names cannot show the difference."""
    parts = [[slug_of(_scalar(value)) for value in axis.values] for axis in axes]
    longest = sum(max(map(len, some), default=0) + 1 for some in parts) - 1
    varying = sum(len({text.count("-") for text in some}) > 1 for some in parts)
    if varying <= 1 and longest <= _LONGEST_SLUG and all(len(set(some)) == len(some) for some in parts):
        return {}  # the plain names are unambiguous
    found: dict[int, str] = {}
    slugs: set[str] = set()
    for number, indices in enumerate(itertools.product(*(range(len(axis.values)) for axis in axes))):
        plain = slug = slug_of(*(_scalar(axis.values[at]) for axis, at in zip(axes, indices, strict=True)))
        while slug in slugs:
            slug = f"{slug}-{'-'.join(str(index) for index in indices)}"
        slugs.add(slug)
        if slug != plain:
            found[number] = slug
    return found


def _replace(data: Any, path: Path_, value: Any) -> None:
    for key in path[:-1]:
        data = data[key]
    data[path[-1]] = data[path[-1]][value.position] if isinstance(value, SweptMapping) else value


def _algorithm_of(document: Document) -> Any:
    """The algorithm after which a run without a sweep is named: the first flow's, if every flow and group has its own,
    otherwise the profile's. The data are not checked yet.
    """
    data = document.data
    written = [data.get(section) for section in ("flows", "groups", "background")]
    flows = [each for section in written if isinstance(section, list) for each in section if isinstance(each, dict)]
    flows.sort(key=lambda each: each.get("role") == "background")
    own = [each.get("algorithm") for each in flows if not each.get("udp")]
    measured = bool(data.get("flows") or data.get("groups"))
    return own[0] if measured and own and all(own) else data.get("algorithm", "cubic")


def _scalar(value: Any) -> Scalar:
    return value if value is None or isinstance(value, bool | int) or type(value) is str else str(value)


def slug_of(*values: object) -> str:
    """The values as part of a directory's name: ``400 Mbit/s`` → ``400mbit``, ``0.5 bdp`` → ``0.5bdp``."""
    parts = []
    for value in values:
        text = str(value).lower().replace("/s", "").replace(" ", "").replace("%", "percent")
        parts.append(re.sub(r"[^a-z0-9.]+", "-", text).strip("-.") or "none")
    slug = "-".join(parts)
    if len(slug) > _LONGEST_SLUG:
        digest = hashlib.sha256(slug.encode()).hexdigest()[:8]
        slug = f"{slug[: _LONGEST_SLUG - 9]}-{digest}"
    return slug
