# SPDX-License-Identifier: Apache-2.0
"""Names that a user can type: profiles, runs, kernels, algorithms, fields of a profile."""

from __future__ import annotations

import json
import typing
from collections.abc import Iterator
from pathlib import Path
from typing import Any

from howdah.algorithm import ALGORITHMS
from howdah.build.cache import Cache
from howdah.default import DEFAULT_KERNEL
from howdah.place import PROFILES
from howdah.profile.experiment import bare
from howdah.profile.model import Scenario
from howdah.profile.source import read_document
from howdah.profile.stack import shipped_stacks
from howdah.profile.sweep import find_axes, shape_of
from howdah.receiver import LINUX, RECEIVERS
from howdah.record.directory import PARTIAL, experiment_indexes, read_json
from howdah.trait import engines

LATEST = "latest"


def suites() -> list[str]:
    return sorted(file.stem for file in (PROFILES / "suites").glob("*.yaml"))


def kernels() -> list[str]:
    """The default kernel, debian-newest, and the kernels built on this machine."""
    names = [DEFAULT_KERNEL, "debian-newest"]
    for directory in Cache().entries("kernel"):
        try:
            name = json.loads((directory / "kernel.json").read_text(encoding="utf-8")).get("name")
        except (OSError, ValueError):
            continue
        names += [name] if isinstance(name, str) else []
    return list(dict.fromkeys(names))


def experiments(runs: Path) -> list[str]:
    """The experiments below a directory of runs, ``latest`` last."""
    found = [file.parent.name for file in experiment_indexes(runs)]
    return [name for name in found if name != LATEST] + [name for name in found if name == LATEST]


def runs_of(runs: Path, experiment: str) -> list[str]:
    """The runs of an experiment as the user types them: ``quick/cubic-r0-1a2b3c4d``."""
    places = sorted(file.parent.name for file in (runs / experiment).glob("*/plan.json"))
    return [f"{experiment}/{name}" for name in places if not name.startswith(PARTIAL)]


def algorithms_of(experiment: Path) -> list[str]:
    """The algorithms of an experiment's runs."""
    try:
        cells = read_json(experiment / "experiment.json")["cells"]
        return list(dict.fromkeys(str(cell["algorithm"]) for cell in cells))
    except (OSError, ValueError, KeyError, TypeError):
        return []


def claims_of(profile: Path) -> list[str]:
    """The IDs of a profile's claims."""
    claims = read_document(profile).data.get("claims")
    return [str(each["id"]) for each in claims if "id" in each] if isinstance(claims, list) else []


def axes_of(profile: Path) -> list[str]:
    """The fields that a profile sweeps over."""
    return [axis.name for axis in find_axes(bare(read_document(profile)))]


def fields() -> list[str]:
    """Every field of a profile by its dotted name; members of lists count from 1."""
    return [name for name, _ in _fields(Scenario, "")]


def values_of(field: str) -> list[str]:
    """The named values that a field accepts; an empty list for other fields."""
    named = {"algorithm": list(ALGORITHMS), "receiver": list(RECEIVERS), "engine": list(engines())}
    own = field.rpartition(".")[2]
    if own in ("stack", "receiver_stack", "sender_stack"):
        return [LINUX, *shipped_stacks()]
    if own == "receiver_behaviour":
        own = "receiver"
    if own == "kernel" and field == own:
        return kernels()
    if own in named and field.count(".") in (0, 2):
        return named[own]
    parts = [("1" if part.isdigit() else part) for part in field.split(".")]
    return next((_choices(annotation) for name, annotation in _fields(Scenario, "") if name == ".".join(parts)), [])


def _fields(model: Any, before: str) -> Iterator[tuple[str, Any]]:
    for name, info in model.model_fields.items():
        yield from _inside(info.annotation, f"{before}{info.alias or name}")


def _inside(annotation: Any, name: str) -> Iterator[tuple[str, Any]]:
    shape, inner = shape_of(annotation)
    if shape == "section":
        yield from _fields(inner, f"{name}.")
    elif shape == "choice":
        yield name, typing.Literal[tuple(inner)]
    elif shape == "list" and shape_of(inner)[0] == "section":
        yield from _fields(shape_of(inner)[1], f"{name}.1.")
    elif shape != "mapping":
        yield name, annotation


def _choices(annotation: Any) -> list[str]:
    """The values of a Literal, also inside an Optional; true and false for a bool."""
    if annotation is bool:
        return ["true", "false"]
    if typing.get_origin(annotation) is typing.Literal:
        return [str(value) for value in typing.get_args(annotation)]
    inner = [_choices(each) for each in typing.get_args(annotation)]
    return next((found for found in inner if found), [])
