# SPDX-License-Identifier: Apache-2.0
"""The section ``search:`` which paths, flows and hosts ``howdah search`` may try, and its goal (docs/search.md)."""

from __future__ import annotations

from typing import Annotated, Any, Literal

from pydantic import BeforeValidator, Field, WithJsonSchema, model_validator

from howdah.profile.claim import Quantity, SelectorSection, Slug, ThanSection
from howdah.profile.field import FieldError, PositiveDuration, Section, ShortSection, fixed

MOST_STEPS = 20


def _choices(value: object) -> object:
    if isinstance(value, list) and any(isinstance(each, list | dict) or each is None for each in value):
        raise ValueError("expected single values")
    if value == []:
        raise ValueError("a field has one value at least")
    return value


Choices = Annotated[
    list[Any],
    Field(min_length=1),
    BeforeValidator(_choices),
    WithJsonSchema({"type": "array", "minItems": 1, "x-value": "list of values"}),
]
Count = Annotated[int, Field(ge=1, le=MOST_STEPS)]


class VariableSection(ShortSection):
    """The values a field may have: a list, or numbers of one unit within a range."""

    short = "values"
    values: Choices | None = fixed(None, description="unordered choices")
    from_: Quantity | None = fixed(None, alias="from", description="minimum")
    to: Quantity | None = fixed(None, description="maximum")
    step: Quantity | None = fixed(None, description="distance of values; default: a hundredth of the range")
    scale: Literal["linear", "log"] = fixed(
        "linear", description="`log`: each value is 10 % larger than the one before"
    )

    @model_validator(mode="after")
    def _one_form(self) -> VariableSection:
        ends = [self.from_, self.to]
        if (self.values is None) == (ends == [None, None]) or (self.values is None and None in ends):
            raise FieldError("give from and to, or a list of values")
        if self.step is not None and (self.scale == "log" or self.values is not None):
            raise FieldError("step belongs to from and to of the scale linear", "step")
        return self


class CountSection(ShortSection):
    """How many steps there are: exactly, or within a range."""

    short = "exactly"
    exactly: Count | None = fixed(None, description="exact number")
    from_: Count | None = fixed(None, alias="from", description="minimum")
    to: Count | None = fixed(None, description="maximum")

    @model_validator(mode="after")
    def _one_form(self) -> CountSection:
        ends = [self.from_, self.to]
        if (self.exactly is None) == (ends == [None, None]) or (self.exactly is None and None in ends):
            raise FieldError("give a number, or from and to")
        if self.least > self.most:
            raise FieldError("the range is empty", "to")
        return self

    @property
    def least(self) -> int:
        return self.exactly or self.from_ or 1

    @property
    def most(self) -> int:
        return self.exactly or self.to or 1


class StepsSection(Section):
    """A path that changes step by step; the run lasts as long as the steps."""

    count: CountSection = fixed(description="number of steps")
    lasts: VariableSection = fixed(description="duration of each step")
    rate: VariableSection | None = fixed(None, description="path.rate in each step")
    rtt: VariableSection | None = fixed(None, description="path.rtt in each step")

    @model_validator(mode="after")
    def _something(self) -> StepsSection:
        if self.rate is None and self.rtt is None:
            raise FieldError("nothing changes from step to step; give rate, rtt or both")
        return self


class GoalSection(SelectorSection):
    """A measured number, or a comparison of two."""

    than: ThanSection | None = fixed(None, description="the other side, to compare with")
    by: Literal["difference", "ratio"] = fixed("difference", description="how to compare the sides")

    @model_validator(mode="after")
    def _two_sides(self) -> GoalSection:
        if self.than is None and "by" in self.model_fields_set:
            raise FieldError("by needs two sides; give than as well", "by")
        return self

    @property
    def sides(self) -> tuple[SelectorSection, SelectorSection | None]:
        """Both sides, with ``than`` completed by the fields of the first."""
        value = SelectorSection(metric=self.metric, flow=self.flow, take=self.take, at=self.at)
        if self.than is None:
            return value, None
        given = {name: getattr(self.than, name) for name in self.than.model_fields_set if name != "at"}
        return value, value.model_copy(update={**given, "at": {**self.at, **self.than.at}})


class BudgetSection(Section):
    """Limits of a search; the first one reached ends it."""

    candidates: Annotated[int, Field(ge=1, le=100_000)] = fixed(120, description="maximum number of candidates")
    counterexamples: Annotated[int, Field(ge=1)] | None = fixed(
        None, description="stop after this many candidates on which the claim fails"
    )
    time: PositiveDuration | None = fixed(None, description="maximum time; the result then depends on the machine")


class SearchSection(Section):
    """The space that ``howdah search`` explores, and its goal."""

    space: dict[str, VariableSection] = fixed(
        default_factory=dict, description="field.field: a range, or a list of values; overrides the profile's value"
    )
    steps: StepsSection | None = fixed(
        None, description="a path that changes step by step; the run lasts as long as the steps"
    )
    constraints: list[str] = fixed(
        default_factory=list, description="`FIELD <= FIELD`, with a factor or a quantity on either side"
    )
    falsify: Slug | None = fixed(None, description="claim for which to find a counterexample")
    maximise: GoalSection | None = fixed(None, description="number to maximise")
    minimise: GoalSection | None = fixed(None, description="number to minimise")
    budget: BudgetSection = fixed(
        default_factory=BudgetSection, description="limits of the search; the first one reached ends it"
    )
    seed: Annotated[int, Field(ge=0, le=2**32 - 1)] = fixed(1, description="seed of the choice of candidates")

    @model_validator(mode="after")
    def _one_goal(self) -> SearchSection:
        given = [name for name in ("falsify", "maximise", "minimise") if getattr(self, name) is not None]
        if len(given) != 1:
            raise FieldError(f"give one of falsify, maximise and minimise, not {' and '.join(given) or 'none'}")
        if self.budget.counterexamples is not None and self.falsify is None:
            raise FieldError(
                "counterexamples needs falsify: with maximise or minimise, no number of candidates is enough", "budget"
            )
        if not self.space and self.steps is None:
            raise FieldError("the space is empty; give space, steps or both")
        return self
