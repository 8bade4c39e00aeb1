# SPDX-License-Identifier: Apache-2.0
"""accounting.json as the agent writes it, engines merge it and the judge reads it: everything that counts packets."""

from __future__ import annotations

from typing import Any, TypedDict

Queue = dict[str, Any]  # a queue's counters: those of every kind, and what its kind tells besides


class NodeCounters(TypedDict):
    """Of a node: each counter of each interface by their names, and its queues."""

    interfaces: dict[str, dict[str, int]]
    qdiscs: list[Queue]


class CounterState(TypedDict):
    """Everything at one time. ``netstat`` has the MIB counters of each node, ``softnet`` is of the whole kernel."""

    time_ns: int
    nodes: dict[str, NodeCounters]
    softnet: dict[str, int]
    netstat: dict[str, dict[str, int]]


class Accounting(TypedDict):
    """The file: before the flows, and after the network fell silent, if it did."""

    silent: bool
    before: CounterState
    after: CounterState
