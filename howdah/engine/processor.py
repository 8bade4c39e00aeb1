# SPDX-License-Identifier: Apache-2.0
"""A processor for each guest.

A user-mode kernel and the processes in it are host processes that take turns, several times for each system call of the
guest. On one processor a turn is a context switch; on two it is a wake-up of an idle one, and a guest full of processes
(iperf3) runs four times slower.
"""

from __future__ import annotations

import fcntl
import os
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path


@contextmanager
def own_processor(base: Path) -> Iterator[int | None]:
    """The number of a processor that no other guest of this user has, as long as the context lasts.

    None when every processor this process may use is taken: such a guest runs wherever there is room. Lock files are in
    ``base``; the system lets go of a lock when its process ends, however it ends.
    """
    for processor in sorted(os.sched_getaffinity(0)):
        name = base / f"howdah-processor-{os.geteuid()}-{processor}.lock"
        try:
            descriptor = os.open(name, os.O_RDWR | os.O_CREAT | os.O_CLOEXEC | os.O_NOFOLLOW, 0o600)
        except OSError:
            continue  # somebody else's file of that name: do without
        try:
            try:
                fcntl.flock(descriptor, fcntl.LOCK_EX | fcntl.LOCK_NB)
            except BlockingIOError:
                continue
            yield processor
            return
        finally:
            os.close(descriptor)
    yield None
