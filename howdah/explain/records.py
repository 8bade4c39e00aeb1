# SPDX-License-Identifier: Apache-2.0
"""Read the packets of a capture file in blocks: pcap and pcapng, in either byte order, with stamps of any resolution.
Files may be plain or compressed with gzip, xz or zstd, which their first bytes show.

Formats: draft-ietf-opsawg-pcap and draft-ietf-opsawg-pcapng.
"""

from __future__ import annotations

import gzip
import lzma
import os
import struct
import zlib
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field
from io import BufferedReader
from pathlib import Path
from typing import Any

import numpy as np
import numpy.typing as npt
import zstandard

from howdah.errors import RecordError, explain
from howdah.foreign import open_foreign
from howdah.ingest.source import Integers

BLOCK_BYTES = 8 << 20  # bytes that are read at once
_MOST_PACKET_BYTES = 1 << 22  # a longer packet is damage; BIG TCP has half a megabyte
_MOST_INTERFACES = 256  # interfaces of a file, at most
_SECOND_NS = 1_000_000_000
_MAGIC = {0xA1B2C3D4: 1000, 0xA1B23C4D: 1}  # magic numbers of pcap, with the unit of the stamps' fraction in ns
# Block types, the byte-order magic, and option codes of pcapng.
_SECTION, _INTERFACE, _OLD_PACKET, _SIMPLE, _ENHANCED = 0x0A0D0D0A, 1, 2, 3, 6
_BYTE_ORDER = 0x1A2B3C4D
_RESOLUTION, _OFFSET = 9, 14
_MOST_OFFSET_S = 1 << 32  # larger offsets of an interface's stamps are ignored
_DEFAULT_UNITS = 1_000_000  # of stamps, per second


@dataclass(frozen=True)
class PacketBatch:
    """Packets in ``data``, in the order of the file: where each begins, its bytes in the file, and its bytes on the
    wire.

    ``tap`` numbers the interface that captured each; ``links`` has the link type of every tap.
    """

    data: npt.NDArray[np.uint8]
    places: Integers
    lengths: Integers
    wire_bytes: Integers
    time_ns: Integers
    tap: Integers
    links: list[int]


@dataclass
class Problems:
    """What is wrong with a file, in words. The packets before the damage are read."""

    said: list[str] = field(default_factory=list)


def is_capture(head: bytes) -> bool:
    if len(head) < 4:
        return False
    return any(struct.unpack(f"{order}I", head[:4])[0] in (*_MAGIC, _SECTION) for order in "<>")


def read_batches(file: OpenedFile, problems: Problems) -> Iterator[PacketBatch]:
    """Yield all packets of a capture."""
    head = file.read(4)
    first = struct.unpack("<I", head)[0]
    packets = _read_pcapng(file, head, problems) if first == _SECTION else _read_pcap(file, head, problems)
    yield from packets
    if file.problem:
        problems.said.append(file.problem)


def _read_pcap(file: OpenedFile, head: bytes, problems: Problems) -> Iterator[PacketBatch]:
    order = "<" if struct.unpack("<I", head)[0] in _MAGIC else ">"
    unit_ns = _MAGIC[struct.unpack(f"{order}I", head)[0]]
    rest = file.read(20)
    if len(rest) < 20:
        problems.said.append("the file ends within its header")
        return
    link = struct.unpack(f"{order}I", rest[16:])[0] & 0xFFFF
    unpack = struct.Struct(f"{order}I").unpack_from
    kept, total = b"", 0
    while True:
        more = file.read(BLOCK_BYTES)
        data = kept + more
        size, place = len(data), 0
        starts: list[int] = []
        append = starts.append
        broken = False
        while place + 16 <= size:
            here = unpack(data, place + 8)[0]
            following = place + 16 + here
            if following > size:
                broken = here > _MOST_PACKET_BYTES
                break
            append(place)
            place = following
        total += len(starts)
        if starts:
            yield _batch_of_pcap(data, np.array(starts, np.int64), order, unit_ns, link)
        kept = data[place:]
        if broken:
            problems.said.append(f"the file is damaged after {total} packets")
            return
        if not more:
            if kept:
                problems.said.append(f"the file is cut off after {total} packets")
            return


def _batch_of_pcap(data: bytes, starts: Integers, order: str, unit_ns: int, link: int) -> PacketBatch:
    octets = np.frombuffer(data, dtype=np.uint8)
    header = octets[starts[:, None] + np.arange(16)].view(f"{order}u4").astype(np.int64)
    return PacketBatch(
        octets,
        starts + 16,
        header[:, 2],
        np.maximum(header[:, 3], header[:, 2]),
        header[:, 0] * _SECOND_NS + header[:, 1] * unit_ns,
        np.zeros(starts.size, np.int64),
        [link],
    )


# Where a packet begins, its bytes here and on the wire, its tap, and its stamp in the tap's units.
_PacketRow = tuple[int, int, int, int, int]


def _read_pcapng(file: OpenedFile, head: bytes, problems: Problems) -> Iterator[PacketBatch]:
    state = _Pcapng(problems)
    rest = head
    while True:
        more = file.read(BLOCK_BYTES)
        data = rest + more
        found, place, damage = state.parse(data)
        state.packets += len(found)
        if found:
            yield _batch_of_pcapng(data, found, state)
        rest = data[place:]
        if damage is not None:
            problems.said.append(damage)
            return
        if not more:
            if rest:
                problems.said.append(f"the file is cut off after {state.packets} packets")
            return


@dataclass
class _Pcapng:
    """State of a pcapng file that is read: the byte order of the current section, and its interfaces.

    ``links``, ``units`` (of the stamps, per second) and ``offsets`` (in seconds) are by tap; ``section_taps`` has the
    tap of each interface of the section. An interface that a further section repeats at the same place is one tap.
    """

    problems: Problems
    packets: int = 0
    links: list[int] = field(default_factory=list)
    units: list[int] = field(default_factory=list)
    offsets: list[int] = field(default_factory=list)
    _order: str = "<"
    _section_taps: list[int] = field(default_factory=list)
    _taps: dict[tuple[int, int, int, int], int] = field(default_factory=dict)
    _stampless: bool = False

    def parse(self, data: bytes) -> tuple[list[_PacketRow], int, str | None]:
        """Return the packets in the complete blocks of ``data``, where the rest begins, and what is wrong there (None:
        nothing)."""
        found: list[_PacketRow] = []
        size, place = len(data), 0
        while place + 12 <= size:
            kind = struct.unpack_from(f"{self._order}I", data, place)[0]
            if kind == _SECTION and not self._begin_section(data, place):
                return found, place, "a section has no order of bytes"
            length = struct.unpack_from(f"{self._order}I", data, place + 4)[0]
            if length < 12 or length % 4 or length > _MOST_PACKET_BYTES:
                return found, place, f"the file is damaged after {self.packets + len(found)} packets"
            if place + length > size:
                break
            body, end = place + 8, place + length - 4
            if kind == _INTERFACE and end - body >= 8:
                if len(self.links) >= _MOST_INTERFACES:
                    return found, place, f"it has more than {_MOST_INTERFACES} interfaces"
                self._add_interface(data, body, end)
            elif kind in (_ENHANCED, _OLD_PACKET) and end - body >= 20:
                packet = self._packet(data, body, end, kind)
                if packet is not None:
                    found.append(packet)
            elif kind == _SIMPLE and not self._stampless:
                self._stampless = True
                what = "it has packets without time stamps (simple packet blocks), which tell nothing here"
                self.problems.said.append(what)
            place += length
        return found, place, None

    def _begin_section(self, data: bytes, place: int) -> bool:
        """Take over the byte order of a section header; return False if it has none."""
        for order in "<>":
            if struct.unpack_from(f"{order}I", data, place + 8)[0] == _BYTE_ORDER:
                self._order, self._section_taps = order, []
                return True
        return False

    def _add_interface(self, data: bytes, body: int, end: int) -> None:
        link = struct.unpack_from(f"{self._order}H", data, body)[0]
        units, offset_s = _clock(data, body + 8, end, self._order)
        tap = self._taps.setdefault((len(self._section_taps), link, units, offset_s), len(self.links))
        self._section_taps.append(tap)
        if tap == len(self.links):
            self.links.append(link)
            self.units.append(units)
            self.offsets.append(offset_s)

    def _packet(self, data: bytes, body: int, end: int, kind: int) -> _PacketRow | None:
        tap, high, low, here, wire = struct.unpack_from(f"{self._order}5I", data, body)
        if kind == _OLD_PACKET:
            tap = struct.unpack_from(f"{self._order}H", data, body)[0]
        if tap >= len(self._section_taps) or body + 20 + here > end:
            return None
        return body + 20, here, max(wire, here), self._section_taps[tap], high << 32 | low


def _batch_of_pcapng(data: bytes, found: list[_PacketRow], file: _Pcapng) -> PacketBatch:
    places, lengths, wire, tap = (np.array([row[i] for row in found], np.int64) for i in range(4))
    stamps = np.array([row[4] for row in found], np.uint64)
    per_second = np.array(file.units, np.uint64)[tap]
    seconds, fraction = stamps // per_second, (stamps % per_second).astype(np.float64)
    time_ns = (seconds.astype(np.int64) + np.array(file.offsets, np.int64)[tap]) * _SECOND_NS
    time_ns += np.rint(fraction * (_SECOND_NS / per_second.astype(np.float64))).astype(np.int64)
    return PacketBatch(np.frombuffer(data, dtype=np.uint8), places, lengths, wire, time_ns, tap, list(file.links))


def _clock(data: bytes, place: int, end: int, order: str) -> tuple[int, int]:
    """An interface's units per second, and the seconds to add to each of its stamps."""
    units, offset_s = _DEFAULT_UNITS, 0
    while place + 4 <= end:
        code, length = struct.unpack_from(f"{order}2H", data, place)
        if code == 0 or place + 4 + length > end:
            break
        if code == _RESOLUTION and length >= 1:
            value = data[place + 4]
            exponent = value & 0x7F
            units = 1 << min(exponent, 62) if value & 0x80 else int(10 ** min(exponent, 18))
        elif code == _OFFSET and length == 8:
            said = struct.unpack_from(f"{order}q", data, place + 4)[0]
            offset_s = said if abs(said) <= _MOST_OFFSET_S else 0
        place += 4 + (length + 3 & ~3)
    return units, offset_s


_GZIP, _ZSTD, _XZ = b"\x1f\x8b", b"\x28\xb5\x2f\xfd", b"\xfd7zXZ\x00"
_HEAD_BYTES, _CHUNK_BYTES = 8, 1 << 20
_MEGABYTE = 1_000_000
# Content may be so many times as large as the file, and so large anyway: a capture of zeros shrinks to a thousandth.
_MOST_EXPANSION, _LEAST_CONTENT_BYTES = 1200, 256 << 20
_MOST_XZ_BYTES = 128 << 20  # memory for xz; the file sets what it needs
_DAMAGE = (zstandard.ZstdError, zlib.error, lzma.LZMAError, gzip.BadGzipFile, EOFError)


class OpenedFile:
    """The uncompressed content of one file. ``problem`` says why it ended early."""

    def __init__(self, path: Path) -> None:
        self.path = path
        self.problem: str | None = None
        self._file = open_foreign(path)
        self._size = os.fstat(self._file.fileno()).st_size
        self._left = _LEAST_CONTENT_BYTES + _MOST_EXPANSION * self._size
        head = self._file.read(_HEAD_BYTES)
        self._file.seek(0)
        self._reader: Any = self._file
        if head.startswith(_GZIP):
            self._reader = _Gzip(gzip.GzipFile(fileobj=self._file))
        elif head.startswith(_ZSTD):
            self._reader = zstandard.ZstdDecompressor().stream_reader(self._file, read_across_frames=True)
        elif head.startswith(_XZ):
            self._reader = _Xz(self._file)

    @property
    def megabytes(self) -> tuple[int, int]:
        """Bytes read so far and the file's size, in MB."""
        return self._file.tell() // _MEGABYTE, -(-self._size // _MEGABYTE)

    def read(self, most_bytes: int) -> bytes:
        """Return the next bytes, fewer only at the end. Damage ends the content and is kept in ``problem``."""
        parts: list[bytes] = []
        wanted = most_bytes
        while wanted and self.problem is None:
            try:
                part = self._reader.read(wanted)
            except _DAMAGE as error:
                self.problem = f"the compressed file is damaged or cut off ({error})"
                break
            if not part:
                break
            parts.append(part)
            wanted -= len(part)
            self._left -= len(part)
            if self._left < 0:
                self.problem = "its content is larger than a recording becomes"
        return b"".join(parts)

    def read_all(self, most_bytes: int) -> bytes:
        """Return the whole content. Raise RecordError if it is larger."""
        content = self.read(most_bytes + 1)
        if len(content) > most_bytes:
            raise RecordError(f"its content is larger than {most_bytes} bytes", where=str(self.path))
        return content

    def close(self) -> None:
        self._file.close()


@contextmanager
def open_recording(path: Path) -> Iterator[OpenedFile]:
    """Open a file for reading its content. Raise RecordError if that fails."""
    try:
        file = OpenedFile(path)
        try:
            yield file
        finally:
            file.close()
    except OSError as error:
        raise RecordError(f"this cannot be read: {explain(error)}", where=str(path)) from error


class _Gzip:
    """A gzip stream that returns what precedes damage."""

    def __init__(self, file: gzip.GzipFile) -> None:
        self._file = file

    def read(self, most_bytes: int) -> bytes:
        return self._file.read1(most_bytes)


class _Xz:
    """An xz stream with bounded memory, whatever the file requests."""

    def __init__(self, file: BufferedReader) -> None:
        self._file = file
        self._unpacked = lzma.LZMADecompressor(lzma.FORMAT_XZ, memlimit=_MOST_XZ_BYTES)

    def read(self, most_bytes: int) -> bytes:
        while not self._unpacked.eof:
            data = self._file.read(_CHUNK_BYTES) if self._unpacked.needs_input else b""
            if self._unpacked.needs_input and not data:
                raise EOFError("it ends too early")
            part = self._unpacked.decompress(data, most_bytes)
            if part:
                return part
        return b""
