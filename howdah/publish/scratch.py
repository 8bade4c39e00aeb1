# SPDX-License-Identifier: Apache-2.0
"""Directories for the data of a server that lives as long as a command, and the end of those that were left behind."""

from __future__ import annotations

import fcntl
import os
import re
import shutil
import tempfile
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

from howdah.running import is_running
from howdah.scratch import scratch

_PREFIX = "howdah-prometheus-"
_OWNER = re.compile(rf"{_PREFIX}(\d+)-")
_LOCK = ".lock"


@contextmanager
def scratch_directory() -> Iterator[Path]:
    """An empty directory, removed at the end. Those of commands that were killed are removed first.

    A directory is in use while a process holds the lock on its file ``.lock``. Until that file exists, the directory is
    in use while the process whose number is in its name lives. Locks end with their process.
    """
    sweep_scratch()
    with scratch(f"{_PREFIX}{os.getpid()}-") as path, (path / _LOCK).open("w") as lock:
        fcntl.flock(lock, fcntl.LOCK_EX)
        data = path / "data"
        data.mkdir()
        yield data


def sweep_scratch() -> list[Path]:
    """Remove the directories of commands that were killed; returns them."""
    removed = []
    for directory in Path(tempfile.gettempdir()).glob(f"{_PREFIX}*"):
        owner = _OWNER.match(directory.name)
        if owner is not None and is_running(owner.group(1)):
            continue
        try:
            with (directory / _LOCK).open("r+") as file:
                fcntl.flock(file, fcntl.LOCK_EX | fcntl.LOCK_NB)
        except FileNotFoundError:
            if owner is None:
                continue
        except OSError:
            continue  # in use, or somebody else's
        shutil.rmtree(directory, ignore_errors=True)
        removed.append(directory)
    return removed
