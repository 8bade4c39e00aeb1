# SPDX-License-Identifier: Apache-2.0
"""Names of fields as people write and read them: ``path.rate``, ``flows.2.start``.

Members of lists count from 1, so ``flows.2`` is flow 2. A member that has a name may be called by it. Paths into the
data, with positions from 0, stay inside howdah.
"""

from __future__ import annotations

from typing import Any

from howdah.profile.source import Path_

# Names below these fields may contain dots (net.ipv4.tcp_rmem).
_DOTTED = (("host", "sysctls"),)


class NoFieldError(Exception):
    """There can be no such field; the text says why."""


def dotted(path: Path_) -> str:
    """The name of the field at ``path``: ``("flows", 1, "start")`` is ``flows.2.start``."""
    return ".".join(str(part + 1) if isinstance(part, int) else part for part in path)


def keys_of(name: str) -> list[str]:
    """The parts of a field's name; the last may have dots of its own."""
    keys = name.split(".")
    for prefix in _DOTTED:
        if tuple(keys[: len(prefix)]) == prefix and len(keys) > len(prefix):
            return [*prefix, ".".join(keys[len(prefix) :])]
    return keys


def is_number(key: str) -> bool:
    """Whether the key counts members of a list."""
    return key.isdecimal() and key.isascii() and len(key) < 7


def position(members: list[Any], key: str, name: str) -> int:
    """Where in the list the member with that number or name is; one behind the last for the next number.

    Raises NoFieldError; ``name`` is that of the list.
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
    """The name with numbers for members' names: ``flows.second.start`` is ``flows.2.start``."""
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
