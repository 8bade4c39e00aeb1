# SPDX-License-Identifier: Apache-2.0
"""The segments of a capture as they are read, batch by batch, each with the place of its connection."""

from __future__ import annotations

import ipaddress
from collections.abc import Iterator
from dataclasses import dataclass, field

import numpy as np
import numpy.typing as npt

from howdah.explain.segment import COLUMNS, TcpColumns
from howdah.ingest.source import Integers

MOST_SEGMENTS = 1_000_000  # of a connection: its start-up is in them
_MOST_KEPT = 3_000_000  # of a file
_MOST_CONNECTIONS = 100_000


@dataclass
class Kept:
    """Parts of a file's segments, one for each batch; ``code`` is the place of their connection."""

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
        """Codes and columns of each batch."""
        for number, code in enumerate(self.code):
            yield code, {name: columns[number] for name, columns in self.columns.items()}


def keep(kept: Kept, segments: TcpColumns, data: npt.NDArray[np.uint8]) -> None:
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
    """Address and port of both ends, that of the first one first."""
    place = int(segments.ip[row])
    is_six = data[place] >> 4 == 6
    begin, size = (place + 8, 16) if is_six else (place + 12, 4)
    addresses = [ipaddress.ip_address(data[at : at + size].tobytes()) for at in (begin, begin + size)]
    ports = int(segments.ports[row]) >> 16, int(segments.ports[row]) & 0xFFFF
    texts = [f"[{each}]:{port}" if is_six else f"{each}:{port}" for each, port in zip(addresses, ports, strict=True)]
    return (texts[0], texts[1]) if segments.columns["from_first"][row] else (texts[1], texts[0])
