# SPDX-License-Identifier: Apache-2.0
"""Choose the next candidates with optuna's samplers. They are asked and told in batches of fixed size, so a search with
the same seed and budget tries the same candidates for any number of workers."""

from __future__ import annotations

import random
import warnings
from typing import Any, Literal

from howdah.counterexample.space import COUNT, Candidate, Space, slug
from howdah.distribution import install_extra
from howdah.errors import HowdahError
from howdah.profile.source import Scalar


def corners(space: Space, chance: random.Random, most: int) -> list[Candidate]:
    """At most ``most`` corners of the space, regardless of constraints; none if no variable is ordered.

    All corners together form an orthogonal array of strength two (Plackett and Burman 1946, doi
    10.1093/biomet/33.4.305; here from Sylvester's matrix): each pair of variables has each of its four pairs of ends
    equally often. Its number of rows is the next power of two above the number of variables. ``chance`` selects the
    array, and the values of unordered variables.
    """
    ordered = [each for each in space.variables.values() if each.ordered and len(each.values) > 1]
    rows = 1 << len(ordered).bit_length()
    columns = chance.sample(range(1, rows), len(ordered))
    turned = [chance.randrange(2) for _ in ordered]  # whether the two ends are swapped
    found = []
    for row in chance.sample(range(rows), min(rows, most)) if ordered else ():
        ends = [((row & column).bit_count() + turn) % 2 for column, turn in zip(columns, turned, strict=True)]
        chosen = {each.name: each.values[-end] for each, end in zip(ordered, ends, strict=True)}
        found.append(space.draw(chance, chosen))
    return found


Kind = Literal["tpe", "genetic", "random"]
BATCH = 8
STARTING = 2 * BATCH  # number of random candidates before the sampler chooses
ASKED_AGAIN = 200  # attempts with the sampler before an untried candidate is drawn at random


class Sampler:
    """Proposes untried candidates that meet the constraints, and learns from their scores.

    The first are at most ``most_corners`` corners of the space; the next are random.

    Raises HowdahError if optuna is not installed.
    """

    def __init__(self, space: Space, seed: int, kind: Kind = "tpe", most_corners: int = BATCH) -> None:
        try:
            import optuna
        except ImportError as error:
            raise HowdahError("a search needs optuna", hint=install_extra("search")) from error
        optuna.logging.set_verbosity(optuna.logging.ERROR)
        warnings.filterwarnings("ignore", category=optuna.exceptions.ExperimentalWarning)
        self._optuna = optuna
        self.space = space
        self._chance = random.Random(seed)
        self._corners = corners(space, self._chance, most_corners)
        starting = STARTING + len(self._corners)
        self.study = optuna.create_study(direction="maximize", sampler=_sampler(optuna, kind, seed, starting))
        self._known: dict[str, float | None] = {}
        self._trials: dict[str, object] = {}  # optuna's trials by the candidate's slug

    def ask(self, count: int) -> list[Candidate]:
        """Up to ``count`` candidates; fewer if the space is exhausted."""
        found: list[Candidate] = []
        for _ in range(count):
            candidate = self._ask()
            if candidate is None:
                break
            found.append(candidate)
        return found

    def tell(self, candidate: Candidate, score: float | None) -> None:
        """Record the score of a candidate that ``ask`` returned; None if its runs have no result."""
        name = slug(candidate)
        self._known[name] = score
        trial = self._trials.pop(name, None)
        if trial is not None:
            self._tell(trial, score)

    def importances(self) -> dict[str, float]:
        """The share of the good scores that each variable explains (PED-ANOVA); empty after too few trials."""
        if sum(score is not None for score in self._known.values()) < 2 * BATCH:
            return {}
        evaluator = self._optuna.importance.PedAnovaImportanceEvaluator()
        try:
            with warnings.catch_warnings(action="ignore", category=UserWarning):  # optuna warns of few trials
                return dict(self._optuna.importance.get_param_importances(self.study, evaluator=evaluator))
        except (ValueError, RuntimeError, ZeroDivisionError):
            return {}

    def _ask(self) -> Candidate | None:
        while self._corners:
            corner = self._corners.pop()
            if self._is_new(corner):
                return self._enqueue(corner)
        for _ in range(0 if self._is_flat else ASKED_AGAIN):
            trial = self.study.ask()
            candidate = self._candidate_of(trial)
            name = slug(candidate)
            if not self.space.allows(candidate):
                self.study.tell(trial, state=self._optuna.trial.TrialState.FAIL)
            elif name in self._known:
                self._tell(trial, self._known[name])
            elif name in self._trials:
                self.study.tell(trial, state=self._optuna.trial.TrialState.FAIL)
            else:
                self._trials[name] = trial
                return candidate
        return self._random_candidate()

    @property
    def _is_flat(self) -> bool:
        """Whether all scores are equal. A sampler would take the first candidates for good ones and stay near them."""
        scores = [score for score in self._known.values() if score is not None]
        return len(scores) >= STARTING and len(set(scores)) == 1

    def _random_candidate(self) -> Candidate | None:
        for _ in range(50 * ASKED_AGAIN):
            candidate = self.space.draw(self._chance)
            if self._is_new(candidate):
                return self._enqueue(candidate)
        return None

    def _is_new(self, candidate: Candidate) -> bool:
        name = slug(candidate)
        return self.space.allows(candidate) and name not in self._known and name not in self._trials

    def _enqueue(self, candidate: Candidate) -> Candidate:
        """Register a candidate that the sampler did not choose, so that it learns its score too."""
        chosen = {each.name: each.values.index(candidate[each.name]) for each in self.space.active(candidate)}
        self.study.enqueue_trial(chosen)
        self._trials[slug(candidate)] = trial = self.study.ask()
        return self._candidate_of(trial)

    def _tell(self, trial: Any, score: float | None) -> None:
        if score is None:
            self.study.tell(trial, state=self._optuna.trial.TrialState.FAIL)
        else:
            self.study.tell(trial, score)

    def _candidate_of(self, trial: Any) -> Candidate:
        found: dict[str, Scalar] = {}
        steps = self.space.search.steps
        count = steps.count.most if steps is not None else 0
        for each in self.space.variables.values():
            if each.step is not None and each.step > count:
                continue
            if len(each.values) == 1:
                value = each.values[0]
            elif each.ordered:
                value = each.values[trial.suggest_int(each.name, 0, len(each.values) - 1)]
            else:
                value = each.values[trial.suggest_categorical(each.name, list(range(len(each.values))))]
            if each.name == COUNT:
                count = value
            found[each.name] = value
        return found


def _sampler(optuna: Any, kind: Kind, seed: int, starting: int) -> Any:
    samplers = optuna.samplers
    if kind == "tpe":
        return samplers.TPESampler(
            seed=seed, multivariate=True, group=True, constant_liar=True, n_startup_trials=starting
        )
    if kind == "genetic":
        return samplers.NSGAIISampler(seed=seed, population_size=starting)
    return samplers.RandomSampler(seed=seed)
