# SPDX-License-Identifier: Apache-2.0
"""Files that are made from the code: ``make references`` writes them, and tests look whether they are current."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from pathlib import Path

from howdah.errors import HowdahError
from howdah.layout import write_stderr
from howdah.place import DOCS

CHECK = "--check"


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
