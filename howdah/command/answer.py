# SPDX-License-Identifier: Apache-2.0
"""Print a command's ``--json`` output: one object on one line, with a named and versioned shape.

The object's ``shape`` is ``NAME/VERSION``; each command defines the class of its shape (shape.py). Numbers are in the
units of metrics.json; a missing value is null. The version rises when a field is removed or changes its meaning, not
when a field is added.
"""

from __future__ import annotations

import json
import math
import sys
from collections.abc import Mapping
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from howdah.command.shape import CommandAnswer

SHAPE = "shape"


def answer(value: CommandAnswer) -> None:
    """Print a command's object. NaN and infinity, which JSON lacks, become null."""
    _write(_line({SHAPE: value.shape(), **value.plain()}))


def answer_error(what: str, where: str | None, hint: str | None) -> None:
    """Print the object of an error. It loads no further module, so that it works when loading fails."""
    _write(_line({SHAPE: "error/1", "error": {"what": what, "where": where, "hint": hint}}))


def print_event(event: Mapping[str, Any]) -> None:
    """Print an event of ``--json-events`` (howdah/work/batch.py) and flush it at once: a program is waiting for it."""
    sys.stdout.write(_line(event))
    sys.stdout.flush()


def _write(line: str) -> None:
    sys.stdout.write(line)


def _line(value: Mapping[str, Any]) -> str:
    return json.dumps(_plain(value), allow_nan=False) + "\n"


def _plain(value: Any) -> Any:
    if isinstance(value, float) and not math.isfinite(value):
        return None
    if isinstance(value, Mapping):
        return {str(key): _plain(item) for key, item in value.items()}
    if isinstance(value, list | tuple):
        return [_plain(item) for item in value]
    return value
