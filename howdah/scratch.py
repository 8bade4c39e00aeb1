# SPDX-License-Identifier: Apache-2.0
"""Directories for a while, of which nothing stays, however a command ends but by SIGKILL."""

from __future__ import annotations

import os
import secrets
import shutil
import tempfile
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path


@contextmanager
def scratch(prefix: str, place: Path | None = None) -> Iterator[Path]:
    """A directory that goes at the end; in ``$TMPDIR``, or in ``place``.

    Its name ends with its owner's number, so that what a killed command left is known.
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
