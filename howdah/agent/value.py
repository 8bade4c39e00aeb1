# SPDX-License-Identifier: Apache-2.0
"""Whether two texts of the kernel are one value."""

from __future__ import annotations

_TRUE, _FALSE = {"1", "y", "yes", "on", "true"}, {"0", "n", "no", "off", "false"}


def same_value(asked: str, found: str) -> bool:
    """Whether two texts are one value: 0x10 and 16, 1 and Y, lists of such."""
    if "," in asked or "," in found:
        parts = asked.split(","), found.split(",")
        return len(parts[0]) == len(parts[1]) and all(map(same_value, *parts))
    return _value(asked) == _value(found)


def _value(text: str) -> str | int | bool:
    plain = text.strip()
    try:
        return int(plain, 0)
    except ValueError:
        lowered = plain.lower()
        return lowered in _TRUE if lowered in _TRUE | _FALSE else plain
