# SPDX-License-Identifier: Apache-2.0
"""Bundles that carry what the runs of some plans need to a machine that builds nothing.

A bundle consists of *pieces*, each a set of files of one cache entry, and of the engine's description of them as JSON.
A process that makes runs finds the bundle through an environment variable, which names a JSON file with the engine's
description and the location of each piece.
"""

from __future__ import annotations

import json
import os
from collections.abc import Sequence
from dataclasses import dataclass, field
from functools import lru_cache
from pathlib import Path
from typing import Any, Protocol, runtime_checkable

from howdah.build.packed_piece import Piece
from howdah.engine.engine import BuildProgress
from howdah.errors import HowdahError
from howdah.plan.plan import Plan

BUNDLE_VARIABLE = "HOWDAH_ENGINE_BUNDLE"  # internal, not for users


@dataclass
class EngineBundle:
    """A bundle under construction. ``content`` is the engine's own JSON, which refers to pieces by name."""

    engine: str
    pieces: dict[str, Piece] = field(default_factory=dict)
    content: dict[str, Any] = field(default_factory=dict)

    def add(self, piece: Piece) -> str:
        """Add a piece and return its name, for ``content``."""
        self.pieces[piece.name] = piece
        return piece.name


@runtime_checkable
class Portable(Protocol):
    """An engine whose runs can be made on another machine."""

    def check_portable(self, plan: Plan) -> None:
        """Raise HowdahError for a plan whose runs only this machine can make."""
        ...

    def bundle(self, plans: Sequence[Plan], progress: BuildProgress) -> EngineBundle:
        """Bundle what prepared and portable plans need."""
        ...


@dataclass(frozen=True)
class SentBundle:
    """A bundle as unpacked on the machine that makes the runs."""

    engine: str
    content: dict[str, Any]
    places: dict[str, Path]

    def place(self, piece: str) -> Path:
        return self.places[piece]


def write_sent(file: Path, engine: str, content: dict[str, Any], places: dict[str, Path]) -> None:
    value = {"engine": engine, "content": content, "places": {name: str(place) for name, place in places.items()}}
    file.write_text(json.dumps(value), encoding="utf-8")


def sent_bundle(engine: str) -> SentBundle | None:
    """Return the bundle given to this process for an engine, or None. Raises HowdahError if it has disappeared."""
    named = os.environ.get(BUNDLE_VARIABLE)
    if named is None:
        return None
    found = _read(named)
    return found if found.engine == engine else None


@lru_cache(maxsize=4)
def _read(file: str) -> SentBundle:
    try:
        value = json.loads(Path(file).read_text(encoding="utf-8"))
        places = {name: Path(place) for name, place in value["places"].items()}
        return SentBundle(value["engine"], value["content"], places)
    except (OSError, ValueError, KeyError) as error:
        raise HowdahError("what this run needs is no longer in the cache", where=file) from error
