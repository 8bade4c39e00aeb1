# SPDX-License-Identifier: Apache-2.0
"""What an engine is: something that boots a plan's network and runs its flows. Each gives the same raw/ files."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Protocol

from howdah.errors import EngineUnavailableError
from howdah.plan.plan import Plan
from howdah.record.directory import RunDirectory
from howdah.record.run import EngineReport

BuildProgress = Callable[[str, int, int], None]  # what is built, steps done, steps in all (0: not known)
RunProgress = Callable[[str, int, int], None]  # phase, simulated microseconds done, in all


@dataclass(frozen=True)
class Lack:
    """Something this machine lacks for an engine: what, why it is needed, what to do about it."""

    what: str
    why: str
    remedy: str

    def __str__(self) -> str:
        return f"{self.what} ({self.why}); {self.remedy}"


# What a run depends on beside its plan, by name: digests, releases, versions.
Identity = dict[str, str | int | None]


class Engine(Protocol):
    """``parallel`` tells whether several runs may go on at once on this machine."""

    name: str
    parallel: bool

    def lacks(self) -> list[Lack]:
        """What is missing here; an empty list when the engine can run. Quick, and changes nothing."""
        ...

    def prepare(self, plans: Sequence[Plan], progress: BuildProgress) -> Identity:
        """Build what the plans need and return the engine's identity: equal identities and plans give equal tables.

        Raises EngineUnavailableError when the engine lacks something, HowdahError when something does not build.
        """
        ...

    def run(self, directory: RunDirectory, plan: Plan, progress: RunProgress) -> EngineReport:
        """Stage share/, run the plan, leave raw/ complete.

        Raises RunFailedError when it ended without usable data.
        """
        ...


def require(lacks: list[Lack], name: str, instead: str) -> None:
    """Raise EngineUnavailableError naming every lack and what to use instead, if there is any."""
    if lacks:
        listed = "; ".join(f"{lack.what} ({lack.why})" for lack in lacks)
        remedies = "\n  ".join(dict.fromkeys(lack.remedy for lack in lacks))
        raise EngineUnavailableError(
            f"the {name} engine cannot run on this machine: {listed}", hint=f"{remedies}\n  {instead}"
        )
