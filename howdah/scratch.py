# SPDX-License-Identifier: Apache-2.0
"""Directories for a while, of which nothing stays, however a command ends; after SIGKILL the next one removes them."""

from __future__ import annotations

import fcntl
import os
import re
import secrets
import shutil
import tempfile
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

from howdah.running import is_running

_NAME = re.compile(r"howdah-.*[0-9a-f]{16}-(\d+)")


@contextmanager
def scratch(prefix: str, place: Path | None = None) -> Iterator[Path]:
    """A directory that goes at the end; in ``place``, or in ``$TMPDIR``, where ``prefix`` begins with ``howdah-``.

    Its name ends with its owner's number, and it is locked as long as it is used. In ``$TMPDIR`` what killed commands
    left goes first. A directory of ``tempfile`` would stay if Ctrl-C came while it is emptied.
    """
    if place is None:
        sweep_left()
        place = Path(tempfile.gettempdir())
    made = place / f"{prefix}{secrets.token_hex(8)}-{os.getpid()}"
    try:
        try:
            made.mkdir(mode=0o700)
            descriptor = os.open(made, os.O_RDONLY | os.O_DIRECTORY)
            try:
                fcntl.flock(descriptor, fcntl.LOCK_EX)
                yield made
            finally:
                os.close(descriptor)
        finally:
            shutil.rmtree(made, ignore_errors=True)
    finally:
        shutil.rmtree(made, ignore_errors=True)  # Ctrl-C, which is raised once, may have ended the first


def sweep_left() -> list[Path]:
    """Remove this user's directories in ``$TMPDIR`` whose command was killed; returns them."""
    found = ((path, _NAME.fullmatch(path.name)) for path in Path(tempfile.gettempdir()).glob("howdah-*"))
    return [path for path, name in found if name is not None and remove_left(path, name.group(1))]


def remove_left(directory: Path, owner: str) -> bool:
    """Remove a directory of this user's that nobody uses any more; whether it was one.

    Who uses it holds a lock on it, which processes of other PID namespaces see, too. Between making the directory and
    locking it there is only the owner's process.
    """
    if is_running(owner):
        return False
    try:
        descriptor = os.open(directory, os.O_RDONLY | os.O_DIRECTORY | os.O_NOFOLLOW)
    except OSError:
        return False  # gone meanwhile, or somebody else's
    try:
        if os.fstat(descriptor).st_uid != os.geteuid():
            return False
        fcntl.flock(descriptor, fcntl.LOCK_EX | fcntl.LOCK_NB)
        shutil.rmtree(directory, ignore_errors=True)
    except BlockingIOError:
        return False
    finally:
        os.close(descriptor)
    return True
