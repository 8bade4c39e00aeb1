# SPDX-License-Identifier: Apache-2.0
"""Directories for a while, of which nothing stays, however a command ends but by SIGKILL."""

from __future__ import annotations

import os
import re
import secrets
import shutil
import tempfile
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

from howdah.running import is_running

_NAME = re.compile(r"howdah-[a-z]*-?[0-9a-f]{16}-(\d+)")


@contextmanager
def scratch(prefix: str, place: Path | None = None) -> Iterator[Path]:
    """A directory that goes at the end; in ``$TMPDIR``, or in ``place``.

    Its name ends with its owner's number, by which ``sweep_left`` knows what a killed command left.
    That of ``tempfile`` stays where Ctrl-C comes while it is emptied.
    """
    made = (place or Path(tempfile.gettempdir())) / f"{prefix}{secrets.token_hex(8)}-{os.getpid()}"
    try:
        try:
            made.mkdir(mode=0o700)
            yield made
        finally:
            shutil.rmtree(made, ignore_errors=True)
    finally:
        shutil.rmtree(made, ignore_errors=True)  # Ctrl-C, which is raised once, may have ended the first


def sweep_left() -> list[Path]:
    """Remove this user's directories in ``$TMPDIR`` whose command was killed; returns them."""
    removed = []
    for left in Path(tempfile.gettempdir()).glob("howdah-*"):
        owner = _NAME.fullmatch(left.name)
        if owner is None or is_running(owner.group(1)) or left.is_symlink() or left.lstat().st_uid != os.geteuid():
            continue
        shutil.rmtree(left, ignore_errors=True)
        removed.append(left)
    return removed
