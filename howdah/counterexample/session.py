# SPDX-License-Identifier: Apache-2.0
"""A search from its first candidate to its result. It can be interrupted at any time: existing runs are reused, and the
sampler proposes the same candidates in the same order."""

from __future__ import annotations

import math
import textwrap
import time
from collections.abc import Callable, Sequence
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import Any, TypeVar

from pydantic import Field

from howdah.counterexample.goal import CandidateScore, Crash, Extreme, Falsify, Goal
from howdah.counterexample.sampler import BATCH, Kind, Sampler
from howdah.counterexample.shrink import Shrinker, Simplified
from howdah.counterexample.space import COUNT, Candidate, Space, words
from howdah.counterexample.trial import Trials, Tried
from howdah.engine.crash import is_crash
from howdah.errors import HowdahError
from howdah.number import significant
from howdah.profile.override import AnySettings
from howdah.profile.profile import to_yaml
from howdah.profile.source import Document
from howdah.record.directory import read_json, write_json, write_whole
from howdah.record.model import FilePart
from howdah.work.display import SHARE_BEFORE_ESTIMATE, time_left_text

_WIDTH = 100
_WITHIN = "10 %"


def profile_text(
    document: Document, goal: Goal, score: CandidateScore, why: list[str], origin: str, name: str, directory: Path
) -> str:
    """The YAML of a counterexample called ``name``. Its relative paths start at ``directory``."""
    shown = {key: value for key, value in document.data.items() if key not in ("keep", "quick") and value != []}
    shown["name"] = name
    shown["description"] = f"A counterexample: {goal.says}."
    shown.pop("claims", None)
    if not isinstance(goal, Crash):
        shown["claims"] = [_claim(goal, score)]
    if isinstance(shown.get("modules"), list):
        shown["modules"] = [_absolute(each, directory) for each in shown["modules"]]
    lines = [f"{goal.says[:1].upper()}{goal.says[1:]}: {score.text}.", *why, origin]
    comment = "\n".join(f"# {part}" for line in lines for part in textwrap.wrap(line, _WIDTH))
    return f"{comment}\n{to_yaml(shown)}"


def _claim(goal: Goal, score: CandidateScore) -> object:
    """The claim that fails here; for a number, a claim that it has the value found."""
    if isinstance(goal, Falsify):
        return goal.claim.model_dump(by_alias=True, exclude_unset=True)
    assert isinstance(goal, Extreme)
    value = goal.goal.model_dump(by_alias=True, exclude_unset=True, exclude={"than", "by"})
    other = goal.goal.than
    than = {} if other is None else {"than": other.model_dump(by_alias=True, exclude_unset=True)}
    equal = {"equals": score.written, "within": _WITHIN}
    expect = equal if other is None else {goal.goal.by: equal}
    return {"id": "as-found", "says": f"{goal.says} is {score.text}", "value": value, **than, "expect": expect}


def _absolute(module: Any, directory: Path) -> Any:
    if isinstance(module, str):
        return str((directory / module).resolve())
    if isinstance(module, dict) and "file" in module:
        return {**module, "file": _absolute(module["file"], directory)}
    return module


SEARCH_NAME = "search.json"
COUNTEREXAMPLE_NAME = "counterexample.yaml"
CRASH_NAME = "crash.yaml"
FORMAT = 1

Say = Callable[[str], None]
Explain = Callable[[Path], list[str]]


class CandidateRow(FilePart):
    """A candidate of a search with its score."""

    values: AnySettings = Field(description="field or variable of a step: value, as a profile has it")
    score: float | None = Field(description="larger is a better counterexample; null where its runs do not say")
    found: bool = Field(description="whether it is a counterexample")
    text: str
    experiment: str = Field(description="directory of its runs, below that of the search")


class FoundRow(CandidateRow):
    why: list[str] = Field(description="what its runs show, in sentences")
    profile: str


class CrashRow(CandidateRow):
    profile: str


class NeighbourRow(CandidateRow):
    change: str


class SearchFile(FilePart):
    """A search (docs/search.md)."""

    format: int
    asked: str = Field(description="SHA-256 of the profile, apart from the budget")
    goal: str
    space: int = Field(description="candidates of the space, apart from constraints")
    tried: int
    failed: int
    held: int
    without_value: int
    shrinking_tried: int
    counterexample: FoundRow | None
    crashed: int = Field(description="candidates that crashed the guest's kernel")
    crash: CrashRow | None = Field(description="the simplest of them")
    neighbours: list[NeighbourRow]
    not_proven: list[str]
    importance: dict[str, float] = Field(description="PED-ANOVA, variable: share")
    candidates: list[CandidateRow]


_Row = TypeVar("_Row", bound=CandidateRow)


@dataclass
class SearchResult:
    """The result of a search. ``simplest`` is None if nothing was found or proven. ``crash`` is the simplest candidate
    that crashes the guest's kernel, with its runs."""

    tried: list[Tried]
    size: int
    simplest: Simplified | None = None
    proven: Tried | None = None
    neighbours: list[tuple[str, Tried]] = field(default_factory=list)
    dropped: list[str] = field(default_factory=list)
    importances: dict[str, float] = field(default_factory=dict)
    why: list[str] = field(default_factory=list)
    shrunk_runs: int = 0
    crash: tuple[Simplified, Tried] | None = None

    @property
    def crashed(self) -> list[Tried]:
        """Candidates that crashed the guest's kernel."""
        return [each for each in self.tried if is_crash(each.failure)]

    @property
    def best(self) -> Tried | None:
        scored = [each for each in self.tried if each.score.value is not None]
        return max(scored, key=lambda each: each.score.value or 0.0) if scored else None

    def count(self, what: str) -> int:
        """The number of candidates that ``failed``, ``held``, or have ``none``: no result."""
        states = {"failed": True, "held": False}
        return sum(
            (each.score.value is None)
            if what == "none"
            else (each.score.value is not None and each.score.found is states[what])
            for each in self.tried
        )


class SearchSession:
    """One search. ``trials`` makes its runs; ``explain`` describes a proven experiment in sentences."""

    def __init__(self, space: Space, goal: Goal, trials: Trials, say: Say, explain: Explain) -> None:
        self.space, self.goal, self.trials, self.say, self.explain = space, goal, trials, say, explain
        self._begun = time.monotonic()

    def run(self, kind: Kind = "tpe") -> SearchResult:
        """Raises HowdahError if optuna is missing, the profile as written cannot be run, or its claim already fails."""
        search = self.space.search
        sampler = Sampler(self.space, search.seed, kind)
        self._discard_other_search()
        self._check_default()
        found = SearchResult([], self.space.size)
        while len(found.tried) < search.budget.candidates and not self._is_late() and not self._is_enough(found):
            asked = sampler.ask(min(BATCH, search.budget.candidates - len(found.tried)))
            if not asked:
                self.say("every candidate of the space was tried")
                break
            for each in self.trials.screen(asked):
                sampler.tell(each.candidate, each.score.value)
                found.tried.append(each)
                if each.failure:
                    self._report_failure(found, each)
            self._report_progress(found)
            self.write(found)
        found.importances = sampler.importances()
        self._prove(found)
        if found.crashed:
            self._keep_crash(found, found.crashed[0])
        self.write(found)
        return found

    def write(self, found: SearchResult) -> None:
        """Write the current state to search.json."""
        content = search_file(found, self.goal.says, self.space.fingerprint)
        write_json(self.trials.directory / SEARCH_NAME, content.plain())

    def _discard_other_search(self) -> None:
        before = self.trials.directory / SEARCH_NAME
        if before.exists() and read_json(before).get("asked") != self.space.fingerprint:
            self.say(f"{before}: the profile, or its seed, has changed since; this is another search")
            before.unlink()
            for name in (COUNTEREXAMPLE_NAME, CRASH_NAME):
                (self.trials.directory / name).unlink(missing_ok=True)

    def _check_default(self) -> None:
        base = self.trials.screen([{}])[0]
        if base.failure:
            raise HowdahError(
                f"the profile as written has no complete run: {base.failure}",
                where=str(self.trials.directory / base.directory),
                hint="A search begins with it: change the profile until 'howdah run' runs it.",
            )
        if isinstance(self.goal, Falsify) and base.score.found:
            raise HowdahError(
                f"the claim {self.goal.claim.id} already fails with the profile as written: {base.score.text}",
                hint="Name a claim that holds there, or run the profile: it is itself a counterexample.",
            )
        self.say(f"the profile as written: {base.score.text}")

    def _is_late(self) -> bool:
        limit = self.space.search.budget.time
        return limit is not None and time.monotonic() - self._begun > limit / 1e6

    def _is_enough(self, found: SearchResult) -> bool:
        wanted = self.space.search.budget.counterexamples
        return wanted is not None and found.count("failed") >= wanted

    def _report_progress(self, found: SearchResult) -> None:
        spent = max(time.monotonic() - self._begun, 1e-3)
        tried, wanted = len(found.tried), self.space.search.budget.candidates
        rate = tried / spent * 60
        best = found.best
        shown = f"best: {best.score.text} at {words(best.candidate)}" if best else "no run says anything yet"
        late = time_left_text(spent * (wanted - tried) / tried) if tried >= SHARE_BEFORE_ESTIMATE * wanted else ""
        self.say(f"{tried} of {wanted} tried, {significant(rate, 2)} a minute{late.replace('  ', ', ')}; {shown}")

    def _report_failure(self, found: SearchResult, each: Tried) -> None:
        if not is_crash(each.failure):
            self.say(f"no complete run of {words(each.candidate)}: {each.failure}")
        elif found.crashed[0] is each:
            self.say(f"the kernel crashed on {words(each.candidate)}: {each.failure}")
        else:
            self.say(f"the kernel crashed on {words(each.candidate)}, too")

    def _prove(self, found: SearchResult) -> None:
        """Confirm the best candidates with all repetitions, simplify the best of those, and prove it with all data."""
        ordered = sorted((each for each in found.tried if each.score.found), key=_worth, reverse=True)[:BATCH]
        if ordered:
            self.say(f"confirming the best {len(ordered)} with all repetitions")
        confirmed = self.trials.confirm([each.candidate for each in ordered]) if ordered else []
        for each in sorted(confirmed, key=_worth, reverse=True):
            if not each.score.found:
                found.dropped.append(f"{words(each.candidate)}: {each.score.text}")
                self.say(f"not confirmed, dropped: {found.dropped[-1]}")
                continue
            if found.simplest is None:
                self._shrink(found, each)

    def _keep_crash(self, found: SearchResult, first: Tried) -> None:
        self.say(f"shrinking the crash on {words(first.candidate)}")
        goal = Crash()
        confirmed = self.trials.confirm([first.candidate])[0]
        if not goal.keeps(first.score, confirmed.score):
            found.dropped.append(f"{words(first.candidate)}: the kernel does not crash again")
            self.say(f"not proven, dropped: {found.dropped[-1]}")
            return
        shrinker = Shrinker(self.space, goal, self._confirm, self.say)
        found.crash = simplest, tried = shrinker.shrink(confirmed)
        found.shrunk_runs += shrinker.tried
        without_place = replace(tried.score, text=tried.score.text.partition(": ")[2])
        self._write_profile(found, simplest, without_place, goal, CRASH_NAME)

    def _shrink(self, found: SearchResult, confirmed: Tried) -> None:
        self.say(f"shrinking {words(confirmed.candidate)}: {confirmed.score.text}")
        shrinker = Shrinker(self.space, self.goal, self._confirm, self.say)
        simplest, tried = shrinker.shrink(confirmed)
        found.shrunk_runs = shrinker.tried
        proven = self.trials.prove(simplest.candidate, simplest.more)
        if not proven.score.found or not self.goal.keeps(tried.score, proven.score):
            found.dropped.append(f"{words(simplest.candidate)}: {proven.score.text}")
            self.say(f"not proven, dropped: {found.dropped[-1]}")
            return
        found.simplest, found.proven = simplest, proven
        found.why = self.explain(self.trials.directory / proven.directory)
        found.neighbours = self._neighbours(simplest)
        self._write_profile(found, simplest, proven.score, self.goal, COUNTEREXAMPLE_NAME)

    def _confirm(self, some: Sequence[Simplified]) -> list[Tried]:
        results: dict[int, Tried] = {}
        for more in {repr(sorted(each.more.items())): each.more for each in some}.values():
            alike = [each for each in some if each.more == more]
            tried = self.trials.confirm([each.candidate for each in alike], more)
            results |= {id(each): result for each, result in zip(alike, tried, strict=True)}
        return [results[id(each)] for each in some]

    def _neighbours(self, now: Simplified) -> list[tuple[str, Tried]]:
        """Try the adjacent smaller and larger value of each variable, where the constraints allow it."""
        some: list[tuple[str, Candidate]] = []
        for each in self.space.active(now.candidate):
            if not each.ordered or each.name == COUNT:
                continue
            at = each.values.index(now.candidate[each.name])
            for near in (at - 1, at + 1):
                if not 0 <= near < len(each.values):
                    continue
                value = each.values[near]
                candidate = {**now.candidate, each.name: value}
                if self.space.allows(candidate):
                    some.append((f"{each.name} {value}", candidate))
        tried = self.trials.confirm([candidate for _, candidate in some], now.more) if some else []
        return [(name, each) for (name, _), each in zip(some, tried, strict=True)]

    def _write_profile(
        self, found: SearchResult, simplest: Simplified, score: CandidateScore, goal: Goal, file: str
    ) -> None:
        document = self.space.document(simplest.candidate, simplest.more)
        origin = f"Found by howdah search: seed {self.space.search.seed}, {len(found.tried)} candidates."
        name = f"{self.space.written('name')}-{file.removesuffix('.yaml')}"
        why = found.why if goal is self.goal else []
        text = profile_text(document, goal, score, why, origin, name, self.space.directory)
        write_whole(self.trials.directory / file, text)


def _worth(each: Tried) -> float:
    return -math.inf if each.score.value is None else each.score.value


def search_file(found: SearchResult, says: str, fingerprint: str) -> SearchFile:
    """A search as written to search.json. ``says`` is its goal in words; ``fingerprint`` is ``Space.fingerprint``."""
    simplest, proven = found.simplest, found.proven
    return SearchFile(
        format=FORMAT,
        asked=fingerprint,
        goal=says,
        space=found.size,
        tried=len(found.tried),
        failed=found.count("failed"),
        held=found.count("held"),
        without_value=found.count("none"),
        shrinking_tried=found.shrunk_runs,
        counterexample=None
        if simplest is None or proven is None
        else _row(FoundRow, proven, simplest, why=found.why, profile=COUNTEREXAMPLE_NAME),
        crashed=len(found.crashed),
        crash=None if found.crash is None else _row(CrashRow, found.crash[1], found.crash[0], profile=CRASH_NAME),
        neighbours=[_row(NeighbourRow, each, change=name) for name, each in found.neighbours],
        not_proven=found.dropped,
        importance=found.importances,
        candidates=[_row(CandidateRow, each) for each in found.tried],
    )


def _row(kind: type[_Row], each: Tried, simplest: Simplified | None = None, **more: object) -> _Row:
    """A candidate's row; with ``simplest``, its values include the other changes to the profile."""
    return kind(
        values={**each.candidate} if simplest is None else {**simplest.candidate, **simplest.more},
        score=each.score.value,
        found=each.score.found,
        text=each.score.text,
        experiment=each.directory,
        **more,
    )
