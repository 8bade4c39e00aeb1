# SPDX-License-Identifier: Apache-2.0
"""What containers forbid: a seccomp filter as Docker's and Podman's default profiles have it for personality(2)."""

from __future__ import annotations

import ctypes
import os
import struct
from collections.abc import Callable

_PERSONALITY = 135  # x86-64
_ALLOWED = (0x0, 0x0008, 0x20000, 0x20008, 0xFFFFFFFF)  # moby, profiles/seccomp/default.json
_LOAD, _JUMP_IF_EQUAL, _RETURN = 0x20, 0x15, 0x06  # BPF: absolute word, comparison with a constant
_NUMBER, _FIRST_ARGUMENT = 0, 16  # offsets in struct seccomp_data
_ALLOW, _REFUSE = 0x7FFF0000, 0x00050001  # the second with EPERM
_NO_NEW_PRIVS, _SECCOMP, _FILTER = 38, 22, 2


class _Program(ctypes.Structure):
    _fields_ = [("length", ctypes.c_ushort), ("instructions", ctypes.c_void_p)]


def _instruction(code: int, constant: int, if_true: int = 0, if_false: int = 0) -> bytes:
    return struct.pack("HBBI", code, if_true, if_false, constant)


def forbid_personality() -> None:
    """In this process and all it starts, for ever. Raises OSError."""
    count = len(_ALLOWED)
    code = [_instruction(_LOAD, _NUMBER), _instruction(_JUMP_IF_EQUAL, _PERSONALITY, 0, count + 2)]
    code.append(_instruction(_LOAD, _FIRST_ARGUMENT))
    code += [_instruction(_JUMP_IF_EQUAL, value, count - number, 0) for number, value in enumerate(_ALLOWED)]
    code += [_instruction(_RETURN, _REFUSE), _instruction(_RETURN, _ALLOW)]
    text = ctypes.create_string_buffer(b"".join(code))
    program = _Program(len(code), ctypes.addressof(text))
    libc = ctypes.CDLL(None, use_errno=True)
    if libc.prctl(_NO_NEW_PRIVS, 1, 0, 0, 0) or libc.prctl(_SECCOMP, _FILTER, ctypes.byref(program)):
        raise OSError(ctypes.get_errno(), "seccomp filter")


def in_container(act: Callable[[], None]) -> int:
    """Call it in a child process with the filter; returns its exit status, 0 if it raised nothing."""
    child = os.fork()
    if not child:
        status = 1
        try:
            forbid_personality()
            act()
            status = 0
        finally:
            os._exit(status)
    return os.waitstatus_to_exitcode(os.waitpid(child, 0)[1])
