# SPDX-License-Identifier: Apache-2.0
"""Temporary directories that are removed however a command ends; after SIGKILL the next command removes them."""

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
    """Provide a directory in ``place``, or in ``$TMPDIR``, and remove it at the end.

    Its name ends with its owner's process number, and it is locked while in use. In ``$TMPDIR``, ``prefix`` must begin
    with ``howdah-``, and the directories of killed commands are removed first. Unlike a directory of ``tempfile``, it
    does not survive a Ctrl-C during the removal.
    """
    if place is None:
        remove_abandoned()
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
        shutil.rmtree(made, ignore_errors=True)  # Ctrl-C, which is raised once, may have interrupted the first one


def remove_abandoned() -> list[Path]:
    """Remove this user's directories in ``$TMPDIR`` that killed commands left; return those removed."""
    found = ((path, _NAME.fullmatch(path.name)) for path in Path(tempfile.gettempdir()).glob("howdah-*"))
    return [path for path, name in found if name is not None and remove_if_abandoned(path, name.group(1))]


def remove_if_abandoned(directory: Path, owner: str) -> bool:
    """Remove a directory of this user's that is no longer in use; return whether it was one.

    Its user holds a lock on it, which processes of other PID namespaces see, too. Only the check for the owner's
    process protects a directory between its creation and its locking.
    """
    if is_running(owner):
        return False
    try:
        descriptor = os.open(directory, os.O_RDONLY | os.O_DIRECTORY | os.O_NOFOLLOW)
    except OSError:
        return False  # removed meanwhile, or another user's
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
