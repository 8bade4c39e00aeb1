# SPDX-License-Identifier: Apache-2.0
"""What a command prints with ``--json``: one object on one line, of a shape with a name and a version.

``shape`` of the object is ``NAME/VERSION``; the class of each is beside its command (shape.py). Numbers are numbers, in
the units of metrics.json; what does not exist is null. A version changes when a field goes or means something else; a
field more changes nothing.
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
    """Print the object of a command. Numbers that JSON lacks become null."""
    _write(_line({SHAPE: value.shape(), **value.plain()}))


def answer_error(what: str, where: str | None, hint: str | None) -> None:
    """Print that of an error, for which nothing more need be loaded."""
    _write(_line({SHAPE: "error/1", "error": {"what": what, "where": where, "hint": hint}}))


def tell(event: Mapping[str, Any]) -> None:
    """Print an event of ``--json-events`` (howdah/work/batch.py), at once: who reads it waits for it."""
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
