# SPDX-License-Identifier: Apache-2.0
"""Read *framed* files: netlink answers with the time and node of each (docs/data-format.md).

A poll repeats the same requests thousands of times, so nearly all messages of one type and length have one layout. The
first one is parsed attribute by attribute, the others are compared with its fixed parts, and their counters are
gathered in one step.
"""

from __future__ import annotations

import struct
from collections.abc import Callable, Iterator
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import numpy as np
import numpy.typing as npt

from howdah.errors import HowdahError
from howdah.ingest.ring_buffer import Damage
from howdah.linux.netlink.message import TYPE_MASK
from howdah.linux.output import FRAME
from howdah.record.raw import read_raw_bytes

_HEADER = struct.Struct("<IHHII")
HEADER_BYTES = _HEADER.size
_ATTRIBUTE = struct.Struct("<HH")


class MalformedMessageError(ValueError):
    """The bytes are not a chain of netlink messages; ``args[0]`` says where it breaks."""


@dataclass(frozen=True)
class Slot:
    """An integer inside a message: byte offset from the start of the netlink message, size, signedness."""

    offset: int
    size: int
    signed: bool = False


@dataclass
class Item:
    """The layout of one message.

    ``identity`` is constant text about the object (interface, handle, ports), ``slots`` are the counters, and
    ``skeleton`` lists the byte ranges that another message must share to have this layout. A message that is not
    ``wanted`` gives no record; its skeleton includes the bytes that decide this.
    """

    identity: tuple[str, ...]
    slots: dict[str, Slot]
    skeleton: list[tuple[int, int]] = field(default_factory=list)
    wanted: bool = True


def messages(data: bytes) -> Iterator[tuple[int, int, int]]:
    """Yield (type, start of the body, end of the body) of each message. Raise MalformedMessageError."""
    at = 0
    while at < len(data):
        if at + _HEADER.size > len(data):
            raise MalformedMessageError(f"{len(data) - at} bytes left at {at}, less than a header")
        length, kind, _flags, _sequence, _port = _HEADER.unpack_from(data, at)
        if length < _HEADER.size or at + length > len(data):
            raise MalformedMessageError(f"a message of {length} bytes at {at} of {len(data)}")
        yield kind, at + _HEADER.size, at + length
        at += (length + 3) & ~3


def attributes(data: bytes, start: int, end: int) -> dict[int, tuple[int, int]]:
    """Map each attribute's type (RFC 3549, 2.3.2) to (offset, length) of its payload. Raise MalformedMessageError."""
    found: dict[int, tuple[int, int]] = {}
    at = start
    while at + _ATTRIBUTE.size <= end:
        length, kind = _ATTRIBUTE.unpack_from(data, at)
        if length < _ATTRIBUTE.size or at + length > end:
            raise MalformedMessageError(f"an attribute of {length} bytes at {at}")
        found[kind & TYPE_MASK] = (at + _ATTRIBUTE.size, length - _ATTRIBUTE.size)
        at += (length + 3) & ~3
    return found


def skeleton_of(attributes_found: dict[int, tuple[int, int]]) -> list[tuple[int, int]]:
    """The headers (length and type) of the attributes: the byte ranges that determine the layout."""
    return [(offset - _ATTRIBUTE.size, offset) for offset, _length in attributes_found.values()]


def text_of(data: bytes, place: tuple[int, int] | None) -> str | None:
    """The text of a zero-terminated string attribute."""
    if place is None:
        return None
    offset, length = place
    return data[offset : offset + length].split(b"\0", 1)[0].decode("ascii", "replace")


Integers = npt.NDArray[np.int64]
Locate = Callable[[bytes, int, int, int], Item | None]

_BYTES_AT_ONCE = 1 << 26
_LENGTH_AND_TYPE = 6  # of a message's header; flags and numbers follow
LARGEST_ANSWER = 1 << 24
_SIGN = np.uint64(1 << 63)


@dataclass
class Frames:
    """The places of all answers in a file: arrays with one element per answer."""

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
    """The content of all answers, in order: ``columns`` of integers, -1 where ``known`` is false.

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
        raw = read_raw_bytes(path)
    except FileNotFoundError:
        raw = b""
    except OSError as error:
        raise HowdahError(f"cannot be read: {error.strerror}", where=str(path)) from error
    rows: list[tuple[int, int, int, int, int]] = []
    damage: list[Damage] = []
    at = 0
    while at < len(raw):
        if at + FRAME.size > len(raw):
            damage.append(Damage(path.name, at, len(raw) - at, "cut off inside a frame header"))
            break
        time_ns, length, node, kind = FRAME.unpack_from(raw, at)
        if length > LARGEST_ANSWER or at + FRAME.size + length > len(raw):
            damage.append(Damage(path.name, at, len(raw) - at, f"cut off inside a frame of {length} bytes"))
            break
        rows.append((time_ns, node, kind, at + FRAME.size, length))
        at += FRAME.size + length
    table = np.array(rows, dtype=np.int64).reshape(-1, 5)
    time_ns, node, kind, offset, length_bytes = (table[:, number] for number in range(5))
    return Frames(path.name, np.frombuffer(raw, dtype=np.uint8), time_ns, node, kind, offset, length_bytes, damage)


def parse(frames: Frames, locate: Locate, names: tuple[str, ...]) -> Records:
    """Gather the columns ``names`` from every message that ``locate`` knows.

    ``locate(message, message_type, start, end)`` returns the layout of a message, whose body lies between start and
    end, or None if messages of its type are not wanted. Answers that are not netlink messages become damage.
    """
    identities: dict[tuple[str, ...], int] = {}
    found = _walk(frames)
    parts: list[_FramedColumns] = []
    kinds, member = np.unique(np.stack([found.kind, found.length], axis=1), axis=0, return_inverse=True)
    member = member.reshape(-1)
    broken: dict[int, str] = {}
    for number, (kind, length) in enumerate(kinds.tolist()):
        rows = np.flatnonzero(member == number)
        at_once = max(_BYTES_AT_ONCE // length, 1)
        for start in range(0, rows.size, at_once):
            some = found.of(rows[start : start + at_once])
            parts.extend(_parse_alike(frames, some, kind, length, _FramedReading(locate, names, identities, broken)))
    for frame, why in broken.items():
        frames.damage.append(_no_answer(frames, frame, why))
    frames.damage.sort(key=lambda damage: damage.offset_bytes)
    return _assemble(frames, parts, names, list(identities), list(broken))


@dataclass(frozen=True)
class _Messages:
    """The places of messages, as arrays of one length: ``frame`` is the answer, ``position`` the place within it,
    ``offset`` that of the header in the file, and ``length`` includes the header."""

    frame: Integers
    position: Integers
    offset: Integers
    length: Integers
    kind: Integers

    def of(self, rows: npt.NDArray[Any]) -> _Messages:
        return _Messages(self.frame[rows], self.position[rows], self.offset[rows], self.length[rows], self.kind[rows])


@dataclass(frozen=True)
class _FramedColumns:
    """The columns of messages of one layout; None for a column that they lack."""

    messages: _Messages
    identity: Integers
    columns: dict[str, Integers | None]


@dataclass(frozen=True)
class _FramedReading:
    locate: Locate
    names: tuple[str, ...]
    identities: dict[tuple[str, ...], int]
    broken: dict[int, str]  # frame: why it is no netlink answer

    def map(self, message: npt.NDArray[np.uint8], kind: int) -> Item | None:
        """The layout of a message; None for a malformed one too, which is reported later, when it is the first of the
        rest."""
        try:
            return self.locate(message.tobytes(), kind, HEADER_BYTES, message.size)
        except MalformedMessageError:
            return None


def _walk(frames: Frames) -> _Messages:
    """Find the messages of all answers: the first ones of all answers in one step, then the second ones, and so on."""
    cursor, end = frames.offset.copy(), frames.offset + frames.length
    steps: list[_Messages] = []
    broken: list[int] = []
    active = np.flatnonzero(cursor < end)
    while active.size:
        whole = cursor[active] + HEADER_BYTES <= end[active]
        broken.extend(active[~whole].tolist())
        active = active[whole]
        head = frames.data[cursor[active][:, None] + np.arange(HEADER_BYTES)]
        length, kind = gather(head, Slot(0, 4)), gather(head, Slot(4, 2))
        whole = (length >= HEADER_BYTES) & (cursor[active] + length <= end[active])
        broken.extend(active[~whole].tolist())
        active, length, kind = active[whole], length[whole], kind[whole]
        steps.append(_Messages(active, np.full(active.size, len(steps)), cursor[active], length, kind))
        cursor[active] += (length + 3) & ~3
        active = active[cursor[active] < end[active]]
    for frame in broken:
        frames.damage.append(_no_answer(frames, frame, _why_broken(frames, frame)))
    none = np.zeros(0, dtype=np.int64)
    columns = ("frame", "position", "offset", "length", "kind")
    found = _Messages(*(np.concatenate([none, *(getattr(step, name) for step in steps)]) for name in columns))
    return found.of(~np.isin(found.frame, broken)) if broken else found


def _why_broken(frames: Frames, frame: int) -> str:
    start = int(frames.offset[frame])
    try:
        list(messages(frames.data[start : start + int(frames.length[frame])].tobytes()))
    except MalformedMessageError as error:
        return str(error)
    raise AssertionError("an answer whose messages fit it")


def _no_answer(frames: Frames, frame: int, why: str) -> Damage:
    where, length = int(frames.offset[frame]), int(frames.length[frame])
    return Damage(frames.file, where, length, f"not a netlink answer: {why}")


def _parse_alike(
    frames: Frames, found: _Messages, kind: int, length: int, reading: _FramedReading
) -> list[_FramedColumns]:
    """Parse messages of one type and length.

    The first message shows which bytes determine the layout and the identity. Messages that agree in these bytes form a
    class, of which one is parsed. A class is done if the same bytes determine its layout; repeat with the messages of
    the other classes.
    """
    parts: list[_FramedColumns] = []
    matrix = frames.data[found.offset[:, None] + np.arange(length)]
    while found.frame.size:
        try:
            first = reading.locate(matrix[0].tobytes(), kind, HEADER_BYTES, length)
        except MalformedMessageError as error:
            reading.broken.setdefault(int(found.frame[0]), str(error))
            found, matrix = found.of(np.arange(1, found.frame.size)), matrix[1:]
            continue
        if first is None:
            break
        mask = _fixed(first, length)
        fixed = np.ascontiguousarray(matrix[:, mask])
        _, speaker, class_of = np.unique(fixed.view(f"V{fixed.shape[1]}"), return_index=True, return_inverse=True)
        class_of = class_of.reshape(-1)
        done = np.zeros(speaker.size, dtype=bool)
        code = np.full(speaker.size, -1)
        of_layout: dict[tuple[tuple[str, Slot], ...], list[int]] = {}
        for number, row in enumerate(speaker.tolist()):
            item = reading.map(matrix[row], kind)
            if item is None or not np.array_equal(_fixed(item, length), mask):
                continue
            done[number] = True
            if item.wanted:
                code[number] = reading.identities.setdefault(item.identity, len(reading.identities))
                of_layout.setdefault(tuple(item.slots.items()), []).append(number)
        for layout, classes in of_layout.items():
            slots = dict(layout)
            rows = np.flatnonzero(np.isin(class_of, classes))
            same = matrix[rows]
            columns = {name: gather(same, slots[name]) if name in slots else None for name in reading.names}
            parts.append(_FramedColumns(found.of(rows), code[class_of[rows]], columns))
        rest = ~done[class_of]
        found, matrix = found.of(rest), matrix[rest]
    return parts


def _fixed(item: Item, length: int) -> npt.NDArray[np.bool_]:
    mask = np.zeros(length, dtype=bool)
    mask[:_LENGTH_AND_TYPE] = True
    for begin, end in item.skeleton:
        mask[begin:end] = True
    return mask


def gather(matrix: npt.NDArray[np.uint8], slot: Slot) -> Integers:
    """Read one little-endian integer of every row; unsigned 64-bit values beyond the signed range saturate."""
    octets = np.ascontiguousarray(matrix[:, slot.offset : slot.offset + slot.size])
    value: npt.NDArray[Any] = octets.view(f"<{'i' if slot.signed else 'u'}{slot.size}").reshape(-1)
    if slot.size == 8 and not slot.signed:
        value = np.minimum(value, _SIGN - np.uint64(1))
    return value.astype(np.int64)


def _assemble(
    frames: Frames,
    parts: list[_FramedColumns],
    names: tuple[str, ...],
    identities: list[tuple[str, ...]],
    broken: list[int],
) -> Records:
    """Put the parts into the order of the file, and of the messages within an answer, without malformed answers."""
    none = np.zeros(0, dtype=np.int64)
    row = np.concatenate([none, *(part.messages.frame for part in parts)])
    position = np.concatenate([none, *(part.messages.position for part in parts)])
    order = np.lexsort((position, row))
    if broken:
        order = order[~np.isin(row[order], broken)]
    row = row[order]
    identity = np.concatenate([none, *(part.identity for part in parts)])[order]
    columns: dict[str, Integers] = {}
    known: dict[str, npt.NDArray[np.bool_]] = {}
    for name in names:
        values = [(part.columns[name], part.identity.size) for part in parts]
        filled = [np.full(size, -1) if value is None else value for value, size in values]
        present = [np.full(size, value is not None) for value, size in values]
        columns[name] = np.concatenate([none, *filled])[order]
        known[name] = np.concatenate([none.astype(bool), *present])[order]
    return Records(frames.time_ns[row], frames.node[row], identity, identities, columns, known)
