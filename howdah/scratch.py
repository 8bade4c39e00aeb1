# SPDX-License-Identifier: Apache-2.0
"""Temporary directories that are removed however a command ends; after SIGKILL the next command removes them."""

from __future__ import annotations

import errno
import fcntl
import os
import re
import secrets
import shutil
import stat
import tempfile
from collections.abc import Iterator
from contextlib import ExitStack, contextmanager, suppress
from pathlib import Path

from howdah.running import is_running

_NAME = re.compile(r"howdah-.*[0-9a-f]{16}-(\d+)")
_LOCK = ".lock"  # in a directory, while it is used


@contextmanager
def scratch(prefix: str, place: Path | None = None) -> Iterator[Path]:
    """Provide a directory in ``place``, or in ``$TMPDIR``, and remove it at the end.

    Its name ends with its owner's process number, and it is locked while in use. In ``$TMPDIR``, ``prefix`` must begin
    with ``howdah-``, and the directories of killed commands are removed first. Unlike a directory of ``tempfile``, it
    does not survive a Ctrl-C during the removal.
    """
    if place is None:
        sweep_scratch()
        place = Path(tempfile.gettempdir())
    made = place / f"{prefix}{secrets.token_hex(8)}-{os.getpid()}"
    try:
        try:
            made.mkdir(mode=0o700)
            with held(made):
                yield made
        finally:
            shutil.rmtree(made, ignore_errors=True)
    finally:
        shutil.rmtree(made, ignore_errors=True)  # Ctrl-C, which is raised once, may have interrupted the first one


@contextmanager
def held(directory: Path) -> Iterator[None]:
    """Mark a directory as in use by this process. Raise OSError if the directory has been removed.

    Process numbers mean nothing in other containers and on other hosts, so the mark is a lock. It is on a file, because
    a lock on a directory does not reach the other hosts of a network file system.
    """
    with ExitStack() as stack:
        place = os.open(directory, os.O_RDONLY | os.O_DIRECTORY)
        stack.callback(os.close, place)
        lock = os.open(_LOCK, os.O_RDWR | os.O_CREAT, 0o600, dir_fd=place)
        stack.callback(os.close, lock)
        fcntl.flock(lock, fcntl.LOCK_EX)
        if not os.fstat(lock).st_nlink:  # removed before it was locked
            raise FileNotFoundError(errno.ENOENT, os.strerror(errno.ENOENT), str(directory))
        try:
            yield
        finally:
            with suppress(FileNotFoundError):
                os.unlink(_LOCK, dir_fd=place)  # the directory may have another name now


def sweep_scratch() -> list[Path]:
    """Remove this user's directories in ``$TMPDIR`` that killed commands left; return those removed."""
    found = ((path, _NAME.fullmatch(path.name)) for path in Path(tempfile.gettempdir()).glob("howdah-*"))
    return [path for path, name in found if name is not None and remove_if_abandoned(path, name.group(1))]


def remove_if_abandoned(path: Path, owner: str | None) -> bool:
    """Remove a directory or file of this user's that is no longer in use; return whether it was one.

    ``owner`` is the number of the process that made it. Its user holds a lock on it (a file, or a guest's directory) or
    on a file in it, which processes of other PID namespaces and hosts see, too.
    """
    if owner is not None and is_running(owner):
        return False
    descriptors = []
    try:
        descriptors.append(os.open(path, os.O_RDONLY | os.O_NOFOLLOW | os.O_NONBLOCK))
        status = os.fstat(descriptors[0])
        if status.st_uid != os.geteuid():
            return False
        is_directory = stat.S_ISDIR(status.st_mode)
        fcntl.flock(descriptors[0], (fcntl.LOCK_EX if is_directory else fcntl.LOCK_SH) | fcntl.LOCK_NB)
        if is_directory:  # create the lock: a process that is about to hold it waits, and then finds it gone
            flags = os.O_RDWR | os.O_CREAT | os.O_NOFOLLOW
            descriptors.append(os.open(_LOCK, flags, 0o600, dir_fd=descriptors[0]))
            fcntl.flock(descriptors[1], fcntl.LOCK_EX | fcntl.LOCK_NB)
            shutil.rmtree(path, ignore_errors=True)
            with suppress(FileNotFoundError):
                if os.fstat(descriptors[1]).st_nlink:  # the directory got its final name after it was opened
                    os.unlink(_LOCK, dir_fd=descriptors[0])
        else:
            path.unlink(missing_ok=True)
    except OSError:
        return False  # used, gone meanwhile, or somebody else's
    finally:
        for descriptor in descriptors:
            os.close(descriptor)
    with suppress(OSError):
        path.rmdir()  # on NFS the open lock kept the directory
    return True
