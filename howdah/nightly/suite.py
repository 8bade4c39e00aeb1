# SPDX-License-Identifier: Apache-2.0
"""A suite: which profiles are run with which algorithms, kernels and receivers, night after night."""

from __future__ import annotations

import hashlib
import json
import os
import re
from dataclasses import dataclass
from pathlib import Path
from typing import Annotated, Any

from pydantic import Field, ValidationError, model_validator

from howdah.engine.uml.source import DEFAULT_KERNEL
from howdah.errors import HowdahError, ProfileError
from howdah.profile import Profile, load
from howdah.profile.algorithm import nearest
from howdah.profile.control import CONTROL_AXIS
from howdah.profile.metric import known_metrics
from howdah.profile.report import profile_error
from howdah.profile.section import FieldError, Section
from howdah.profile.source import Document, read_document

LEAST_REPETITIONS = 3
_OWN_FIELDS = ("algorithm", "receiver", "repetitions")
_A_VERSION = re.compile(r"(?:debian-|linux-source-)?(?:\d+\.\d+|newest)")
Name = Annotated[str, Field(pattern=r"^[a-z0-9][a-z0-9.-]{0,63}$")]
Several = Annotated[list[str], Field(min_length=1, max_length=100)]


class ItemSection(Section):
    """One profile and what it is run with; what is not given is the profile's own."""

    profile: str
    name: Name | None = None
    algorithms: Several | None = None
    kernels: Several = Field(default_factory=lambda: [DEFAULT_KERNEL])
    receivers: Several | None = None
    set: dict[str, Any] = Field(default_factory=dict)
    repetitions: int = Field(default=10, ge=LEAST_REPETITIONS, le=1000)
    quick: bool = False
    metrics: Several | None = None

    @model_validator(mode="after")
    def _sensible(self) -> ItemSection:
        for name in self.set:
            if name in _OWN_FIELDS:
                own = name if name == "repetitions" else f"{name}s"
                raise FieldError(f"{name} is set with {own}", "set", name)
        for index, metric in enumerate(self.metrics or ()):
            if metric not in known_metrics():
                near = nearest(metric, list(known_metrics()))
                raise FieldError(f"there is no metric {metric!r}" + (f"; did you mean {near}?" if near else ""),
                                 "metrics", index)  # fmt: skip
        return self


class SuiteSection(Section):
    """The whole file."""

    suite: Name
    description: str = ""
    cells: list[ItemSection] = Field(min_length=1, max_length=1000)


@dataclass(frozen=True)
class Series:
    """One experiment of the suite: an item on one kernel. ``name`` is that of its directory and of its baseline."""

    name: str
    item: str
    profile: Profile
    kernel: str
    place: str
    metrics: frozenset[str] | None
    command: tuple[str, ...]

    def compares(self, metric: str) -> bool:
        return self.metrics is None or metric in self.metrics


@dataclass(frozen=True)
class Suite:
    name: str
    description: str
    path: Path
    series: list[Series]


def read_suite(path: Path) -> Suite:
    """Read and check a suite and every profile in it. Raises ProfileError with the line of what is wrong."""
    if not path.exists():
        raise ProfileError("there is no such suite", where=str(path), hint="profiles/suites/nightly.yaml is one")
    document = read_document(path)
    try:
        section = SuiteSection.model_validate(document.data)
    except ValidationError as error:
        raise profile_error(error, document, {}, SuiteSection) from None
    series: dict[str, Series] = {}
    for index, item in enumerate(section.cells):
        place = document.place(("cells", index))
        profile, command = _profile(path, document, index, item)
        name = item.name or profile.name
        for kernel in dict.fromkeys(item.kernels):
            resolved = _kernel(path, kernel)
            one = Series(
                f"{section.suite}-{name}-{_slug(kernel)}",
                name,
                profile,
                resolved,
                place,
                frozenset(item.metrics) if item.metrics is not None else None,
                (*command, "--kernel", resolved),
            )
            if one.name in series:
                what = f"{name} on {kernel} is here twice, first in {series[one.name].place}"
                raise ProfileError(what, where=place, hint="give one of them another name:")
            series[one.name] = one
    return Suite(section.suite, section.description, path, list(series.values()))


def _profile(path: Path, document: Document, index: int, item: ItemSection) -> tuple[Profile, tuple[str, ...]]:
    """The profile with the item's changes, and the ``howdah run`` command that has them."""
    changes: dict[str, Any] = {**item.set, "repetitions": item.repetitions}
    if item.algorithms is not None:
        changes["algorithm"] = item.algorithms
    if item.receivers is not None:
        changes["receiver"] = item.receivers
    overrides = [f"{name}={_as_yaml(value)}" for name, value in changes.items()]
    file = Path(os.path.normpath(path.parent / Path(item.profile).expanduser()))
    where = document.place(("cells", index, "profile"))
    if not file.is_file():
        raise ProfileError(f"there is no profile {item.profile}", where=where, hint=f"looked for {file}")
    try:
        profile = load(file, overrides, quick=item.quick)
    except ProfileError as error:
        hint = f"{error.where}" + (f"\n  {error.hint}" if error.hint else "")
        raise ProfileError(error.what, where=where, hint=hint) from None
    sets = [word for override in overrides for word in ("--set", override)]
    return profile, ("howdah", "run", str(file), *(["--quick"] if item.quick else []), *sets)


def _as_yaml(value: Any) -> str:
    """A value in YAML's flow style, which reads back to it."""
    return json.dumps(value, ensure_ascii=False, default=str)


def _kernel(path: Path, kernel: str) -> str:
    if _A_VERSION.fullmatch(kernel):
        return kernel
    return str((path.parent / Path(kernel).expanduser()).resolve())


def _slug(kernel: str) -> str:
    """A part of a directory's name; trees of the same name in different places have different ones."""
    if _A_VERSION.fullmatch(kernel):
        return kernel
    last = re.sub(r"[^a-z0-9.]+", "-", Path(kernel).name.lower()).strip("-.") or "tree"
    return f"{last}-{hashlib.sha256(kernel.encode()).hexdigest()[:6]}"


def chosen(suite: Suite, only: list[str]) -> dict[str, set[str] | None]:
    """What ``--only`` names: the slugs of an experiment's cells, None for all of it. Raises HowdahError for no such.

    A name is that of an item, of an experiment, or of a cell: ``EXPERIMENT/CELL``.
    """
    if not only:
        return {one.name: None for one in suite.series}
    found: dict[str, set[str] | None] = {}
    for word in only:
        experiment, _, cell = word.partition("/")
        matching = [one for one in suite.series if experiment in (one.name, one.item)]
        slugs = {slug for one in matching for slug in slugs_of(one)}
        if not matching or (cell and cell not in slugs):
            known = [one.name for one in suite.series] if not matching else sorted(slugs)
            near = nearest(cell if matching else experiment, known)
            what = f"the suite has no {word!r}"
            raise HowdahError(what, where=str(suite.path), hint=f"there are {', '.join(known[:12])}" +
                              (f"; did you mean {near}?" if near else ""))  # fmt: skip
        for one in matching:
            before = found.get(one.name, set())
            found[one.name] = None if not cell or before is None else {*before, cell}
    return found


def slugs_of(series: Series) -> list[str]:
    """The cells of an experiment by their names: a run's name without the repetition.

    Controls are for claims that fail, and a cross-check is one run, of which there are no pairs.
    """
    points = series.profile.points
    return [point.slug for point in points if CONTROL_AXIS not in point.axes and not point.only_first_repetition]


def slug_of(run: str) -> str:
    """The name of the cell that a run is a repetition of."""
    return run.rpartition("-r")[0]
