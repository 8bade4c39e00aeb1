# SPDX-License-Identifier: Apache-2.0
"""``--set path.rate=100Mbit/s``: replacing or adding one value of a profile from the command line."""

from __future__ import annotations

from typing import Any

from howdah.errors import ProfileError
from howdah.profile.source import LARGEST_DEPTH, Document, Path_, parse_yaml

# Names below these fields may contain dots (net.ipv4.tcp_rmem).
_DOTTED = (("host", "sysctls"),)


def apply_override(document: Document, text: str) -> None:
    """Set ``field.field=value`` in ``document``; the value is YAML (``[cubic, reno]`` sweeps).

    Members of lists are counted from 0 (``flows.1.start=5 s``); the place of the value becomes ``--set …``, so that
    an error in it points at the command line. Raises ProfileError.
    """
    where = f"--set {text}" if len(text) <= 120 else f"--set {text[:117]}..."
    name, equals, value_text = text.partition("=")
    keys = name.strip().split(".")
    if not equals or not all(keys) or len(keys) > LARGEST_DEPTH:
        raise ProfileError("expected FIELD=VALUE", where=where, hint="for example --set path.rate=100Mbit/s")
    value, places = parse_yaml(value_text, where, lines=False)
    set_field(document, name.strip(), value, dict.fromkeys(places, where), where)


def set_field(document: Document, name: str, value: Any, places: dict[Path_, str], where: str) -> None:
    """Set the field of that dotted name. ``places`` says where the value and each one in it was written, ``where``
    where it was asked for. Raises ProfileError where there can be no such field."""
    keys = name.split(".")
    if not all(keys) or len(keys) > LARGEST_DEPTH:
        raise ProfileError(f"{name!r} is not the name of a field", where=where, hint="for example path.rate")
    path = _path(keys)
    _store(document.data, path, value, where)
    for known in [known for known in document.places if known[: len(path)] == path]:
        del document.places[known]
    for length in range(1, len(path)):
        document.places.setdefault(path[:length], where)
    document.places.update({path + inner: line for inner, line in places.items()})


def field_value(data: Any, name: str) -> Any:
    """What stands in the field of that dotted name; None if nothing."""
    for part in _path(name.split(".")):
        if isinstance(data, dict):
            data = data.get(str(part))
        elif isinstance(data, list) and isinstance(part, int) and part < len(data):
            data = data[part]
        else:
            return None
    return data


def _path(keys: list[str]) -> Path_:
    for prefix in _DOTTED:
        if tuple(keys[: len(prefix)]) == prefix and len(keys) > len(prefix):
            return (*prefix, ".".join(keys[len(prefix) :]))
    return tuple(int(key) if key.isdecimal() and key.isascii() and len(key) < 7 else key for key in keys)


def _store(data: dict[str, Any], path: Path_, value: Any, where: str) -> None:
    parent: Any = data
    for depth, key in enumerate(path):
        last = depth == len(path) - 1
        done = ".".join(str(part) for part in path[:depth]) or "the profile"
        if isinstance(parent, dict):
            member = str(key)
            if last:
                parent[member] = value
            else:
                if parent.get(member) is None:
                    parent[member] = [] if isinstance(path[depth + 1], int) else {}
                parent = parent[member]
        elif isinstance(parent, list):
            if not isinstance(key, int) or key > len(parent):
                what = f"{done} is a list; expected a number from 0 to {len(parent)} (which adds one), not {key!r}"
                raise ProfileError(what, where=where)
            if key == len(parent):
                parent.append([] if not last and isinstance(path[depth + 1], int) else {})
            if last:
                parent[key] = value
            else:
                parent = parent[key]
        else:
            raise ProfileError(f"{done} is a single value and has no field {key!r}", where=where)
