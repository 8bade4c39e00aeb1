# SPDX-License-Identifier: Apache-2.0
"""Processes that analyse side by side and end with this one."""

from __future__ import annotations

import os
from collections.abc import Iterator
from concurrent.futures import ProcessPoolExecutor
from concurrent.futures.process import BrokenProcessPool
from contextlib import contextmanager

from howdah.errors import HowdahError
from howdah.work.parent import die_with_parent


@contextmanager
def pool(workers: int) -> Iterator[ProcessPoolExecutor]:
    """A pool of ``workers`` processes; what has not begun when the block ends is not begun.

    Raises HowdahError where one of them was ended from outside.
    """
    executor = ProcessPoolExecutor(workers, initializer=die_with_parent, initargs=(os.getpid(),))
    try:
        yield executor
    except BrokenProcessPool:
        raise HowdahError(
            "a process that worked for this command was ended from outside",
            hint="It was killed, or memory ran out (dmesg tells). What was finished is kept: give the command again.",
        ) from None
    finally:
        executor.shutdown(cancel_futures=True)
