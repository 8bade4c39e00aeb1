# SPDX-License-Identifier: Apache-2.0
"""Samples of a perf.data file as ``perf record`` of any version writes it, without perf.

The layout is that of tools/perf/Documentation/perf.data-file-format.txt and of perf_event_open(2). Files of this
machine's byte order alone are read; call chains, registers and compressed records are not.
"""

from __future__ import annotations

import struct
from dataclasses import dataclass

from howdah.errors import HowdahError

_MAGIC = b"PERFILE2"
_HEADER = struct.Struct("<8sQQ QQ QQ QQ")  # magic, sizes of header and attribute, three sections of offset and size
_RECORD = struct.Struct("<IHH")  # type, misc, size
_LOST, _THROTTLE, _SAMPLE, _LOST_SAMPLES, _COMPRESSED = 2, 5, 9, 13, 81
_SAMPLE_TYPE_AT = 24  # in struct perf_event_attr
# Parts of a sample that can come before or between those that are wanted, in their order: bit, bytes, name.
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


@dataclass(frozen=True)
class PerfSamples:
    """``found`` are (time in ns of perf's clock, process, address) in the file's order; ``lost`` were not recorded.

    ``throttled`` is how often the kernel stopped sampling until its next tick, because there were too many at once.
    """

    found: list[tuple[int, int, int]]
    lost: int
    throttled: int


def read_samples(content: bytes, where: str) -> PerfSamples:
    """Raises HowdahError if it is not a perf.data file, was cut off, or holds what is not read here."""
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
    """Where the parts of a sample are, for the one kind of sample that all events of the file have."""
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
