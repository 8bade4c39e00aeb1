# SPDX-License-Identifier: Apache-2.0
"""What a verification looked at and what it found."""

from __future__ import annotations

import json
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any, Literal

from howdah.errors import RecordError
from howdah.foreign import is_too_dense, read_foreign


def repeated_names(path: Path) -> list[str]:
    """Each such name once; nothing of a file that cannot be read, which others tell."""
    found: dict[str, None] = {}

    def take(pairs: list[tuple[str, Any]]) -> None:
        seen: set[str] = set()
        for name, _ in pairs:
            if name in seen:
                found[name] = None
            seen.add(name)

    try:
        content = read_foreign(path)
        if not is_too_dense(content):
            json.loads(content, object_pairs_hook=take)
    except (OSError, ValueError, RecordError, RecursionError):
        return []
    return list(found)


State = Literal["verified", "digests only", "differs", "unchecked"]
VERIFIED: State = "verified"
DIGESTS_ONLY: State = "digests only"
DIFFERS: State = "differs"
UNCHECKED: State = "unchecked"


@dataclass(frozen=True)
class Discrepancy:
    """Something that is not what it should be. ``said`` is what the file says, ``found`` the recomputed value."""

    file: str
    what: str
    said: Any = None
    found: Any = None

    def __str__(self) -> str:
        return f"{self.file}: {self.what}"


@dataclass
class Report:
    """Of one run, or of the files that an experiment has beside its runs.

    ``checked`` says what was compared with what. ``notes`` is what a reader should know. ``gaps`` is what could not be
    checked and should have been: with one of them nothing is *verified*. ``computed`` is False where the files were
    compared with their digests alone: whoever changes both is not found out. ``claimed`` is what the files say and
    nobody can check.
    """

    path: str
    checked: list[str] = field(default_factory=list)
    findings: list[Discrepancy] = field(default_factory=list)
    gaps: list[str] = field(default_factory=list)
    notes: list[str] = field(default_factory=list)
    claimed: list[str] = field(default_factory=list)
    computed: bool = True

    @property
    def state(self) -> State:
        if self.findings:
            return DIFFERS
        if self.gaps:
            return UNCHECKED
        return VERIFIED if self.computed else DIGESTS_ONLY
