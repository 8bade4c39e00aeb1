# SPDX-License-Identifier: Apache-2.0
"""Read captures as connections. Several files may be the pieces of one ring."""

from __future__ import annotations

import re
from collections.abc import Callable, Sequence
from dataclasses import dataclass, field
from pathlib import Path

import numpy as np
import numpy.typing as npt

from howdah.explain.connection import KeptSegments, TapConnection, connections_of, keep
from howdah.explain.layers import find_tcp, is_known_link
from howdah.explain.records import PacketBatch, Problems, open_recording, read_batches
from howdah.explain.segment import TcpColumns, read_segments
from howdah.ingest.capture import SYN
from howdah.number import counted

_LARGE_MEGABYTES = 64  # size of a file from which on progress is reported
_WI_FI, _WI_FI_WORDS = (
    {105, 119, 127, 163, 192},
    ", frames of Wi-Fi as a monitor sees them: an end of the connection has IP",
)
_BORDER_NS = 10_000_000  # time by which a piece may begin before the end of the one before it
_HALF = 1 << 31  # half of the space of sequence numbers

Progress = Callable[[str, int, int], None]


def no_progress(_what: str, _done: int, _total: int) -> None:
    """Report nothing."""


@dataclass
class Capture:
    """The content of one file, or of its pieces: connections with data, the largest first. ``others`` counts
    connections that are not shown or have no data."""

    name: str = ""
    connections: list[TapConnection] = field(default_factory=list)
    problems: list[str] = field(default_factory=list)
    packets: int = 0
    segments: int = 0
    others: int = 0
    strange_links: set[int] = field(default_factory=set)
    has_data: bool = False

    @property
    def why_none(self) -> str:
        """Why the capture has no connection with data."""
        if not self.packets:
            return "it holds no packets"
        if self.strange_links:
            what = f"nothing here reads its link type {', '.join(map(str, sorted(self.strange_links)))}"
            if self.strange_links & _WI_FI:
                return what + _WI_FI_WORDS
            return f"{what}: a capture of the interface that has IP, as Ethernet, is read"
        packets = counted(self.packets, "packet")
        if not self.segments:
            return f"none of its {packets} is of TCP; of QUIC, a sender's qlog tells more"
        if not self.has_data:
            return f"none of its {packets} has data: they are ACKs alone, or handshakes"
        return f"no connection among its {packets} has data and ACKs of them: one direction is not here"


def read_capture(path: Path, most_connections: int, progress: Progress = no_progress) -> Capture:
    return read_captures([path], most_connections, progress)[0]


def read_captures(paths: Sequence[Path], most_connections: int, progress: Progress = no_progress) -> list[Capture]:
    """Read captures; call ``progress`` with the megabytes read of a large one.

    The pieces of a ring of files, as tcpdump and Wireshark write it, are one capture: their names differ only in
    digits, their times follow one another, and a connection of one continues in the next. Damage is in ``problems``,
    and what precedes it counts. Raise RecordError if a file cannot be read.
    """
    readings: list[_Pieces] = []
    for path in sorted(paths, key=_first_stamp) if len(paths) > 1 else paths:
        problems, mine = Problems(), _Pieces([])
        with open_recording(path) as file:
            for batch in read_batches(file, problems):
                segments = read_segments(batch, find_tcp(batch))
                if not mine.paths:
                    mine = next((each for each in readings if each.continues(path, batch, segments)), mine)
                    mine.paths.append(path)
                mine.take(batch, segments)
                done, total = file.megabytes
                if total >= _LARGE_MEGABYTES:
                    progress(f"reading {path.name}, MB", min(done, total), total)
        if not mine.paths:
            mine.paths.append(path)
        if all(each is not mine for each in readings):
            readings.append(mine)
        mine.found.problems += [f"{path.name}: {problem}" for problem in problems.said]
    readings.sort(key=lambda each: min(map(paths.index, each.paths)))
    for each in readings:
        if each.kept.passed_over:
            what = f"{each.kept.passed_over} segments of further connections were passed over"
            each.found.problems.append(f"{each.name}: {what}")
        each.divide(most_connections)
    return [each.found for each in readings]


def _first_stamp(path: Path) -> int:
    with open_recording(path) as file:
        return next((int(batch.time_ns[0]) for batch in read_batches(file, Problems())), 0)


@dataclass
class _Pieces:
    paths: list[Path]
    found: Capture = field(default_factory=Capture)
    kept: KeptSegments = field(default_factory=KeptSegments)
    links: list[int] = field(default_factory=list)
    last_ns: int = 0

    @property
    def name(self) -> str:
        names = [each.name for each in self.paths]
        return names[0] if len(names) == 1 else f"{names[0]} … {names[-1]}"

    def take(self, batch: PacketBatch, segments: TcpColumns) -> None:
        found = self.found
        found.packets += batch.places.size
        found.strange_links |= {link for link in batch.links if not is_known_link(link)}
        found.segments += len(segments)
        self.links, self.last_ns = batch.links, max(self.last_ns, int(batch.time_ns.max()))
        if len(segments):
            keep(self.kept, segments, batch.data)

    def divide(self, most_connections: int) -> None:
        found, kept = self.found, self.kept
        found.name, found.connections = self.name, connections_of(kept, self.name, most_connections)
        found.has_data = any(map(any, kept.data_bytes))
        found.others = len(kept.names) - len({(each.tap, frozenset(each.ends)) for each in found.connections})

    def continues(self, path: Path, batch: PacketBatch, segments: TcpColumns) -> bool:
        """Whether a file that begins with this batch is the next piece."""
        return (
            _without_digits(path) == _without_digits(self.paths[0])
            and all(mine == other for mine, other in zip(self.links, batch.links, strict=False))
            and int(batch.time_ns.min()) >= self.last_ns - _BORDER_NS
            and _continues(self.kept, segments)
        )


def _without_digits(path: Path) -> tuple[Path, str]:
    return path.parent, re.sub(r"\d", "", path.name)


def _continues(kept: KeptSegments, segments: TcpColumns) -> bool:
    """Whether the sequence numbers of the largest connection on both sides of a border continue. They do not at another
    tap, or in a new connection that reuses the ports."""
    keys, first = np.unique(segments.key, return_index=True)
    opens = (segments.columns["flags"][first].astype(np.int64) & SYN) != 0
    shared = [(code, key) for key, new in zip(keys.tolist(), opens.tolist(), strict=True)
              if not new and (code := kept.places.get(key)) is not None]  # fmt: skip
    if not shared:
        return False
    code, key = max(shared, key=lambda each: max(kept.data_bytes[each[0]]))
    side = int(kept.data_bytes[code][1] > kept.data_bytes[code][0])
    parts = [_numbers(columns, of == code, side) for of, columns in kept.parts()]
    before, after = np.concatenate(parts), _numbers(segments.columns, segments.key == key, side)
    if not before.size or not after.size:
        return False
    from_last, from_first = ((int(after[0]) - int(each) + _HALF) % (2 * _HALF) - _HALF for each in before[[-1, 0]])
    return abs(from_last) < abs(from_first)


def _numbers(
    columns: dict[str, npt.NDArray[np.generic]], of: npt.NDArray[np.bool_], side: int
) -> npt.NDArray[np.uint32]:
    rows = of & (columns["from_first"] == side) & (columns["payload_bytes"] != 0)
    found = columns["sequence"][rows].astype(np.uint32) + columns["payload_bytes"][rows].astype(np.uint32)
    return np.asarray(found)
