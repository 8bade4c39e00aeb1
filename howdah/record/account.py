# SPDX-License-Identifier: Apache-2.0
"""Counts taken in the guest, for checks: accounting.json has everything that counts packets; trace.json and
slow_start.json have a tracepoint's records.

Standard library only: the agent writes these files, engines merge them, and the judge reads them.
"""

from __future__ import annotations

from typing import Any, TypedDict

from howdah.codec import planned

Queue = dict[str, Any]  # a queue's counters: those that all kinds have, and those of its kind


class NodeCounters(TypedDict):
    """A node's counters, by interface and name, and its queues."""

    interfaces: dict[str, dict[str, int]]
    qdiscs: list[Queue]


class CounterState(TypedDict):
    """All counters at one time. ``netstat`` has the MIB counters of each node; ``softnet`` is the whole kernel's."""

    time_ns: int
    nodes: dict[str, NodeCounters]
    softnet: dict[str, int]
    netstat: dict[str, dict[str, int]]


class Accounting(TypedDict):
    """accounting.json: all counters before the flows, and after the network fell ``silent`` (False: it did not)."""

    silent: bool
    before: CounterState
    after: CounterState


@planned
class TraceFile:
    """The trace of one processor."""

    cpu: int
    file: str
    bytes: int


@planned
class TraceAccount:
    """The account of a tracepoint: how many records were kept, and how many were lost in which way."""

    subbuffer_bytes: int | None = None
    clock: str | None = None
    entries: int | None = None
    unread: int = 0
    overrun: int = 0
    dropped_events: int = 0
    commit_overrun: int = 0
    bytes_lost: int = 0
    cpus: list[TraceFile] | None = None
