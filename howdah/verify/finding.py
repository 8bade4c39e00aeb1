# SPDX-License-Identifier: Apache-2.0
"""What a verification checked and what it found."""

from __future__ import annotations

import json
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any, Literal

from howdah.errors import RecordError
from howdah.foreign import is_too_dense, read_foreign


def repeated_names(path: Path) -> list[str]:
    """Names that occur twice in one JSON object, each once; empty if the file cannot be read (reported elsewhere)."""
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
    """A difference. ``said`` is the value in the file, ``found`` the recomputed one."""

    file: str
    what: str
    said: Any = None
    found: Any = None

    def __str__(self) -> str:
        return f"{self.file}: {self.what}"


@dataclass
class Report:
    """The report on one run, or on the files beside an experiment's runs.

    ``checked`` lists what was compared with what, and ``notes`` what a reader should know. ``gaps`` are missing checks:
    with any of them, nothing is *verified*. ``computed`` is False if files were only compared with their digests, which
    does not detect a file changed together with its digest. ``claimed`` are statements that nobody can check.
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
