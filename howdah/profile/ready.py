# SPDX-License-Identifier: Apache-2.0
"""Inspect a built module (.ko): whether a kernel of this machine can load it, and which congestion controls it
registers.

Their names are read from the struct tcp_congestion_ops. In every kernel since 3.x, the struct's ``char name[16]``
directly precedes its ``struct module *owner``, for which the file has a relocation to ``__this_module``. So the sixteen
bytes before such a relocation in the module's data are a name.
"""

from __future__ import annotations

import platform
import struct
from collections.abc import Iterator
from pathlib import Path

NAME_BYTES = 16  # TCP_CA_NAME_MAX, include/net/tcp.h
_ELF_64 = b"\x7fELF\x02\x01"
_SECTION = struct.Struct("<IIQQQQIIQQ")
_SYMBOL = struct.Struct("<IBBHQQ")
_RELOCATION = struct.Struct("<QQq")
_RELA = 4
_THIS_MODULE = b"__this_module"
_RELOCATABLE = 1
_NO_BITS = 8  # SHT_NOBITS: the section has no bytes in the file
_HEADER_BYTES = 64
_MACHINES = {3: "i386", 8: "mips", 21: "ppc64", 22: "s390x", 40: "arm", 62: "x86_64", 183: "aarch64", 243: "riscv64"}


def defect(file: Path) -> str | None:
    """Why no kernel of this machine, of any version, can load the file: a text that continues the file's name.

    None if no reason is known. Raises OSError if the file cannot be read.
    """
    content = file.read_bytes()
    if not content.startswith(_ELF_64[:4]):
        return "is not a kernel module: it is not an ELF file"
    if len(content) < _HEADER_BYTES:
        return f"is cut off: it has {len(content)} bytes, not even an ELF file's header"
    kind, machine = struct.unpack_from("<HH", content, 16)
    bits = 64 if content[4] == 2 else 32
    known = _MACHINES.get(machine, f"machine {machine} of ELF")
    if not content.startswith(_ELF_64) or known != platform.machine():
        return f"is built for another processor: {known}, {bits} bits; this machine is {platform.machine()}"
    if kind != _RELOCATABLE:
        return "is not a kernel module: it is linked as a program or library"
    (table,) = struct.unpack_from("<Q", content, 40)
    size, count = struct.unpack_from("<HH", content, 58)
    ends = [table + size * count]
    if ends[0] <= len(content):
        ends += [section[4] + section[5] for section in _sections(content) if section[1] != _NO_BITS]
    if max(ends) > len(content):
        return f"is cut off: it has {len(content)} bytes of at least {max(ends)}"
    return None


def registered_by(file: Path) -> list[str]:
    """Congestion controls that a module registers; empty for any other file. A name without a final zero is too
    long."""
    try:
        content = file.read_bytes()
        return list(dict.fromkeys(_names(content))) if content.startswith(_ELF_64) else []
    except (OSError, struct.error, IndexError, UnicodeDecodeError):
        return []


def _names(content: bytes) -> Iterator[str]:
    sections = _sections(content)
    for section in sections:
        if section[1] != _RELA:
            continue
        symbols, target = sections[section[6]], sections[section[7]]
        if not _text(content, _section_names(content, sections) + target[0]).startswith((".data", ".rodata")):
            continue
        data, strings = _body(content, target), sections[symbols[6]][4]
        for offset, info, _addend in _RELOCATION.iter_unpack(_body(content, section)):
            name = _SYMBOL.unpack_from(content, symbols[4] + (info >> 32) * _SYMBOL.size)[0]
            if _text(content, strings + name).encode() != _THIS_MODULE or offset < NAME_BYTES:
                continue
            found = data[offset - NAME_BYTES : offset].partition(b"\0")[0].decode("ascii")
            if found and found.isprintable():
                yield found


def _sections(content: bytes) -> list[tuple[int, ...]]:
    (table,) = struct.unpack_from("<Q", content, 40)
    size, count = struct.unpack_from("<HH", content, 58)
    return [_SECTION.unpack_from(content, table + number * size) for number in range(count)]


def _section_names(content: bytes, sections: list[tuple[int, ...]]) -> int:
    """The offset of the string table that holds the sections' names."""
    (number,) = struct.unpack_from("<H", content, 62)
    return sections[int(number)][4]


def _body(content: bytes, section: tuple[int, ...]) -> bytes:
    return content[section[4] : section[4] + section[5]]


def _text(content: bytes, offset: int) -> str:
    return content[offset : content.index(b"\0", offset)].decode()
