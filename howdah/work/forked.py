# SPDX-License-Identifier: Apache-2.0
"""Fork a process that communicates over pipes, and bind a process's life to its parent's.

A forked process need not load modules, because this process has.
"""

from __future__ import annotations

import ctypes
import fcntl
import gc
import os
import signal
import sys
import threading
from collections.abc import Callable
from contextlib import suppress
from typing import NoReturn

_STANDARD = 3  # the first descriptor after standard input, output and error


def can_fork() -> bool:
    """Return whether forking is safe: no other thread may hold a lock, because the child would wait for it for ever.

    The thread that draws bars may run: it locks only the terminal, which the child does not use.
    """
    others = (each for each in threading.enumerate() if each is not threading.current_thread())
    return all(type(each).__module__ == "rich.live" for each in others)


class Forked:
    """The part of ``subprocess.Popen`` that howdah needs, for a forked process in a session of its own."""

    def __init__(self, main: Callable[[], object], errors: int) -> None:
        """Start a process that calls ``main``. ``errors`` is the descriptor of its standard error.

        Raise OSError if it cannot fork.
        """
        ends: list[int] = []
        try:
            ends += os.pipe()
            ends += os.pipe()
            # This process's handlers raise, and the child would clean up for the parent. Block signals until the child
            # has reset its handlers.
            before = signal.pthread_sigmask(signal.SIG_BLOCK, signal.valid_signals())
            try:
                self.pid = os.fork()
                if self.pid == 0:
                    _run_child(main, (ends[0], ends[3], errors), before)
                self.stdin = os.fdopen(ends.pop(1), "wb", buffering=0)
                self.stdout = os.fdopen(ends.pop(1), "rb", buffering=0)
            finally:
                signal.pthread_sigmask(signal.SIG_SETMASK, before)
        finally:
            for end in ends:
                os.close(end)
        self._status: int | None = None

    def poll(self) -> int | None:
        """Return the exit status, negative for a signal; None while the process runs."""
        return self._wait(os.WNOHANG)

    def wait(self) -> int:
        status = self._wait(0)
        assert status is not None
        return status

    def _wait(self, how: int) -> int | None:
        if self._status is None:
            try:
                pid, status = os.waitpid(self.pid, how)
            except ChildProcessError:  # an interrupted waitpid() has reaped it and lost the status
                self._status = 0
            else:
                self._status = os.waitstatus_to_exitcode(status) if pid else None
        return self._status


def _run_child(main: Callable[[], object], streams: tuple[int, int, int], mask: set[int | signal.Signals]) -> NoReturn:
    """Run the child, and exit without the clean-up handlers of the parent."""
    status = 1
    try:
        os.setsid()
        for number in signal.valid_signals():
            if callable(signal.getsignal(number)):
                signal.signal(number, signal.SIG_DFL)
        sys.unraisablehook = sys.__unraisablehook__
        _replace_descriptors(streams)
        gc.freeze()  # never collect old stream objects: that would close descriptors that are now reused
        signal.pthread_sigmask(signal.SIG_SETMASK, mask)
        main()
        status = 0
    except BaseException:  # noqa: BLE001 - whatever it is, this must not go on as a second one of what it was
        sys.excepthook(*sys.exc_info())
    finally:
        with suppress(BaseException):
            sys.stderr.flush()
        os._exit(status)


def _replace_descriptors(streams: tuple[int, int, int]) -> None:
    """Make these the standard streams, and close every other descriptor: locks, and the pipes of other processes.

    The old stream objects keep what the parent has not yet written; nothing uses them any more.
    """
    above = [fcntl.fcntl(stream, fcntl.F_DUPFD, _STANDARD) for stream in streams]
    for number, stream in enumerate(above):
        os.dup2(stream, number)
    for name in os.listdir("/proc/self/fd"):  # noqa: PTH208 - a descriptor of its own is open while it is read
        if int(name) >= _STANDARD:
            with suppress(OSError):
                os.close(int(name))
    sys.stdin = os.fdopen(0, encoding="utf-8", closefd=False)
    sys.stdout = os.fdopen(1, "w", encoding="utf-8", closefd=False)
    sys.stderr = os.fdopen(2, "w", 1, encoding="utf-8", errors="backslashreplace", closefd=False)


_PR_SET_PDEATHSIG = 1
_PR_SET_NAME = 15


def die_with_parent(parent: int) -> None:
    """Ask the kernel to kill this process when its parent dies, and exit if that has happened already (prctl(2))."""
    ctypes.CDLL(None, use_errno=True).prctl(_PR_SET_PDEATHSIG, signal.SIGKILL)
    if os.getppid() != parent:
        os._exit(1)


def set_process_name(name: str) -> None:
    """Set the name that ``top`` shows, because a forked process keeps its parent's command line (prctl(2))."""
    ctypes.CDLL(None).prctl(_PR_SET_NAME, name.encode())
