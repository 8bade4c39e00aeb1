# SPDX-License-Identifier: Apache-2.0
"""The section ``claims``: what the runs are expected to show, in the words of docs/claims.md. howdah/claim judges
them."""

from __future__ import annotations

from typing import Annotated, Any, Literal

from pydantic import BeforeValidator, Field, GetJsonSchemaHandler, WithJsonSchema, model_validator

from howdah.profile.field import FieldError, Section, Text, fixed
from howdah.profile.figure import AxisName, AxisValues, Entries, FlowChoice, MetricName, Names, Take

MOST_CLAIMS = 500

Word = Literal["much more", "more", "similar", "less", "much less"]
Hold = Literal["all", "any", "max", "min", "mean"]
Slug = Annotated[str, Field(pattern=r"^[a-z0-9]+(-[a-z0-9]+)*$", max_length=80)]

WORDS: tuple[str, ...] = ("much more", "more", "similar", "less", "much less")
_NUMERIC = ("equals", "above", "below", "at_least", "at_most", "between")
_OF_AN_INTERVAL = ("above", "below")
_OTHERS = ("word", "ratio", "difference", "is_", "trend", "rank_correlation")
LEAST_RANKS = 3


def _quantity(value: object) -> str:
    """The quantity as it was written; howdah/claim/judging.py parses it in the metric's unit."""
    if isinstance(value, bool) or not isinstance(value, str | int | float):
        raise ValueError(f"expected a number with its unit, such as 12.9 Mbit/s, not {value!r}")
    return str(value)


_NUMBER_WITH_UNIT = r"^\s*[+-]?([0-9]+(\.[0-9]*)?|\.[0-9]+)([eE][+-]?[0-9]+)?\s*[^0-9]*$"
Quantity = Annotated[
    str,
    BeforeValidator(_quantity),
    WithJsonSchema({"type": ["number", "string"], "pattern": _NUMBER_WITH_UNIT, "x-value": "number with its unit"}),
]


class SelectorSection(Section):
    """Selects a number from the runs: a metric, of which flow, at which point of the sweep."""

    metric: MetricName = fixed(description="a measure of metrics.json (docs/measures.md)")
    flow: FlowChoice | None = fixed(
        None, description="number (from 1) or name of a flow, name of a group, or `all` with take"
    )
    take: Take | None = fixed(None, description="aggregate over a run's flows, or over the group's connections")
    at: AxisValues = fixed(default_factory=dict, description="axis name: value as written in the sweep")


class ThanSection(Section):
    """The other side of a comparison. Fields that it leaves out are taken from value."""

    metric: MetricName | None = fixed(None, description="a measure in the same unit")
    flow: FlowChoice | None = fixed(None, description="number or name of a flow, name of a group, or `all`")
    take: Take | None = fixed(None, description="aggregate over a run's flows, or over the group's connections")
    at: AxisValues = fixed(default_factory=dict, description="axis name: value; overrides those of value")

    @model_validator(mode="before")
    @classmethod
    def _no_empty_metric(cls, data: Any) -> Any:
        if isinstance(data, dict) and "metric" in data and data["metric"] is None:
            raise FieldError("metric is empty; leave it out to compare the metric of value", "metric")
        return data


class RangeSection(Section):
    """A range of numbers: one of equals, above, below, at_least, at_most and between."""

    equals: Quantity | None = fixed(None, description="the expected number")
    within: Quantity | None = fixed(
        None,
        description="tolerance of equals, a quantity or a percentage; or of the trend flat, a percentage; "
        "default: 10 %",
    )
    above: Quantity | None = fixed(None, description="the 95 % interval of the mean is above it")
    below: Quantity | None = fixed(None, description="the 95 % interval of the mean is below it")
    at_least: Quantity | None = fixed(None, description="the mean is at least this")
    at_most: Quantity | None = fixed(None, description="the mean is at most this")
    between: list[Quantity] | None = fixed(
        None, min_length=2, max_length=2, description="the mean is at least the first and at most the second"
    )

    @property
    def given(self) -> list[str]:
        """Names of the forms that are given."""
        return [name for name in _NUMERIC if getattr(self, name) is not None]

    @model_validator(mode="after")
    def _within_of_equals(self) -> RangeSection:
        if self.within is not None and not self._takes_within:
            raise FieldError("within belongs to equals, which is not given", "within")
        return self

    @property
    def _takes_within(self) -> bool:
        return self.equals is not None


class BoundsSection(RangeSection):
    """A range for the ratio or the difference of the two means that are compared."""

    @model_validator(mode="after")
    def _one_form(self) -> BoundsSection:
        if len(self.given) != 1:
            raise FieldError(f"expected one of {', '.join(_NUMERIC)}, not {' and '.join(self.given) or 'none'}")
        return self


class CorrelationSection(BoundsSection):
    """A range for a rank correlation, which has no interval."""

    @model_validator(mode="after")
    def _no_interval(self) -> CorrelationSection:
        for name in _OF_AN_INTERVAL:
            if getattr(self, name) is not None:
                instead = "at_least" if name == "above" else "at_most"
                raise FieldError(f"a rank correlation has no interval; give {instead}", name)
        return self


class ExpectSection(RangeSection):
    """The expectation, in one form: a comparing word, a range, a ratio or difference, a text, a trend, or a rank
    correlation."""

    word: Word | None = fixed(None, description="the same as `expect: more`: compares value with than")
    ratio: BoundsSection | None = fixed(None, description="range of value : than")
    difference: BoundsSection | None = fixed(None, description="range of value - than")
    is_: Text | None = fixed(None, alias="is", description="the text of a measure such as exit_cause")
    in_at_least: Quantity | None = fixed(
        None,
        description="share of the repetitions in which it must hold; default for is: 100 %. With equals, at_least, "
        "at_most or between, judges each repetition instead of the mean",
    )
    trend: Literal["rises", "falls", "flat"] | None = fixed(None, description="trend of the means along over")
    rank_correlation: CorrelationSection | None = fixed(
        None, description="range of Spearman's rank correlation between the means along over and the numbers in with"
    )
    with_: dict[str, float] | None = fixed(
        None,
        alias="with",
        description="with rank_correlation: axis value: the other number; axis values that are missing here are "
        "left out",
    )
    over: AxisName | None = fixed(None, description="axis of trend or rank_correlation")
    by: Quantity | None = fixed(
        None, description="with rises or falls: minimum change from the first mean to the last, as a share of the first"
    )

    @property
    def form(self) -> str:
        """The name of the one form that is given."""
        return self._forms()[0]

    @property
    def counts(self) -> bool:
        """Whether the claim counts the repetitions in which it holds, instead of judging their mean."""
        return self.is_ is not None or self.in_at_least is not None

    @property
    def compares(self) -> bool:
        return self.form in ("word", "ratio", "difference")

    @property
    def _takes_within(self) -> bool:
        return self.equals is not None or self.trend == "flat"

    def _forms(self) -> list[str]:
        others = [name for name in _OTHERS if getattr(self, name) is not None]
        return [*others, *self.given]

    @model_validator(mode="after")
    def _one_expectation(self) -> ExpectSection:
        forms = [name.rstrip("_") for name in self._forms()]
        if not forms:
            choices = f"{', '.join(WORDS)}, {', '.join(_NUMERIC)}, ratio, difference, is, trend, rank_correlation"
            raise FieldError(f"nothing is expected; give one of {choices}")
        if len(forms) > 1:
            raise FieldError(f"{' and '.join(forms)} are both given; a claim expects one thing")
        self._check_share(forms[0])
        if self.by is not None and self.trend not in ("rises", "falls"):
            raise FieldError("by belongs to the trends rises and falls, which are not given", "by")
        along = next((name for name in ("trend", "rank_correlation") if getattr(self, name) is not None), None)
        if (along is None) != (self.over is None):
            missing, present = ("over", along or "") if self.over is None else ("trend", "over")
            raise FieldError(f"{along or missing} and over belong together; {missing} is missing", present)
        if (self.rank_correlation is None) != (self.with_ is None):
            missing, present = ("with", "rank_correlation") if self.rank_correlation else ("rank_correlation", "with")
            raise FieldError(f"rank_correlation and with belong together; {missing} is missing", present)
        if self.with_ is not None and (len(self.with_) < LEAST_RANKS or len(set(self.with_.values())) == 1):
            raise FieldError(f"expected {LEAST_RANKS} numbers at least, not all of them the same", "with")
        return self

    def _check_share(self, form: str) -> None:
        if self.in_at_least is None or form == "is":
            return
        if form in _OF_AN_INTERVAL:
            instead = "at_least" if form == "above" else "at_most"
            what = f"in_at_least judges each repetition, and {form} the interval of their mean; give {instead}"
            raise FieldError(what, "in_at_least")
        if form not in _NUMERIC:
            form = "a word" if form == "word" else form
            what = f"in_at_least belongs to is, equals, at_least, at_most and between, not to {form}"
            raise FieldError(what, "in_at_least")


def _expect(value: object) -> object:
    if isinstance(value, str):
        if value not in WORDS:
            raise ValueError(f"expected {', '.join(WORDS)}, or a mapping such as {{equals: 870}}, not {value!r}")
        return {"word": value}
    return value


class _WordOrSection:
    """Adds to the schema that a word may replace the section."""

    def __get_pydantic_json_schema__(self, core: Any, handler: GetJsonSchemaHandler) -> dict[str, Any]:
        return {"anyOf": [{"enum": list(WORDS)}, handler(core)]}


Expect = Annotated[ExpectSection, BeforeValidator(_expect), _WordOrSection()]


class ClaimSection(Section):
    """A statement that the runs are expected to confirm, judged over their repetitions (docs/claims.md)."""

    id: Slug = fixed(description="lower-case words joined by hyphens, unique in the profile")
    entry: Entries = fixed(default_factory=list, description="entry of the atlas, or a list of them")
    says: Text = fixed(description="the claim in words")
    source: Text = fixed("", description="where the source says it")
    value: SelectorSection | None = fixed(None, description="the number that the claim is about")
    than: ThanSection | None = fixed(None, description="the other side of a comparison")
    expect: Expect | None = fixed(None, description="what is expected: a word, or a section")
    each: Names = fixed(default_factory=list, description="axes; the claim is judged at each of their values")
    hold: Hold = fixed(
        "all", description="with each: must hold at all points, at any; or for their largest, smallest or mean value"
    )
    control: Text | None = fixed(None, description="control whose runs it is judged on again if it fails")
    because: Text | None = fixed(None, description="why a modern kernel behaves differently; required with control")
    contradiction: Text | None = fixed(
        None,
        description="title of the inconsistency in the source that it depends on: if it fails, it is unsupported",
    )
    note: Text | None = fixed(None, description="a note for the reader, shown beside the verdict")
    kind: Literal["implemented"] | None = fixed(
        None,
        description="for a definition that is tested by the implementation's own reports: if it holds, the verdict "
        "is implemented instead of pass",
    )
    chosen_after: Text | None = fixed(
        None, description="if its range was chosen after a result was known: the earlier range, and why it changed"
    )
    unsupported: Text | None = fixed(None, description="instead of value and expect: why it cannot be measured here")

    @property
    def metrics(self) -> set[str]:
        """Names of the measures that the claim is about."""
        return {side.metric for side in (self.value, self.than) if side is not None and side.metric is not None}

    @model_validator(mode="before")
    @classmethod
    def _no_null(cls, data: Any) -> Any:
        if isinstance(data, dict):
            for name in ("value", "expect", "unsupported"):
                if name in data and data[name] is None:
                    raise FieldError(f"{name} is empty", name)
        return data

    @model_validator(mode="after")
    def _whole(self) -> ClaimSection:
        if self.unsupported is not None:
            for name in ("value", "than", "expect", "control", "because", "contradiction"):
                if getattr(self, name) is not None:
                    raise FieldError(f"{name} and unsupported are both given; give one", name)
            return self
        if self.value is None or self.expect is None:
            missing = "value" if self.value is None else "expect"
            raise FieldError(f"{missing} is missing; or give unsupported, why it cannot be measured")
        if self.expect.compares and self.than is None:
            raise FieldError(f"{self._shown()} is a comparison; than is missing", "expect")
        if not self.expect.compares and self.than is not None:
            raise FieldError(f"{self._shown()} is not a comparison; leave than out", "than")
        if (self.control is None) != (self.because is None):
            missing, present = ("because", "control") if self.because is None else ("control", "because")
            raise FieldError(f"control and because belong together; {missing} is missing", present)
        if self.expect.over is not None and self.expect.over in self.each:
            what = "trend" if self.expect.trend is not None else "rank correlation"
            raise FieldError(f"{self.expect.over} is the axis of the {what} and cannot be in each as well", "each")
        if self.hold != "all" and not self.each:
            raise FieldError(f"hold: {self.hold} is over the values of each, which is not given", "hold")
        self._check_hold(self.expect)
        return self

    def _check_hold(self, expect: ExpectSection) -> None:
        if self.hold in ("max", "min", "mean") and expect.form in ("is_", "trend", "rank_correlation"):
            raise FieldError(f"hold: {self.hold} is of numbers; with this expectation give all or any", "hold")
        if self.hold in ("max", "min") and expect.counts:
            what = f"hold: {self.hold} is of the means of the points, and in_at_least of each repetition"
            raise FieldError(f"{what}; give all, any or mean", "hold")

    def _shown(self) -> str:
        assert self.expect is not None
        return f"the word {self.expect.word}" if self.expect.word else self.expect.form.rstrip("_")
