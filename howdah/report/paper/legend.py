# SPDX-License-Identifier: Apache-2.0
"""How names fit a sheet of a given width: in how many columns a legend stands, and where a long name is broken."""

from __future__ import annotations

import re
import textwrap

_LETTER_IN = 0.056  # of a legend: the mean of letters, as wide as names are
_KEY_IN = 0.5  # the piece of line before a name, and the room behind it
_BEFORE_UNIT = re.compile(r"(?<=\d) (?=\S)")


def columns(labels: list[str], width_in: float) -> int:
    """How many entries of a legend stand side by side."""
    each_in = _KEY_IN + _LETTER_IN * max(len(line) for label in labels for line in label.split("\n"))
    return max(1, min(len(labels), int(width_in / each_in)))


def entries(labels: list[str], width_in: float) -> list[str]:
    """Names of a legend, in several lines where one is wider than the sheet."""
    return [broken(label, width_in - _KEY_IN) for label in labels]


def lines_of_legend(labels: list[str], across: int) -> int:
    """How many lines of text a legend of so many columns is high."""
    high = [label.count("\n") + 1 for label in labels]
    rows = -(-len(labels) // across)
    return max(sum(high[first : first + rows]) for first in range(0, len(high), rows))


def broken(label: str, room_in: float) -> str:
    """A name in lines that fit the room; words stay whole, and numbers with their units."""
    fitting = max(8, int(room_in / _LETTER_IN))
    return textwrap.fill(_BEFORE_UNIT.sub("\u00a0", label), fitting, break_long_words=False, break_on_hyphens=False)
