# SPDX-License-Identifier: Apache-2.0
"""Dataclasses as the values of JSON, and back. Standard library only: guests read their plan with it.

A field is written unless it is ``occasional`` and has its default, or takes no part in comparisons.
"""

from __future__ import annotations

import dataclasses
import re
import sys
from collections.abc import Callable, Mapping
from functools import cache, partial
from types import MappingProxyType, NoneType
from typing import Any, TypeVar

_Kind = TypeVar("_Kind")
_Reader = Callable[[Any], Any]
# Of a field that is left out where it has its default: what had no such field before is written as it was.
OCCASIONAL: Mapping[str, bool] = MappingProxyType({"occasional": True})


def encoded(value: Any) -> Any:
    """The value with its dataclasses as dictionaries and its tuples as lists."""
    if isinstance(value, (str, int, float, NoneType)):
        return value
    if isinstance(value, Mapping):
        return {key: encoded(item) for key, item in value.items()}
    if isinstance(value, (list, tuple)):
        return [encoded(item) for item in value]
    found = ((name, default, getattr(value, name)) for name, default in _written(value.__class__))
    return {name: encoded(item) for name, default, item in found if default is None or item != default()}


def decoded(kind: type[_Kind], value: Mapping[str, Any]) -> _Kind:
    """Of the dataclass, whose fields name the dataclasses in them. Raises TypeError for fields that it lacks or has
    not, and what comes of values of other shapes."""
    known: Any = kind
    readers = _readers(known)
    return kind(
        **{name: readers[name](item) if item is not None and name in readers else item for name, item in value.items()}
    )


@cache
def _written(kind: Any) -> list[tuple[str, Callable[[], Any] | None]]:
    """Fields that are written, with what makes the default at which one is left out."""
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
    """By field, for those that are not taken as they are: their types are read as they are written, since evaluating
    them all takes a guest longer than all else that it does with its plan."""
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
    return {key: one(item) for key, item in value.items()}
