# SPDX-License-Identifier: Apache-2.0
"""trace.json and slow_start.json: the account of a tracepoint's records. Standard library only."""

from __future__ import annotations

from howdah.codec import planned


@planned
class TraceFile:
    """What one processor recorded."""

    cpu: int
    file: str
    bytes: int


@planned
class TraceAccount:
    """The file: how many records were kept, and how many were lost, and how."""

    subbuffer_bytes: int | None = None
    clock: str | None = None
    entries: int | None = None
    unread: int = 0
    overrun: int = 0
    dropped_events: int = 0
    commit_overrun: int = 0
    bytes_lost: int = 0
    cpus: list[TraceFile] | None = None
