# SPDX-License-Identifier: Apache-2.0
"""The vocabulary of operations and events: every kind, its arguments and their types. docs/data-format.md lists them.

Constructors check what they are given, so that a plan with an unknown operation, a missing argument or a value of the
wrong type cannot be made.
"""

from __future__ import annotations

import dataclasses
from typing import Any

from howdah.linux.netlink.discipline import discipline
from howdah.linux.netlink.discipline.discipline import Discipline
from howdah.plan.plan import Event, Operation

_TEXT, _INTEGER, _BOOLEAN = (str,), (int,), (bool,)
_OPTIONAL_TEXT, _OPTIONAL_INTEGER = (str, type(None)), (int, type(None))
_NUMBER = (int, float)

_Arguments = dict[str, tuple[type, ...]]

OPERATIONS: dict[str, _Arguments] = {
    "sysctl": {"node": _OPTIONAL_TEXT, "name": _TEXT, "value": _TEXT},
    "module_parameter": {"module": _TEXT, "name": _TEXT, "value": _TEXT},
    "node": {"name": _TEXT, "router": _BOOLEAN},
    "link": {
        "a_node": _TEXT,
        "a_interface": _TEXT,
        "a_mac": _TEXT,
        "b_node": _TEXT,
        "b_interface": _TEXT,
        "b_mac": _TEXT,
    },
    # A NIC of the machine as an interface of a node: whole, or the frames of one 802.1Q tag.
    "adopt": {
        "node": _TEXT,
        "interface": _TEXT,
        "mac": _TEXT,
        "nic_mac": _TEXT,
        "tag": _OPTIONAL_INTEGER,
        "ipv6": _BOOLEAN,
    },
    "mtu": {"node": _TEXT, "interface": _TEXT, "mtu_bytes": _INTEGER},
    "offload": {"node": _TEXT, "interface": _TEXT, "feature": _TEXT, "enabled": _BOOLEAN},
    "gso": {"node": _TEXT, "interface": _TEXT, "gso_max_segs": _INTEGER},
    "txqueuelen": {"node": _TEXT, "interface": _TEXT, "packets": _INTEGER},
    "address": {"node": _TEXT, "interface": _TEXT, "address": _TEXT},
    "up": {"node": _TEXT, "interface": _TEXT},
    "route": {
        "node": _TEXT,
        "destination": _TEXT,
        "via": _TEXT,
        "interface": _TEXT,
        "initial_window_packets": _OPTIONAL_INTEGER,
        "initial_receive_window_packets": _OPTIONAL_INTEGER,
    },
    "neighbour": {"node": _TEXT, "interface": _TEXT, "address": _TEXT, "mac": _TEXT},
    "qdisc": {
        "node": _TEXT,
        "interface": _TEXT,
        "parent": _TEXT,
        "handle": _TEXT,
        "kind": _TEXT,
        "options": (dict,),
    },
    # What leaves an interface with a DSCP belongs to this virtual queue of its GRED.
    "filter": {"node": _TEXT, "interface": _TEXT, "dscp": _INTEGER, "queue": _INTEGER},
    # What leaves an interface passes a bucket of tokens before its queue.
    "police": {"node": _TEXT, "interface": _TEXT, "rate_bits_per_second": _INTEGER, "burst_bytes": _INTEGER},
    "class": {
        "node": _TEXT,
        "interface": _TEXT,
        "parent": _TEXT,
        "classid": _TEXT,
        "kind": _TEXT,
        "options": (dict,),
    },
}

# Arguments that need not be there.
_FURTHER: dict[str, _Arguments] = {"route": {"quick_ack": _INTEGER}}

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

# What the types of options are checked by, as their classes write them.
_TYPES: dict[str, tuple[type, ...]] = {
    "int": _INTEGER,
    "bool": _BOOLEAN,
    "str": _TEXT,
    "float": _NUMBER,
    "list[int]": (list,),
    "None": (type(None),),
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
            types = tuple(one for name in str(field.type).split(" | ") for one in _TYPES[name])
            (may if field.metadata.get("occasional") else must)[field.name] = types
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
