# SPDX-License-Identifier: Apache-2.0
"""What a connection takes in the kernel's memory, as the module of profiles/atlas/footprint.c tells it."""

from __future__ import annotations

import json

from howdah.measure.row import Sheet
from howdah.run.directory import RunDirectory

_MODULE = "footprint"
# With what the kernel hands to it for each ACK, as the SEARCH slides count CUBIC (60 and 12) and BBR (100 and 56).
_SUMS = {"cubic_footprint": ("cubic_state", "ack_sample"), "bbr_footprint": ("bbr_state", "rate_sample")}
# The share of a connection's structures: struct sock and struct tcp_sock, one after the other (SEARCH slides).
_STRUCTURES = ("sock", "tcp_sock")


def footprint_rows(sheet: Sheet, directory: RunDirectory) -> None:
    """``NAME_bytes`` of each structure, and of CUBIC and BBR their ``_footprint_bytes`` and ``_footprint_share``.

    No rows in a run that does not load the module.
    """
    sizes = _read(directory)
    for name, size in sizes.items():
        sheet.add(None, f"{name}_bytes", size, "bytes")
    if not all(name in sizes for name in _STRUCTURES):
        return
    whole = sum(sizes[name] for name in _STRUCTURES)
    for name, parts in _SUMS.items():
        if all(part in sizes for part in parts):
            taken = sum(sizes[part] for part in parts)
            sheet.add(None, f"{name}_bytes", taken, "bytes")
            sheet.add(None, f"{name}_share", taken / whole, "ratio")


def _read(directory: RunDirectory) -> dict[str, int]:
    """Sizes in bytes by name; empty without the module, or where the agent's record cannot be read."""
    try:
        record = json.loads((directory.raw / "agent.json").read_text(encoding="utf-8"))
        parameters = record["modules"][_MODULE]["parameters"]
        return {name.removesuffix("_bytes"): int(value) for name, value in parameters.items()}
    except (OSError, ValueError, KeyError, TypeError, AttributeError):
        return {}
