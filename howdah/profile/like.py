# SPDX-License-Identifier: Apache-2.0
"""``path: {like: paths/geo, buffer: 2 bdp}``: take a path from another profile and replace some fields."""

from __future__ import annotations

from pathlib import Path

from howdah.errors import ProfileError, nearest
from howdah.place import PROFILES
from howdah.profile.source import Document, read_document
from howdah.profile.sweep import Point, find_axes
from howdah.profile.written import is_there, written_path

SHIPPED = PROFILES

# Groups of fields that exclude each other.
_EXCLUSIVE = (
    ("rtt", "one_way_delay"),
    ("schedule", "trace", "rate_variation"),
    ("rate", "link"),
    ("reverse_rate", "reverse_link"),
    ("link", "rate_variation"),
)


def resolve_like(point: Point, directory: Path) -> Document:
    """Fill in the ``path`` of a point, in place, from the profile that ``path.like`` names.

    Return the document, including the places of the fields taken. Raises ProfileError.
    """
    document = point.document
    path = document.data.get("path")
    if not isinstance(path, dict) or not isinstance(path.get("like"), str):
        return document
    place = ("path", "like")
    where = document.place((*place, point.chosen[place]) if place in point.chosen else place)
    return _completed(document, _path_of(path["like"], directory, where, []))


def _completed(document: Document, taken: Document) -> Document:
    """The document, with fields of the path ``taken``, and their places, that its own ``path`` neither has nor
    excludes."""
    path, places = document.data["path"], document.places
    for name in taken.data["path"].keys() - path.keys():
        if not any(name in group and path.keys() & set(group) for group in _EXCLUSIVE):
            path[name] = taken.data["path"][name]
            places = places | {inner: line for inner, line in taken.places.items() if inner[:2] == ("path", name)}
    return Document(document.data, places, document.text)


def _path_of(name: str, directory: Path, where: str, before: list[Path]) -> Document:
    """The named profile, with its own ``path.like`` resolved."""
    file = _find_profile(name, directory, where)
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
    for field in ("trace", "link", "reverse_link"):
        if isinstance(path.get(field), str):
            path[field] = {"file": path[field]}
        if isinstance(path.get(field), dict) and isinstance(path[field].get("file"), str):
            where_trace = document.place(("path", field, "file"))
            path[field]["file"] = str(written_path(file.parent, path[field]["file"], where_trace))
    like = path.pop("like", None)
    if isinstance(like, str):
        further = _path_of(like, file.parent, document.place(("path", "like")), [*before, file])
        return _completed(document, further)
    return document


def _find_profile(name: str, directory: Path, where: str) -> Path:
    """A file beside the profile, or a shipped profile by its name in profiles/."""
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
