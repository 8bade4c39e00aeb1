# SPDX-License-Identifier: Apache-2.0
"""System calls that Python's standard library lacks, or lacks before 3.12.

Every function raises OSError with the kernel's errno and the name of the call.
"""

from __future__ import annotations

import ctypes
import os

CLONE_NEWNET = 0x40000000
MS_BIND = 0x1000

_PR_SET_PDEATHSIG = 1
_TFD_TIMER_ABSTIME = 1
_FINIT_MODULE = {"x86_64": 313, "aarch64": 273, "riscv64": 273}

_libc = ctypes.CDLL(None, use_errno=True)


class _Timespec(ctypes.Structure):
    _fields_ = (("seconds", ctypes.c_long), ("nanoseconds", ctypes.c_long))


class _Itimerspec(ctypes.Structure):
    _fields_ = (("interval", _Timespec), ("value", _Timespec))


def _check(result: int, call: str) -> int:
    if result < 0:
        number = ctypes.get_errno()
        raise OSError(number, f"{call}: {os.strerror(number)}")
    return result


def setns(descriptor: int, kind: int = CLONE_NEWNET) -> None:
    """Move the calling thread into the namespace that ``descriptor`` refers to."""
    _check(_libc.setns(descriptor, kind), "setns")


def unshare(kind: int = CLONE_NEWNET) -> None:
    """Give the calling thread a new namespace of this kind."""
    _check(_libc.unshare(kind), "unshare")


def mount(source: str, target: str, kind: str | None = None, flags: int = 0, data: str | None = None) -> None:
    encoded = [None if text is None else os.fsencode(text) for text in (kind, data)]
    _check(
        _libc.mount(os.fsencode(source), os.fsencode(target), encoded[0], ctypes.c_ulong(flags), encoded[1]),
        f"mount {source} on {target}",
    )


def unmount(target: str) -> None:
    lazy = 2
    _check(_libc.umount2(os.fsencode(target), lazy), f"unmount {target}")


def finit_module(descriptor: int, parameters: str = "") -> None:
    """Load a kernel module from an open file; ``parameters`` has the form ``name=value name=value``."""
    number = _FINIT_MODULE[os.uname().machine]
    _check(_libc.syscall(ctypes.c_long(number), descriptor, parameters.encode(), 0), "finit_module")


def write_out(descriptor: int) -> None:
    """Start writing a file's data to its file system without waiting for a disk. A guest's data then reach its host."""
    written = 2  # SYNC_FILE_RANGE_WRITE
    _check(_libc.sync_file_range(descriptor, ctypes.c_int64(0), ctypes.c_int64(0), written), "sync_file_range")


def die_with_parent(signal_number: int) -> None:
    _check(_libc.prctl(_PR_SET_PDEATHSIG, ctypes.c_ulong(signal_number), 0, 0, 0), "prctl(PR_SET_PDEATHSIG)")


def timerfd_create(clock: int) -> int:
    """Create a timer as a blocking file descriptor, closed on exec (os.timerfd_create is new in Python 3.13)."""
    close_on_exec = 0o2000000
    return _check(_libc.timerfd_create(clock, close_on_exec), "timerfd_create")


def timerfd_set(descriptor: int, at_ns: int) -> None:
    """Make the timer expire once, at ``at_ns`` of its clock; 0 disarms it."""
    value = _Itimerspec(_Timespec(0, 0), _Timespec(*divmod(at_ns, 1_000_000_000)))
    _check(
        _libc.timerfd_settime(descriptor, _TFD_TIMER_ABSTIME, ctypes.byref(value), None),
        "timerfd_settime",
    )
