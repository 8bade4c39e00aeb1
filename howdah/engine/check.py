# SPDX-License-Identifier: Apache-2.0
"""One thing an engine needs, looked at on this machine."""

from __future__ import annotations

import shutil
from dataclasses import dataclass
from pathlib import Path
from typing import Final, Literal

from howdah.engine.engine import Lack

Status = Literal["ok", "missing", "note"]
OK: Final = "ok"
MISSING: Final = "missing"
NOTE: Final = "note"
PREREQUISITES = Path(__file__).with_name("prerequisites.txt")


@dataclass(frozen=True)
class EngineCheck:
    """``status`` is ``ok``, ``missing`` (the engine cannot run) or ``note`` (it can, and this is worth knowing).

    ``engine`` is an engine's name or ``all``; ``found`` says what is there; ``remedy`` what to do, or None.
    """

    engine: str
    what: str
    status: Status
    found: str
    remedy: str | None = None


def lacks_of(checks: list[EngineCheck]) -> list[Lack]:
    return [
        Lack(check.what, check.found, check.remedy or "see 'howdah doctor'")
        for check in checks
        if check.status == MISSING
    ]


@dataclass(frozen=True)
class Prerequisite:
    """A Debian package, a program or file that shows it is there, and what it is for."""

    package: str
    evidence: str
    purpose: str

    @property
    def there(self) -> bool:
        return (
            Path(self.evidence).exists() if self.evidence.startswith("/") else shutil.which(self.evidence) is not None
        )


def prerequisites() -> list[Prerequisite]:
    """Read prerequisites.txt."""
    found = []
    for line in PREREQUISITES.read_text(encoding="utf-8").splitlines():
        if line.strip() and not line.startswith("#"):
            package, evidence, purpose = line.split(None, 2)
            found.append(Prerequisite(package, evidence, purpose))
    return found
