# SPDX-License-Identifier: Apache-2.0
"""Congestion controls in BPF: load them through libbpf, and read the kernel's names and tags of the loaded programs.

A struct_ops map stays registered only while somebody holds its link, so the agent keeps libbpf's handles until it ends.
"""

from __future__ import annotations

import ctypes
import os
from collections.abc import Iterator
from dataclasses import dataclass, field
from pathlib import Path

from howdah.agent.error import AgentError
from howdah.agent.own import available

SUFFIX = ".bpf.o"
_LIBRARY = "libbpf.so.1"
_STRUCT_OPS = 26  # BPF_MAP_TYPE_STRUCT_OPS (include/uapi/linux/bpf.h)
_GET_INFO_BYTES = 256  # holds the part of struct bpf_prog_info that the kernel fills; the rest must be 0
_TAG = slice(8, 16)  # the field tag of struct bpf_prog_info, after type and id
_QUOTED_LINES = 8
_MESSAGE_BYTES = 1 << 16
_PRINT = ctypes.CFUNCTYPE(ctypes.c_int, ctypes.c_int, ctypes.c_char_p, ctypes.c_void_p)


@dataclass
class Control:
    """A loaded file: the algorithms it registered, the kernel's tag of each of its programs, and libbpf's handles."""

    algorithms: list[str]
    programs: dict[str, str]
    held: list[int] = field(default_factory=list)


def load_controls(directory: Path) -> dict[str, Control]:
    """Load and register every ``*.bpf.o`` of the directory; return them by file name.

    Raises AgentError with the messages of libbpf and of the kernel's verifier.
    """
    files = sorted(directory.glob(f"*{SUFFIX}"))
    if not files:
        return {}
    library = _Library()
    return {path.name.removesuffix(SUFFIX): library.load(path) for path in files}


class _Library:
    """The few functions of libbpf that the agent needs; libbpf's output is kept for error messages."""

    def __init__(self) -> None:
        try:
            self._bpf = ctypes.CDLL(_LIBRARY, use_errno=True)
        except OSError as error:
            raise AgentError("load BPF", f"the guest tree has no {_LIBRARY}: {error}") from error
        self._c = ctypes.CDLL(None)
        self._messages: list[str] = []
        for name in ("object__open_file", "object__next_map", "object__next_program", "map__attach_struct_ops"):
            getattr(self._bpf, f"bpf_{name}").restype = ctypes.c_void_p
        for name in ("map__name", "program__name"):
            getattr(self._bpf, f"bpf_{name}").restype = ctypes.c_char_p
        self._callback = _PRINT(self._keep_message)  # a reference must stay: libbpf keeps calling it
        self._bpf.libbpf_set_print(self._callback)

    def _keep_message(self, _level: int, pattern: bytes, arguments: int) -> int:
        """Keep a line of libbpf's output. A va_list is passed on as a pointer, which it is on x86-64, the only
        architecture of howdah's kernels."""
        text = ctypes.create_string_buffer(_MESSAGE_BYTES)
        self._c.vsnprintf(text, ctypes.c_size_t(len(text)), pattern, ctypes.c_void_p(arguments))
        self._messages += text.value.decode(errors="replace").splitlines()
        return 0

    def load(self, path: Path) -> Control:
        operation = f"load BPF {path.name}"
        before = set(available())
        loaded = self._bpf.bpf_object__open_file(os.fsencode(path), None)
        if not loaded:
            raise AgentError(operation, f"it is not a BPF object file: {self._why()}")
        if self._bpf.bpf_object__load(ctypes.c_void_p(loaded)) < 0:
            raise AgentError(operation, f"the kernel refused it: {self._why()}")
        held = [loaded]
        for one in self._walk(self._bpf.bpf_object__next_map, loaded):
            if self._bpf.bpf_map__type(ctypes.c_void_p(one)) != _STRUCT_OPS:
                continue
            link = self._bpf.bpf_map__attach_struct_ops(ctypes.c_void_p(one))
            if not link:
                name = self._bpf.bpf_map__name(ctypes.c_void_p(one)).decode()
                what = f"the kernel did not register {name}, and it takes no second algorithm of one name"
                raise AgentError(operation, f"{what}: {self._why()}")
            held.append(link)
        names = sorted(set(available()) - before)
        if not names:
            raise AgentError(operation, 'it registers no congestion control: it needs a SEC(".struct_ops") of one')
        return Control(names, dict(self._programs(loaded)), held)

    def _programs(self, loaded: int) -> Iterator[tuple[str, str]]:
        """Yield each program's name and tag, the kernel's hash of its instructions."""
        for one in self._walk(self._bpf.bpf_object__next_program, loaded):
            info = ctypes.create_string_buffer(_GET_INFO_BYTES)
            length = ctypes.c_uint32(_GET_INFO_BYTES)
            descriptor = self._bpf.bpf_program__fd(ctypes.c_void_p(one))
            if self._bpf.bpf_obj_get_info_by_fd(descriptor, info, ctypes.byref(length)) == 0:
                yield self._bpf.bpf_program__name(ctypes.c_void_p(one)).decode(), info.raw[_TAG].hex()

    def _walk(self, following: ctypes._NamedFuncPointer, loaded: int) -> Iterator[int]:
        one = following(ctypes.c_void_p(loaded), None)
        while one:
            yield one
            one = following(ctypes.c_void_p(loaded), ctypes.c_void_p(one))

    def _why(self) -> str:
        number = ctypes.get_errno()
        said = [line.removeprefix("libbpf: ") for line in self._messages if line.strip()]
        return " / ".join([os.strerror(number), *said[-_QUOTED_LINES:]])
