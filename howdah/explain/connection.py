# SPDX-License-Identifier: Apache-2.0
"""Collect the segments of a capture, batch by batch, and divide them into connections: the segments that one tap saw of
each, in order of time."""

from __future__ import annotations

import ipaddress
from collections.abc import Iterator
from dataclasses import dataclass, field

import numpy as np
import numpy.typing as npt

from howdah.explain.segment import COLUMNS, TcpColumns
from howdah.ingest.capture import ACK, SYN
from howdah.ingest.source import Integers

_LEAST_DATA_BYTES = 20_000  # connections with less data have no start-up to explain


@dataclass(frozen=True)
class Options:
    """The options of an end's SYN. None: the option was not sent or, unless ``whole``, was cut off."""

    mss_bytes: int | None
    scale: int | None
    sack_permitted: bool
    time_stamps: bool
    whole: bool = True


@dataclass
class TapConnection:
    """One connection at one tap: ``columns`` as :data:`COLUMNS`, in order of time. ``ours`` marks segments of the
    sender, which is the end that sent the most data; ``sack`` has rows (segment, left, right); ``options`` are by side,
    sender and receiver.

    ``later_segments`` counts segments beyond the limit, ``backward_stamps`` those stamped earlier than the one before
    them.
    """

    file: str
    tap: int
    ends: tuple[str, str]
    columns: dict[str, npt.NDArray[np.generic]]
    ours: npt.NDArray[np.bool_]
    sack: Integers
    options: dict[str, Options | None]
    backward_stamps: int = 0
    later_segments: int = 0

    def column(self, name: str) -> Integers:
        return self.columns[name].astype(np.int64)

    @property
    def data_bytes(self) -> int:
        return int(self.column("payload_bytes")[self.ours].sum())


def connections_of(kept: KeptSegments, name: str, most: int) -> list[TapConnection]:
    """Return the connections with data of the capture ``name``, the largest first."""
    _join_directions(kept)
    sizes = [max(each) for each in kept.data_bytes]
    chosen = [code for code in np.argsort([-size for size in sizes], kind="stable").tolist() if sizes[code]][:most]
    chosen = [code for code in chosen if sizes[code] >= _LEAST_DATA_BYTES or code == chosen[0]]
    found: list[TapConnection] = []
    if not chosen:
        return found
    code = np.concatenate(kept.code)
    columns = {name: np.concatenate(kept.columns.pop(name)) for name in COLUMNS}
    sack, syn = np.concatenate(kept.sack), np.concatenate(kept.syn)
    for each in chosen:
        rows = np.flatnonzero(code == each)
        mine = {name: column[rows] for name, column in columns.items()}
        parts = _split_at_syns(mine)
        for part in parts:
            connection = _connection(kept, each, name, mine, rows, part, sack, syn)
            if connection is not None:
                found.append(connection)
    found.sort(key=lambda each: -each.data_bytes)
    return found[:most]


def _join_directions(kept: KeptSegments) -> None:
    """Join connections of which two interfaces saw one direction each, as on a host with two links."""
    by_ends: dict[frozenset[str], list[int]] = {}
    for code, names in enumerate(kept.names):
        by_ends.setdefault(frozenset(names), []).append(code)
    pairs = [codes for codes in by_ends.values() if len(codes) == 2]
    if not pairs:
        return
    sides = np.zeros((len(kept.names), 2), np.int64)
    for codes, first in zip(kept.code, kept.columns["from_first"], strict=True):
        np.add.at(sides, (codes, first.astype(np.int64)), 1)
    for one, other in pairs:
        if (sides[one] > 0).sum() == 1 and ((sides[one] > 0) ^ (sides[other] > 0)).all():
            for part in kept.code:
                part[part == other] = one
            kept.data_bytes[one] = [a + b for a, b in zip(kept.data_bytes[one], kept.data_bytes[other], strict=True)]
            kept.data_bytes[other] = [0, 0]


def _split_at_syns(columns: dict[str, npt.NDArray[np.generic]]) -> list[Integers]:
    """Divide segments at each SYN with a new sequence number: a pair of ports may be used again."""
    flags = columns["flags"].astype(np.int64)
    opens = np.flatnonzero((flags & (SYN | ACK)) == SYN)
    edges = [0]
    numbers = columns["sequence"][opens]
    for before, here in zip(range(opens.size - 1), range(1, opens.size), strict=True):
        if numbers[here] != numbers[before]:
            edges.append(int(opens[here]))
    return [np.arange(first, last) for first, last in zip(edges, [*edges[1:], flags.size], strict=True)]


def _in_order(stamps: Integers, ident: npt.NDArray[np.generic], first: npt.NDArray[np.bool_]) -> Integers:
    """Return the order by time. For equal stamps, the order of the file decides between the two ends, and IP
    identification within each end."""
    order = np.argsort(stamps, kind="stable")
    for side in (True, False):
        slots = np.flatnonzero(first[order] == side)
        mine = order[slots]
        order[slots] = mine[np.lexsort((ident[mine], stamps[mine]))]
    return order


def _connection(
    kept: KeptSegments,
    code: int,
    file: str,
    all_columns: dict[str, npt.NDArray[np.generic]],
    rows: Integers,
    part: Integers,
    sack: Integers,
    syn: Integers,
) -> TapConnection | None:
    columns = {name: column[part] for name, column in all_columns.items()}
    rows = rows[part]
    payload, first = columns["payload_bytes"].astype(np.int64), columns["from_first"].astype(bool)
    sent = int(payload[first].sum()), int(payload[~first].sum())
    if not max(sent):
        return None
    ours = first if sent[0] >= sent[1] else ~first
    names = kept.names[code] if sent[0] >= sent[1] else kept.names[code][::-1]
    stamps = columns["time_ns"].astype(np.int64)
    backward = int((np.diff(stamps) < 0).sum())
    order = _in_order(stamps, columns["ident"], first) if backward else np.arange(rows.size)
    place = np.empty(rows.size, np.int64)
    place[order] = np.arange(rows.size)

    def moved(found: Integers) -> Integers:
        at = np.minimum(np.searchsorted(rows, found[:, 0]), rows.size - 1)
        mine = rows[at] == found[:, 0]
        return np.column_stack([place[at[mine]], found[mine, 1:]])

    said = moved(syn)
    ours = ours[order]
    has_stamps = columns["has_stamps"][order]
    options: dict[str, Options | None] = {"sender": None, "receiver": None}
    for row, mss, scale, permitted, whole in said[::-1].tolist():
        options["sender" if ours[row] else "receiver"] = Options(
            mss if mss >= 0 else None, scale if scale >= 0 else None, permitted > 0, bool(has_stamps[row]), bool(whole)
        )
    blocks = moved(sack)
    return TapConnection(
        file,
        kept.taps[code],
        (names[0], names[1]),
        {name: column[order] for name, column in columns.items()},
        ours,
        blocks[np.argsort(blocks[:, 0], kind="stable")],
        options,
        backward,
        kept.later[code],
    )


# Limits of what is kept: segments of a connection, segments of a file, connections of a file.
MOST_SEGMENTS = 1_000_000
_MOST_KEPT = 3_000_000
_MOST_CONNECTIONS = 100_000


@dataclass
class KeptSegments:
    """The segments kept of a file, in one part for each batch; ``code`` numbers their connections."""

    columns: dict[str, list[npt.NDArray[np.generic]]] = field(default_factory=lambda: {name: [] for name in COLUMNS})
    code: list[npt.NDArray[np.int32]] = field(default_factory=list)
    sack: list[Integers] = field(default_factory=list)
    syn: list[Integers] = field(default_factory=list)
    names: list[tuple[str, str]] = field(default_factory=list)
    taps: list[int] = field(default_factory=list)
    places: dict[int, int] = field(default_factory=dict)
    counts: list[int] = field(default_factory=list)
    later: list[int] = field(default_factory=list)
    data_bytes: list[list[int]] = field(default_factory=list)
    size: int = 0
    passed_over: int = 0

    def parts(self) -> Iterator[tuple[npt.NDArray[np.int32], dict[str, npt.NDArray[np.generic]]]]:
        for number, code in enumerate(self.code):
            yield code, {name: columns[number] for name, columns in self.columns.items()}


def keep(kept: KeptSegments, segments: TcpColumns, data: npt.NDArray[np.uint8]) -> None:
    keys, first, inverse = np.unique(segments.key, return_index=True, return_inverse=True)
    codes = np.empty(keys.size, np.int32)
    for place, (key, row) in enumerate(zip(keys.tolist(), first.tolist(), strict=True)):
        code = kept.places.get(key)
        if code is None and len(kept.places) < _MOST_CONNECTIONS:
            code = kept.places[key] = len(kept.names)
            kept.names.append(_ends(segments, row, data))
            kept.taps.append(int(segments.tap[row]))
            kept.counts.append(0)
            kept.later.append(0)
            kept.data_bytes.append([0, 0])
        codes[place] = -1 if code is None else code
    code_of = codes[inverse.reshape(-1)]
    payload = segments.columns["payload_bytes"].astype(np.int64)
    from_first = segments.columns["from_first"].astype(np.int64)
    wanted = code_of >= 0
    kept.passed_over += int((~wanted).sum())
    inverse = inverse.reshape(-1)
    sums = np.bincount(inverse * 2 + from_first, weights=payload, minlength=keys.size * 2)
    counts = np.bincount(inverse, minlength=keys.size).tolist()
    for place, code in enumerate(codes.tolist()):
        if code < 0:
            continue
        for side in (0, 1):
            kept.data_bytes[code][side] += int(sums[2 * place + side])
        taken = max(min(counts[place], MOST_SEGMENTS - kept.counts[code], _MOST_KEPT - kept.size), 0)
        if taken < counts[place]:
            wanted[np.flatnonzero(inverse == place)[taken:]] = False
            kept.later[code] += counts[place] - taken
        kept.counts[code] += taken
        kept.size += taken
    rows = np.flatnonzero(wanted)
    moved = np.cumsum(wanted) - 1 + sum(part.size for part in kept.code)
    for name, column in segments.columns.items():
        kept.columns[name].append(column[rows])
    kept.code.append(code_of[rows])
    for parts, found in ((kept.sack, segments.sack), (kept.syn, segments.syn)):
        found = found[wanted[found[:, 0]]]
        parts.append(np.column_stack([moved[found[:, 0]], found[:, 1:]]))


def _ends(segments: TcpColumns, row: int, data: npt.NDArray[np.uint8]) -> tuple[str, str]:
    place = int(segments.ip[row])
    is_six = data[place] >> 4 == 6
    begin, size = (place + 8, 16) if is_six else (place + 12, 4)
    addresses = [ipaddress.ip_address(data[at : at + size].tobytes()) for at in (begin, begin + size)]
    ports = int(segments.ports[row]) >> 16, int(segments.ports[row]) & 0xFFFF
    texts = [f"[{each}]:{port}" if is_six else f"{each}:{port}" for each, port in zip(addresses, ports, strict=True)]
    return (texts[0], texts[1]) if segments.columns["from_first"][row] else (texts[1], texts[0])
