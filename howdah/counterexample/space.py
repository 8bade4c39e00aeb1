# SPDX-License-Identifier: Apache-2.0
"""The candidates of a search: a value of each variable, and the resulting profile."""

from __future__ import annotations

import copy
import hashlib
import json
import math
import random
from collections.abc import Mapping
from dataclasses import dataclass
from fractions import Fraction
from pathlib import Path
from typing import Any

from howdah.counterexample.values import Constraint, Number, Term, read_constraint, read_number, values_of
from howdah.errors import ProfileError
from howdah.profile import Profile, load
from howdah.profile.experiment import SECTIONS
from howdah.profile.override import AnySettings, apply_override, canonical, field_value, set_field
from howdah.profile.profile import to_yaml
from howdah.profile.search import SearchSection, StepsSection, VariableSection
from howdah.profile.source import Document, Scalar, read_document
from howdah.scratch import scratch

COUNT = "steps"  # name of the variable for the number of steps
LASTS = "lasts"
BASE_TIME = "us"
DRAWN = 2000  # number of random candidates that test whether constraints leave any
_FURTHER = tuple(name for name in SECTIONS if name != "claims")
# _ABOUT are fields that affect no run; _SET are fields that a search sets itself when it screens.
_ABOUT = {*SECTIONS, "howdah", "name", "description", "sources", "keep", "cross_check"}
_SET = {"repetitions", "calibrate", "collect.ss"}

Candidate = Mapping[str, Any]  # variable: value, as a profile writes it


@dataclass(frozen=True)
class Variable:
    """One dimension of the space. One of a single step has its number, from 1; ``field`` is then lasts, rate or rtt."""

    name: str
    field: str
    values: tuple[Any, ...]
    ordered: bool
    step: int | None = None


class Space:
    """All candidates of a profile's ``search:``, and their profiles. Raises ProfileError if there are none."""

    def __init__(self, file: Path, search: SearchSection, document: Document) -> None:
        self.search = search
        self._document = document
        self.directory = file.resolve().parent
        self.variables = self._variables()
        self.constraints = [self._constraint(index, text) for index, text in enumerate(search.constraints)]
        self._check_constraints()

    @property
    def size(self) -> int:
        """The number of candidates, regardless of constraints."""
        free = math.prod(len(each.values) for each in self.variables.values() if each.step is None)
        if self.search.steps is None:
            return free
        one = math.prod(len(each.values) for each in self.variables.values() if each.step == 1)
        count = self.search.steps.count
        counts = range(count.least, count.most + 1)  # the number of steps is a variable if it can vary
        return free // len(counts) * sum(int(one**each) for each in counts)

    @property
    def fingerprint(self) -> str:
        """SHA-256 of the profile without the budget: searches with the same value try the same candidates."""
        data = copy.deepcopy(self._document.data)
        data.get("search", {}).pop("budget", None)
        return hashlib.sha256(json.dumps(data, sort_keys=True, default=str).encode()).hexdigest()

    def active(self, candidate: Candidate) -> list[Variable]:
        """The variables that a candidate sets; other fields are as in the profile."""
        steps = self.steps_of(candidate)
        some = [each for each in self.variables.values() if each.step is None or each.step <= steps]
        return [each for each in some if each.name in candidate]

    def steps_of(self, candidate: Candidate) -> int:
        if self.search.steps is None:
            return 0
        if f"step 1 {LASTS}" not in candidate and COUNT not in candidate:
            return 0  # the profile as written
        count = candidate.get(COUNT, self.search.steps.count.most)
        assert isinstance(count, int)
        return count

    def allows(self, candidate: Candidate) -> bool:
        return all(each.holds(self._value_of(candidate, each)) for each in self.constraints)

    def draw(self, chance: random.Random, chosen: Candidate | None = None) -> Candidate:
        """A random candidate, regardless of constraints; the values in ``chosen`` are kept."""
        found: dict[str, Scalar] = {}
        count: Any = self.search.steps.count.most if self.search.steps is not None else 0
        for each in self.variables.values():  # COUNT precedes the variables of single steps
            count = found.get(COUNT, count)
            if each.step is None or each.step <= count:
                at = (chosen or {}).get(each.name)
                found[each.name] = chance.choice(each.values) if at is None else at
        return found

    def place(self, *path: str | int) -> str:
        """The place of a field of the section ``search``."""
        return self._document.place(("search", *path))

    def check(self) -> None:
        """Check the profile at both ends of each variable, one at a time. Raises ProfileError, which names it."""
        steps = self.search.steps
        least = 0 if steps is None else steps.count.least
        first = {each.name: each.values[0] for each in self.variables.values() if each.step and each.step <= least}
        if COUNT in self.variables:
            first[COUNT] = least
        with scratch("howdah-search-") as local:
            for each in self.variables.values():
                if (each.step or 1) > 1 or each.name == COUNT:
                    continue
                others = first if each.step is not None else {}
                for value in dict.fromkeys((each.values[0], each.values[-1])):
                    try:
                        self.profile(self.document({**others, each.name: value}), local / "profile.yaml")
                    except ProfileError as error:
                        place = ("space", each.name) if each.step is None else ("steps", each.field)
                        what = f"{each.name} cannot be {value}: {error.what}"
                        raise ProfileError(what, where=self.place(*place), hint=error.hint) from None

    def written(self, field: str) -> Any:
        """The profile's value of a field, or None."""
        return field_value(self._document.data, field)

    def is_needed(self, field: str) -> bool:
        """Whether the profile has no value for a field to return to."""
        return self.written(field) is None

    def settings(self, candidate: Candidate) -> AnySettings:
        """The candidate's changes to the profile: field.field: value."""
        some = [each for each in self.active(candidate) if each.step is None and each.name != COUNT]
        changed: AnySettings = {each.field: candidate[each.name] for each in some}
        steps = self.steps_of(candidate)
        if steps:
            changed |= self._schedule(candidate, steps)
        return changed

    def document(self, candidate: Candidate, more: AnySettings | None = None) -> Document:
        """The candidate's profile: the profile with its claims, without the search."""
        changed = self._document.copy()
        for name in _FURTHER:
            changed.data.pop(name, None)
        for field, value in {**self.settings(candidate), **(more or {})}.items():
            where = self._document.place(("search", "space", field))
            set_field(changed, field, copy.deepcopy(value), {(): where}, where)
        return changed

    def profile(self, document: Document, file: Path) -> Profile:
        """Write the profile to ``file`` and load it. Raises ProfileError."""
        file.parent.mkdir(parents=True, exist_ok=True)
        file.write_text(to_yaml(document.data), encoding="utf-8")
        return load(file, directory=self.directory)

    def _schedule(self, candidate: Candidate, steps: int) -> AnySettings:
        changed: AnySettings = {}
        at, further = Number(Fraction(0), BASE_TIME), []
        before: AnySettings = {}
        for step in range(1, steps + 1):
            given = {each.field: candidate[each.name] for each in self.variables.values() if each.step == step}
            lasts = read_number(given.pop(LASTS))
            assert lasts is not None
            if step == 1:
                changed = {f"path.{field}": value for field, value in given.items()}
            else:
                changes = {field: value for field, value in given.items() if value != before.get(field)}
                if changes:
                    further.append({"at": at.text(), **changes})
            before = given
            at = Number(at.base + lasts.base, BASE_TIME)
        if further:
            changed["path.schedule"] = further
        return {**changed, "duration": at.text()}

    def _variables(self) -> dict[str, Variable]:
        found: dict[str, Variable] = {}
        called: dict[str, str] = {}
        for field, variable in self.search.space.items():
            self._check_once(field, called)
            if field in _SET or field.split(".")[0] in _ABOUT:
                why = "a search sets it itself" if field in _SET else "no path, host or flow differs by it"
                raise ProfileError(f"{field} cannot be searched: {why}", where=self.place("space", field))
            values = tuple(self._values(variable, "space", field))
            found[field] = Variable(field, field, values, variable.values is None)
        steps = self.search.steps
        if steps is not None:
            self._add_steps(found, steps)
        return found

    def _check_once(self, field: str, called: dict[str, str]) -> None:
        """Raise ProfileError if the field overlaps an earlier one of ``called``, which are named as by
        ``canonical``."""
        name = canonical(self._document.data, field)
        for before, other in called.items():
            if f"{name}.".startswith(f"{before}.") or f"{before}.".startswith(f"{name}."):
                same = "is the same field as" if name == before else "overlaps"
                raise ProfileError(f"{field} {same} {other}, which is also in space", where=self.place("space", field))
        called[name] = field

    def _add_steps(self, found: dict[str, Variable], steps: StepsSection) -> None:
        for field in ("path.rate", "path.rtt", "path.schedule", "duration"):
            if field in found:
                where = self._document.place(("search", "space", field))
                raise ProfileError(f"{field} is in space, and steps also sets it", where=where)
        counts = tuple(range(steps.count.least, steps.count.most + 1))
        if len(counts) > 1:
            found[COUNT] = Variable(COUNT, "", counts, ordered=True)
        for step in range(1, steps.count.most + 1):
            for field in (LASTS, "rate", "rtt"):
                variable = getattr(steps, field)
                if variable is not None:
                    name = f"step {step} {field}"
                    values = tuple(self._values(variable, "steps", field))
                    found[name] = Variable(name, field, values, variable.values is None, step)

    def _check_constraints(self) -> None:
        """Raise ProfileError if the constraints exclude every candidate, at the one that does so alone, if any."""
        chance = random.Random(0)
        some = [self.draw(chance) for _ in range(DRAWN if self.constraints else 0)]
        if not some or any(self.allows(each) for each in some):
            return
        alone = [not any(one.holds(self._value_of(each, one)) for each in some) for one in self.constraints]
        at = alone.index(True) if any(alone) else 0
        which = f"the constraint {self.search.constraints[at]}" if any(alone) else "all constraints together"
        raise ProfileError(
            f"none of {DRAWN} candidates drawn at random meets {which}",
            where=self.place("constraints", at),
            hint="widen the space, or leave the constraint out" if any(alone) else "leave one out",
        )

    def _values(self, variable: VariableSection, *place: str) -> list[Scalar]:
        return values_of(variable, lambda name: self._document.place(("search", *place, name)))

    def _constraint(self, index: int, text: str) -> Constraint:
        where = self._document.place(("search", "constraints", index))
        found = read_constraint(text, where)
        for field in found.fields:
            if self._number(field, {}) is None and field not in self.variables:
                what = f"the constraint names {field}, which has no number in this profile and is not in space"
                raise ProfileError(what, where=where)
        left, right = self._kinds(found.left), self._kinds(found.right)
        if not left & right:
            units = " and ".join(f"{side.text} has {self._unit(side)}" for side in (found.left, found.right))
            what = f"the constraint compares different kinds of units: {text}"
            raise ProfileError(what, where=where, hint=units)
        return found

    def _kinds(self, term: Term) -> set[int | str]:
        """The kinds of the numbers on one side of a constraint: rates, times, sizes, or a unit."""
        return {each.kind for each in self._numbers(term)}

    def _unit(self, term: Term) -> str:
        return next((each.unit for each in self._numbers(term)), "") or "none"

    def _numbers(self, term: Term) -> list[Number]:
        """All numbers that one side of a constraint can have, without its factor."""
        if term.field in self.variables:
            some = [read_number(value) for value in self.variables[term.field].values]
        else:
            some = [term.number if term.field is None else self._number(term.field, {})]
        return [each for each in some if each is not None]

    def _value_of(self, candidate: Candidate, constraint: Constraint) -> dict[str, Number]:
        found = {field: self._number(field, candidate) for field in constraint.fields}
        return {field: number for field, number in found.items() if number is not None}

    def _number(self, field: str, candidate: Candidate) -> Number | None:
        settings = self.settings(candidate) if candidate else {}
        return read_number(settings.get(field, field_value(self._document.data, field)))


def read_space(file: Path, overrides: list[str], search: SearchSection) -> Space:
    """The space of a checked profile. Raises ProfileError if no candidate can be run."""
    document = read_document(file)
    for override in overrides:
        apply_override(document, override)
    space = Space(file, search, document)
    space.check()
    return space


def slug(candidate: Candidate) -> str:
    """A short name of a candidate, determined by its values."""
    written = repr(sorted((name, str(value)) for name, value in candidate.items()))
    return f"c-{hashlib.sha256(written.encode()).hexdigest()[:10]}"


def words(candidate: Candidate) -> str:
    return ", ".join(f"{name} {value}" for name, value in candidate.items())
