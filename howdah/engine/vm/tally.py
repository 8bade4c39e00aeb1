# SPDX-License-Identifier: Apache-2.0
"""Tallies instructions and samples by function and interval, from the files of the counter and perf, and writes raw/.

``instructions.jsonl`` and ``samples.jsonl`` have the same form. The first line is {"format": 1, "places": [[domain,
symbol, inlined], …]}; each further line is {"begin_ns", "end_ns", "counts": [[place, number], …]} for an interval
between two marks (CLOCK_MONOTONIC). The guest's ``processor.json`` is completed with what is known outside:
``counter_why``, ``lost``, ``functions`` (those of TCP that have symbols of their own).

perf.data is read as ``perf record`` of any version writes it, without perf. Its layout is described in
tools/perf/Documentation/perf.data-file-format.txt and perf_event_open(2). Files of another byte order, call chains,
registers and compressed records are not supported.
"""

from __future__ import annotations

import bisect
import json
import struct
from collections import Counter
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path

from howdah.errors import HowdahError

INSTRUCTIONS_FILE, SAMPLES_FILE, ACCOUNT_FILE = "instructions.jsonl", "samples.jsonl", "processor.json"
Place = tuple[str, str, str]  # domain, symbol, inlined ("f<g", innermost first)
_BLOCK = struct.Struct("<QI")
_PAIR = struct.Struct("<II")
_LENGTH = struct.Struct("<I")
_MAGIC = b"PERFILE2"
_HEADER = struct.Struct("<8sQQ QQ QQ QQ")  # magic, sizes of header and attribute, offset and size of three sections
_RECORD = struct.Struct("<IHH")  # type, misc, size
_LOST, _THROTTLE, _SAMPLE, _LOST_SAMPLES, _COMPRESSED = 2, 5, 9, 13, 81
_SAMPLE_TYPE_AT = 24  # offset in struct perf_event_attr
# Parts of a sample that can come before or between the wanted ones, in order: bit, bytes, name.
_PARTS = (
    (1 << 16, 8, "identifier"),
    (1 << 0, 8, "ip"),
    (1 << 1, 8, "tid"),
    (1 << 2, 8, "time"),
    (1 << 3, 8, "addr"),
    (1 << 6, 8, "id"),
    (1 << 9, 8, "stream"),
    (1 << 7, 8, "cpu"),
    (1 << 8, 8, "period"),
)


def read_blocks(content: bytes) -> list[tuple[int, ...]]:
    """Return the instruction addresses of each block in blocks.bin; (0,) is all code outside the kernel."""
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
    """Yield (block, executions) between successive marks; the last list covers everything after the last mark."""
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
    """Count executions by instruction address; address 0 is all code outside the kernel."""
    counted: Counter[int] = Counter()
    for block, executions in pairs:
        for address in blocks[block]:
            counted[address] += executions
    return counted


def samples_by_interval(samples: Iterable[tuple[int, int, int]], marks: Sequence[int]) -> list[Counter[int]]:
    """Count samples (time, process, address) by address in each interval between two marks; others are ignored."""
    found: list[Counter[int]] = [Counter() for _ in marks[1:]]
    for time_ns, _process, address in samples:
        interval = bisect.bisect_right(marks, time_ns) - 1
        if 0 <= interval < len(found):
            found[interval][address] += 1
    return found


def write(
    file: Path, marks: Sequence[int], counted: Sequence[Mapping[int, int]], place_of: Callable[[int], Place]
) -> None:
    """Write counts, given by address for each interval between two marks, by place."""
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


@dataclass(frozen=True)
class PerfSamples:
    """Samples of perf. ``found`` are (time in ns of perf's clock, process, address) in file order; ``lost`` were not
    recorded.

    ``throttled`` counts how often the kernel paused sampling until its next tick because the rate was too high.
    """

    found: list[tuple[int, int, int]]
    lost: int
    throttled: int


def read_samples(content: bytes, where: str) -> PerfSamples:
    """Read perf.data. Raises HowdahError for another kind of file, a truncated one, or unsupported content."""
    try:
        return _read(content)
    except (struct.error, ValueError, IndexError) as error:
        raise HowdahError(f"not a file of perf record that can be read: {error}", where=where) from None


def _read(content: bytes) -> PerfSamples:
    magic, _size, attribute_bytes, first, attributes_bytes, data, data_bytes, *_types = _HEADER.unpack_from(content)
    if magic != _MAGIC:
        raise ValueError(f"it begins with {magic!r}")
    end = data + data_bytes
    if not data_bytes or end > len(content):
        raise ValueError("perf did not end it")
    places = _places(
        {
            struct.unpack_from("<Q", content, first + number * attribute_bytes + _SAMPLE_TYPE_AT)[0]
            for number in range(attributes_bytes // attribute_bytes)
        }
    )
    found, lost, throttled, at = [], 0, 0, data
    while at < end:
        kind, _misc, size = _RECORD.unpack_from(content, at)
        if size < _RECORD.size or at + size > end:
            raise ValueError(f"a record of {size} bytes at {at}")
        body = at + _RECORD.size
        if kind == _SAMPLE:
            ip, process, time_ns = (
                struct.unpack_from(form, content, body + places[name])[0]
                for form, name in (("<Q", "ip"), ("<I", "tid"), ("<Q", "time"))
            )
            found.append((time_ns, process, ip))
        elif kind == _LOST:
            lost += struct.unpack_from("<Q", content, body + 8)[0]
        elif kind == _LOST_SAMPLES:
            lost += struct.unpack_from("<Q", content, body)[0]
        elif kind == _THROTTLE:
            throttled += 1
        elif kind == _COMPRESSED:
            raise ValueError("its records are compressed")
        at += size
    return PerfSamples(found, lost, throttled)


def _places(kinds: set[int]) -> dict[str, int]:
    """Return the offsets of a sample's parts; all events of the file must have the same sample type."""
    if len(kinds) != 1:
        raise ValueError(f"its events have {len(kinds)} kinds of samples")
    (kind,) = kinds
    places, at = {}, 0
    for bit, size, name in _PARTS:
        if kind & bit:
            places[name] = at
            at += size
    if missing := {"ip", "tid", "time"} - places.keys():
        raise ValueError(f"its samples lack {', '.join(sorted(missing))}")
    return places
