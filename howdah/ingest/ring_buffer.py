# SPDX-License-Identifier: Apache-2.0
"""Decode ``trace_pipe_raw``: the sub-buffers of the kernel's trace ring buffer, as read from one CPU.

A sub-buffer is a time stamp, a commit word and a chain of events, each with the time since the previous one. The layout
is that of ``struct buffer_data_page`` and ``struct ring_buffer_event`` (kernel/trace/ring_buffer.c,
include/linux/ring_buffer.h), taken from the kernel's own description (:mod:`howdah.ingest.trace_format`). The chain
makes one sub-buffer sequential, so the k-th events of many sub-buffers are decoded together. Little-endian kernels
only.
"""

from __future__ import annotations

from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import numpy as np
import numpy.typing as npt

from howdah.errors import HowdahError
from howdah.ingest.trace_format import EventFormat, EventHeader, PageHeader, TraceField
from howdah.record.raw import open_raw, read_raw_bytes, stored

Integers = npt.NDArray[np.int64]
Words = npt.NDArray[np.uint32]

# RB_MISSED_EVENTS and RB_MISSED_STORED: the top bits of the commit word's low half. The kernel adds the first one sign
# extended, so everything above it is meaningless.
_MISSED_EVENTS = 1 << 31
_MISSED_STORED = 1 << 30
_COMMIT_MASK = _MISSED_STORED - 1
_TIMESTAMP_TOP = np.int64(-(1 << 59))  # an absolute time stamp event holds only the 59 bits below these
_LARGEST = (1 << 63) - 1
_PAGES_AT_ONCE = 8192
_FEW_PAGES = 16  # of which each is followed by itself: decoding few events together costs more than one by one
_DAMAGE_SHOWN = 50


@dataclass(frozen=True)
class Damage:
    """A stretch of the file that could not be decoded."""

    file: str
    offset_bytes: int
    length_bytes: int
    what: str

    def __str__(self) -> str:
        return f"{self.file} at byte {self.offset_bytes}: {self.what}; {self.length_bytes} bytes not decoded"


@dataclass
class Trace:
    """Decoded records in the order in which the kernel wrote them.

    ``columns`` holds one integer array per field, as long as ``time_ns``. ``lost_events`` is the kernel's count of
    records dropped because the reader was late; ``lost_uncounted`` counts gaps of unknown size.
    """

    time_ns: Integers
    columns: dict[str, Integers]
    lost_events: int = 0
    lost_uncounted: int = 0
    foreign_events: int = 0
    damaged: int = 0
    damaged_bytes: int = 0
    damage: list[Damage] = field(default_factory=list)
    file_bytes: int = 0  # of the file that it was read from

    def note(self, damage: Damage) -> None:
        """Count a damaged stretch; only the first ones are kept in full."""
        self.damaged += 1
        self.damaged_bytes += damage.length_bytes
        if len(self.damage) < _DAMAGE_SHOWN:
            self.damage.append(damage)


@dataclass(frozen=True)
class Layout:
    """The layout of the sub-buffers of one file."""

    page: PageHeader
    event: EventHeader
    format: EventFormat
    subbuffer_bytes: int

    def __post_init__(self) -> None:
        if self.subbuffer_bytes % 8 or self.subbuffer_bytes <= self.page.data_offset:
            raise HowdahError(f"a trace sub-buffer of {self.subbuffer_bytes} bytes is impossible", where="trace.json")


def read_trace(path: Path, layout: Layout, names: tuple[str, ...]) -> Trace:
    """Decode one CPU's file. Raise HowdahError if it cannot be read, or as ``decode`` does."""
    try:
        data = _bytes_of(path)
    except OSError as error:
        raise HowdahError(f"cannot read the trace: {error.strerror}", where=str(path)) from error
    return decode(data, path.name, layout, names)


def decode(data: npt.NDArray[np.uint8], file: str, layout: Layout, names: tuple[str, ...]) -> Trace:
    """Decode the content of one CPU's ``file``. Truncated or corrupt parts are counted in the result and raise nothing.

    ``names`` are the fields to decode. Raise HowdahError if the format lacks one.
    """
    fields = [layout.format.field(name) for name in names]
    size = data.size
    whole = size - size % layout.subbuffer_bytes
    result = Trace(np.zeros(0, dtype=np.int64), {}, file_bytes=size)
    parts: list[tuple[Integers, dict[str, Integers]]] = []
    step = _PAGES_AT_ONCE * layout.subbuffer_bytes
    for start in range(0, whole, step):
        chunk = np.ascontiguousarray(data[start : min(start + step, whole)]).view(np.uint32)
        parts.append(_Chunk(chunk, start, file, layout, result).decode(fields))
    if whole != size:
        result.note(Damage(file, whole, size - whole, f"cut off inside a sub-buffer of {layout.subbuffer_bytes} bytes"))
    if parts:
        result.time_ns = np.concatenate([part[0] for part in parts])
        result.columns = {name: np.concatenate([part[1][name] for part in parts]) for name in names}
    else:
        result.columns = {name: np.zeros(0, dtype=np.int64) for name in names}
    return result


def _bytes_of(path: Path) -> npt.NDArray[np.uint8]:
    """The content of a file; an uncompressed one is mapped, so that only what is used is read."""
    if stored(path) == path and path.stat().st_size > 0:
        with open_raw(path) as opened:
            return np.memmap(opened, dtype=np.uint8, mode="r")
    return np.frombuffer(read_raw_bytes(path), dtype=np.uint8)


class _Chunk:
    """Some consecutive sub-buffers of a file, as 32-bit words."""

    def __init__(self, words: Words, file_offset: int, file: str, layout: Layout, result: Trace) -> None:
        self.words = words
        self.file_offset = file_offset
        self.file = file
        self.layout = layout
        self.result = result
        self.pages = words.size * 4 // layout.subbuffer_bytes
        self.base = np.arange(self.pages, dtype=np.int64) * layout.subbuffer_bytes

    def decode(self, fields: list[TraceField]) -> tuple[Integers, dict[str, Integers]]:
        """Times and columns of this chunk's records, in file order."""
        start, time, length = self._walk(*self._headers())
        kind = self._gather(start, self.layout.format.field("common_type"))
        ours = kind == self.layout.format.id
        short = ours & (length < self.layout.format.size)
        for offset in start[short].tolist():
            self._note(offset, self.layout.format.size, "a record shorter than its format says")
        self.result.foreign_events += int((~ours).sum())
        keep = ours & ~short
        start, time = start[keep], time[keep]
        return time, {item.name: self._gather(start, item) for item in fields}

    def _headers(self) -> tuple[Integers, Integers]:
        """Time stamp and committed bytes of every sub-buffer; count the missed events that the kernel reports."""
        header = self.layout.page
        time = self._gather(self.base, header.timestamp)
        word = self._gather(self.base, TraceField("commit", header.commit.offset, min(header.commit.size, 4), False))
        commit = word & _COMMIT_MASK
        room = self.layout.subbuffer_bytes - header.data_offset
        wrong = (commit > room) | (commit % 4 != 0) | ((commit == 0) & (time == 0))
        for page in np.flatnonzero(wrong).tolist():
            what = (
                "an empty sub-buffer"
                if commit[page] == 0
                else f"a sub-buffer that claims {commit[page]} bytes of events"
            )
            self._note(int(self.base[page]), self.layout.subbuffer_bytes, what)
        commit = np.where(wrong, 0, commit)
        missed = ((word & _MISSED_EVENTS) != 0) & ~wrong
        stored = missed & ((word & _MISSED_STORED) != 0)
        where = self.base[stored] + header.data_offset + commit[stored]
        self.result.lost_events += int(self._gather(where, TraceField("missed", 0, header.commit.size, False)).sum())
        self.result.lost_uncounted += int((missed & ~stored).sum())
        return time, commit

    def _walk(self, time: Integers, commit: Integers) -> tuple[Integers, Integers, Integers]:
        """Follow the chain of events of every sub-buffer.

        Return each data record's byte offset within the chunk, its time, and its length in bytes.
        """
        if self.pages <= _FEW_PAGES:
            found = [self._follow(page, int(time[page]), int(commit[page])) for page in range(self.pages)]
            records = np.array([record for each in found for record in each], dtype=np.int64).reshape(-1, 3)
            return records[:, 0], records[:, 1], records[:, 2]
        return self._walk_together(time, commit)

    def _follow(self, page: int, time: int, commit: int) -> list[tuple[int, int, int]]:
        """Follow the chain of one sub-buffer; return (offset, time, length) of each data record."""
        kinds = self.layout.event
        origin = int(self.base[page]) + self.layout.page.data_offset
        words = self.words[origin >> 2 : ((origin + commit) >> 2) + 1].tolist()
        words += self.words[-1:].tolist()  # behind the last word there is none to be read
        mask, found, at = (1 << kinds.type_len_bits) - 1, [], 0
        while at < commit:
            head, extra = words[at >> 2], words[(at >> 2) + 1]
            kind, delta = head & mask, head >> kinds.type_len_bits
            is_data, is_padding, is_stamp = kind <= kinds.data_max, kind == kinds.padding, kind == kinds.time_stamp
            if is_padding and delta == 0:
                break  # it fills the rest of the sub-buffer and has no length of its own
            is_wide = is_stamp or kind == kinds.time_extend
            length = extra + 4 if kind == 0 or is_padding else 4 * kind + 4 if is_data else 8
            if not (is_data or is_padding or is_wide) or length < 8 or length % 4 or at + length > commit:
                self._note(origin + at, commit - at, "an event that does not fit its sub-buffer")
                break
            if is_wide:
                delta += extra << kinds.time_delta_bits
            time = _wrapped(_absolute_of(delta, time) if is_stamp else time + delta)
            if is_data:
                head_bytes = 4 if kind else 8
                found.append((origin + at + head_bytes, time, length - head_bytes))
            at += length
        return found

    def _walk_together(self, time: Integers, commit: Integers) -> tuple[Integers, Integers, Integers]:
        """Follow the chains of many sub-buffers; their k-th events are decoded together."""
        kinds = self.layout.event
        origin = self.base + self.layout.page.data_offset
        clock = time.copy()
        position = np.zeros(self.pages, dtype=np.int64)
        active = np.flatnonzero(commit > 0)
        found: list[tuple[Integers, Integers, Integers]] = []
        last = self.words.size - 1
        while active.size:
            at = position[active]
            index = (origin[active] + at) >> 2
            head = self.words[index].astype(np.int64)
            extra = self.words[np.minimum(index + 1, last)].astype(np.int64)
            kind = head & ((1 << kinds.type_len_bits) - 1)
            delta = head >> kinds.type_len_bits
            long_data = kind == 0
            data = kind <= kinds.data_max
            padding = kind == kinds.padding
            extend = kind == kinds.time_extend
            stamp = (kind == kinds.time_stamp) if kinds.time_stamp is not None else np.zeros(kind.shape, dtype=bool)
            length = np.full(kind.shape, 8, dtype=np.int64)
            length[data] = (kind[data] << 2) + 4
            sized = long_data | padding
            length[sized] = extra[sized] + 4
            # Padding without a time delta fills the rest of the sub-buffer and has no length of its own.
            end = padding & (delta == 0)
            known = data | padding | extend | stamp
            bad = ~end & (~known | (length < 8) | (length % 4 != 0) | (at + length > commit[active]))
            if bad.any():
                for page, where in zip(active[bad].tolist(), at[bad].tolist(), strict=True):
                    self._note(
                        int(origin[page]) + where,
                        int(commit[page]) - where,
                        "an event that does not fit its sub-buffer",
                    )
            wide = extend | stamp
            delta[wide] += extra[wide] << kinds.time_delta_bits
            previous = clock[active]
            clock[active] = np.where(stamp, _absolute(delta, previous), previous + delta)
            good = data & ~bad
            payload = np.where(long_data, 8, 4)
            begin = (origin[active] + at + payload)[good]
            found.append((begin, clock[active][good], (length - payload)[good]))
            position[active] = at + length
            active = active[~(end | bad)]
            active = active[position[active] < commit[active]]
        if not found:
            none = np.zeros(0, dtype=np.int64)
            return none, none, none
        start, when, size = (np.concatenate(column) for column in zip(*found, strict=True))
        order = np.argsort(start)
        return start[order], when[order], size[order]

    def _gather(self, start: Integers, item: TraceField) -> Integers:
        """Read one field of many records, which begin at bytes ``start`` (multiples of 4) of the chunk.

        Unsigned 64-bit values beyond the signed range saturate.
        """
        offset = start + item.offset
        value: npt.NDArray[Any]
        if item.size == 8:
            index = offset >> 2
            low = self.words[index].astype(np.uint64)
            value = low | (self.words[np.minimum(index + 1, self.words.size - 1)].astype(np.uint64) << np.uint64(32))
        elif item.size in (1, 2, 4):
            unsigned = {1: np.uint8, 2: np.uint16, 4: np.uint32}[item.size]
            value = self.words.view(unsigned)[offset // item.size]
        else:
            raise HowdahError(f"field {item.name!r} of {item.size} bytes is not an integer", where=self.file)
        if item.signed:
            value = value.view(f"i{item.size}")
        elif item.size == 8:
            value = np.minimum(value, np.uint64(_LARGEST))
        return value.astype(np.int64)

    def _note(self, offset: int, length: int, what: str) -> None:
        self.result.note(Damage(self.file, self.file_offset + offset, length, what))


def _absolute(stamp: Integers, previous: Integers) -> Integers:
    """Restore the top bits of an absolute time stamp from the time before it (rb_fix_abs_ts)."""
    top = previous & _TIMESTAMP_TOP
    restored = stamp | top
    return np.where((top != 0) & (restored < previous), restored + (1 << 59), restored)


def _absolute_of(stamp: int, previous: int) -> int:
    """``_absolute`` for one event."""
    top = previous & int(_TIMESTAMP_TOP)
    restored = _wrapped(stamp | top)
    return restored + (1 << 59) if top and restored < previous else restored


def _wrapped(value: int) -> int:
    """The value as a signed 64-bit integer."""
    return value - (1 << 64) if value > _LARGEST else value
