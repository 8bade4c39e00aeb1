# SPDX-License-Identifier: Apache-2.0
"""Ctrl-C and polite signals: the first interrupts a command, further ones do not interrupt it while it cleans up."""

from __future__ import annotations

import argparse
import contextlib
import os
import signal
import sys
import time
from collections.abc import Iterator
from types import FrameType

_SIGNALS = (signal.SIGINT, signal.SIGTERM, signal.SIGHUP)
_PATIENCE = b"howdah: cleaning up; a moment\n"
_PATIENCE_AFTER_S = 2.0  # removing a kernel that was half built can take twenty seconds
_AGAIN_S = 0.02
LONGEST_IMPORT_S = 10.0
RUNS_KEPT = "finished runs are kept, unfinished ones were removed; "
_UNTOUCHED = "runs are as they were; the same command begins again"


def what_is_kept(options: argparse.Namespace) -> str:
    """What there is after Ctrl-C, and how to go on: the default ``interrupted`` of a command's parser."""
    said = str(getattr(options, "interrupted", _UNTOUCHED))
    if said == RUNS_KEPT:
        again = " without --again" if getattr(options, "again", False) else ""
        return f"{said}the same command{again} goes on with the rest"
    return said


class _Interrupt:
    """Raises KeyboardInterrupt once, where it reaches the command.

    Raised while a module loads, it may be lost: libraries written in C turn it into an ImportError of their own.
    So it waits until the module has loaded, but not for ever: the module may be the user's, and never end.
    Raised in a ``__del__`` or in a callback of the garbage collector, Python prints it and goes on.
    So it is raised again afterwards, and nothing is printed.
    """

    def __init__(self) -> None:
        self.raised = False
        self._kind: type[BaseException] = KeyboardInterrupt
        self._heard_at: float | None = None
        self._before_alarm = signal.getsignal(signal.SIGALRM)
        self._before_hook = sys.unraisablehook
        sys.unraisablehook = self._not_raised

    def hear(self, _number: int, frame: FrameType | None) -> None:
        """The handler of every signal that interrupts."""
        if self.raised:
            _ask_for_patience()
            return
        self._raise(frame)

    def end(self) -> None:
        """Be as if it had never been; but one that was raised leaves the handlers to what cleans up."""
        sys.unraisablehook = self._before_hook
        if self._heard_at is not None:
            signal.setitimer(signal.ITIMER_REAL, 0)
        if not self.raised and self._heard_at is not None:
            signal.signal(signal.SIGALRM, self._before_alarm)

    def _raise(self, frame: FrameType | None) -> None:
        now = time.monotonic()
        if self._heard_at is None:
            self._heard_at = now
        if _is_loading(frame) and now < self._heard_at + LONGEST_IMPORT_S:
            self._raise_later()
            return
        self.raised = True
        signal.signal(signal.SIGALRM, lambda _number, _frame: _ask_for_patience() if self.raised else None)
        signal.setitimer(signal.ITIMER_REAL, _PATIENCE_AFTER_S)
        raise self._kind

    def _raise_later(self) -> None:
        # A timer, not a thread: whatever was interrupted may be starting one, or fork.
        signal.signal(signal.SIGALRM, lambda _number, frame: None if self.raised else self._raise(frame))
        signal.setitimer(signal.ITIMER_REAL, _AGAIN_S)

    def _not_raised(self, what: sys.UnraisableHookArgs) -> None:
        if not isinstance(what.exc_value, KeyboardInterrupt):
            self._before_hook(what)
            return
        self.raised = False
        self._kind = type(what.exc_value)
        self._raise_later()


def _ask_for_patience() -> None:
    with contextlib.suppress(OSError):
        os.write(2, _PATIENCE)  # not through a stream, which the interrupted code may be writing to


def _is_loading(frame: FrameType | None) -> bool:
    """Whether an ``import`` is under way: nothing else calls Python's own function of this name."""
    while frame is not None:
        code = frame.f_code
        if code.co_name == "_find_and_load" and code.co_filename == "<frozen importlib._bootstrap>":
            return True
        frame = frame.f_back
    return False


@contextlib.contextmanager
def interruptible() -> Iterator[None]:
    """The first signal raises KeyboardInterrupt; a later one is answered with a line on standard error.

    Cleaning up is short, and what it leaves half done nobody would find: a second Ctrl-C must not end it. kill -9 does,
    and the next command removes what that leaves. A command whose Ctrl-C its parent ignores (nohup) ignores it too.
    """
    before = {number: signal.getsignal(number) for number in _SIGNALS}
    interrupt = _Interrupt()
    for number in _SIGNALS:
        if before[number] is not signal.SIG_IGN or number == signal.SIGTERM:
            signal.signal(number, interrupt.hear)
    try:
        yield
    finally:
        interrupt.end()
        if not interrupt.raised:
            for number, handler in before.items():
                if handler is not None:  # None: not set by Python, and so never changed
                    signal.signal(number, handler)
