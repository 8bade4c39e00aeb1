# SPDX-License-Identifier: Apache-2.0
"""Files that are made from the code: ``make references`` writes them, and tests look whether they are current.

JSON that people review has short values on one line, so that a diff shows what changed and little else.
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
    """The directory of pages that a program was given beside ``--check``; docs/ by default."""
    return next((Path(argument) for argument in arguments if argument != CHECK), DOCS)


def between(text: str, begin: str, end: str, made: str, page: str) -> str:
    """The text of a page with ``made`` between its two marks. Raises HowdahError where it lacks one."""
    before, _, rest = text.partition(begin)
    old, _, after = rest.partition(end)
    if f"{before}{begin}{old}{end}{after}" != text:
        raise HowdahError(f"{page} lacks the marks around what is made from the code: {begin} {end}")
    return f"{before}{begin}\n\n{made}\n\n{end}{after}"


def keep_current(files: Mapping[Path, str], arguments: Sequence[str]) -> int:
    """Write the files, or with ``--check`` name those that are missing or differ. Returns the exit status."""
    stale = [file for file, text in files.items() if not file.is_file() or file.read_text(encoding="utf-8") != text]
    if stale and CHECK in arguments:
        write_stderr(f"not current: {', '.join(map(str, stale))}\n  run make references\n")
        return 1
    for file in stale:
        file.parent.mkdir(parents=True, exist_ok=True)
        file.write_text(files[file], encoding="utf-8")
    return 0


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
