# SPDX-License-Identifier: Apache-2.0
"""Conversion between dataclasses and JSON values. Standard library only: guests read their plan with it.

A field is written unless it is ``occasional`` and has its default, or is excluded from comparisons. A class with
``as_json`` and ``of_json`` converts itself.
"""

from __future__ import annotations

import dataclasses
import re
import sys
from collections.abc import Callable, Iterator, Mapping
from functools import cache, partial
from types import MappingProxyType, NoneType
from typing import Any, TypeVar, dataclass_transform

_Kind = TypeVar("_Kind")
_Reader = Callable[[Any], Any]
# Metadata of a field that is left out while it has its default, so that older files without the field stay the same.
OCCASIONAL: Mapping[str, bool] = MappingProxyType({"occasional": True})
MANY = 1000  # records from which on a list is stored by column


def described(text: str, **default: Any) -> Any:
    """Declare a field with its text for the references; ``default`` holds arguments of ``dataclasses.field``."""
    return dataclasses.field(metadata={"text": text}, **default)


def occasional(text: str, *, shown: tuple[str, str] | None = None, **default: Any) -> Any:
    """Declare a described field that is left out of JSON while it has its default.

    ``shown`` is how the text of a plan shows any other value: a title, and words with ``{}`` for the value.
    """
    return dataclasses.field(metadata={"text": text, "shown": shown, **OCCASIONAL}, **default)


@dataclass_transform(frozen_default=True, field_specifiers=(dataclasses.field, described, occasional))
def planned(kind: type[_Kind]) -> type[_Kind]:
    """Make a class a frozen dataclass that shares its methods with all others instead of generating its own.

    A guest compiles generated methods at every start; shared ones take a third of the time.
    """
    for name, method in _METHODS.items():
        setattr(kind, name, method)
    made: Any = dataclasses.dataclass(init=False, repr=False, eq=False)(kind)
    fields = dataclasses.fields(made)
    made._made = dict.fromkeys(each.name for each in fields).keys()
    made._defaults = {each.name: each.default for each in fields if each.default is not dataclasses.MISSING}
    made._factories = [
        (each.name, each.default_factory) for each in fields if each.default_factory is not dataclasses.MISSING
    ]
    made._compared = tuple(each.name for each in fields if each.compare)
    return kind


def _init(self: Any, /, *values: Any, **named: Any) -> None:
    kind = type(self)
    if values:
        if len(values) > len(self._made):
            raise TypeError(f"{kind.__name__} has {len(self._made)} fields, not {len(values)}")
        for name, value in zip(self._made, values, strict=False):
            if name in named:
                raise TypeError(f"{kind.__name__} has {name} twice")
            named[name] = value
    own = self.__dict__
    own.update(self._defaults)
    for name, factory in self._factories:
        if name not in named:
            own[name] = factory()
    own.update(named)
    if len(own) == len(self._made) and named.keys() <= self._made:
        return
    if lacking := [name for name in self._made if name not in own]:
        raise TypeError(f"{kind.__name__} lacks {', '.join(lacking)}")
    raise TypeError(f"{kind.__name__} has no field {', '.join(sorted(named.keys() - self._made))}")


def _frozen(self: Any, name: str, *_value: Any) -> None:
    raise dataclasses.FrozenInstanceError(f"{name} of {type(self).__name__} cannot be changed")


def _values(self: Any) -> tuple[Any, ...]:
    return tuple(getattr(self, name) for name in self._compared)


def _eq(self: Any, other: object) -> bool:
    return _values(self) == _values(other) if other.__class__ is self.__class__ else NotImplemented


def _hash(self: Any) -> int:
    return hash(_values(self))


def _repr(self: Any) -> str:
    return f"{type(self).__name__}({', '.join(f'{name}={getattr(self, name)!r}' for name in self._made)})"


_METHODS = {
    "__init__": _init,
    "__setattr__": _frozen,
    "__delattr__": _frozen,
    "__eq__": _eq,
    "__hash__": _hash,
    "__repr__": _repr,
}


def encoded(value: Any) -> Any:
    """Return the value with dataclasses as dictionaries and tuples as lists."""
    if isinstance(value, (str, int, float, NoneType)):
        return value
    if isinstance(value, Mapping):
        return {key: encoded(item) for key, item in value.items()}
    if isinstance(value, (list, tuple)):
        return [encoded(item) for item in value]
    return value.as_json() if hasattr(value, "as_json") else encoded_fields(value)


def encoded_fields(value: Any) -> dict[str, Any]:
    """Return the written fields of a dataclass as a dictionary, ignoring its ``as_json``."""
    found = ((name, default, getattr(value, name)) for name, default in _written(value.__class__))
    return {name: encoded(item) for name, default, item in found if default is None or item != default()}


def decoded(kind: type[_Kind], value: Mapping[str, Any]) -> _Kind:
    """Build a dataclass from its JSON object, and the dataclasses in its fields. Types of plain values are not checked.

    Raises TypeError for missing or unknown fields, and for any other value in place of an object.
    """
    if not isinstance(value, Mapping):
        raise TypeError(f"{kind.__name__} is not an object: {value!r:.40}")
    known: Any = kind
    found: _Kind = known.of_json(value) if hasattr(kind, "of_json") else decoded_fields(known, value)
    return found


def decoded_fields(kind: Any, value: Mapping[str, Any]) -> Any:
    """Build a dataclass from its fields, ignoring its ``of_json``."""
    readers = _readers(kind)
    return kind(
        **{name: readers[name](item) if item is not None and name in readers else item for name, item in value.items()}
    )


def mistyped(value: Any) -> Iterator[str]:
    """Yield the names of fields with a plain type (int, bool, str, …) whose value has another type."""
    for field in dataclasses.fields(value):
        given, kinds = getattr(value, field.name), str(field.type).split(" | ")
        if all(kind in _PLAIN for kind in kinds) and not any(_is_of(given, kind) for kind in kinds):
            yield field.name


_PLAIN: Mapping[str, tuple[type, ...]] = {
    "int": (int,),
    "bool": (bool,),
    "str": (str,),
    "float": (float, int),
    "None": (NoneType,),
    "list[int]": (list,),
}


def _is_of(value: Any, kind: str) -> bool:
    return type(value) in _PLAIN[kind] and (kind != "list[int]" or all(type(each) is int for each in value))


@cache
def _written(kind: Any) -> list[tuple[str, Callable[[], Any] | None]]:
    """Return the written fields of a class, each with a function that makes its default; None if always written."""
    found: list[tuple[str, Callable[[], Any] | None]] = []
    for field in dataclasses.fields(kind):
        if not field.compare:
            continue
        default: Callable[[], Any] | None = None
        if field.metadata.get("occasional"):
            made = field.default_factory
            default = partial(_same, field.default) if made is dataclasses.MISSING else made
        found.append((field.name, default))
    return found


def _same(value: Any) -> Any:
    return value


@cache
def _readers(kind: Any) -> dict[str, _Reader]:
    """Return a converter for each field that needs one.

    It matches type annotations as text: to evaluate them would take a guest longer than all its other work on the plan.
    """
    names = vars(sys.modules[kind.__module__])
    found: dict[str, _Reader] = {}
    for field in dataclasses.fields(kind):
        hint = str(field.type)
        known = (names.get(word) for word in re.findall(r"\w+", hint))
        inner: Any = next(filter(dataclasses.is_dataclass, known), None)
        one: _Reader = partial(decoded, inner)
        if hint.startswith("tuple["):
            found[field.name] = tuple
        elif inner is not None:
            shapes: dict[str, _Reader] = {"list": partial(_list, one), "dict": partial(_dict, one)}
            found[field.name] = shapes.get(hint[:4], one)
    return found


def _list(one: _Reader, value: list[Any]) -> list[Any]:
    return [one(item) for item in value]


def _dict(one: _Reader, value: dict[str, Any]) -> dict[str, Any]:
    if not isinstance(value, Mapping):
        raise TypeError(f"this is not an object: {value!r:.40}")
    return {key: one(item) for key, item in value.items()}


def in_columns(value: Mapping[str, Any], names: tuple[str, ...]) -> Mapping[str, Any]:
    """Return the value with its long lists of uniform records (under the keys ``names``) stored by column.

    A column is the list of a field's values, or ``{"all": value}`` if all records have the same.
    """
    return {name: _columns(item) if name in names else item for name, item in value.items()}


def in_rows(value: Mapping[str, Any], names: tuple[str, ...]) -> Mapping[str, Any]:
    """Reverse ``in_columns``; a value without columns is returned as it is. Raises ValueError for malformed columns."""
    rows = {name: _rows(value[name]) for name in names if isinstance(value.get(name), Mapping)}
    return {**value, **rows} if rows else value


def _columns(rows: list[dict[str, Any]]) -> list[dict[str, Any]] | dict[str, Any]:
    if len(rows) < MANY or any(row.keys() != rows[0].keys() for row in rows):
        return rows
    columns: dict[str, Any] = {}
    for name, first in rows[0].items():
        values = [row[name] for row in rows]
        columns[name] = {"all": first} if all(value == first for value in values) else values
    return columns if any(isinstance(values, list) for values in columns.values()) else rows


def _rows(columns: Mapping[str, Any]) -> list[dict[str, Any]]:
    counts = {len(values) for values in columns.values() if isinstance(values, list)}
    others = [values for values in columns.values() if not isinstance(values, list)]
    if len(counts) != 1 or not all(isinstance(values, Mapping) and values.keys() == {"all"} for values in others):
        raise ValueError("columns of records have one length, or one value as 'all'")
    count = counts.pop()
    every = [values if isinstance(values, list) else [values["all"]] * count for values in columns.values()]
    return [dict(zip(columns, row, strict=True)) for row in zip(*every, strict=True)]
