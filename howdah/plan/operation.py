# SPDX-License-Identifier: Apache-2.0
"""The vocabulary of operations and events: every kind, its arguments and their types. docs/data-format.md lists them.

Constructors check what they are given, so that a plan with an unknown operation, a missing argument or a value of the
wrong type cannot be made.
"""

from __future__ import annotations

from typing import Any

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
}

# Of RED and its descendants, which count bytes (_OF_BYTES) or packets.
_OF_BYTES: _Arguments = {"limit_bytes": _INTEGER, "least_bytes": _INTEGER, "most_bytes": _INTEGER}
_EARLY: _Arguments = {
    "packet_bytes": _INTEGER,
    "burst_packets": _INTEGER,
    "probability": _NUMBER,
    "rate_bits_per_second": _INTEGER,
    "ewma_log": _INTEGER,
    "probability_log": _INTEGER,
    "idle_log": _INTEGER,
    "idle_shifts": (list,),
}

QDISC_OPTIONS: dict[str, _Arguments] = {
    "htb": {"default_class": _INTEGER},
    "bfifo": {"limit_bytes": _INTEGER},
    "pfifo": {"limit_packets": _INTEGER},
    "fq": {"limit_packets": _INTEGER, "flow_limit_packets": _INTEGER},
    "red": {**_OF_BYTES, **_EARLY, "adaptive": _BOOLEAN, "ecn": _BOOLEAN},
    "choke": {
        "limit_packets": _INTEGER,
        "least_packets": _INTEGER,
        "most_packets": _INTEGER,
        **_EARLY,
        "ecn": _BOOLEAN,
    },
    "gred": {
        **_OF_BYTES,
        **_EARLY,
        "marked_least_bytes": _INTEGER,
        "marked_most_bytes": _INTEGER,
        "marked_burst_packets": _INTEGER,
        "marked_probability_log": _INTEGER,
    },
    "clsact": {},
    "codel": {"limit_packets": _INTEGER, "target_us": _INTEGER, "interval_us": _INTEGER, "ecn": _BOOLEAN},
    "fq_codel": {
        "limit_packets": _INTEGER,
        "target_us": _INTEGER,
        "interval_us": _INTEGER,
        "flows": _INTEGER,
        "quantum_bytes": _INTEGER,
        "memory_limit_bytes": _INTEGER,
        "ecn": _BOOLEAN,
    },
    "pie": {
        "limit_packets": _INTEGER,
        "target_us": _INTEGER,
        "update_us": _INTEGER,
        "alpha": _INTEGER,
        "beta": _INTEGER,
        "ecn": _BOOLEAN,
    },
    "howdah_receiver": {
        "acknowledge_every": _INTEGER,
        "delay_us": _INTEGER,
        "quick_first": _INTEGER,
        "sack_blocks": _INTEGER,
        "backlog_blocks": _INTEGER,
    },
    "howdah_cpu": {
        "packet_ns": _INTEGER,
        "ack_ns": _INTEGER,
        "searched_ns": _INTEGER,
        "search": _INTEGER,
        "queue_packets": _INTEGER,
    },
    # Made by the engine where it divides a plan among kernels.
    "howdah_wire": {"wire": _INTEGER, "to": _INTEGER, "delay_ns": _INTEGER},
    "cake": {"rtt_us": _INTEGER, "target_us": _INTEGER, "isolation": _TEXT, "memory_limit_bytes": _INTEGER},
    "netem": {
        "delay_us": _INTEGER,
        "limit_packets": _INTEGER,
        "seed": _OPTIONAL_INTEGER,
        "jitter_us": _INTEGER,
        "distribution": (list, type(None)),
        "loss_ratio": _NUMBER,
        "rate_bits_per_second": _OPTIONAL_INTEGER,
        "reorder_ratio": _NUMBER,
        "reorder_gap": _INTEGER,
    },
}

CLASS_OPTIONS: dict[str, _Arguments] = {
    "htb": {
        "rate_bits_per_second": _INTEGER,
        "burst_bytes": _INTEGER,
        "cburst_bytes": _INTEGER,
        "quantum_bytes": _INTEGER,
    },
}


# Options that need not be there. A tick is of a change alone: what is not given stays as it is.
_FURTHER_OPTIONS: dict[str, _Arguments] = {
    "netem": {"tick_us": _INTEGER, "burst_begins_ratio": _NUMBER, "burst_ends_ratio": _NUMBER}
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
    if op in ("qdisc", "class"):
        kinds = QDISC_OPTIONS if op == "qdisc" else CLASS_OPTIONS
        kind = arguments["kind"]
        if kind not in kinds:
            raise OperationError(f"{op}: there is no kind {kind!r}; known: {', '.join(kinds)}")
        given = arguments["options"]
        _check_arguments(f"{op} {kind}", given, kinds[kind], _FURTHER_OPTIONS.get(kind))


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
