# SPDX-License-Identifier: Apache-2.0
"""Shared by engines that build: a build failure fails the runs that need the part, and is reported once."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from contextlib import contextmanager

from howdah.build.modules import ModuleSet
from howdah.engine.engine import BuildProgress, RunProgress
from howdah.errors import EngineUnavailableError, HowdahError, ParameterError, RunFailedError, combined
from howdah.plan.plan import Plan


class Preparation:
    """The state of preparing the plans of a command."""

    def __init__(self, plans: Sequence[Plan], progress: BuildProgress) -> None:
        self._plans = plans
        self._progress = progress
        self._needed = {name for plan in plans for name in plan.required_modules or ()}
        self._failures: list[HowdahError] = []
        self._lacking: dict[str, str] = {}
        self._reported: set[str] = set()

    def add_failure(self, error: HowdahError) -> None:
        """Record that one of the plans cannot be run."""
        said = "cannot run" if isinstance(error, ParameterError) else "not built"
        self._lacking.setdefault(str(error), f"{said}: {_place(error)}{error.what}")
        self._failures.append(error)

    def report_unused(self, modules: ModuleSet, plan: Plan) -> None:
        """Report, once each, modules of the plan that do not build and that no run needs."""
        for unused in modules.unused(plan.modules, self._needed):
            if str(unused) not in self._reported:
                self._reported.add(str(unused))
                self._progress(f"not built, and no run needs it: {_place(unused)}{unused.what}", 0, 0)

    def conclude(self) -> None:
        """Report the failures. Raises HowdahError, with all of them at once, if no plan can be run."""
        if self._failures and len(self._failures) == len(self._plans):
            raise combined(self._failures)
        for sentence in self._lacking.values():
            self._progress(sentence, 0, 0)


def _place(error: HowdahError) -> str:
    return f"{error.where}: " if error.where else ""


@contextmanager
def as_run_failure() -> Iterator[None]:
    """Turn a HowdahError into a RunFailedError: a part that cannot be provided fails only the run that needs it."""
    try:
        yield
    except EngineUnavailableError:
        raise
    except HowdahError as error:
        raise RunFailedError(error.what, where=error.where, hint=error.hint) from error


def as_run_progress(progress: RunProgress) -> BuildProgress:
    """Report steps of a build as phases of a run."""
    return lambda what, _done, _total: progress(what, 0, 0)
