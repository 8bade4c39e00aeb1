# SPDX-License-Identifier: Apache-2.0
"""What a connection takes in the kernel's memory, as the module of profiles/atlas/footprint.c tells it."""

from __future__ import annotations

from howdah.measure.row import Sheet
from howdah.record.directory import RunDirectory
from howdah.record.raw import raw_value, read_raw_bytes

_MODULE = "footprint"


def footprint_rows(sheet: Sheet, directory: RunDirectory) -> None:
    """``sock_bytes``, ``tcp_sock_bytes``, ``ack_sample_bytes``, ``rate_sample_bytes`` and
    ``congestion_control_room_bytes`` of the kernel; no rows in a run that does not load the module."""
    for name, size in _read(directory).items():
        sheet.add(None, name, size)


def _read(directory: RunDirectory) -> dict[str, int]:
    """Sizes in bytes by name; empty without the module, or where the agent's record cannot be read."""
    try:
        record = raw_value(read_raw_bytes(directory.raw / "agent.json"))
        return {name: int(value) for name, value in record["modules"][_MODULE]["parameters"].items()}
    except (OSError, ValueError, KeyError, TypeError, AttributeError):
        return {}
