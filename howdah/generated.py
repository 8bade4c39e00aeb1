# SPDX-License-Identifier: Apache-2.0
"""Helpers for files generated from the code: ``make references`` writes them, and tests check that they are current.

JSON that people review keeps short values on one line, so that a diff shows little besides the change.
"""

from __future__ import annotations

import json
from collections.abc import Container, Mapping, Sequence
from pathlib import Path
from typing import Any

from howdah.errors import HowdahError
from howdah.layout import write_stderr
from howdah.place import DOCS

CHECK = "--check"
WIDTH = 120


def docs_of(arguments: Sequence[str]) -> Path:
    """Return the pages' directory from a program's arguments (other than ``--check``); docs/ by default."""
    return next((Path(argument) for argument in arguments if argument != CHECK), DOCS)


def between(text: str, begin: str, end: str, made: str, page: str) -> str:
    """Replace the text between two marks of a page with ``made``. Raises HowdahError if a mark is missing."""
    before, _, rest = text.partition(begin)
    old, _, after = rest.partition(end)
    if f"{before}{begin}{old}{end}{after}" != text:
        raise HowdahError(f"{page} lacks the marks around what is made from the code: {begin} {end}")
    return f"{before}{begin}\n\n{made}\n\n{end}{after}"


def keep_current(files: Mapping[Path, str], arguments: Sequence[str]) -> int:
    """Write the files that are missing or outdated; with ``--check`` only report them. Returns the exit status."""
    stale = [file for file, text in files.items() if not file.is_file() or file.read_text(encoding="utf-8") != text]
    if stale and CHECK in arguments:
        write_stderr(f"not current: {', '.join(map(str, stale))}\n  run make references\n")
        return 1
    for file in stale:
        file.parent.mkdir(parents=True, exist_ok=True)
        file.write_text(files[file], encoding="utf-8")
    return 0


def compact_json(value: Any, *, width: int = WIDTH, rows: Container[str] = ()) -> str:
    """Return the value as JSON text that ends with a newline.

    An object or a list that fits into ``width`` characters takes one line; otherwise each of its items begins a line.
    Items of a list under a key in ``rows`` take one line each, however long they are.
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
