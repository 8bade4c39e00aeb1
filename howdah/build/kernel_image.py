# SPDX-License-Identifier: Apache-2.0
"""Kernel images: identifies a file, and extracts the uncompressed kernel, which starts much sooner in emulation.

A bzImage (Documentation/arch/x86/boot.rst) contains a compressed ELF file, whose unpacking takes seconds in emulation.
QEMU starts an ELF file that names its PVH entry in a note (XEN_ELFNOTE_PHYS32_ENTRY, xen/include/public/elfnote.h).
"""

from __future__ import annotations

import bz2
import gzip
import lzma
import re
import struct
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from pathlib import Path

import pyarrow as pa

from howdah.errors import HowdahError

_SECTORS, _MAGIC, _VERSION, _FLAGS, _PAYLOAD = 0x1F1, 0x202, 0x20E, 0x236, 0x248
_SECTOR_BYTES = 512
_KERNEL_64 = 1  # bit of xloadflags: the kernel has a 64-bit entry
_ELF = b"\x7fELF"
_ELF_64, _LITTLE_ENDIAN, _X86_64 = 2, 1, 62
_ARM64 = b"ARM\x64"
_NOTE_SEGMENT = 4
_PVH_ENTRY = 18
_RELEASE = re.compile(rb"Linux version (\S{1,64}) ")
_OTHER_MACHINES = {3: "x86, 32 bits", 21: "PowerPC, 64 bits", 22: "s390", 40: "ARM", 183: "ARM, 64 bits", 243: "RISC-V"}


@dataclass(frozen=True)
class Contents:
    """A kernel image's ``release``, as in ``uname -r``, and ``kind``, ``bzImage`` or ``vmlinux``."""

    release: str
    kind: str


def read_image(file: Path) -> Contents:
    """Identify a kernel image. Raises HowdahError, which says what the file is, unless a machine here can start it."""
    content = file.read_bytes()
    if content[_MAGIC : _MAGIC + 4] == b"HdrS":
        (flags,) = struct.unpack_from("<H", content, _FLAGS)
        if not flags & _KERNEL_64:
            raise _wrong(file, "a kernel for 32 bits")
        (version,) = struct.unpack_from("<H", content, _VERSION)
        said = content[version + 0x200 :].partition(b"\0")[0].split()
        if not said:
            raise _wrong(file, "a kernel that does not say its release")
        return Contents(said[0].decode(errors="replace"), "bzImage")
    if content[:4] == _ELF:
        _check_elf(file, content)
        match = _RELEASE.search(content)
        if match is None:
            raise _wrong(file, "an ELF file, and no Linux kernel")
        if not _has_pvh_entry(content):
            hint = "Name the bzImage of the same build (arch/x86/boot/bzImage), or build with CONFIG_PVH=y."
            raise HowdahError("this kernel has no PVH entry, by which QEMU starts it", where=str(file), hint=hint)
        return Contents(match[1].decode(errors="replace"), "vmlinux")
    if content[0x38:0x3C] == _ARM64:
        raise _wrong(file, "a kernel for another processor (ARM, 64 bits)")
    raise _wrong(file, f"something else ({len(content)} bytes beginning with {content[:8].hex(' ') or 'nothing'})")


def unpack_kernel(image: Path, target: Path) -> bool:
    """Write the uncompressed kernel of a bzImage to ``target``; return False if it holds none that QEMU could start.

    That is not an error: the image itself also starts, only later.
    """
    content = image.read_bytes()
    if content[_MAGIC : _MAGIC + 4] != b"HdrS":
        return False
    offset, length = struct.unpack_from("<II", content, _PAYLOAD)
    start = ((content[_SECTORS] or 4) + 1) * _SECTOR_BYTES + offset
    payload = content[start : start + length]
    kernel = _unpacked(payload)
    if kernel is None or kernel[:4] != _ELF or not _has_pvh_entry(kernel):
        return False
    target.write_bytes(kernel)
    return True


def _unpacked(payload: bytes) -> bytes | None:
    """Unpack the payload, whose last four bytes are the unpacked size; None for an unknown compression."""
    if len(payload) < 8:
        return None
    (size,) = struct.unpack("<I", payload[-4:])
    ways: dict[bytes, Callable[[bytes], bytes]] = {
        b"\x1f\x8b": gzip.decompress,
        b"\xfd7zXZ": lzma.decompress,
        b"BZh": bz2.decompress,
        b"\x5d\x00\x00": lzma.decompress,
        b"\x28\xb5\x2f\xfd": lambda data: bytes(pa.decompress(data, decompressed_size=size, codec="zstd")),
    }
    for magic, way in ways.items():
        if payload.startswith(magic):
            try:
                kernel = way(payload[:-4])
            except (OSError, ValueError, EOFError, lzma.LZMAError):
                return None
            return kernel if len(kernel) == size else None
    return payload if payload[:4] == _ELF else None


def _check_elf(file: Path, content: bytes) -> None:
    if len(content) < 64 or content[4] != _ELF_64 or content[5] != _LITTLE_ENDIAN:
        raise _wrong(file, "a program for another processor")
    (machine,) = struct.unpack_from("<H", content, 18)
    if machine != _X86_64:
        raise _wrong(file, f"a program for another processor ({_OTHER_MACHINES.get(machine, f'ELF number {machine}')})")


def _has_pvh_entry(kernel: bytes) -> bool:
    """Return whether a note of the owner ``Xen`` names the entry (elf(5), Elf64_Phdr and Elf64_Nhdr)."""
    try:
        return any(note == _PVH_ENTRY for note in _xen_notes(kernel))
    except struct.error:  # truncated
        return False


def _xen_notes(kernel: bytes) -> Iterator[int]:
    (table,) = struct.unpack_from("<Q", kernel, 32)
    size, count = struct.unpack_from("<HH", kernel, 54)
    for number in range(count):
        (kind,) = struct.unpack_from("<I", kernel, table + number * size)
        offset, _, _, length = struct.unpack_from("<QQQQ", kernel, table + number * size + 8)
        if kind != _NOTE_SEGMENT:
            continue
        at, end = offset, min(offset + length, len(kernel))
        while at + 12 <= end:
            owner_bytes, value_bytes, note = struct.unpack_from("<III", kernel, at)
            if kernel[at + 12 : at + 15] == b"Xen":
                yield note
            at += 12 + -(-owner_bytes // 4) * 4 + -(-value_bytes // 4) * 4


def _wrong(file: Path, what: str) -> HowdahError:
    return HowdahError(
        f"this is not a Linux kernel for x86-64 but {what}",
        where=str(file),
        hint="Name a linux-image package (.deb), a bzImage (/boot/vmlinuz-…) or a vmlinux with a PVH entry.",
    )
