# SPDX-License-Identifier: Apache-2.0
"""``path: {like: paths/geo, buffer: 2 bdp}``: a path taken from another profile, with some fields replaced."""

from __future__ import annotations

import copy
from pathlib import Path
from typing import Any

from howdah.errors import ProfileError, nearest
from howdah.place import PROFILES
from howdah.profile.source import Document, Path_, read_document
from howdah.profile.sweep import Point, find_axes
from howdah.profile.written import is_there, written_path

SHIPPED = PROFILES

# What one of these says, the others would contradict.
_EXCLUSIVE = (
    ("rtt", "one_way_delay"),
    ("schedule", "trace", "rate_variation"),
    ("rate", "link"),
    ("reverse_rate", "reverse_link"),
    ("link", "rate_variation"),
)


def take_path(document: Document, point: Point, directory: Path) -> Document:
    """Complete the ``path`` of a point by what ``path.like`` names; its data is changed in place.

    Returns the document with the places of what was taken. Raises ProfileError.
    """
    path = point.data.get("path")
    if not isinstance(path, dict) or not isinstance(path.get("like"), str):
        return document
    place = ("path", "like")
    where = document.place((*place, point.chosen[place]) if place in point.chosen else place)
    taken, places = _path_of(path["like"], directory, where, [])
    for name in taken.keys() - path.keys():
        if any(name in group and path.keys() & set(group) for group in _EXCLUSIVE):
            continue
        path[name] = taken[name]
        for inner, line in places.items():
            if inner[:2] == ("path", name):
                document = Document(document.data, {**document.places, inner: line}, document.text)
    return document


def _path_of(name: str, directory: Path, where: str, before: list[Path]) -> tuple[dict[str, Any], dict[Path_, str]]:
    """The ``path`` of the named profile, itself completed, and the place of each value."""
    file = _find(name, directory, where)
    if file in before:
        raise ProfileError(
            f"{name} takes its path from itself, by way of {' and '.join(map(str, before))}", where=where
        )
    document = read_document(file)
    path = document.data.get("path")
    if not isinstance(path, dict):
        raise ProfileError(f"{file} has no path to take", where=where)
    for axis in find_axes(document):
        if axis.path[0] == "path":
            what = f"{axis.name} is a sweep, and a path that is taken has one value in each field"
            raise ProfileError(what, where=document.place(axis.path), hint=f"it is taken at {where}")
    path, places = copy.deepcopy(path), dict(document.places)
    for field in ("trace", "link", "reverse_link"):
        if isinstance(path.get(field), str):
            path[field] = {"file": path[field]}
        if isinstance(path.get(field), dict) and isinstance(path[field].get("file"), str):
            where_trace = document.place(("path", field, "file"))
            path[field]["file"] = str(written_path(file.parent, path[field]["file"], where_trace))
    like = path.pop("like", None)
    if isinstance(like, str):
        further, further_places = _path_of(like, file.parent, document.place(("path", "like")), [*before, file])
        for field in further.keys() - path.keys():
            if any(field in group and path.keys() & set(group) for group in _EXCLUSIVE):
                continue
            path[field] = further[field]
            places |= {inner: line for inner, line in further_places.items() if inner[:2] == ("path", field)}
    return path, places


def _find(name: str, directory: Path, where: str) -> Path:
    """A file beside the profile, or a shipped profile by its name below profiles/."""
    tried = [written_path(base, name, where) for base in (directory, SHIPPED)]
    for candidate in (item for base in tried for item in (base, base.with_name(f"{base.name}.yaml"))):
        if is_there(candidate) and candidate.is_file():
            return candidate.resolve()
    known = sorted(str(file.relative_to(SHIPPED).with_suffix("")) for file in SHIPPED.rglob("*.yaml"))
    close = nearest(name, known)
    paths = ", ".join(item for item in known if item.startswith("paths/"))
    raise ProfileError(
        f"path.like: there is no profile {name!r}",
        where=where,
        hint=f"did you mean {close}?" if close else f"ready-made paths: {paths}",
    )
