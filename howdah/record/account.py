# SPDX-License-Identifier: Apache-2.0
"""What was counted in the guest, for whoever checks it: accounting.json, of everything that counts packets, and
trace.json and slow_start.json, of a tracepoint's records.

Standard library only: the agent writes them, engines merge them, and the judge reads them.
"""

from __future__ import annotations

from typing import Any, TypedDict

from howdah.codec import planned

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
    """accounting.json: before the flows, and after the network fell silent, if it did."""

    silent: bool
    before: CounterState
    after: CounterState


@planned
class TraceFile:
    """What one processor recorded."""

    cpu: int
    file: str
    bytes: int


@planned
class TraceAccount:
    """The file of a tracepoint: how many records were kept, and how many were lost, and how."""

    subbuffer_bytes: int | None = None
    clock: str | None = None
    entries: int | None = None
    unread: int = 0
    overrun: int = 0
    dropped_events: int = 0
    commit_overrun: int = 0
    bytes_lost: int = 0
    cpus: list[TraceFile] | None = None
