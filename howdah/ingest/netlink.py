# SPDX-License-Identifier: Apache-2.0
"""The structure of netlink messages as the kernel sends them (RFC 3549 section 2.3.2): headers and attributes."""

from __future__ import annotations

import struct
from collections.abc import Iterator
from dataclasses import dataclass, field

from howdah.linux.netlink.message import TYPE_MASK

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
    """What one message says, as a map of where to find it.

    ``identity`` is constant text about the object (interface, handle, ports), ``slots`` are the counters, and
    ``skeleton`` the byte ranges that must be equal in another answer for the same map to hold there. One that is not
    ``wanted`` becomes no record; its skeleton holds what says so.
    """

    identity: tuple[str, ...]
    slots: dict[str, Slot]
    skeleton: list[tuple[int, int]] = field(default_factory=list)
    wanted: bool = True


def messages(data: bytes) -> Iterator[tuple[int, int, int]]:
    """Yield (type, start of the body, end of the body) of each message. Raises MalformedMessageError."""
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
    """Map each attribute's type to (offset, length) of its payload. Raises MalformedMessageError."""
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
    """The headers (length and type) of the attributes: the ranges that fix where everything is."""
    return [(offset - _ATTRIBUTE.size, offset) for offset, _length in attributes_found.values()]


def text_of(data: bytes, place: tuple[int, int] | None) -> str | None:
    """A zero-terminated string attribute."""
    if place is None:
        return None
    offset, length = place
    return data[offset : offset + length].split(b"\0", 1)[0].decode("ascii", "replace")
