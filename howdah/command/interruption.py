# SPDX-License-Identifier: Apache-2.0
"""Handle Ctrl-C, SIGTERM and SIGHUP: the first one interrupts a command; later ones do not interrupt its cleanup."""

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
_PATIENCE_AFTER_S = 2.0  # removing a half-built kernel can take twenty seconds
_AGAIN_S = 0.02
LONGEST_IMPORT_S = 10.0
RUNS_KEPT = "finished runs are kept, unfinished ones were removed; "
_UNTOUCHED = "runs are as they were; the same command starts over"


def text_after_interruption(options: argparse.Namespace) -> str:
    """Return what remains after Ctrl-C and how to continue. A command's parser sets the text as ``interrupted``."""
    text = str(getattr(options, "interrupted", _UNTOUCHED))
    if text == RUNS_KEPT:
        again = " without --again" if getattr(options, "again", False) else ""
        return f"{text}the same command{again} continues with the rest"
    return text


class _Interrupt:
    """Raise KeyboardInterrupt once, at a point where it reaches the command.

    While a module loads, the exception may be lost: libraries written in C turn it into an ImportError. So it is
    delayed until the module has loaded, but at most LONGEST_IMPORT_S: a user's module may never finish.

    In a ``__del__`` method or a callback of the garbage collector, Python only prints the exception and goes on. So it
    is raised again afterwards, and nothing is printed.
    """

    def __init__(self) -> None:
        self.raised = False
        self._kind: type[BaseException] = KeyboardInterrupt
        self._interrupted_at: float | None = None
        self._before_alarm = signal.getsignal(signal.SIGALRM)
        self._before_hook = sys.unraisablehook
        sys.unraisablehook = self._on_unraisable

    def on_signal(self, _number: int, frame: FrameType | None) -> None:
        """Handle a signal that interrupts."""
        if self.raised:
            _ask_for_patience()
            return
        self._raise(frame)

    def end(self) -> None:
        """Undo all changes to timers and hooks. After an interrupt, the SIGALRM handler stays for the cleanup."""
        sys.unraisablehook = self._before_hook
        if self._interrupted_at is not None:
            signal.setitimer(signal.ITIMER_REAL, 0)
        if not self.raised and self._interrupted_at is not None:
            signal.signal(signal.SIGALRM, self._before_alarm)

    def _raise(self, frame: FrameType | None) -> None:
        now = time.monotonic()
        if self._interrupted_at is None:
            self._interrupted_at = now
        if _is_loading(frame) and now < self._interrupted_at + LONGEST_IMPORT_S:
            self._raise_again_later()
            return
        self.raised = True
        signal.signal(signal.SIGALRM, lambda _number, _frame: _ask_for_patience() if self.raised else None)
        signal.setitimer(signal.ITIMER_REAL, _PATIENCE_AFTER_S)
        raise self._kind

    def _raise_again_later(self) -> None:
        # A timer instead of a thread: the interrupted code may be starting a thread or forking.
        signal.signal(signal.SIGALRM, lambda _number, frame: None if self.raised else self._raise(frame))
        signal.setitimer(signal.ITIMER_REAL, _AGAIN_S)

    def _on_unraisable(self, what: sys.UnraisableHookArgs) -> None:
        if not isinstance(what.exc_value, KeyboardInterrupt):
            self._before_hook(what)
            return
        self.raised = False
        self._kind = type(what.exc_value)
        self._raise_again_later()


def _ask_for_patience() -> None:
    with contextlib.suppress(OSError):
        os.write(2, _PATIENCE)  # not sys.stderr: the interrupted code may be writing to it


def _is_loading(frame: FrameType | None) -> bool:
    """Return whether an ``import`` is in progress: only import calls Python's internal function of this name."""
    while frame is not None:
        code = frame.f_code
        if code.co_name == "_find_and_load" and code.co_filename == "<frozen importlib._bootstrap>":
            return True
        frame = frame.f_back
    return False


@contextlib.contextmanager
def interruptible() -> Iterator[None]:
    """Make the first signal raise KeyboardInterrupt and later ones print a line on standard error.

    Cleanup is short, and nobody would find what a half-done one leaves, so a second Ctrl-C must not end it. ``kill -9``
    does; the next command removes what it leaves. A signal that the parent ignores (nohup) stays ignored, except
    SIGTERM.
    """
    before = {number: signal.getsignal(number) for number in _SIGNALS}
    interrupt = _Interrupt()
    for number in _SIGNALS:
        if before[number] is not signal.SIG_IGN or number == signal.SIGTERM:
            signal.signal(number, interrupt.on_signal)
    try:
        yield
    finally:
        interrupt.end()
        if not interrupt.raised:
            for number, handler in before.items():
                if handler is not None:  # None: not installed by Python, so never replaced
                    signal.signal(number, handler)
