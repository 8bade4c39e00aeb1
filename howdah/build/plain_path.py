# SPDX-License-Identifier: Apache-2.0
"""Directories that programs we build with can work in, and how a path is written where a program splits its options."""

from __future__ import annotations

import re
from pathlib import Path

from howdah.errors import HowdahError

# The kernel's makefiles split at spaces and colons, gcc's -Wp at commas, make expands $ and %, a shell reads the rest.
_PLAIN = re.compile(r"[\w/.+@^=~-]+")


def require_plain(path: Path, what: str, hint: str) -> None:
    """Raise HowdahError naming the characters of an absolute ``path`` that the kernel's build cannot work with."""
    if _PLAIN.fullmatch(str(path)):
        return
    wrong = " ".join(
        "a space" if character == " " else f"{character!r}"
        for character in dict.fromkeys(character for character in str(path) if not _PLAIN.fullmatch(character))
    )
    raise HowdahError(
        f"{what} has {wrong} in its path, and the kernel's own build does not work in such a directory",
        where=str(path),
        hint=hint,
    )


def qemu_value(path: Path | str) -> str:
    """``path`` inside one of QEMU's options of the form name=value,name=value: a comma is written twice."""
    return str(path).replace(",", ",,")
