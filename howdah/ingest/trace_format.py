# SPDX-License-Identifier: Apache-2.0
"""Parse the kernel's own description of its trace records: ``header_page``, ``header_event`` and ``events/*/format``.

Offsets and sizes come from these texts because they differ between kernels: 6.x appended fields to tcp_probe, and the
size of a sub-buffer is a setting.
"""

from __future__ import annotations

import re
from dataclasses import dataclass

from howdah.errors import HowdahError

_FIELD = re.compile(
    r"field:\s*(?P<declaration>[^;]+);\s*offset:\s*(?P<offset>\d+);\s*size:\s*(?P<size>\d+);\s*signed:\s*(?P<signed>\d+);"
)
_NAME = re.compile(r"(?P<name>\w+)\s*(\[[^\]]*\])?$")
_BITS = re.compile(r"^\s*(?P<name>type_len|time_delta|array)\s*:\s*(?P<bits>\d+)\s+bits", re.MULTILINE)
_TYPE = re.compile(r"^\s*(?P<name>padding|time_extend|time_stamp)\s*:\s*type\s*==\s*(?P<value>\d+)", re.MULTILINE)
_DATA_MAX = re.compile(r"^\s*data max type_len\s*==\s*(?P<value>\d+)", re.MULTILINE)
_ID = re.compile(r"^ID:\s*(\d+)", re.MULTILINE)


@dataclass(frozen=True)
class TraceField:
    """One member of a record: byte offset from the record's start, size in bytes, signedness."""

    name: str
    offset: int
    size: int
    signed: bool


@dataclass(frozen=True)
class PageHeader:
    """Where a sub-buffer keeps its time stamp, its commit word and its events (bytes)."""

    timestamp: TraceField
    commit: TraceField
    data_offset: int


@dataclass(frozen=True)
class EventHeader:
    """How the first word of an event is divided, and which values of type_len are not data."""

    type_len_bits: int
    time_delta_bits: int
    padding: int
    time_extend: int
    time_stamp: int | None
    data_max: int


@dataclass(frozen=True)
class EventFormat:
    """``format`` of one event: its number and its fields by name."""

    id: int
    fields: dict[str, TraceField]

    def field(self, name: str) -> TraceField:
        try:
            return self.fields[name]
        except KeyError:
            raise HowdahError(
                f"the tracepoint's format has no field {name!r} (it has {', '.join(self.fields)})",
                hint="this kernel's tcp_probe differs from every one known; it cannot be used as a source",
            ) from None

    @property
    def size(self) -> int:
        """Bytes up to the end of the last field."""
        return max(field.offset + field.size for field in self.fields.values())


def _fields(text: str) -> dict[str, TraceField]:
    found: dict[str, TraceField] = {}
    for match in _FIELD.finditer(text):
        name = _NAME.search(match["declaration"].strip())
        if name is not None:
            found[name["name"]] = TraceField(
                name["name"], int(match["offset"]), int(match["size"]), match["signed"] == "1"
            )
    return found


def parse_page_header(text: str, where: str) -> PageHeader:
    """Read ``events/header_page``; ``where`` names the file in errors."""
    fields = _fields(text)
    missing = [name for name in ("timestamp", "commit", "data") if name not in fields]
    if missing:
        raise HowdahError(f"no field {', '.join(missing)} in the description of a trace page", where=where)
    return PageHeader(fields["timestamp"], fields["commit"], fields["data"].offset)


def parse_event_header(text: str, where: str) -> EventHeader:
    """Read ``events/header_event``; kernels before 3.x name no time_stamp type."""
    bits = {match["name"]: int(match["bits"]) for match in _BITS.finditer(text)}
    types = {match["name"]: int(match["value"]) for match in _TYPE.finditer(text)}
    data_max = _DATA_MAX.search(text)
    if bits.get("array") != 32 or bits.get("type_len", 0) + bits.get("time_delta", 0) != 32 or data_max is None:
        raise HowdahError("the description of a trace event is not the 32-bit header this parser knows", where=where)
    if "padding" not in types or "time_extend" not in types:
        raise HowdahError("the description of a trace event names no padding or time_extend type", where=where)
    return EventHeader(
        bits["type_len"],
        bits["time_delta"],
        types["padding"],
        types["time_extend"],
        types.get("time_stamp"),
        int(data_max["value"]),
    )


def parse_event_format(text: str, where: str) -> EventFormat:
    """Read ``events/<system>/<event>/format``."""
    number = _ID.search(text)
    fields = _fields(text)
    if number is None or not fields:
        raise HowdahError("not the format of a tracepoint: no ID or no field", where=where)
    return EventFormat(int(number.group(1)), fields)
