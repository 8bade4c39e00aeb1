# SPDX-License-Identifier: Apache-2.0
"""Instructions and samples by function and interval, from what the counter and perf left, and their files in raw/.

``instructions.jsonl`` and ``samples.jsonl`` have one form: the first line is {"format": 1, "places": [[domain, symbol,
inlined], …]}, each other one {"begin_ns", "end_ns", "counts": [[place, number], …]} of an interval between two marks
(CLOCK_MONOTONIC). ``processor.json``, the guest's, gets what is known from outside: ``counter_why``, ``lost``,
``functions`` (those of TCP that have symbols of their own).
"""

from __future__ import annotations

import bisect
import json
import struct
from collections import Counter
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from pathlib import Path

from howdah.errors import HowdahError

INSTRUCTIONS_FILE, SAMPLES_FILE, ACCOUNT_FILE = "instructions.jsonl", "samples.jsonl", "processor.json"
Place = tuple[str, str, str]  # domain, symbol, inlined ("f<g", innermost first)
_BLOCK = struct.Struct("<QI")
_PAIR = struct.Struct("<II")
_LENGTH = struct.Struct("<I")


def read_blocks(content: bytes) -> list[tuple[int, ...]]:
    """Addresses of the instructions of each block of blocks.bin; (0,) is all code outside the kernel."""
    found: list[tuple[int, ...]] = []
    at = 0
    while at < len(content):
        address, number = _BLOCK.unpack_from(content, at)
        at += _BLOCK.size
        lengths = content[at : at + number]
        at += number
        addresses = [address]
        for length in lengths[:-1]:
            addresses.append(addresses[-1] + length)
        found.append(tuple(addresses))
    return found


def read_counts(content: bytes) -> Iterator[list[tuple[int, int]]]:
    """(Block, executions) between two marks, of one pair after the other; last, what came after the last mark."""
    at = 0
    while at < len(content):
        (pairs,) = _LENGTH.unpack_from(content, at)
        at += _LENGTH.size
        body = content[at : at + pairs * _PAIR.size]
        if len(body) < pairs * _PAIR.size:
            raise HowdahError("the counter did not end its file")
        yield list(_PAIR.iter_unpack(body))
        at += pairs * _PAIR.size


def instructions_by_address(blocks: Sequence[tuple[int, ...]], pairs: Iterable[tuple[int, int]]) -> Counter[int]:
    """Executions of each instruction, by its address; 0 stands for all outside the kernel."""
    counted: Counter[int] = Counter()
    for block, executions in pairs:
        for address in blocks[block]:
            counted[address] += executions
    return counted


def samples_by_interval(samples: Iterable[tuple[int, int, int]], marks: Sequence[int]) -> list[Counter[int]]:
    """Samples (time, process, address) of each interval between two marks, by address; others are left out."""
    found: list[Counter[int]] = [Counter() for _ in marks[1:]]
    for time_ns, _process, address in samples:
        interval = bisect.bisect_right(marks, time_ns) - 1
        if 0 <= interval < len(found):
            found[interval][address] += 1
    return found


def write(
    file: Path, marks: Sequence[int], counted: Sequence[Mapping[int, int]], place_of: Callable[[int], Place]
) -> None:
    """``counted`` by address, of each interval between two marks."""
    numbers: dict[Place, int] = {}
    places: dict[int, int] = {}
    for address in sorted({address for interval in counted for address in interval}):
        place = place_of(address)
        places[address] = numbers.setdefault(place, len(numbers))
    with file.open("w", encoding="utf-8") as out:
        out.write(json.dumps({"format": 1, "places": [list(place) for place in numbers]}, separators=(",", ":")) + "\n")
        for begin, end, interval in zip(marks, marks[1:], counted, strict=False):
            by_place: Counter[int] = Counter()
            for address, number in interval.items():
                by_place[places[address]] += number
            record = {"begin_ns": begin, "end_ns": end, "counts": sorted(by_place.items())}
            out.write(json.dumps(record, separators=(",", ":")) + "\n")
