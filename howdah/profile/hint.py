# SPDX-License-Identifier: Apache-2.0
"""What to do about a field or a value that does not exist: from the fields of its place, or where the field lives."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

from pydantic import BaseModel

from howdah.errors import nearest
from howdah.profile.source import Path_
from howdah.profile.sweep import shape_of
from howdah.profile.unsayable import section_name, unsayable

_RENAMED = {"lab": "machines"}  # sections that had another name
# Names that other tools have for a field.
_CALLED = {
    "bandwidth": "rate",
    "bw": "rate",
    "cc": "algorithm",
    "congestion_control": "algorithm",
    "delay": "rtt",
    "initcwnd": "initial_window",
    "initrwnd": "initial_receive_window",
    "jitter": "delay_variation",
    "latency": "rtt",
    "queue_length": "buffer",
    "queue_size": "buffer",
}
SURE = 0.8  # of their letters: the same name, mistyped
_LIKELY = 0.65
_MOST_HOMES = 3


def of_field(name: str, value: Any, section: Path_, known: list[str], root: type[BaseModel]) -> str:
    """The hint for a field that its section does not have; ``known`` are those that it has, ``root`` is what was read.

    A name that is a word of one field's name stands for that field. A name that another section has says more than
    one that is spelled a little like it.
    """
    close = (_RENAMED.get(name) if not section else None) or nearest(name, known, SURE)
    close = close or (_CALLED[name.lower()] if _CALLED.get(name.lower()) in known else None)
    if close is None:
        lacking = unsayable(name, section) or (unsayable(value, section) if isinstance(value, str) else None)
        if lacking is not None:
            return lacking.hint()
        words = [each for each in known if name.lower() in each.split("_")]
        homes = [] if len(words) == 1 else _homes(root, name, section)
        close = words[0] if len(words) == 1 else None
        if not section and homes and len(homes[0]) == 1 and isinstance(homes[0][0], str):
            close = f"{homes[0][0]}.{name}"
        elif homes:
            return f"{name} is a field of {_listed([*dict.fromkeys(map(section_name, homes))][:_MOST_HOMES])}"
    close = close or nearest(name, known, _LIKELY)
    return f"did you mean {close}?" if close else f"known fields: {', '.join(known)}"


def of_value(value: Any, path: Path_) -> str | None:
    """The hint for a value that its field does not take, where it is known what was meant."""
    name = str(path[-1]) if path else ""
    if isinstance(value, list):
        if name == "path":
            return "several paths are a sweep of path.like, such as path: {like: [paths/geo, paths/leo]}"
        lacking = unsayable(f"several {name}", path[:-1])
        return lacking.hint() if lacking else None
    lacking = unsayable(value, path[:-1]) if isinstance(value, str) else None
    return lacking.hint() if lacking else None


def field_names(model: type[BaseModel]) -> list[str]:
    return [info.alias or name for name, info in model.model_fields.items()]


def _listed(names: list[str]) -> str:
    return " and ".join(filter(None, (", ".join(names[:-1]), names[-1])))


def _homes(root: type[BaseModel], name: str, section: Path_) -> list[Path_]:
    """Sections that have a field of that name: those beside ``section`` first, then the highest.

    Position 0 stands for every member. Of a kind of section that stands in several places, one is named.
    """
    found: dict[type[BaseModel], Path_] = {}
    for path, model in sorted(_sections(root, ()), key=lambda each: (each[0][:1] != section[:1], len(each[0]))):
        if path and name in field_names(model):
            found.setdefault(model, path)
    return list(found.values())


def _sections(model: type[BaseModel], path: Path_) -> Iterator[tuple[Path_, type[BaseModel]]]:
    yield path, model
    for name, info in model.model_fields.items():
        below: Path_ = (*path, info.alias or name)
        shape, inner = shape_of(info.annotation)
        if shape == "list":
            below = (*below, 0)
            shape, inner = shape_of(inner)
        for section in inner.values() if shape == "choice" else [inner] if shape == "section" else []:
            yield from _sections(section, below)
