# SPDX-License-Identifier: Apache-2.0
"""A kernel's image that is started by the guest tree's C library in place of the machine's.

Where the machine has an older one, or none (musl), the image would not start at all. The name of its loader is part of
the file (PT_INTERP, elf(5)); the kernel takes it relative to the working directory, where the launcher links it.
"""

from __future__ import annotations

import re
import struct
from pathlib import Path

from howdah.build.cache import Cache, content_key
from howdah.build.guest_tree import GuestTree
from howdah.build.tools import Tools

LOADER_NAME, LIBRARY_NAME = "ld.so", "lib"  # links in the directory where the kernel is started
_LAYOUT = "1"
_INTERPRETER = 3  # PT_INTERP
_HEADER_TABLE, _HEADER_SIZES = 32, 54  # offsets in the header of a 64-bit file: e_phoff, e_phentsize
_GLIBC = re.compile(rb"GLIBC_(\d+)\.(\d+)")


def needed_glibc(program: bytes) -> tuple[int, ...]:
    """The oldest GNU C library that has all symbols of a program; () where it asks for none."""
    return max(((int(major), int(minor)) for major, minor in _GLIBC.findall(program)), default=())


def image_of_tree(image: Path, image_sha256: str, tools: Tools, tree: GuestTree, cache: Cache) -> Path | None:
    """The image with the tree's loader; None where it, or what is loaded into it, needs a newer C library."""
    key = content_key(_LAYOUT, image_sha256, tools.key, str(tree.glibc))
    found = cache.find("started", key)
    if found is None:
        content = image.read_bytes()
        needed = max(needed_glibc(content), needed_glibc(tools.shim.read_bytes()))
        changed = None if not tree.glibc or needed > tree.glibc else with_loader(content, f"./{LOADER_NAME}")
        if changed is None:
            return None

        def write(directory: Path, _log: Path) -> None:
            file = directory / "linux"
            file.write_bytes(changed)
            file.chmod(0o755)

        found = cache.build("started", key, write)
    return found / "linux"


def with_loader(program: bytes, loader: str) -> bytes | None:
    """The same program with another loader; None for one that has none, or one with a shorter name."""
    (table,) = struct.unpack_from("<Q", program, _HEADER_TABLE)
    size, count = struct.unpack_from("<HH", program, _HEADER_SIZES)
    for number in range(count):
        kind, _flags, offset, _address, _physical, length = struct.unpack_from(
            "<IIQQQQ", program, table + number * size
        )
        name = loader.encode() + b"\0"
        if kind == _INTERPRETER and len(name) <= length:
            return program[:offset] + name.ljust(length, b"\0") + program[offset + length :]
    return None
