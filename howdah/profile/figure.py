# SPDX-License-Identifier: Apache-2.0
"""The section ``figures``: curves, bars, distributions, time lines and tables over the runs of a sweep."""

from __future__ import annotations

import math
import re
from typing import Annotated, Any, Literal

from pydantic import BeforeValidator, Field, GetJsonSchemaHandler, WithJsonSchema, field_validator, model_validator

from howdah.profile.field import Duration, FieldError, Name, Section, Text, fixed

MOST_FIGURES = 64
SeriesName = Literal[  # rows of reports/series.yaml
    "cwnd", "ssthresh", "goodput", "rtt", "queue", "sequence", "drops", "processor", "waiting"
]
PLACES = re.compile(r"\{(\w*)\}")  # placeholders of a title
SERIES_PANELS = "series"  # panels of a time figure: one per series instead of one per value of an axis

_AXIS = r"^[A-Za-z][A-Za-z0-9._-]{0,120}$"
AxisName = Annotated[str, Field(pattern=_AXIS)]
# howdah/profile/schema.py replaces ``x-names`` by the list of names.
_METRIC: dict[str, Any] = {"type": "string", "x-names": "MetricName"}
_ENTRY: dict[str, Any] = {"type": "string", "x-names": "AtlasEntry"}
MetricName = Annotated[str, Field(pattern=r"^[a-z][a-z0-9_]{0,80}$"), WithJsonSchema(_METRIC)]
EntryName = Annotated[str, Field(pattern=r"^[A-Za-z0-9][A-Za-z0-9_.-]{0,80}$"), WithJsonSchema(_ENTRY)]


def _axis_value(value: object) -> object:
    """The value as it was written: 6.10 is not 6.1."""
    if isinstance(value, dict) or (isinstance(value, list) and any(isinstance(item, list | dict) for item in value)):
        raise ValueError("expected a value of the axis, or a list of values")
    return value


AxisValues = dict[
    str,
    Annotated[
        Any,
        BeforeValidator(_axis_value),
        WithJsonSchema({"type": ["string", "number", "boolean", "array"], "x-value": "value, or list of values"}),
    ],
]

_CHOICE = {"anyOf": [{"type": "string"}, {"type": "integer"}]}


def _flow(value: object) -> int | str:
    if isinstance(value, bool) or not isinstance(value, int | str) or value in (0, ""):
        raise ValueError(f"expected the number of a flow, its name, the name of a group, or all, not {value!r}")
    return value


FlowChoice = Annotated[
    int | str, BeforeValidator(_flow), WithJsonSchema({**_CHOICE, "x-value": "number, name or `all`"})
]
Take = Literal["sum", "mean", "min", "max"]


def _names(value: object) -> object:
    return [value] if isinstance(value, str) else value


def _one_or_several(name: dict[str, Any], words: str) -> WithJsonSchema:
    return WithJsonSchema({"anyOf": [name, {"type": "array", "items": name}], "x-value": words})


Names = Annotated[
    list[AxisName],
    BeforeValidator(_names),
    _one_or_several({"type": "string", "pattern": _AXIS}, "name, or list of names"),
]
Entries = Annotated[list[EntryName], BeforeValidator(_names), _one_or_several(_ENTRY, "id, or list of ids")]


class ColumnSection(Section):
    """A column of a table: a metric, of which flow, and at which values of the axes that are not rows."""

    metric: MetricName = fixed(description="a measure of metrics.json")
    title: Text | None = fixed(None, description="heading; default: the measure's title")
    flow: FlowChoice | None = fixed(None, description="number or name of a flow, name of a group, or `all` with take")
    take: Take | None = fixed(None, description="over the flows of a run")
    at: AxisValues = fixed(default_factory=dict, description="axis name: value as written in the sweep")


def _column(value: object) -> object:
    return {"metric": value} if isinstance(value, str) else value


def _columns(value: object) -> object:
    return [_column(item) for item in value] if isinstance(value, list) else value


class _MetricOrColumn:
    """Adds to the schema that a metric may replace the column."""

    def __get_pydantic_json_schema__(self, core: Any, handler: GetJsonSchemaHandler) -> dict[str, Any]:
        several, axis = handler(core)["anyOf"]
        columns = {**several, "items": {"anyOf": [_METRIC, several["items"]]}}
        return {"anyOf": [columns, axis], "x-value": "list of metrics or columns, or an axis (with y)"}


Columns = Annotated[list[ColumnSection] | AxisName, BeforeValidator(_columns), _MetricOrColumn()]
Number = Annotated[Any, WithJsonSchema({"type": ["number", "string"], "x-value": "number with its unit"})]


class PaperSection(Section):
    """Numbers that a paper prints, drawn hollow beside the measured ones."""

    label: Text = fixed("the paper", description="where they are printed, such as Table 1")
    points: dict[str, dict[str, Number]] = fixed(
        description="line: x: number; for a table, row: column: number. With panels, the line is panel / line"
    )

    @model_validator(mode="after")
    def _leaves(self) -> PaperSection:
        for line, values in self.points.items():
            for at, value in values.items():
                if isinstance(value, bool) or not isinstance(value, int | float | str):
                    raise FieldError(f"expected a number with its unit, not {value!r}", "points", line, at)
                if isinstance(value, float) and not math.isfinite(value):
                    raise FieldError(f"expected a finite number, not {value!r}", "points", line, at)
        return self


class _PaperOrRows:
    """Adds to the schema that a table's rows may replace ``points`` (``FigureSection._paper_of_a_table``)."""

    def __get_pydantic_json_schema__(self, core: Any, handler: GetJsonSchemaHandler) -> dict[str, Any]:
        numbers = {"type": "object", "additionalProperties": {"type": ["number", "string"]}}
        label = {"label": {"type": ["string", "number"]}}
        rows = {"type": "object", "properties": label, "additionalProperties": numbers, "not": {"required": ["points"]}}
        return {"anyOf": [handler(core), rows], "x-value": "section"}


_NEEDED = {
    "sweep": ("x", "y"),
    "bars": ("x", "y"),
    "cdf": ("metric",),
    "time": ("series",),
    "table": ("rows", "columns"),
}
_ALLOWED = {
    "sweep": {"x", "y", "flow", "take", "lines", "panels", "relative_to", "log", "paper"},
    "bars": {"x", "y", "flow", "take", "lines", "panels", "relative_to", "log", "paper"},
    "cdf": {"metric", "group", "lines", "panels", "log"},
    "time": {"series", "flows", "lines", "panels", "window", "log", "repetition"},
    "table": {"rows", "columns", "y", "flow", "take", "paper"},
}
_OF_ALL_KINDS = {"id", "entry", "title", "kind", "at", "note"}


class FigureSection(Section):
    """A figure over the runs of the profile. docs/report.md lists the fields that each kind requires and accepts."""

    id: Annotated[str, Field(pattern=r"^[a-z0-9]+(-[a-z0-9]+)*$", max_length=80)] = fixed(
        description="lower-case words joined by hyphens, unique in the profile"
    )
    entry: Entries = fixed(default_factory=list, description="atlas entry that shows it, or a list of them")
    title: Text = fixed(description="title; {duration} and {window} are replaced by the runs'")
    note: Text = fixed("", description="a sentence for the caption")
    kind: Literal["sweep", "bars", "cdf", "time", "table"] = fixed(description="form of the figure")
    x: AxisName | None = fixed(None, description="axis of the sweep, for the abscissa or the categories")
    y: MetricName | None = fixed(None, description="a measure of metrics.json")
    metric: MetricName | None = fixed(None, description="with cdf: a measure of each connection of a group")
    group: Name | None = fixed(None, description="with cdf: the group; required if there are several")
    flow: FlowChoice | None = fixed(None, description="number or name of a flow, name of a group, or `all` with take")
    take: Take | None = fixed(None, description="over the flows of a run")
    lines: AxisName = fixed("algorithm", description="axis with one line per value, or one bar per value and category")
    panels: AxisName | None = fixed(None, description="axis with one panel per value; with time also `series`")
    at: AxisValues = fixed(
        default_factory=dict, description="axis name: value, or list of values, as written in the sweep"
    )
    relative_to: AxisValues = fixed(
        default_factory=dict, description="show y in per cent above or below that of this value of lines"
    )
    log: Literal["x", "y", "xy"] | None = fixed(None, description="logarithmic axes")
    paper: Annotated[PaperSection, _PaperOrRows()] | None = fixed(
        None, description="printed numbers to compare with, drawn hollow"
    )
    series: list[SeriesName] = fixed(default_factory=list, description="with time: what to draw")
    flows: list[FlowChoice] = fixed(
        default_factory=list, description="with time: flows, by number or name; default: all"
    )
    window: list[Duration] = fixed(default_factory=list, description="with time: begin and end, from the epoch")
    repetition: int | None = fixed(
        None, ge=0, description="with time: repetition; default: the first that counts and has tables"
    )
    rows: Names = fixed(default_factory=list, description="with table: axis, or axes, with one row per value")
    columns: Columns = fixed(default_factory=list, description="with table: metrics, columns, or an axis (with y)")

    @model_validator(mode="before")
    @classmethod
    def _paper_of_a_table(cls, data: Any) -> Any:
        """Accept a table's numbers directly in ``paper``, without ``points``."""
        paper = data.get("paper") if isinstance(data, dict) else None
        if isinstance(paper, dict) and data.get("kind") == "table" and "points" not in paper:
            points = {key: value for key, value in paper.items() if key != "label"}
            labelled = {"label": paper["label"]} if "label" in paper else {}
            return {**data, "paper": {**labelled, "points": points}}
        return data

    @field_validator("title")
    @classmethod
    def _known_places(cls, title: str) -> str:
        for name in PLACES.findall(title):
            if name not in ("duration", "window"):
                raise ValueError(f"a title may have {{duration}} and {{window}} in it, not {{{name}}}")
        return title

    @model_validator(mode="after")
    def _of_its_kind(self) -> FigureSection:
        for name in _NEEDED[self.kind]:
            if not getattr(self, name):
                raise FieldError(f"a figure of kind {self.kind} needs {name}", "kind")
        for name in sorted(self.model_fields_set - _ALLOWED[self.kind] - _OF_ALL_KINDS):
            raise FieldError(f"a figure of kind {self.kind} has no {name}", name)
        if self.take is not None and not isinstance(self.flow, str):
            raise FieldError("take is over flow: all or the connections of a group; flow names neither", "take")
        if self.flow == "all" and self.take is None:
            raise FieldError("flow: all needs take (sum, mean, min or max)", "flow")
        if self.window and (len(self.window) != 2 or self.window[0] >= self.window[1]):
            raise FieldError("expected a begin and a later end, such as [11 s, 16 s]", "window")
        if self.relative_to and set(self.relative_to) != {self.lines}:
            raise FieldError(
                f"expected the value of {self.lines} that the other lines are compared with", "relative_to"
            )
        if self.x is not None and self.x in (self.lines, self.panels):
            raise FieldError(f"{self.x} is the abscissa and cannot be lines or panels as well", "x")
        if self.kind != "time" and self.panels == SERIES_PANELS:
            raise FieldError("only a figure of kind time has a panel for each series", "panels")
        if self.kind == "table" and isinstance(self.columns, str) != (self.y is not None):
            raise FieldError("columns that are an axis need y; a list of metrics has none", "columns")
        return self
