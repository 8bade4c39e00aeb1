# SPDX-License-Identifier: Apache-2.0
"""What containers forbid: a seccomp filter as Docker's and Podman's default profiles are without further capabilities.

The profiles list what is allowed (moby, profiles/seccomp/default.json); here are the calls of x86-64 that they lack.
"""

from __future__ import annotations

import ctypes
import os
import struct
from collections.abc import Callable

_PERSONALITY, _PTRACE = 135, 101  # x86-64
_ALLOWED = (0x0, 0x0008, 0x20000, 0x20008, 0xFFFFFFFF)  # moby, profiles/seccomp/default.json
# By their numbers: what is refused altogether, and clone(2), which is refused for new namespaces.
_REFUSED = {
    "acct": 163,
    "add_key": 248,
    "bpf": 321,
    "delete_module": 176,
    "finit_module": 313,
    "fsconfig": 431,
    "fsmount": 432,
    "fsopen": 430,
    "init_module": 175,
    "io_uring_enter": 426,
    "io_uring_register": 427,
    "io_uring_setup": 425,
    "kexec_load": 246,
    "keyctl": 250,
    "mbind": 237,
    "mount": 165,
    "mount_setattr": 442,
    "move_mount": 429,
    "move_pages": 279,
    "open_by_handle_at": 304,
    "open_tree": 428,
    "perf_event_open": 298,
    "pivot_root": 155,
    "reboot": 169,
    "request_key": 249,
    "set_mempolicy": 238,
    "setdomainname": 171,
    "sethostname": 170,
    "setns": 308,
    "settimeofday": 164,
    "swapoff": 168,
    "swapon": 167,
    "umount2": 166,
    "unshare": 272,
    "userfaultfd": 323,
    "vhangup": 153,
}
_CLONE, _CLONE3 = 56, 435
_NEW_NAMESPACES = 0x7E020000  # CLONE_NEWNS, NEWCGROUP, NEWUTS, NEWIPC, NEWUSER, NEWPID, NEWNET
# BPF: absolute word, comparison with a constant, with a constant's bits
_LOAD, _JUMP_IF_EQUAL, _JUMP_IF_SET, _RETURN = 0x20, 0x15, 0x45, 0x06
_NUMBER, _FIRST_ARGUMENT = 0, 16  # offsets in struct seccomp_data
_ALLOW, _REFUSE, _UNKNOWN = 0x7FFF0000, 0x00050001, 0x00050026  # the others with EPERM and ENOSYS
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
    _install(code)


def forbid_as_containers_do() -> None:
    """The whole of it, in this process and all it starts, for ever. Raises OSError."""
    code = [_instruction(_LOAD, _NUMBER)]
    for number in _REFUSED.values():
        code += [_instruction(_JUMP_IF_EQUAL, number, 0, 1), _instruction(_RETURN, _REFUSE)]
    # Of clone3(2) the flags lie in memory, where no filter looks: the C library takes clone(2) where it is unknown.
    code += [_instruction(_JUMP_IF_EQUAL, _CLONE3, 0, 1), _instruction(_RETURN, _UNKNOWN)]
    code += [_instruction(_JUMP_IF_EQUAL, _CLONE, 0, 3), _instruction(_LOAD, _FIRST_ARGUMENT)]
    code += [_instruction(_JUMP_IF_SET, _NEW_NAMESPACES, 0, 1), _instruction(_RETURN, _REFUSE)]
    code.append(_instruction(_RETURN, _ALLOW))
    _install(code)
    forbid_personality()


def forbid_ptrace() -> None:
    """As some sandboxes do, in this process and all it starts, for ever. Raises OSError."""
    code = [_instruction(_LOAD, _NUMBER), _instruction(_JUMP_IF_EQUAL, _PTRACE, 0, 1)]
    _install([*code, _instruction(_RETURN, _REFUSE), _instruction(_RETURN, _ALLOW)])


def _install(code: list[bytes]) -> None:
    text = ctypes.create_string_buffer(b"".join(code))
    program = _Program(len(code), ctypes.addressof(text))
    libc = ctypes.CDLL(None, use_errno=True)
    if libc.prctl(_NO_NEW_PRIVS, 1, 0, 0, 0) or libc.prctl(_SECCOMP, _FILTER, ctypes.byref(program)):
        raise OSError(ctypes.get_errno(), "seccomp filter")


def in_container(act: Callable[[], None], forbid: Callable[[], None] = forbid_personality) -> int:
    """Call it in a child process with the filter; returns its exit status, 0 if it raised nothing."""
    child = os.fork()
    if not child:
        status = 1
        try:
            forbid()
            act()
            status = 0
        finally:
            os._exit(status)
    return os.waitstatus_to_exitcode(os.waitpid(child, 0)[1])
