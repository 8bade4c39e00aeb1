# SPDX-License-Identifier: Apache-2.0
"""Reads *framed* files: netlink answers with the time and node they came from (docs/data-format.md).

A poll repeats the same questions thousands of times, so nearly all answers of one node with one length have one layout.
The first is located attribute by attribute, the others are compared with it where the layout is fixed, and their
counters are then gathered in one step.
"""

from __future__ import annotations

import struct
from collections.abc import Callable
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import numpy as np
import numpy.typing as npt

from howdah.errors import HowdahError
from howdah.ingest.netlink import Item, MalformedMessageError, Slot, messages
from howdah.ingest.ring_buffer import Damage

Integers = npt.NDArray[np.int64]
Locate = Callable[[bytes, int, int, int], Item | None]

_FRAME = struct.Struct("<qIHH")
_FRAMES_AT_ONCE = 4096
_LARGEST_ANSWER = 1 << 24
_SIGN = np.uint64(1 << 63)


@dataclass
class Frames:
    """Where the answers of one file are: arrays of the same length, one element an answer."""

    file: str
    data: npt.NDArray[np.uint8]
    time_ns: Integers
    node: Integers
    kind: Integers
    offset: Integers
    length: Integers
    damage: list[Damage] = field(default_factory=list)


@dataclass
class Records:
    """What the answers say: ``columns`` of integers in answer order, -1 where ``known`` is false.

    ``identity`` indexes ``identities``.
    """

    time_ns: Integers
    node: Integers
    identity: Integers
    identities: list[tuple[str, ...]]
    columns: dict[str, Integers]
    known: dict[str, npt.NDArray[np.bool_]]


def read_frames(path: Path) -> Frames:
    """Find the frames of a file. A cut-off last frame is noted as damage; a missing file has no frames."""
    try:
        raw = path.read_bytes()
    except FileNotFoundError:
        raw = b""
    except OSError as error:
        raise HowdahError(f"cannot be read: {error.strerror}", where=str(path)) from error
    rows: list[tuple[int, int, int, int, int]] = []
    damage: list[Damage] = []
    at = 0
    while at < len(raw):
        if at + _FRAME.size > len(raw):
            damage.append(Damage(path.name, at, len(raw) - at, "cut off inside a frame header"))
            break
        time_ns, length, node, kind = _FRAME.unpack_from(raw, at)
        if length > _LARGEST_ANSWER or at + _FRAME.size + length > len(raw):
            damage.append(Damage(path.name, at, len(raw) - at, f"cut off inside a frame of {length} bytes"))
            break
        rows.append((time_ns, node, kind, at + _FRAME.size, length))
        at += _FRAME.size + length
    table = np.array(rows, dtype=np.int64).reshape(-1, 5)
    time_ns, node, kind, offset, length_bytes = (table[:, number] for number in range(5))
    return Frames(path.name, np.frombuffer(raw, dtype=np.uint8), time_ns, node, kind, offset, length_bytes, damage)


def parse(frames: Frames, locate: Locate, names: tuple[str, ...]) -> Records:
    """Gather ``names`` from every message ``locate`` knows.

    ``locate(answer, message_type, start, end)`` maps one message, or returns None where its type alone says that it is
    not wanted. Answers that are no netlink messages become damage.
    """
    identities: dict[tuple[str, ...], int] = {}
    parts: list[tuple[Integers, Integers, Integers, dict[str, Integers | None]]] = []
    group_of = np.stack([frames.node, frames.kind, frames.length], axis=1)
    groups, member = np.unique(group_of, axis=0, return_inverse=True)
    member = member.reshape(-1)
    for group in range(len(groups)):
        rows = np.flatnonzero(member == group)
        for start in range(0, rows.size, _FRAMES_AT_ONCE):
            parts.extend(_parse_alike(frames, rows[start : start + _FRAMES_AT_ONCE], locate, names, identities))
    return _assemble(frames, parts, names, list(identities))


def _parse_alike(
    frames: Frames, rows: Integers, locate: Locate, names: tuple[str, ...], identities: dict[tuple[str, ...], int]
) -> list[tuple[Integers, Integers, Integers, dict[str, Integers | None]]]:
    """Answers of one node with one length: map the first one, apply the map to all that fit, repeat with the rest."""
    parts = []
    length = int(frames.length[rows[0]])
    matrix = frames.data[frames.offset[rows][:, None] + np.arange(length)]
    while rows.size:
        answer = matrix[0].tobytes()
        try:
            items = [item for kind, start, end in messages(answer) if (item := locate(answer, kind, start, end))]
            # Message headers fix the layout as well: length and type, not the sequence number that follows.
            fixed = [(start - 16, start - 10) for _kind, start, _end in messages(answer)]
        except MalformedMessageError as error:
            where = int(frames.offset[rows[0]])
            frames.damage.append(Damage(frames.file, where, length, f"not a netlink answer: {error}"))
            rows, matrix = rows[1:], matrix[1:]
            continue
        for item in items:
            fixed.extend(item.skeleton)
        mask = np.zeros(length, dtype=bool)
        for begin, stop in fixed:
            mask[begin:stop] = True
        alike = (matrix[:, mask] == matrix[0, mask]).all(axis=1)
        same = matrix[alike]
        for position, item in enumerate(items):
            if not item.wanted:
                continue
            code = identities.setdefault(item.identity, len(identities))
            columns = {name: gather(same, item.slots[name]) if name in item.slots else None for name in names}
            many = int(alike.sum())
            parts.append((rows[alike], np.full(many, position), np.full(many, code), columns))
        rows, matrix = rows[~alike], matrix[~alike]
    return parts


def gather(matrix: npt.NDArray[np.uint8], slot: Slot) -> Integers:
    """One little-endian integer of every row; 64-bit values above the signed range saturate."""
    octets = np.ascontiguousarray(matrix[:, slot.offset : slot.offset + slot.size])
    value: npt.NDArray[Any] = octets.view(f"<{'i' if slot.signed else 'u'}{slot.size}").reshape(-1)
    if slot.size == 8 and not slot.signed:
        value = np.minimum(value, _SIGN - np.uint64(1))
    return value.astype(np.int64)


def _assemble(
    frames: Frames,
    parts: list[tuple[Integers, Integers, Integers, dict[str, Integers | None]]],
    names: tuple[str, ...],
    identities: list[tuple[str, ...]],
) -> Records:
    """Put the parts back in the order of the file, and of the messages within an answer."""
    none = np.zeros(0, dtype=np.int64)
    row = np.concatenate([none, *(part[0] for part in parts)])
    position = np.concatenate([none, *(part[1] for part in parts)])
    order = np.lexsort((position, row))
    row = row[order]
    identity = np.concatenate([none, *(part[2] for part in parts)])[order]
    columns: dict[str, Integers] = {}
    known: dict[str, npt.NDArray[np.bool_]] = {}
    for name in names:
        values = [part[3][name] for part in parts]
        filled = [
            np.full(part[0].size, -1) if value is None else value for part, value in zip(parts, values, strict=True)
        ]
        present = [np.full(part[0].size, value is not None) for part, value in zip(parts, values, strict=True)]
        columns[name] = np.concatenate([none, *filled])[order]
        known[name] = np.concatenate([none.astype(bool), *present])[order]
    return Records(frames.time_ns[row], frames.node[row], identity, identities, columns, known)
