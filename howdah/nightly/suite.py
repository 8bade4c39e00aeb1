# SPDX-License-Identifier: Apache-2.0
"""A suite: the profiles to run every night, with their algorithms, kernels and receivers."""

from __future__ import annotations

import hashlib
import json
import os
import re
import sys
from dataclasses import dataclass
from pathlib import Path
from typing import Annotated, Any, Literal

from pydantic import Field, ValidationError, WithJsonSchema, model_validator

from howdah.default import DEFAULT_KERNEL
from howdah.errors import ProfileError, UsageError, nearest
from howdah.generated import compact_json, docs_of, keep_current
from howdah.metric import known_metrics
from howdah.nightly.significance import MOST_REPETITIONS, Measures, is_excluded
from howdah.place import DOCS, PROFILES
from howdah.profile import Profile, load
from howdah.profile.field import FieldError, Section
from howdah.profile.model import Scenario
from howdah.profile.report import profile_error
from howdah.profile.schema import listed_names, plain_schema
from howdah.profile.source import Document, read_document
from howdah.profile.written import written_path
from howdah.work.catalogue import shipped_profiles

LEAST_REPETITIONS = 3
_OWN_FIELDS = ("algorithm", "receiver", "repetitions")
_A_VERSION = re.compile(r"(?:debian-|linux-source-)?(?:\d+\.\d+|newest)(?:\+[a-z0-9.-]+)?")
Wanted = dict[str, set[str] | None]  # experiment -> slugs of cells, None for all
Name = Annotated[str, Field(pattern=r"^[a-z0-9][a-z0-9.-]{0,63}$")]
Several = Annotated[list[str], Field(min_length=1, max_length=100)]

# plain_schema() replaces ``x-names`` by the lists of names.
Algorithm = Annotated[str, WithJsonSchema({"x-names": "AlgorithmName"})]
Kernel = Annotated[str, WithJsonSchema({"x-names": "KernelName"})]
Measure = Annotated[str, WithJsonSchema({"x-names": "MetricName"})]
_AXIS = "instead of the profile's own; each makes a cell"


class ItemSection(Section):
    """One profile and its changes; absent fields are the profile's own."""

    profile: str = Field(description="a file, from the suite's directory, or the name of a shipped profile")
    name: Name | None = Field(None, description="of the item; by default the profile's")
    algorithms: list[Algorithm] | None = Field(None, min_length=1, max_length=100, description=_AXIS)
    kernels: list[Kernel] = Field(
        default_factory=lambda: [DEFAULT_KERNEL],
        min_length=1,
        max_length=100,
        description="each makes cells of its own",
    )
    receivers: Several | None = Field(None, description=_AXIS)
    set: dict[str, Any] = Field(default_factory=dict, description="other fields of the profile, by their dotted names")
    repetitions: int = Field(10, ge=LEAST_REPETITIONS, le=MOST_REPETITIONS, description="of each cell")
    quick: bool = Field(False, description="apply the profile's quick section")
    metrics: list[Measure] | None = Field(
        None, min_length=1, max_length=100, description="measures to compare; by default all"
    )
    primary: list[Measure] | None = Field(
        None,
        min_length=1,
        max_length=100,
        description="measures that can fail a night; by default all of metrics, or the suite's",
    )
    claims: Literal["all"] | Several | None = Field(
        None, description="claims of the profile by name, or all, instead of measures"
    )

    @model_validator(mode="after")
    def _sensible(self) -> ItemSection:
        if self.claims is not None and (self.metrics is not None or self.primary is not None):
            raise FieldError("an item compares claims or measures; make it two items", "claims")
        for name in self.set:
            if name in _OWN_FIELDS:
                own = name if name == "repetitions" else f"{name}s"
                raise FieldError(f"{name} is set with {own}", "set", name)
        _check_metrics(self.metrics, "metrics")
        _check_metrics(self.primary, "primary")
        for index, metric in enumerate(self.primary or ()):
            if self.metrics is not None and metric not in self.metrics:
                raise FieldError(f"{metric} is not among the metrics that are compared", "primary", index)
        return self


def _check_metrics(names: list[str] | None, field: str) -> None:
    for index, metric in enumerate(names or ()):
        if metric not in known_metrics():
            near = nearest(metric, list(known_metrics()))
            hint = f"; did you mean {near}?" if near else ""
            raise FieldError(f"there is no metric {metric!r}{hint}", field, index)
        if is_excluded(metric):
            raise FieldError(f"{metric} cannot be compared: its unit is that of each exit's cause", field, index)


class SuiteSection(Section):
    """The whole file."""

    suite: Name = Field(description="the name of the suite, also in the names of its nights and baselines")
    description: str = Field("", description="a line for people")
    primary: list[Measure] | None = Field(
        None, min_length=1, max_length=100, description="measures that can fail a night, for items that list none"
    )
    allow_unproven: bool = Field(False, description="pass a night with changes that too few repetitions cannot prove")
    cells: list[ItemSection] = Field(min_length=1, max_length=1000, description="items, each a profile and its changes")

    @model_validator(mode="after")
    def _sensible(self) -> SuiteSection:
        _check_metrics(self.primary, "primary")
        return self


@dataclass(frozen=True)
class SuiteExperiment:
    """One experiment of the suite: an item on one kernel. ``name`` is the name of its directory and its baseline,
    ``place`` the line of the suite with its repetitions. With ``claims``, claims are compared instead of measures.
    """

    name: str
    item: str
    profile: Profile
    kernel: str
    place: str
    measures: Measures
    command: tuple[str, ...]
    claims: tuple[str, ...] | None = None


@dataclass(frozen=True)
class Suite:
    name: str
    description: str
    path: Path
    series: list[SuiteExperiment]
    allow_unproven: bool = False
    named: tuple[str, ...] = ()

    @property
    def words(self) -> tuple[str, ...]:
        """The suite's arguments on the command line: its file, or the options from which it is built."""
        return self.named or (str(self.path),)


def read_suite(path: Path) -> Suite:
    """Read and check a suite and all its profiles. Raises ProfileError with the line of the error."""
    if not path.exists():
        raise ProfileError(
            "there is no such suite", where=str(path), hint=f"{PROFILES / 'suites' / 'nightly.yaml'} is one"
        )
    document = read_document(path, "suite")
    try:
        section = SuiteSection.model_validate(document.data)
    except ValidationError as error:
        raise profile_error(error, document, {}, SuiteSection) from None
    series: dict[str, SuiteExperiment] = {}
    for index, item in enumerate(section.cells):
        profile, command = _profile(path, document, index, item)
        name = item.name or profile.name
        for kernel in dict.fromkeys(item.kernels):
            resolved = _kernel(path, kernel, document.place(("cells", index)))
            one = SuiteExperiment(
                f"{section.suite}-{name}-{_slug(kernel)}",
                name,
                profile,
                resolved,
                document.place(("cells", index, "repetitions")),
                _measures(section, item),
                (*command, "--kernel", resolved),
                _claims(profile, item, document.place(("cells", index, "claims"))),
            )
            if one.name in series:
                what = f"{name} on {kernel} is listed twice, first at {series[one.name].place}"
                raise ProfileError(what, where=document.place(("cells", index)), hint="give one of them another name:")
            series[one.name] = one
    return Suite(section.suite, section.description, path, list(series.values()), section.allow_unproven)


def _claims(profile: Profile, item: ItemSection, where: str) -> tuple[str, ...] | None:
    return None if item.claims is None else claims_of(profile, item.claims, where)


def claims_of(profile: Profile, wanted: str | list[str], where: str) -> tuple[str, ...]:
    """Return the ids of the profile's claims: ``all``, or those listed. Raises ProfileError for an unknown one."""
    known = [claim.id for claim in profile.claims if claim.unsupported is None]
    if not known:
        raise ProfileError("the profile makes no claim that can be judged", where=where)
    if wanted == "all":
        return tuple(known)
    for name in wanted:
        if name not in known:
            hint = f"its claims are {', '.join(known)}"
            raise ProfileError(f"the profile makes no claim {name!r}", where=where, hint=hint)
    return tuple(wanted)


def suite_of_claims(profiles: dict[str, Path], kernels: list[str], *, quick: bool, named: tuple[str, ...]) -> Suite:
    """Return a suite of all claims of the profiles, by name of experiment, on each kernel; ``named`` are the arguments
    that select it. Raises ProfileError for a profile without claims."""
    series = []
    for name, file in profiles.items():
        profile = load(file, [], quick=quick)
        claims = claims_of(profile, "all", str(file))
        command = ("howdah", "run", str(file), *(["--quick"] if quick else []), "--kernel")
        for kernel in kernels:
            full = f"claims-{name}-{_slug(kernel)}"
            series.append(
                SuiteExperiment(full, name, profile, kernel, str(file), Measures(), (*command, kernel), claims)
            )
    return Suite("claims", "Claims of profiles", Path(), series, named=named)


def _measures(section: SuiteSection, item: ItemSection) -> Measures:
    """Select an item's own ``primary``, or all of its ``metrics``, or the suite's ``primary``, or the default."""
    primary = item.primary
    if primary is None and item.metrics is None:
        primary = section.primary
    return Measures.of(primary, item.metrics)


def _profile(path: Path, document: Document, index: int, item: ItemSection) -> tuple[Profile, tuple[str, ...]]:
    """Return the profile with the item's changes, and the equivalent ``howdah run`` command."""
    changes: dict[str, Any] = dict(item.set)
    if item.claims is None or "repetitions" in item.model_fields_set:
        changes["repetitions"] = item.repetitions  # claims use the profile's own number
    if item.algorithms is not None:
        changes["algorithm"] = item.algorithms
    if item.receivers is not None:
        changes["receiver"] = item.receivers
    overrides = [f"{name}={_as_yaml(value)}" for name, value in changes.items()]
    where = document.place(("cells", index, "profile"))
    file = Path(os.path.normpath(written_path(path.parent, item.profile, where)))
    named = str(file)
    if not file.is_file():
        shipped = shipped_profiles()
        if item.profile not in shipped:
            close = nearest(item.profile, shipped)
            hint = f"looked for {file}" + (f"\n  did you mean {close}?" if close else "")
            raise ProfileError(f"there is no profile {item.profile}", where=where, hint=hint)
        file, named = shipped[item.profile], item.profile
    try:
        profile = load(file, overrides, quick=item.quick)
    except ProfileError as error:
        hint = f"{error.where}" + (f"\n  {error.hint}" if error.hint else "")
        raise ProfileError(error.what, where=where, hint=hint) from None
    sets = [word for override in overrides for word in ("--set", override)]
    return profile, ("howdah", "run", named, *(["--quick"] if item.quick else []), *sets)


def _as_yaml(value: Any) -> str:
    return json.dumps(value, ensure_ascii=False, default=str)


def _kernel(path: Path, kernel: str, where: str) -> str:
    if _A_VERSION.fullmatch(kernel):
        return kernel
    return str(written_path(path.parent, kernel, where).resolve())


def _slug(kernel: str) -> str:
    """A part of a directory's name; trees of the same name in different places get different ones."""
    if _A_VERSION.fullmatch(kernel):
        return kernel
    last = re.sub(r"[^a-z0-9.]+", "-", Path(kernel).name.lower()).strip("-.") or "tree"
    return f"{last}-{hashlib.sha256(kernel.encode()).hexdigest()[:6]}"


def chosen(suite: Suite, only: list[str]) -> Wanted:
    """Return the cells that ``--only`` selects: slugs by experiment, None for all. Raises UsageError for other names.

    A name is that of an item, of an experiment, or of a cell: ``EXPERIMENT/CELL``.
    """
    if not only:
        return {one.name: None for one in suite.series}
    found: Wanted = {}
    for word in only:
        experiment, _, cell = word.partition("/")
        matching = [one for one in suite.series if experiment in (one.name, one.item)]
        slugs = {slug for one in matching for slug in slugs_of(one)}
        if not matching or (cell and cell not in slugs):
            known = [one.name for one in suite.series] if not matching else sorted(slugs)
            items = [] if matching else [one.item for one in suite.series]
            near = nearest(cell if matching else experiment, [*known, *items])
            what = f"the suite has no {word!r}"
            raise UsageError(what, where=str(suite.path), hint=f"there are {', '.join(known[:12])}" +
                              (f"; did you mean {near}?" if near else ""))  # fmt: skip
        for one in matching:
            before = found.get(one.name, set())
            found[one.name] = None if not cell or before is None else {*before, cell}
    return found


def chosen_items(suite: Suite, only: list[str]) -> Wanted:
    """Return the selected cells by item, without regard to the suite's kernels."""
    by_item: Wanted = {}
    of_series = chosen(suite, only)
    for one in suite.series:
        if one.name in of_series:
            before, now = by_item.get(one.item, set()), of_series[one.name]
            by_item[one.item] = None if before is None or now is None else before | now
    return by_item


def slugs_of(series: SuiteExperiment) -> list[str]:
    """Return the names of an experiment's cells: a run's name without the repetition, or a claim's id.

    Controls and cross-checks are left out: controls are for failed claims, and a cross-check is one run, without pairs.
    """
    if series.claims is not None:
        return list(series.claims)
    return [point.slug for point in series.profile.points.parts[0]]


def slug_of(run: str) -> str:
    """Return the name of a run's cell, which is the run's name without the repetition."""
    return run.rpartition("-r")[0]


SUITE_SCHEMA_NAME = "suite.schema.json"
SUITE_SCHEMA = DOCS / SUITE_SCHEMA_NAME  # exists in a checkout and in a wheel


def suite_schema() -> dict[str, Any]:
    """JSON Schema (2020-12) of a suite. It leaves to ``howdah nightly`` which profiles, claims and measures exist."""
    schema = plain_schema(SuiteSection.model_json_schema(), {})
    item = schema["$defs"]["ItemSection"]["properties"]
    item["set"]["propertyNames"] = {"pattern": rf"^({'|'.join(Scenario.model_fields)})(\.[^.]+)*$"}
    names = {name: value for name, value in listed_names().items() if name != "AtlasEntry"}
    return {
        "$schema": "https://json-schema.org/draft/2020-12/schema",
        **schema,
        "title": "howdah suite",
        "$defs": {**schema["$defs"], **names},
    }


def main(arguments: list[str]) -> int:
    return keep_current({docs_of(arguments) / SUITE_SCHEMA_NAME: compact_json(suite_schema())}, arguments)


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
