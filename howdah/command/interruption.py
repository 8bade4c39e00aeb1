# SPDX-License-Identifier: Apache-2.0
"""Ctrl-C and polite signals: the first interrupts a command, further ones do not interrupt it while it cleans up."""

from __future__ import annotations

import argparse
import contextlib
import os
import signal
from collections.abc import Iterator
from types import FrameType

_SIGNALS = (signal.SIGINT, signal.SIGTERM, signal.SIGHUP)
_PATIENCE = b"howdah: cleaning up; a moment\n"
RUNS_KEPT = "finished runs are kept, unfinished ones were removed; "
_UNTOUCHED = "runs are as they were; the same command begins again"


def what_is_kept(options: argparse.Namespace) -> str:
    """What there is after Ctrl-C, and how to go on: the default ``interrupted`` of a command's parser."""
    said = str(getattr(options, "interrupted", _UNTOUCHED))
    if said == RUNS_KEPT:
        again = " without --again" if getattr(options, "again", False) else ""
        return f"{said}the same command{again} goes on with the rest"
    return said


@contextlib.contextmanager
def interruptible() -> Iterator[None]:
    """The first signal raises KeyboardInterrupt; a later one is answered with a line on standard error.

    Cleaning up is short, and what it leaves half done nobody would find: a second Ctrl-C must not end it. kill -9 does,
    and the next command removes what that leaves. A command whose Ctrl-C its parent ignores (nohup) ignores it too.
    """
    before = {number: signal.getsignal(number) for number in _SIGNALS}
    heard = False

    def hear(_number: int, _frame: FrameType | None) -> None:
        nonlocal heard
        if heard:
            with contextlib.suppress(OSError):
                os.write(2, _PATIENCE)  # not through a stream, which the interrupted code may be writing to
            return
        heard = True
        raise KeyboardInterrupt

    for number in _SIGNALS:
        if before[number] is not signal.SIG_IGN or number == signal.SIGTERM:
            signal.signal(number, hear)
    try:
        yield
    finally:
        if not heard:
            for number, handler in before.items():
                if handler is not None:  # None: not set by Python, and so never changed
                    signal.signal(number, handler)
