# SPDX-License-Identifier: Apache-2.0
"""The runs of candidates: each candidate is an experiment of its own, below the directory of the search."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from contextlib import ExitStack
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from howdah.claim.claims import field_of
from howdah.counterexample.goal import CandidateScore, Goal
from howdah.counterexample.space import Candidate, Space, slug
from howdah.engine.engine import Engine
from howdah.errors import HowdahError, ProfileError
from howdah.profile.profile import Profile
from howdah.work.batch import Listener
from howdah.work.compiled import compile_plans
from howdah.work.executor import Executor
from howdah.work.prepared import Build, Prepared, hold, make, prepare
from howdah.work.results import Tell

PROVEN, CONFIRMED = "proven", "confirmed"
# What a candidate is tried with: one repetition, and the checks during its flows alone, without processes of tools.
SCREENED = {"repetitions": 1, "calibrate": False, "collect.ss": False}


@dataclass(frozen=True)
class Tried:
    """A candidate with its score; ``directory`` is its experiment, below that of the search."""

    candidate: Candidate
    score: CandidateScore
    directory: str
    runs: int


@dataclass
class Trials:
    """Makes runs of candidates and scores them. The score of a candidate that cannot run has the reason."""

    space: Space
    goal: Goal
    directory: Path
    workers: int
    build: Build
    listen: Listener
    tell: Tell
    executor: Executor | None = None
    engines: dict[str, Engine] = field(default_factory=dict, init=False)  # prepared once for all candidates

    def screen(self, candidates: Sequence[Candidate], more: Mapping[str, Any] | None = None) -> list[Tried]:
        """One repetition of each, of which the results alone are kept."""
        return self._try(candidates, {**(more or {}), **SCREENED}, "", keep=False)

    def confirm(self, candidates: Sequence[Candidate], more: Mapping[str, Any] | None = None) -> list[Tried]:
        """All repetitions of each, with all checks, of which the results alone are kept: one repetition is one draw."""
        return self._try(candidates, dict(more or {}), f"-{CONFIRMED}", keep=False)

    def prove(self, candidate: Candidate, more: Mapping[str, Any] | None = None) -> Tried:
        """All repetitions of the profile, with all data."""
        return self._try([candidate], dict(more or {}), f"-{PROVEN}", keep=True)[0]

    def _try(self, candidates: Sequence[Candidate], more: dict[str, Any], suffix: str, *, keep: bool) -> list[Tried]:
        named = [f"{slug({**each, **more})}{suffix}" for each in candidates]
        unique = dict(zip(named, candidates, strict=True))
        refused: dict[str, str] = {}
        ready: dict[str, Prepared] = {}
        with ExitStack() as locks:
            for name, candidate in unique.items():
                try:
                    ready[name] = self._prepared(candidate, name, more, locks, keep)
                except ProfileError as error:
                    refused[name] = error.what
            for name, broken in self._make(list(ready.values())).items():
                refused.setdefault(name, broken.what)
            found = {
                name: Tried(candidate, CandidateScore(None, False, refused[name]), "", 0)
                if name in refused
                else Tried(candidate, self._score(self.directory / name), name, len(ready[name].cells))
                for name, candidate in unique.items()
            }
        return [found[name] for name in named]

    def _make(self, ready: list[Prepared]) -> dict[str, HowdahError]:
        """The first error of each experiment that has one, by its name."""
        if not ready:
            return {}
        outcomes = make(
            ready, self.workers, False, self.listen, keep_going=True, tell=self.tell, executor=self.executor
        )
        errors: dict[str, HowdahError] = {}
        for outcome in outcomes:
            if outcome.error is not None:
                errors.setdefault(outcome.job.experiment.path.name, outcome.error)
        return errors

    def _prepared(
        self, candidate: Candidate, name: str, more: dict[str, Any], locks: ExitStack, keep: bool
    ) -> Prepared:
        place = self.directory / name
        data = {**self.space.document(candidate, more), "name": name}
        if not keep:
            data["keep"] = "first"
        profile: Profile = self.space.profile(data, place / "profile.yaml")
        prepared = prepare(hold(place, locks), profile, compile_plans(profile), self.build, self.engines)
        if not keep:
            for cell in prepared.cells:
                cell.keep_data = False
        return prepared

    def _score(self, experiment: Path) -> CandidateScore:
        measured, _, _ = field_of(experiment)
        return self.goal.score(measured)
