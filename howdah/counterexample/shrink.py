# SPDX-License-Identifier: Apache-2.0
"""Simplify a counterexample: fewer steps, fields and flows, values nearer to the profile's, rounder numbers, shorter
runs. A change is kept only if the runs still show what was found."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass, field

from howdah.counterexample.goal import Goal
from howdah.counterexample.sampler import BATCH
from howdah.counterexample.space import COUNT, LASTS, Candidate, Space
from howdah.counterexample.trial import Tried
from howdah.counterexample.values import Number, read_number, rounded
from howdah.profile.override import AnySettings
from howdah.profile.source import Scalar

MOST_RUNS = 48
SHORTEST_S = 1

Screen = Callable[[Sequence["Simplified"]], list[Tried]]


@dataclass(frozen=True)
class Simplified:
    """A candidate, further changes to its profile, and the simplification in words."""

    candidate: Candidate
    more: AnySettings = field(default_factory=dict)
    words: str = ""


@dataclass
class Shrinker:
    """Simplifies with at most ``MOST_RUNS`` trials; ``tried`` counts them."""

    space: Space
    goal: Goal
    screen: Screen
    say: Callable[[str], None]
    tried: int = 0

    def shrink(self, found: Tried) -> tuple[Simplified, Tried]:
        """The simplest candidate found, and its trial."""
        now, score = Simplified(found.candidate), found
        for moves in (
            self._fewer_steps,
            self._fewer_fields,
            self._fewer_flows,
            self._equal_steps,
            self._nearer,
            self._rounder,
            self._shorter,
        ):
            again = True
            while again and self.tried < MOST_RUNS:
                again = False
                for some in _batches([each for each in moves(now) if self.space.allows(each.candidate)]):
                    results = self.screen(some[: MOST_RUNS - self.tried])
                    self.tried += len(results)
                    kept = next(
                        (at for at, each in enumerate(results) if self.goal.keeps(found.score, each.score)), None
                    )
                    if kept is not None:
                        now, score, again = some[kept], results[kept], True
                        self.say(f"  simpler: {now.words}" + ("" if score.failure else f"; {score.score.text}"))
                        break
        return now, score

    def _fewer_steps(self, now: Simplified) -> Iterator[Simplified]:
        steps = self.space.steps_of(now.candidate)
        least = self.space.variables[COUNT].values[0] if COUNT in self.space.variables else steps
        if steps <= least:
            return
        for gone in range(1, steps + 1):
            left = {name: value for name, value in now.candidate.items() if not name.startswith("step ")}
            left[COUNT] = steps - 1
            for each in self.space.active(now.candidate):
                if each.step is not None and each.step != gone:
                    step = each.step - (each.step > gone)
                    left[f"step {step} {each.field}"] = now.candidate[each.name]
            yield Simplified(left, now.more, f"without step {gone}")

    def _fewer_fields(self, now: Simplified) -> Iterator[Simplified]:
        for each in self.space.active(now.candidate):
            if each.step is None and each.name != COUNT and not self.space.is_needed(each.field):
                left = {name: value for name, value in now.candidate.items() if name != each.name}
                yield Simplified(left, now.more, f"{each.name} as in the profile")

    def _fewer_flows(self, now: Simplified) -> Iterator[Simplified]:
        for name in ("background", "groups", "flows"):
            members = now.more.get(name, self.space.written(name)) or []
            if not isinstance(members, list):
                continue
            for index in range(len(members)):
                if name == "flows" and len(members) == 1:
                    break
                left = [each for at, each in enumerate(members) if at != index]
                yield Simplified(now.candidate, {**now.more, name: left}, f"without {name} {index + 1}")

    def _equal_steps(self, now: Simplified) -> Iterator[Simplified]:
        for each in self.space.active(now.candidate):
            if each.step is None or each.step < 2:
                continue
            before = now.candidate.get(f"step {each.step - 1} {each.field}")
            if each.field != LASTS and before is not None and now.candidate[each.name] != before:
                yield Simplified({**now.candidate, each.name: before}, now.more, f"{each.name} as before")

    def _nearer(self, now: Simplified) -> Iterator[Simplified]:
        """Move half or a quarter of the distance towards the profile's value."""
        for part in (2, 4):
            for each in self.space.active(now.candidate):
                usual = read_number(self.space.written(each.field))
                if not each.ordered or each.step is not None or each.name == COUNT or usual is None:
                    continue
                at = each.values.index(now.candidate[each.name])
                nearer = at + int((nearest(each.values, usual, at) - at) / part)
                if nearer != at:
                    value = each.values[nearer]
                    yield Simplified({**now.candidate, each.name: value}, now.more, f"{each.name} {value}")

    def _rounder(self, now: Simplified) -> Iterator[Simplified]:
        for digits in (1, 2):
            for each in self.space.active(now.candidate):
                value = read_number(now.candidate[each.name])
                if not each.ordered or each.name == COUNT or value is None:
                    continue
                wanted = rounded(value.base, digits)
                written = next((v for v in each.values if (n := read_number(v)) is not None and n.base == wanted), None)
                if written is not None and wanted != value.base:
                    yield Simplified({**now.candidate, each.name: written}, now.more, f"{each.name} {written}")

    def _shorter(self, now: Simplified) -> Iterator[Simplified]:
        if self.space.steps_of(now.candidate):
            for each in self.space.active(now.candidate):
                if each.field == LASTS and each.step is not None:
                    value = read_number(now.candidate[each.name])
                    assert value is not None
                    less = [v for v in each.values if (n := read_number(v)) is not None and 2 * n.base <= value.base]
                    if less:
                        yield Simplified({**now.candidate, each.name: less[-1]}, now.more, f"{each.name} {less[-1]}")
            return
        lasts = read_number(now.more.get("duration", self.space.written("duration")))
        if lasts is None or "duration" in now.candidate:
            return
        half = Number(rounded(lasts.number / 2, 2), lasts.unit)
        if half.base >= SHORTEST_S * 1_000_000:
            yield Simplified(now.candidate, {**now.more, "duration": half.text()}, f"duration {half.text()}")


def nearest(values: Sequence[Scalar], usual: Number, otherwise: int) -> int:
    """The index of the value nearest to ``usual``, or ``otherwise`` if no value has its unit."""
    numbers = ((at, read_number(each)) for at, each in enumerate(values))
    known = [(abs(each.base - usual.base), at) for at, each in numbers if each is not None and each.kind == usual.kind]
    return min(known, default=(0, otherwise))[1]


def _batches(moves: list[Simplified]) -> Iterator[list[Simplified]]:
    for at in range(0, len(moves), BATCH):
        yield moves[at : at + BATCH]
