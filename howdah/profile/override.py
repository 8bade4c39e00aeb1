# SPDX-License-Identifier: Apache-2.0
"""Dotted names of fields, as users write and read them: ``path.rate``, ``flows.2.start``.

``--set path.rate=100Mbit/s`` replaces or adds one value. A case is a set of values that belong together; each case is
one value of the axis ``case``.

In dotted names, list members count from 1, so ``flows.2`` is flow 2; a member with a name may be called by it. Paths
into the data, which count from 0, are internal.
"""

from __future__ import annotations

import re
from typing import Annotated, Any

from pydantic import BeforeValidator, Field, WithJsonSchema

from howdah.errors import ProfileError
from howdah.profile.source import LARGEST_DEPTH, Document, Path_, parse_yaml
from howdah.profile.written import SET

# Names below these fields may contain dots (net.ipv4.tcp_rmem).
_DOTTED = (("host", "sysctls"),)


class NoFieldError(Exception):
    """No such field can exist; the text says why."""


def dotted(path: Path_) -> str:
    """The dotted name of the field at ``path``: ``("flows", 1, "start")`` is ``flows.2.start``."""
    return ".".join(str(part + 1) if isinstance(part, int) else part for part in path)


def keys_of(name: str) -> list[str]:
    """The parts of a dotted name; the last part may contain dots itself."""
    keys = name.split(".")
    for prefix in _DOTTED:
        if tuple(keys[: len(prefix)]) == prefix and len(keys) > len(prefix):
            return [*prefix, ".".join(keys[len(prefix) :])]
    return keys


def is_number(key: str) -> bool:
    """Whether the key is a list member's number."""
    return key.isdecimal() and key.isascii() and len(key) < 7


def position(members: list[Any], key: str, name: str) -> int:
    """The index of the list member with that number or name; the next free number gives the index after the last.

    Raises NoFieldError, in which ``name`` is the name of the list.
    """
    if is_number(key):
        if 1 <= int(key) <= len(members) + 1:
            return int(key) - 1
    else:
        for index, member in enumerate(members):
            if isinstance(member, dict) and str(member.get("name")) == key:
                return index
    known = [str(member["name"]) for member in members if isinstance(member, dict) and "name" in member]
    named = f", or a name ({', '.join(known)})" if known else ""
    raise NoFieldError(
        f"{name} is a list; expected a number from 1 to {len(members) + 1} (the last adds one){named}, not {key!r}"
    )


def canonical(data: Any, name: str) -> str:
    """The dotted name with members' names replaced by numbers: ``flows.second.start`` is ``flows.2.start``."""
    found: list[str] = []
    for key in keys_of(name):
        if isinstance(data, list):
            try:
                at = position(data, key, name)
            except NoFieldError:
                return name
            key, data = str(at + 1), data[at] if at < len(data) else None
        else:
            data = data.get(key) if isinstance(data, dict) else None
        found.append(key)
    return ".".join(found)


CASE = "case"
MOST_CASES = 1000
_NAME = r"^[a-z0-9]+(-[a-z0-9]+)*$"


def _settings(value: object) -> object:
    if isinstance(value, dict) and not value:
        raise ValueError("nothing is changed; expected field.field: value")
    return value


AnySettings = Annotated[
    dict[str, Any], WithJsonSchema({"type": "object", "x-value": "mapping of field.field to value"})
]
Settings = Annotated[AnySettings, BeforeValidator(_settings)]
Cases = dict[Annotated[str, Field(pattern=_NAME, max_length=40)], Settings]


def case_names(document: Document) -> tuple[str, ...]:
    """The names of the cases, in the order written. Raises ProfileError for a case with a bad name or no settings."""
    cases = document.data[CASE]
    where = document.place((CASE,))
    if not 1 <= len(cases) <= MOST_CASES:
        raise ProfileError(f"case has {len(cases)} cases; expected 1 to {MOST_CASES}", where=where)
    for name, settings in cases.items():
        where = document.place((CASE, name))
        if not isinstance(name, str) or not re.fullmatch(_NAME, name) or len(name) > 40:
            hint = "lower-case words joined by hyphens"
            raise ProfileError(f"case: {name!r} is not a name", where=where, hint=hint)
        if not isinstance(settings, dict) or not settings:
            what = f"case.{name} changes nothing; expected field.field: value"
            raise ProfileError(what, where=where, hint="for example path.rate: 10 Mbit/s")
    return tuple(cases)


def set_by_case(document: Document, field: str) -> tuple[str, str] | None:
    """The case, and its setting, that sets all or part of a field; None if no case does."""
    data = document.data
    wanted = keys_of(canonical(data, field))
    cases = data.get(CASE)
    for name, settings in cases.items() if isinstance(cases, dict) else ():
        for each in settings if isinstance(settings, dict) else ():
            keys = keys_of(canonical(data, str(each)))
            shared = min(len(keys), len(wanted))
            if keys[:shared] == wanted[:shared]:
                return str(name), str(each)
    return None


_BRACKETS = re.compile(r"\[([^\]]*)\]")


def apply_override(document: Document, text: str) -> str:
    """Set ``field.field=value`` in ``document``; the value is YAML (``[cubic, reno]`` sweeps). Return the field's name.

    List members count from 1 (``flows.2.start=5 s``) or have a name (``flows.second.start=5 s``). The value's place
    becomes ``--set …``, so that errors point at the command line. Raises ProfileError.
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
    """Set the field with that dotted name. ``places`` are the places of the value and of every value in it; ``where``
    is the place that asks for it. Raises ProfileError if no such field can exist."""
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
    """``[0]``, which counts from 0, as ``.1``."""
    return f".{int(bracket[1]) + 1 if is_number(bracket[1]) else bracket[1] if bracket[1].isalpha() else 1}"


def field_value(data: Any, name: str) -> Any:
    """The value of the field with that dotted name, or None."""
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
    """Store the value, and return the path to it. Raises NoFieldError."""
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
