# SPDX-License-Identifier: Apache-2.0
"""Runs that share a machine's kernel, clock and settings take turns, whoever started them."""

from __future__ import annotations

import fcntl
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import IO

from howdah.errors import HowdahError


@contextmanager
def locked(lock_file: Path, waiting: Callable[[], None]) -> Iterator[IO[str]]:
    """Hold ``lock_file`` meanwhile; ``waiting`` is called once if another process has it. Yields the open file.

    The kernel gives the turn on when a process ends, however it ends, and with it every child that inherited the file.
    Raises OSError when the file cannot be opened.
    """
    # The file stays: removing it while another waits for it would let a third take a second turn.
    with lock_file.open("w") as lock:
        try:
            fcntl.flock(lock, fcntl.LOCK_EX | fcntl.LOCK_NB)
        except BlockingIOError:
            waiting()
            fcntl.flock(lock, fcntl.LOCK_EX)
        yield lock


@contextmanager
def alone(directory: Path, taken: HowdahError) -> Iterator[None]:
    """Hold a directory of the cache, made if need be. Raises ``taken`` while another process holds it."""
    try:
        directory.mkdir(parents=True, exist_ok=True)
        lock = (directory / ".lock").open("w")
    except OSError as error:
        raise HowdahError(f"the cache cannot be written: {error.strerror}", where=str(directory)) from error
    with lock:
        try:
            fcntl.flock(lock, fcntl.LOCK_EX | fcntl.LOCK_NB)
        except BlockingIOError:
            raise taken from None
        yield
