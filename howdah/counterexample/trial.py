# SPDX-License-Identifier: Apache-2.0
"""The runs of candidates: each candidate is an experiment of its own, below the directory of the search."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from contextlib import ExitStack
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from howdah.claim.claims import field_of
from howdah.counterexample.goal import Goal, Score
from howdah.counterexample.space import Candidate, Space, slug
from howdah.errors import HowdahError, ProfileError
from howdah.profile.profile import Profile
from howdah.work.batch import Listener
from howdah.work.compiled import compile_plans
from howdah.work.executor import Executor
from howdah.work.prepared import Build, Prepared, hold, make, prepare
from howdah.work.results import Tell

PROVEN = "proven"


@dataclass(frozen=True)
class Tried:
    """A candidate with its score; ``directory`` is its experiment, below that of the search."""

    candidate: Candidate
    score: Score
    directory: str
    runs: int


@dataclass
class Trials:
    """Makes runs of candidates and scores them. A candidate that cannot be run is told why by its score."""

    space: Space
    goal: Goal
    directory: Path
    workers: int
    build: Build
    listen: Listener
    tell: Tell
    executor: Executor | None = None

    def screen(self, candidates: Sequence[Candidate], more: Mapping[str, Any] | None = None) -> list[Tried]:
        """One repetition of each, of which the results alone are kept."""
        return self._try(candidates, {**(more or {}), "repetitions": 1}, "", keep=False)

    def prove(self, candidate: Candidate, more: Mapping[str, Any] | None = None) -> Tried:
        """All repetitions of the profile, with all data."""
        return self._try([candidate], dict(more or {}), f"-{PROVEN}", keep=True)[0]

    def _try(self, candidates: Sequence[Candidate], more: dict[str, Any], suffix: str, *, keep: bool) -> list[Tried]:
        with ExitStack() as locks:
            named = [f"{slug({**each, **more})}{suffix}" for each in candidates]
            found: list[Prepared | str] = []
            for candidate, name in zip(candidates, named, strict=True):
                try:
                    found.append(self._prepared(candidate, name, more, locks, keep))
                except ProfileError as error:
                    found.append(error.what)
            ready = [each for each in found if isinstance(each, Prepared)]
            outcomes = make(
                ready, self.workers, False, self.listen, keep_going=True, tell=self.tell, executor=self.executor
            ) if ready else []
            errors: dict[Path, HowdahError] = {}
            for outcome in outcomes:
                if outcome.error is not None:
                    errors.setdefault(outcome.job.experiment.path, outcome.error)
            scored = []
            for candidate, name, each in zip(candidates, named, found, strict=True):
                if isinstance(each, str):
                    scored.append(Tried(candidate, Score(None, False, each), "", 0))
                    continue
                error = errors.get(each.experiment.path)
                score = Score(None, False, error.what) if error is not None else self._score(each.experiment.path)
                scored.append(Tried(candidate, score, name, len(each.cells)))
            return scored

    def _prepared(
        self, candidate: Candidate, name: str, more: dict[str, Any], locks: ExitStack, keep: bool
    ) -> Prepared:
        place = self.directory / name
        data = {**self.space.document(candidate, more), "name": name}
        if not keep:
            data["keep"] = "first"
        profile: Profile = self.space.profile(data, place / "profile.yaml")
        prepared = prepare(hold(place, locks), profile, compile_plans(profile), self.build)
        if not keep:
            for cell in prepared.cells:
                cell.keep_data = False
        return prepared

    def _score(self, experiment: Path) -> Score:
        field, _, _ = field_of(experiment)
        return self.goal.score(field)
