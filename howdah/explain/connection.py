# SPDX-License-Identifier: Apache-2.0
"""Kept segments to connections: those of each, in the order of their stamps, as one tap saw them."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
import numpy.typing as npt

from howdah.explain.kept import Kept
from howdah.explain.segment import COLUMNS
from howdah.ingest.capture import ACK, SYN
from howdah.ingest.source import Integers

_LEAST_DATA_BYTES = 20_000  # what sends less has no start-up


@dataclass(frozen=True)
class Options:
    """What an end said in its SYN; None for an option that it did not send, or, if not ``whole``, that was cut off."""

    mss_bytes: int | None
    scale: int | None
    sack_permitted: bool
    time_stamps: bool
    whole: bool = True


@dataclass
class TapConnection:
    """One connection at one tap. ``columns`` as :data:`COLUMNS`, in order of time; ``ours`` are those of the end that
    sent the most data. ``sack`` has rows (segment, left, right). ``options`` are by side: sender, receiver.

    ``later_segments`` came behind the most that are kept; ``backward_stamps`` counts those that were before the one in
    front of them.
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


def divide(kept: Kept, name: str, most: int) -> list[TapConnection]:
    """The connections with data of the capture ``name``, the largest first."""
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
        parts = _by_opening(mine)
        for part in parts:
            connection = _connection(kept, each, name, mine, rows, part, sack, syn)
            if connection is not None:
                found.append(connection)
    found.sort(key=lambda each: -each.data_bytes)
    return found[:most]


def _join_directions(kept: Kept) -> None:
    """One connection where each of two interfaces saw one direction of it, as with two ways into a host."""
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


def _by_opening(columns: dict[str, npt.NDArray[np.generic]]) -> list[Integers]:
    """A pair of ports may be used again: a SYN with another number begins a further connection."""
    flags = columns["flags"].astype(np.int64)
    opens = np.flatnonzero((flags & (SYN | ACK)) == SYN)
    edges = [0]
    numbers = columns["sequence"][opens]
    for before, here in zip(range(opens.size - 1), range(1, opens.size), strict=True):
        if numbers[here] != numbers[before]:
            edges.append(int(opens[here]))
    return [np.arange(first, last) for first, last in zip(edges, [*edges[1:], flags.size], strict=True)]


def _in_order(stamps: Integers, ident: npt.NDArray[np.generic], first: npt.NDArray[np.bool_]) -> Integers:
    """By time. Of packets with one stamp the file's order says which end was first, and the numbers of IP the order of
    each end's own."""
    order = np.argsort(stamps, kind="stable")
    for side in (True, False):
        slots = np.flatnonzero(first[order] == side)
        mine = order[slots]
        order[slots] = mine[np.lexsort((ident[mine], stamps[mine]))]
    return order


def _connection(
    kept: Kept,
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
