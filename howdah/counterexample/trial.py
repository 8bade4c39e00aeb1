# SPDX-License-Identifier: Apache-2.0
"""Run candidates: each is an experiment of its own, in the directory of the search."""

from __future__ import annotations

from collections.abc import Sequence
from contextlib import ExitStack
from dataclasses import dataclass, field, replace
from pathlib import Path

from howdah.claim.claims import read_claim_runs
from howdah.counterexample.goal import CandidateScore, Goal
from howdah.counterexample.space import Candidate, Space, slug
from howdah.engine.engine import Engine
from howdah.errors import EngineUnavailableError, HowdahError, ProfileError
from howdah.plan.plan import Plan
from howdah.profile.override import AnySettings
from howdah.record.directory import RunDirectory
from howdah.record.run import read_record
from howdah.work.batch import Listener
from howdah.work.compiled import compile_plans
from howdah.work.cost import expected_core_s
from howdah.work.experiment import ExperimentDirectory
from howdah.work.job import Executor
from howdah.work.planned import Prepared
from howdah.work.prepared import Build, hold, make, prepare
from howdah.work.results import Tell

PROVEN, CONFIRMED = "proven", "confirmed"
# Settings for screening: one repetition, only the checks during the flows, no processes of tools.
SCREENED = {"repetitions": 1, "calibrate": False, "collect.ss": False}
# A run hangs if its simulated time stands still for PATIENCE times as long as complete runs of the search take.
PATIENCE, LEAST_PATIENCE_S = 10, 2.0


@dataclass(frozen=True)
class Tried:
    """A candidate with its score; ``directory`` is its experiment in the search's directory.

    ``failure`` says why it could not be run, or did not finish.
    """

    candidate: Candidate
    score: CandidateScore
    directory: str
    runs: int
    failure: str = ""


@dataclass
class Trials:
    """Runs candidates and scores them. The score of a candidate that cannot run has the reason as its text."""

    space: Space
    goal: Goal
    directory: Path
    workers: int
    build: Build
    listen: Listener
    tell: Tell
    executor: Executor | None = None
    engines: dict[str, Engine] = field(default_factory=dict, init=False)  # prepared once for all candidates
    # Largest ratio of a run's time to the time expected from its plan (howdah/work/cost.py); 0 before the first run.
    _slowness: float = field(default=0.0, init=False)

    def screen(self, candidates: Sequence[Candidate], more: AnySettings | None = None) -> list[Tried]:
        """Run one repetition of each; keep only results."""
        return self._try(candidates, {**(more or {}), **SCREENED}, "", keep=False)

    def confirm(self, candidates: Sequence[Candidate], more: AnySettings | None = None) -> list[Tried]:
        """Run all repetitions of each, because one repetition is only one draw, with all checks; keep only results."""
        return self._try(candidates, more or {}, f"-{CONFIRMED}", keep=False)

    def prove(self, candidate: Candidate, more: AnySettings | None = None) -> Tried:
        """Run all repetitions and keep all data."""
        return self._try([candidate], more or {}, f"-{PROVEN}", keep=True)[0]

    def _try(self, candidates: Sequence[Candidate], more: AnySettings, suffix: str, *, keep: bool) -> list[Tried]:
        named = [f"{slug({**each, **more})}{suffix}" for each in candidates]
        unique = dict(zip(named, candidates, strict=True))
        refused: dict[str, str] = {}
        ready: dict[str, Prepared] = {}
        with ExitStack() as locks:
            for name, candidate in unique.items():
                experiment = hold(self.directory / name, locks)
                try:
                    ready[name] = self._prepared(candidate, experiment, more, keep)
                except EngineUnavailableError:
                    raise
                except HowdahError as error:  # it cannot be run, or something that it needs does not build
                    if not candidate and not isinstance(error, ProfileError):
                        raise  # no other candidate could be run either
                    refused[name] = error.what
            broken = self._make(list(ready.values()), refused)
            found = {
                name: Tried(candidate, CandidateScore(None, False, refused[name]), "", 0, refused[name])
                if name in refused
                else Tried(
                    candidate,
                    self._score(self.directory / name, broken.get(name, "")),
                    name,
                    len(ready[name].cells),
                    broken.get(name, ""),
                )
                for name, candidate in unique.items()
            }
        return [found[name] for name in named]

    def _make(self, ready: list[Prepared], refused: dict[str, str]) -> dict[str, str]:
        """Make the runs. Return why the first broken run of each experiment ended; ``refused`` gets what was not
        made."""
        broken: dict[str, str] = {}
        if not ready:
            return broken
        outcomes = make(
            ready, self.workers, False, self.listen, keep_going=True, tell=self.tell, executor=self.executor
        )
        for outcome in outcomes:
            experiment = outcome.job.experiment.path
            if outcome.error is not None:
                refused.setdefault(experiment.name, outcome.error.what)
                continue
            record = read_record(RunDirectory(experiment / outcome.cell.directory_name))
            if outcome.failed:
                broken.setdefault(experiment.name, (record.error or "").partition("\n")[0])
                continue
            taken = sum(each.core_s or 0 for each in record.stages if each.stage == "engine")
            self._slowness = max(self._slowness, taken / outcome.job.expected_core_s)
        return broken

    def _patience_s(self, plan: Plan) -> float | None:
        if not self._slowness:
            return None
        return max(PATIENCE * self._slowness * expected_core_s(plan), LEAST_PATIENCE_S)

    def _prepared(
        self, candidate: Candidate, experiment: ExperimentDirectory, more: AnySettings, keep: bool
    ) -> Prepared:
        document = self.space.document(candidate, more)
        document.data["name"] = experiment.path.name
        if not keep:
            document.data["keep"] = "first"
        profile = self.space.profile(document, experiment.path / "profile.yaml")
        prepared = prepare(experiment, profile, compile_plans(profile), self.build, self.engines)
        for cell in prepared.cells:
            cell.keep_data &= keep
            cell.patience_s = self._patience_s(cell.plan)
        return prepared

    def _score(self, experiment: Path, failure: str) -> CandidateScore:
        measured, _, _ = read_claim_runs(experiment)
        score = self.goal.score(measured)
        return replace(score, text=failure) if failure and score.value is None else score
