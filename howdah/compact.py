# SPDX-License-Identifier: Apache-2.0
"""JSON for files that people review: short values on one line, so that a diff shows what changed and little else."""

from __future__ import annotations

import json
from collections.abc import Container
from typing import Any

WIDTH = 120


def compact_json(value: Any, *, width: int = WIDTH, rows: Container[str] = ()) -> str:
    """The value as JSON text that ends with a newline.

    An object or a list stands on one line where it fits into ``width`` characters, else each of its items begins a
    line. The items of a list under a key in ``rows`` have one line each, however long they are.
    """
    return _text(value, 0, width, rows) + "\n"


def _plain(value: Any) -> str:
    return json.dumps(value, ensure_ascii=False)


def _text(value: Any, depth: int, width: int, rows: Container[str]) -> str:
    plain = _plain(value)
    if not isinstance(value, dict | list) or not value or depth + len(plain) <= width:
        return plain
    inner = " " * (depth + 1)
    if isinstance(value, list):
        items = [_text(item, depth + 1, width, rows) for item in value]
        opening, closing = "[", "]"
    else:
        items = [f"{_plain(key)}: {_item(key, item, depth + 1, width, rows)}" for key, item in value.items()]
        opening, closing = "{", "}"
    return f"{opening}\n{inner}" + f",\n{inner}".join(items) + f"\n{' ' * depth}{closing}"


def _item(key: str, item: Any, depth: int, width: int, rows: Container[str]) -> str:
    if key not in rows or not isinstance(item, list) or not item:
        return _text(item, depth, width, rows)
    inner = " " * (depth + 1)
    return f"[\n{inner}" + f",\n{inner}".join(map(_plain, item)) + f"\n{' ' * depth}]"
