# SPDX-License-Identifier: Apache-2.0
"""The interface of an engine, which boots a plan's network, runs its flows and leaves the same raw/ files as any other.

Also what an engine requires of this machine.
"""

from __future__ import annotations

import shutil
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Final, Literal, Protocol

from howdah.errors import EngineUnavailableError
from howdah.plan.plan import Plan
from howdah.record.directory import RunDirectory
from howdah.record.run import EngineReport

BuildProgress = Callable[[str, int, int], None]  # what is built, steps done, all steps (0: unknown)
RunProgress = Callable[[str, int, int], None]  # phase, simulated microseconds done, all
Status = Literal["ok", "missing", "note"]
OK: Final = "ok"
MISSING: Final = "missing"
NOTE: Final = "note"
PREREQUISITES = Path(__file__).with_name("prerequisites.txt")


@dataclass(frozen=True)
class Lack:
    """A requirement of an engine that this machine lacks: what, why it is needed, what to do about it."""

    what: str
    why: str
    remedy: str

    def __str__(self) -> str:
        return f"{self.what} ({self.why}); {self.remedy}"


# All that a run depends on besides its plan, by name: digests, releases, versions.
Identity = dict[str, str | int | None]


class Engine(Protocol):
    """An engine. ``parallel``: several of its runs may execute at once on this machine."""

    name: str
    parallel: bool

    def lacks(self) -> list[Lack]:
        """Return what is missing here; an empty list if the engine can run. Quick, and without side effects."""
        ...

    def prepare(self, plans: Sequence[Plan], progress: BuildProgress) -> Identity:
        """Build what the plans need and return the engine's identity: equal identities and plans give equal tables.

        Raises EngineUnavailableError if the engine lacks something, HowdahError if something does not build.
        """
        ...

    def run(self, directory: RunDirectory, plan: Plan, progress: RunProgress) -> EngineReport:
        """Stage share/, run the plan, leave raw/ complete.

        Raises RunFailedError if the run ends without usable data.
        """
        ...


def require(lacks: list[Lack], name: str, instead: str) -> None:
    """Raise EngineUnavailableError, naming every lack and the alternative ``instead``, unless ``lacks`` is empty."""
    if lacks:
        listed = "; ".join(f"{lack.what} ({lack.why})" for lack in lacks)
        remedies = "\n  ".join(dict.fromkeys(lack.remedy for lack in lacks))
        raise EngineUnavailableError(
            f"the {name} engine cannot run on this machine: {listed}", hint=f"{remedies}\n  {instead}"
        )


@dataclass(frozen=True)
class EngineCheck:
    """The result of one check. ``status`` is ``ok``, ``missing`` (the engine cannot run) or ``note`` (a caveat).

    ``engine`` is an engine's name or ``all``; ``found`` says what was found; ``remedy`` what to do, or None.
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
    """A Debian package, the program or file that proves it is installed, and its purpose."""

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
