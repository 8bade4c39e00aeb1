# SPDX-License-Identifier: Apache-2.0
"""Delays of a file, from which a path draws: one on each line. Every complaint names the file and the line."""

from __future__ import annotations

from pathlib import Path

from howdah.errors import ProfileError
from howdah.quantity import QuantityError, parse_duration

MOST_DELAYS = 1_000_000
_LARGEST_BYTES = 16 << 20
_FORM = "write one delay with its unit on each line: 3 ms"


def read_delays(file: Path, where: str) -> list[int]:
    """In microseconds, sorted. Raises ProfileError."""
    try:
        if file.stat().st_size > _LARGEST_BYTES:
            raise ProfileError(f"{file} is larger than {_LARGEST_BYTES >> 20} MiB, too large for delays", where=where)
        lines = file.read_text(encoding="utf-8").splitlines()
    except (OSError, UnicodeDecodeError) as error:
        reason = error.strerror if isinstance(error, OSError) else "it is not text"
        raise ProfileError(f"the delays {file} cannot be read: {reason}", where=where, hint=_FORM) from None
    delays = []
    for number, line in enumerate(lines, start=1):
        entry = line.partition("#")[0].strip()
        if not entry:
            continue
        try:
            delays.append(parse_duration(entry))
        except QuantityError as error:
            raise ProfileError(str(error), where=f"{file}:{number}", hint=_FORM) from None
    if not any(delays):
        what = f"{file} has no delay above 0" if delays else f"{file} has no delays"
        raise ProfileError(what, where=where, hint=_FORM)
    if len(delays) > MOST_DELAYS:
        raise ProfileError(f"{file} has {len(delays)} delays, more than {MOST_DELAYS}", where=where)
    return sorted(delays)
