# SPDX-License-Identifier: Apache-2.0
"""What a command prints with ``--json``: one object on one line, of a shape with a name and a version.

``shape`` of the object is ``NAME/VERSION``; ``howdah/command/shapes.py`` has them all. Numbers are numbers, in the
units of metrics.json; what does not exist is null. A version changes when a field goes or means something else; a
field more changes nothing.
"""

from __future__ import annotations

import json
import math
import sys
from collections.abc import Mapping
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from howdah.record.model import FilePart

SHAPE = "shape"
VERSIONS = {
    "bisect": 1,
    "build": 1,
    "bundle": 1,
    "bundle-sources": 1,
    "claims": 1,
    "compare": 1,
    "doctor": 1,
    "error": 1,
    "explain": 1,
    "export": 1,
    "figure": 1,
    "figure-list": 1,
    "machines": 1,
    "list-algorithms": 1,
    "list-kernels": 1,
    "list-metrics": 1,
    "list-profiles": 1,
    "list-receivers": 1,
    "list-runs": 1,
    "list-stacks": 1,
    "nightly": 1,
    "nightly-accept": 1,
    "nightly-list": 1,
    "nightly-power": 1,
    "new": 1,
    "pack": 1,
    "plan": 1,
    "report": 1,
    "rerun": 1,
    "run": 1,
    "score": 1,
    "search": 1,
    "sign": 1,
    "unpack": 1,
    "validate": 1,
    "verify": 1,
}


def answer(name: str, value: Mapping[str, Any] | FilePart, version: int | None = None) -> None:
    """Print the object of a command. ``value`` holds no number that JSON lacks: those become null.

    ``version`` is that of a command which an extension adds; the others are in the table.
    """
    said = value if isinstance(value, Mapping) else value.plain()
    shape = f"{name}/{VERSIONS[name] if version is None else version}"
    _write(json.dumps({SHAPE: shape, **_plain(said)}, allow_nan=False))


def tell(event: Mapping[str, Any]) -> None:
    """Print an event of ``--json-events`` (howdah/work/batch.py), at once: who reads it waits for it."""
    sys.stdout.write(json.dumps(_plain(event), allow_nan=False) + "\n")
    sys.stdout.flush()


def _write(line: str) -> None:
    sys.stdout.write(f"{line}\n")


def _plain(value: Any) -> Any:
    if isinstance(value, float) and not math.isfinite(value):
        return None
    if isinstance(value, Mapping):
        return {str(key): _plain(item) for key, item in value.items()}
    if isinstance(value, list | tuple):
        return [_plain(item) for item in value]
    return value
