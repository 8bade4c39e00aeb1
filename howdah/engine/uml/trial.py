# SPDX-License-Identifier: Apache-2.0
"""``python -m howdah.engine.uml.trial``: try what a user-mode kernel requires of this machine, and print it as JSON.

This is a separate process, because trying means forking, being traced and entering namespaces.
"""

from __future__ import annotations

import ctypes
import errno
import json
import os
import signal
import sys

_TRACEME, _SYSEMU, _GETREGSET = 0, 31, 0x4204
_NT_X86_XSTATE = 0x202
_CLONE_NEWUSER, _CLONE_NEWPID, _CLONE_NEWNET = 0x10000000, 0x20000000, 0x40000000
_LANDLOCK_CREATE_RULESET, _ASK_VERSION = 444, 1
_BOUNDS_TRUNCATION = 3  # the first version of Landlock that restricts truncation: Linux 6.2
_ADDR_NO_RANDOMIZE = 0x0040000
_SET_MM, _MM_MAP_SIZE = 35, 15  # prctl(2)
_SET_SECCOMP, _MODE_FILTER = 22, 2

_C = ctypes.CDLL(None, use_errno=True)
_C.ptrace.argtypes = [ctypes.c_long, ctypes.c_long, ctypes.c_void_p, ctypes.c_void_p]
_C.ptrace.restype = ctypes.c_long


class _Vector(ctypes.Structure):
    _fields_ = [("base", ctypes.c_void_p), ("length", ctypes.c_size_t)]


def _error() -> str:
    return os.strerror(ctypes.get_errno())


def _child() -> None:
    if _C.ptrace(_TRACEME, 0, None, None) < 0:
        os._exit(ctypes.get_errno() or 1)
    os.kill(os.getpid(), signal.SIGSTOP)
    os.getppid()
    os._exit(0)


def try_ptrace() -> tuple[str | None, int | None]:
    """Return an error (None: it works) and the size of the traced process's XSAVE area in bytes."""
    child = os.fork()
    if not child:
        _child()
    _, status = os.waitpid(child, os.WUNTRACED)
    if not os.WIFSTOPPED(status):
        return f"PTRACE_TRACEME: {os.strerror(os.waitstatus_to_exitcode(status))}", None
    area = ctypes.create_string_buffer(1 << 16)
    vector = _Vector(ctypes.cast(area, ctypes.c_void_p), len(area))
    size = None
    if _C.ptrace(_GETREGSET, child, _NT_X86_XSTATE, ctypes.addressof(vector)) == 0:
        size = vector.length
    problem = None
    if _C.ptrace(_SYSEMU, child, None, None) < 0:
        problem = f"PTRACE_SYSEMU: {_error()}"
    else:
        _, status = os.waitpid(child, 0)
        if not os.WIFSTOPPED(status):
            problem = "PTRACE_SYSEMU does not stop at a system call"
    os.kill(child, signal.SIGKILL)
    os.waitpid(child, 0)
    return problem, size


def try_namespaces() -> str | None:
    """Make a PID namespace as the launcher does; return the error (None: it works). Changes this process."""
    if _C.unshare(_CLONE_NEWPID) == 0 or _C.unshare(_CLONE_NEWUSER | _CLONE_NEWPID) == 0:
        return None
    return _error()


def try_network() -> str | None:
    """Leave the network, after ``try_namespaces``, and test seccomp; return the error or None. Changes this process."""
    if _C.unshare(_CLONE_NEWNET) < 0:
        return _error()
    _C.prctl(_SET_SECCOMP, _MODE_FILTER, None, 0, 0)  # null filter: EFAULT shows that filters are supported
    return None if ctypes.get_errno() == errno.EFAULT else f"seccomp: {_error()}"


def try_files() -> str | None:
    """Query Landlock, with which the launcher confines a guest's files; return the error (None: it is available)."""
    version = _C.syscall(_LANDLOCK_CREATE_RULESET, None, 0, _ASK_VERSION)
    return None if version > 0 else _error()


def try_truncation() -> str | None:
    """Return why truncate(2) of a file without permission to open it cannot be prevented (None: it can)."""
    version = _C.syscall(_LANDLOCK_CREATE_RULESET, None, 0, _ASK_VERSION)
    return None if version >= _BOUNDS_TRUNCATION else f"Landlock is of version {max(version, 0)}"


def try_addresses() -> str | None:
    """Try to fix addresses for every guest, as launch.c and shim.c do; return the error (None: it works)."""
    if _C.personality(_ADDR_NO_RANDOMIZE) >= 0:
        return None
    problem, size = _error(), ctypes.c_uint()
    return None if _C.prctl(_SET_MM, _MM_MAP_SIZE, ctypes.byref(size), 0, 0) == 0 else problem


def main() -> int:
    ptrace, xstate_bytes = try_ptrace()
    answer = {
        "ptrace": ptrace,
        "xstate_bytes": xstate_bytes,
        "files": try_files(),
        "truncation": try_truncation(),
        "addresses": try_addresses(),
        "namespaces": try_namespaces(),
        "network": try_network(),
    }
    sys.stdout.write(json.dumps(answer) + "\n")
    return 0


if __name__ == "__main__":
    sys.exit(main())
