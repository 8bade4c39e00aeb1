# SPDX-License-Identifier: Apache-2.0
"""Archives for the kernel's first file system, in the ``newc`` format (Documentation/driver-api/early-userspace).

Every member belongs to root and has time 0, so equal contents give equal bytes. Archives may be concatenated: the
kernel unpacks one after the other.
"""

from __future__ import annotations

import os
import shutil
import stat
from collections.abc import Callable, Iterable
from pathlib import Path
from typing import BinaryIO

_MAGIC = b"070701"
_TRAILER = "TRAILER!!!"
_ALIGNMENT = 4
_BLOCK = 512
_LARGEST_FILE = 0xFFFFFFFF


class Writer:
    """Writes members to an open binary file, in the order given; close() ends the archive."""

    def __init__(self, file: BinaryIO) -> None:
        self._file = file
        self._number = 0
        self._written = 0

    def directory(self, name: str, mode: int = 0o755) -> None:
        self._header(name, stat.S_IFDIR | mode, 0, links=2)

    def data(self, name: str, content: bytes, mode: int = 0o644) -> None:
        self._header(name, stat.S_IFREG | mode, len(content))
        self._write(content)
        self._pad(_ALIGNMENT)

    def file(self, name: str, source: Path, mode: int | None = None) -> None:
        """Copy a file, with its own permissions unless ``mode`` is given. Raises ValueError above newc's 4 GiB."""
        status = source.stat()
        if status.st_size > _LARGEST_FILE:
            raise ValueError(f"{source} has {status.st_size} bytes; this form of archive holds at most 4 GiB")
        self._header(name, stat.S_IFREG | (stat.S_IMODE(status.st_mode) if mode is None else mode), status.st_size)
        with source.open("rb") as content:
            shutil.copyfileobj(content, self._file, 1 << 20)
        self._written += status.st_size
        self._pad(_ALIGNMENT)

    def link(self, name: str, target: str) -> None:
        self._header(name, stat.S_IFLNK | 0o777, len(target.encode()))
        self._write(target.encode())
        self._pad(_ALIGNMENT)

    def tree(self, root: Path, below: str = "", wanted: Callable[[str], bool] = lambda _name: True) -> None:
        """Add the content of ``root``, sorted by name, under the directory ``below``, without sockets and devices.

        ``wanted`` selects by the name relative to ``root``; directories that it rejects are not visited.
        """
        for directory, names, files in os.walk(root):
            here = Path(directory)
            names[:] = sorted(name for name in names if wanted(str((here / name).relative_to(root))))
            for name in sorted([*names, *files]):
                member = here / name
                if not wanted(str(member.relative_to(root))):
                    continue
                where = str(Path(below) / member.relative_to(root))
                mode = member.lstat().st_mode
                if stat.S_ISLNK(mode):
                    self.link(where, str(member.readlink()))
                elif stat.S_ISDIR(mode):
                    self.directory(where, stat.S_IMODE(mode))
                elif stat.S_ISREG(mode):
                    self.file(where, member)

    def parents(self, names: Iterable[str]) -> None:
        """Add the parent directories of the named members, each once, outer ones first."""
        needed = {str(parent) for name in names for parent in Path(name).parents if str(parent) != "."}
        for directory in sorted(needed):
            self.directory(directory)

    def close(self) -> None:
        """End the archive, padded so that another may follow."""
        self._header(_TRAILER, 0, 0)
        self._pad(_BLOCK)

    def _header(self, name: str, mode: int, size: int, links: int = 1) -> None:
        self._number += 1
        encoded = name.encode() + b"\0"
        # inode, mode, user, group, links, time, size, device (2), device file's number (2), length of the name, check
        fields = (self._number, mode, 0, 0, links, 0, size, 0, 0, 0, 0, len(encoded), 0)
        self._write(_MAGIC + b"".join(b"%08X" % field for field in fields) + encoded)
        self._pad(_ALIGNMENT)

    def _write(self, content: bytes) -> None:
        self._file.write(content)
        self._written += len(content)

    def _pad(self, alignment: int) -> None:
        self._write(bytes(-self._written % alignment))
