# SPDX-License-Identifier: Apache-2.0
"""The sections of a profile that concern all its runs together: quick, controls, unknown, claims, figures, search,
recorded.

They are removed from the document before its sweep is expanded, so they affect no plan and no run's key.
"""

from __future__ import annotations

import copy
from collections.abc import Iterable
from pathlib import Path
from typing import Annotated, Any

from pydantic import Field, ValidationError, WithJsonSchema, model_validator

from howdah.errors import ProfileError
from howdah.profile.claim import MOST_CLAIMS, ClaimSection
from howdah.profile.control import MOST_CONTROLS, ControlName, ControlSection, UnknownsSection, axis_key
from howdah.profile.field import FieldError, PositiveDuration, Rate, Section, Text, fixed
from howdah.profile.figure import MOST_FIGURES, FigureSection
from howdah.profile.override import CASE, AnySettings, field_value, set_field
from howdah.profile.report import profile_error
from howdah.profile.search import SearchSection
from howdah.profile.source import Document, parse_yaml

MOST_POINTS = 1000
Number = Annotated[float, Field(ge=0, allow_inf_nan=False, strict=False)]
Numbers = Annotated[
    list[Number],
    Field(min_length=2, max_length=MOST_POINTS),
    WithJsonSchema({"type": "array", "minItems": 2, "maxItems": MOST_POINTS, "x-value": "list of numbers"}),
]


class RecordedExitSection(Section):
    """The recorded flow's exit from slow start."""

    time: PositiveDuration = fixed(description="time since the start of the connection")
    packets: Number = fixed(description="packets in flight")
    round: int | None = fixed(None, ge=0, description="round, from 0")
    cause: Text | None = fixed(None, description="cause, as `exit_cause` of docs/measures.md; default: unknown")


class RecordedCourseSection(Section):
    """A time series of the recorded flow at the sender. Times count from the start of the connection."""

    time_ms: Numbers = fixed(description="times in milliseconds")
    in_flight_packets: Numbers = fixed(description="unacknowledged packets after the last ACK")
    acknowledged_kb: Numbers = fixed(description="acknowledged data in kB")
    rtt_ms: Numbers = fixed(description="round trip of the last acknowledged segment")

    @model_validator(mode="after")
    def _equal(self) -> RecordedCourseSection:
        for name in ("in_flight_packets", "acknowledged_kb", "rtt_ms"):
            if len(getattr(self, name)) != len(self.time_ms):
                raise FieldError(f"{name} has {len(getattr(self, name))} values for {len(self.time_ms)} times", name)
        if any(later <= time for time, later in zip(self.time_ms, self.time_ms[1:], strict=False)):
            raise FieldError("the times do not rise", "time_ms")
        return self


class RecordedSection(Section):
    """What the recording shows of the flow."""

    goodput: Rate | None = fixed(None, description="acknowledged data per time")
    retransmitted_packets: int | None = fixed(None, ge=0, description="retransmitted segments")
    held_back_by: Text | None = fixed(None, description="as `held_back_by` of docs/measures.md")
    exit: RecordedExitSection | None = fixed(None, description="its exit from slow start")
    startup_left: bool | None = fixed(None, description="false: never left slow start; without this and exit: unknown")
    course: RecordedCourseSection | None = fixed(
        None, description="its time series at the sender, if the recording has packets"
    )


class ExperimentSections(Section):
    """The sections of a profile that concern all its runs together."""

    quick: AnySettings = fixed(
        default_factory=dict,
        description="what --quick sets, to run only a part of the sweep: field.field: value, as for --set",
    )
    controls: dict[ControlName, ControlSection] = fixed(
        default_factory=dict, max_length=MOST_CONTROLS, description="additional runs with one mechanism changed"
    )
    unknown: UnknownsSection | None = fixed(
        None, description="what a source leaves open: additional runs if a claim fails with the profile as written"
    )
    claims: list[ClaimSection] = fixed(
        default_factory=list, max_length=MOST_CLAIMS, description="what the runs are expected to show"
    )
    figures: list[FigureSection] = fixed(
        default_factory=list, max_length=MOST_FIGURES, description="figures of the runs"
    )
    search: SearchSection | None = fixed(None, description="where howdah search looks for counterexamples")
    recorded: RecordedSection | None = fixed(
        None, description="what a recording shows of the flow that this profile reproduces"
    )

    @model_validator(mode="after")
    def _unique(self) -> ExperimentSections:
        for kind, items in (("claims", self.claims), ("figures", self.figures)):
            names: list[str] = [item.id for item in items]
            for index, name in enumerate(names):
                if name in names[:index]:
                    raise FieldError(f"two {kind} are called {name!r}", kind, index, "id")
        return self


SECTIONS = tuple(ExperimentSections.model_fields)


def bare(document: Document) -> Document:
    """A copy of the document without the sections of ``ExperimentSections``. The places of all values are kept."""
    data = {name: value for name, value in document.data.items() if name not in SECTIONS}
    return Document(data, document.places, document.text).copy()


def read_sections(document: Document) -> ExperimentSections:
    """Read and check the document's ``ExperimentSections``, each by itself. Raises ProfileError."""
    given = {name: document.data[name] for name in SECTIONS if document.data.get(name) is not None}
    try:
        return ExperimentSections.model_validate(given)
    except ValidationError as error:
        raise profile_error(error, document, {}, ExperimentSections) from None


def sections_of_text(text: str, name: str) -> ExperimentSections:
    """The ``ExperimentSections`` of a profile's text; ``name`` is the file's name in errors. Raises ProfileError."""
    data, places = parse_yaml(text, name)
    if not isinstance(data, dict):
        raise ProfileError("a profile is a mapping of fields", where=name)
    return read_sections(Document(data, places, text))


def sections_of_experiment(directory: Path) -> ExperimentSections:
    """The ``ExperimentSections`` an experiment was run with, from its directory; defaults if it has no profile.yaml."""
    file = directory / "profile.yaml"
    try:
        text = file.read_text(encoding="utf-8")
    except OSError:
        return ExperimentSections()
    except UnicodeDecodeError as error:
        raise ProfileError(f"the profile is not UTF-8 text: {error.reason}", where=str(file)) from None
    return sections_of_text(text, str(file))


def names_of(figures_or_claims: Iterable[ClaimSection | FigureSection]) -> set[str]:
    """The atlas entries that the figures or claims belong to."""
    return {entry for item in figures_or_claims for entry in item.entry}


REPETITIONS = "repetitions"
CROSS_CHECK = "cross_check"


def apply_quick(document: Document) -> int | None:
    """Apply ``quick:`` to the document. Raises ProfileError for a setting that would make runs that the full sweep
    lacks.

    Return the number of repetitions if it is reduced to one, else None. It is not set in the document: the first of
    several repetitions is perturbed, and the only one is not.
    """
    fields = document.data.get("quick")
    if not isinstance(fields, dict) or not fields:
        raise ProfileError(
            "this profile has no quick section, so --quick has nothing to leave out",
            where=document.place(()),
            hint="for example quick: {repetitions: 3}",
        )
    check_quick(document)
    left = None
    for name, value in fields.items():
        if name == REPETITIONS and value == 1 and value is not True:  # a value of another type is refused later
            left = 1
            continue
        place = ("quick", name)
        where = document.place(place)
        before = field_value(document.data, name)
        set_field(document, name, _as_written(name, before, value), document.below(place) or {(): where}, where)
    return left


def _as_written(name: str, before: Any, value: Any) -> Any:
    """``value`` as a part of the sweep ``before``: a list, spelled as the sweep spells it, because plans hold both."""
    cases = name == CASE and isinstance(before, dict)
    if not isinstance(before, list) and not cases:
        return copy.deepcopy(value)
    wanted = [axis_key(item) for item in (value if isinstance(value, list) else [value])]
    if cases:
        return {name: settings for name, settings in before.items() if axis_key(name) in wanted}
    return [item for item in before if axis_key(item) in wanted]


def check_quick(document: Document) -> None:
    """Raise ProfileError unless ``quick`` only leaves out axis values, repetitions or the cross-check."""
    fields = document.data.get("quick")
    if not isinstance(fields, dict):
        return
    for name, value in fields.items():
        where = document.place(("quick", name))
        before = field_value(document.data, name)
        if name == REPETITIONS:
            _check_repetitions(1 if before is None else before, value, where)
            continue
        if name == CROSS_CHECK and value is None:
            continue
        several = isinstance(before, list) or (name == CASE and isinstance(before, dict))
        full = [axis_key(item) for item in (before if several else [before])]
        for item in value if isinstance(value, list) else [value]:
            if before is None or axis_key(item) not in full:
                what = f"quick sets {name} to {item}, which the full experiment does not have"
                hint = (
                    "it may leave out values of a sweep, and repetitions: its runs are then among those of the "
                    "full experiment"
                )
                raise ProfileError(what, where=where, hint=hint)


def _check_repetitions(full: Any, value: Any, where: str) -> None:
    if not isinstance(full, int) or not isinstance(value, int):
        return  # the check of the field reports it
    if value > full:
        raise ProfileError(f"quick asks for {value} repetitions, the full experiment for {full}", where=where)
