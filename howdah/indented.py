# SPDX-License-Identifier: Apache-2.0
"""The text of ``json.dumps(value, indent=1)`` in little more than half its time.

With an indent Python leaves its C encoder unused. That one can do whatever holds nothing nested, if the line break is a
part of its separator. Plans, of which an experiment may have thousands, are made of such objects.
"""

from __future__ import annotations

from collections.abc import Callable
from functools import cache
from json import JSONEncoder
from json.encoder import encode_basestring_ascii
from types import NoneType
from typing import Any

_SCALARS = frozenset([str, int, float, bool, NoneType])
_NESTED = (dict, list, tuple)
_plain = JSONEncoder().encode


def indented_json(value: Any) -> str:
    """Of dictionaries, lists, tuples and what JSON has words for. Raises TypeError for anything else."""
    return _text(value, 0)


def _text(value: Any, depth: int) -> str:
    kind = type(value)
    if kind is str:
        return encode_basestring_ascii(value)
    if kind is int:
        return repr(value)
    if not isinstance(value, _NESTED) or not value:
        return _plain(value)
    inner, outer, between, flat = _at(depth)
    if _SCALARS.issuperset(map(type, value.values() if isinstance(value, dict) else value)):
        text = flat(value)
        return f"{text[0]}{inner}{text[1:-1]}{outer}{text[-1]}"
    below = depth + 1
    if isinstance(value, dict):
        items = between.join([f"{_key(key)}: {_text(item, below)}" for key, item in value.items()])
        return f"{{{inner}{items}{outer}}}"
    return f"[{inner}{between.join([_text(item, below) for item in value])}{outer}]"


@cache
def _at(depth: int) -> tuple[str, str, str, Callable[[Any], str]]:
    """Line breaks within an object at this depth, at its end, between items, and the encoder of a flat one."""
    inner, between = "\n" + " " * (depth + 1), ",\n" + " " * (depth + 1)
    return inner, "\n" + " " * depth, between, JSONEncoder(separators=(between, ": "), check_circular=False).encode


def _key(key: Any) -> str:
    if isinstance(key, str):
        return encode_basestring_ascii(key)
    return _plain({key: None}).removeprefix("{").removesuffix(": null}")
