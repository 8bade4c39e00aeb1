# SPDX-License-Identifier: Apache-2.0
"""A pool of processes for analysis, which end with this one."""

from __future__ import annotations

import errno
import multiprocessing
import os
import signal
from collections.abc import Iterator
from concurrent.futures import ProcessPoolExecutor
from concurrent.futures.process import BrokenProcessPool
from contextlib import contextmanager, suppress

from howdah.errors import HowdahError
from howdah.work.forked import die_with_parent


@contextmanager
def pool(workers: int) -> Iterator[ProcessPoolExecutor]:
    """Provide a pool of ``workers`` processes. Tasks that have not started when the block ends never start.

    Ctrl-C ends running tasks, which is safe because each file is written whole or not at all. Raise HowdahError if a
    process was killed from outside.
    """
    # Fork: a new interpreter would search for modules in the user's directory.
    context = multiprocessing.get_context("fork")
    executor = ProcessPoolExecutor(workers, context, initializer=_begin, initargs=(os.getpid(),))
    try:
        yield executor
    except KeyboardInterrupt:
        for process in multiprocessing.active_children():
            process.terminate()
        raise
    except (OSError, MemoryError):
        _end_all()
        raise
    except BrokenProcessPool:
        raise HowdahError(
            "a worker process of this command was killed",
            hint="Memory may have run out (see dmesg). What was finished is kept: run the command again.",
        ) from None
    except RuntimeError as error:
        if not str(error).startswith("can't start new thread"):
            raise
        _end_all()
        raise BlockingIOError(errno.EAGAIN, os.strerror(errno.EAGAIN)) from None
    finally:
        with suppress(RuntimeError):  # its thread was never started
            executor.shutdown(cancel_futures=True)


def _end_all() -> None:
    """Kill processes that the executor started before it failed to start another one or its thread.

    They may not have reached ``_begin`` yet, so SIGTERM would call the command's own handler.
    """
    for process in multiprocessing.active_children():
        process.kill()


def _begin(parent: int) -> None:
    """Reset the signal handlers of a worker, which inherits the command's.

    When a worker has died, the executor ends the others with SIGTERM. A handler that raises would only fail the task,
    and the worker would wait for the next one, for ever if the dead worker held the lock of the queue.
    """
    signal.signal(signal.SIGTERM, signal.SIG_DFL)
    signal.signal(signal.SIGHUP, signal.SIG_DFL)
    signal.signal(signal.SIGINT, signal.SIG_IGN)  # the command hears Ctrl-C and ends its workers
    die_with_parent(parent)
