# SPDX-License-Identifier: Apache-2.0
"""The state of a run's small files as the file system tells it: whether anything was written, without reading it."""

from __future__ import annotations

import os
import struct
from collections.abc import Iterable
from pathlib import Path

from howdah.record.directory import RunDirectory

_STATE = struct.Struct("<" + "Qqqq" * 4)
STATE_BYTES = _STATE.size
_NOTHING = (0, 0, 0, 0)
# A file system tells times in steps, of two seconds at worst: what is written twice within one looks the same.
STEP_NS = 2_000_000_000


def states_of(experiment: Path, names: Iterable[str]) -> dict[str, bytes]:
    """Of each run its state: inode, size and times of its plan, record, measures and verdict, zero for one that lacks.

    A person who writes a file can set its time of modification, and not its time of change (``ctime``).
    """
    files = [place.name for place in (_RUN.plan, _RUN.provenance, _RUN.metrics, _RUN.verdict)]
    handle = os.open(experiment, os.O_RDONLY | os.O_DIRECTORY)
    try:
        return {
            name: _STATE.pack(*(number for file in files for number in _stat(f"{name}/{file}", handle)))
            for name in names
        }
    finally:
        os.close(handle)


def is_settled(state: bytes, now_ns: int) -> bool:
    """Whether the last change is so long ago that another one would show."""
    changed: list[int] = list(_STATE.unpack(state)[3::4])
    return max(changed) + STEP_NS < now_ns


_RUN = RunDirectory(Path())


def _stat(place: str, handle: int) -> tuple[int, int, int, int]:
    try:
        found = os.stat(place, dir_fd=handle)
    except OSError:
        return _NOTHING
    return found.st_ino, found.st_size, found.st_mtime_ns, found.st_ctime_ns
