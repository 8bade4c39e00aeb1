# SPDX-License-Identifier: Apache-2.0
"""``--set path.rate=100Mbit/s``: replacing or adding one value of a profile from the command line."""

from __future__ import annotations

import re
from typing import Any

from howdah.errors import ProfileError
from howdah.profile.case import CASE, set_by_case
from howdah.profile.dotted import NoFieldError, is_number, keys_of, position
from howdah.profile.source import LARGEST_DEPTH, Document, Path_, parse_yaml
from howdah.profile.written import SET

_BRACKETS = re.compile(r"\[([^\]]*)\]")


def apply_override(document: Document, text: str) -> str:
    """Set ``field.field=value`` in ``document``; the value is YAML (``[cubic, reno]`` sweeps). Returns the field.

    Members of lists count from 1 (``flows.2.start=5 s``) or have a name (``flows.second.start=5 s``). The place of the
    value becomes ``--set …``, so that an error in it points at the command line. Raises ProfileError.
    """
    where = SET + (text if len(text) <= 120 else f"{text[:117]}...")
    name, equals, value_text = text.partition("=")
    keys = name.strip().split(".")
    if not equals or not all(keys) or len(keys) > LARGEST_DEPTH:
        raise ProfileError("expected FIELD=VALUE", where=where, hint="for example --set path.rate=100Mbit/s")
    value, places = parse_yaml(value_text, where, lines=False)
    set_field(document, name.strip(), value, dict.fromkeys(places, where), where)
    return name.strip()


def set_field(document: Document, name: str, value: Any, places: dict[Path_, str], where: str) -> None:
    """Set the field of that dotted name. ``places`` says where the value and each one in it was written, ``where``
    where it was asked for. Raises ProfileError where there can be no such field."""
    keys = name.split(".")
    if not all(keys) or len(keys) > LARGEST_DEPTH:
        raise ProfileError(f"{name!r} is not the name of a field", where=where, hint="for example path.rate")
    decided = set_by_case(document, name) if keys[0] != CASE else None
    if decided is not None:
        what = f"{name} would change nothing: case.{decided[0]} sets {decided[1]}"
        raise ProfileError(what, where=where, hint="change the cases, or leave some out")
    if "[" in name:
        hint = f"members of lists count from 1, or have a name: {_BRACKETS.sub(_counted, name)}"
        raise ProfileError(f"{name!r} is not the name of a field", where=where, hint=hint)
    try:
        path = _store(document, keys_of(name), value)
    except NoFieldError as error:
        raise ProfileError(str(error), where=where) from None
    for known in [known for known in document.places if known[: len(path)] == path]:
        del document.places[known]
    for length in range(1, len(path)):
        document.places.setdefault(path[:length], where)
    document.places.update({path + inner: line for inner, line in places.items()})


def _counted(bracket: re.Match[str]) -> str:
    """``[0]``, as programs count, is ``.1``."""
    return f".{int(bracket[1]) + 1 if is_number(bracket[1]) else bracket[1] if bracket[1].isalpha() else 1}"


def field_value(data: Any, name: str) -> Any:
    """What stands in the field of that dotted name; None if nothing."""
    for key in keys_of(name):
        if isinstance(data, dict):
            data = data.get(key)
        elif isinstance(data, list):
            try:
                at = position(data, key, name)
            except NoFieldError:
                return None
            data = data[at] if at < len(data) else None
        else:
            return None
    return data


def _store(document: Document, keys: list[str], value: Any) -> Path_:
    """Where it was stored. Raises NoFieldError."""
    parent: Any = document.data
    path: list[str | int] = []
    for depth, key in enumerate(keys):
        done = ".".join(keys[:depth]) or "the profile"
        last = depth == len(keys) - 1
        if isinstance(parent, dict):
            at: str | int = key
        elif isinstance(parent, list):
            at = position(parent, key, done)
            if at == len(parent):
                parent.append(None)
        else:
            raise NoFieldError(f"{done} is a single value and has no field {key!r}")
        path.append(at)
        if last:
            parent[at] = value
        elif (parent.get(at) if isinstance(parent, dict) else parent[at]) is None:
            parent[at] = [] if is_number(keys[depth + 1]) else {}
        parent = parent[at]
    return tuple(path)
