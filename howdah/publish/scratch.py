# SPDX-License-Identifier: Apache-2.0
"""Directories for the data of a server that lives as long as a command, and the end of those that were left behind."""

from __future__ import annotations

import fcntl
import shutil
import tempfile
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

_PREFIX = "howdah-prometheus-"
_LOCK = ".lock"


@contextmanager
def scratch_directory() -> Iterator[Path]:
    """An empty directory, removed at the end. Those of commands that were killed are removed first.

    A directory is in use while somebody holds the lock on the file ``.lock`` in it: locks end with their process.
    """
    _sweep(Path(tempfile.gettempdir()))
    with tempfile.TemporaryDirectory(prefix=_PREFIX, ignore_cleanup_errors=True) as name:
        path = Path(name)
        with (path / _LOCK).open("w") as lock:
            fcntl.flock(lock, fcntl.LOCK_EX)
            data = path / "data"
            data.mkdir()
            yield data


def _sweep(parent: Path) -> None:
    for lock in parent.glob(f"{_PREFIX}*/{_LOCK}"):
        try:
            with lock.open("r+") as file:
                fcntl.flock(file, fcntl.LOCK_EX | fcntl.LOCK_NB)
                shutil.rmtree(lock.parent, ignore_errors=True)
        except OSError:
            continue  # in use, or somebody else's
