# SPDX-License-Identifier: Apache-2.0
"""The vocabulary of operations and events: every kind, its arguments and their types. docs/data-format.md lists them.

Constructors check what they are given, so that a plan with an unknown operation, a missing argument or a value of the
wrong type cannot be made.
"""

from __future__ import annotations

import dataclasses
import inspect
from collections.abc import Callable
from typing import Any

from howdah.linux.netlink.discipline import discipline
from howdah.linux.netlink.discipline.discipline import Discipline
from howdah.plan.command import COMMANDS
from howdah.plan.step import Event, Operation

_TEXT, _INTEGER, _BOOLEAN = (str,), (int,), (bool,)
_NUMBER = (int, float)

_Arguments = dict[str, tuple[type, ...]]

# What a type is checked by, as signatures and the classes of disciplines write it.
_TYPES: dict[str, tuple[type, ...]] = {
    "int": _INTEGER,
    "bool": _BOOLEAN,
    "str": _TEXT,
    "float": _NUMBER,
    "list[int]": (list,),
    "dict[str, Any]": (dict,),
    "None": (type(None),),
}


def _types(written: object) -> tuple[type, ...]:
    return tuple(one for name in str(written).split(" | ") for one in _TYPES[name])


def _arguments(command: Callable[..., Any], *, further: bool) -> _Arguments:
    """Those that need not be there, or the others."""
    taken = inspect.signature(command).parameters.values()
    return {each.name: _types(each.annotation) for each in taken if (each.default is not each.empty) == further}


OPERATIONS = {op: _arguments(command, further=False) for op, command in COMMANDS.items()}
_FURTHER = {op: _arguments(command, further=True) for op, command in COMMANDS.items()}

ROUTE_METRICS = tuple(
    name for name, types in {**OPERATIONS["route"], **_FURTHER["route"]}.items() if int in types
)  # what a route may set for the connections over it

EVENTS: dict[str, _Arguments] = {
    "start_flow": {"flow": _INTEGER},
    "stop_flow": {"flow": _INTEGER},
    "qdisc": OPERATIONS["qdisc"],
    "class": OPERATIONS["class"],
    # A new queue in the place of another.
    "replace": OPERATIONS["qdisc"],
    # Whether a link follows its trace from then on, or has its constant rate.
    "link": {"node": _TEXT, "interface": _TEXT, "handle": _TEXT, "follows": _BOOLEAN},
}


class OperationError(ValueError):
    """An operation is not part of the vocabulary, or its arguments are not the ones it takes."""


def operation(op: str, **arguments: Any) -> Operation:
    """A checked ``Operation``."""
    _check(op, arguments, OPERATIONS)
    return Operation(op, arguments)


def event(at_us: int, op: str, **arguments: Any) -> Event:
    """A checked ``Event``; ``at_us`` counts from the epoch."""
    _check(op, arguments, EVENTS)
    return Event(at_us, op, arguments)


def _check(op: str, arguments: dict[str, Any], vocabulary: dict[str, _Arguments]) -> None:
    if op not in vocabulary:
        raise OperationError(f"there is no operation {op!r}; known: {', '.join(vocabulary)}")
    _check_arguments(op, arguments, vocabulary[op], _FURTHER.get(op))
    if op in ("qdisc", "class", "replace"):
        _check_options(op, arguments["kind"], arguments["options"])


def _check_options(op: str, kind: str, given: dict[str, Any]) -> None:
    try:
        found = discipline(kind).classes if op == "class" else discipline(kind)
    except ValueError as error:
        raise OperationError(f"{op}: {error}") from None
    if found is None:
        raise OperationError(f"{kind} has no classes")
    must, may = _options_of(found)
    _check_arguments(f"{op} {kind}", given, must, may)


def _options_of(kind: type[Discipline]) -> tuple[_Arguments, _Arguments]:
    """Those that must be there, and those that need not."""
    must: _Arguments = {}
    may: _Arguments = {}
    for field in dataclasses.fields(kind):
        if field.compare:
            (may if field.metadata.get("occasional") else must)[field.name] = _types(field.type)
    return must, may


def _check_arguments(
    what: str, arguments: dict[str, Any], expected: _Arguments, further: _Arguments | None = None
) -> None:
    """``further`` may be left out."""
    if further:
        expected = expected | {name: types for name, types in further.items() if name in arguments}
    if arguments.keys() != expected.keys():
        missing = expected.keys() - arguments.keys()
        unknown = arguments.keys() - expected.keys()
        parts = [f"missing {', '.join(sorted(missing))}"] if missing else []
        parts += [f"unknown {', '.join(sorted(unknown))}"] if unknown else []
        raise OperationError(f"{what}: {'; '.join(parts)}")
    for name, types in expected.items():
        value = arguments[name]
        kind = type(value)
        if kind not in types and (kind is bool or not isinstance(value, types)):
            raise OperationError(
                f"{what}: {name} is {value!r}, expected {' or '.join(kind.__name__ for kind in types)}"
            )
        if kind is not str and isinstance(value, _NUMBER) and value < 0:
            raise OperationError(f"{what}: {name} is {value}, expected no negative number")
