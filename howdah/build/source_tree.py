# SPDX-License-Identifier: Apache-2.0
"""The content of a kernel tree: every file that a build could read, by what is in it.

All files are read each time. No time stamp is trusted. So nothing a person does to a tree (an older version of a
file checked out, a copy that keeps its times, an edit while a command runs) can pass for the tree of before. It takes a
second or two, since only what a user-mode kernel is made of is read: see left-packed.txt for what is not.
"""

from __future__ import annotations

import contextlib
import errno
import fnmatch
import hashlib
import os
import re
from dataclasses import dataclass
from functools import cache as remembered
from functools import cached_property
from pathlib import Path

from howdah.errors import HowdahError

# tar patterns, one a line. A user-mode kernel has no hardware: of most drivers and of other machines' code only the
# Kconfig files and Makefiles, which the rest of the tree includes, are needed. It saves a gigabyte of disk.
LEFT_PACKED = Path(__file__).with_name("left-packed.txt")

FILE, PROGRAM, LINK = "f", "x", "l"  # a program is a file that may be executed
_GIT = ".git"
_EDITORS = re.compile(r".*~|#.*#|\.#.*|\..*\.sw[a-z]")  # they come and go while a file is open


@dataclass(frozen=True)
class TreeContent:
    """``files`` maps names relative to ``root`` to what they are: ``f:SHA256``, ``x:SHA256`` or ``l:TARGET``."""

    root: Path
    files: dict[str, str]

    @cached_property
    def sha256(self) -> str:
        """Of names and contents; not of the place, nor of any time."""
        return files_sha256(self.files)


def files_sha256(files: dict[str, str]) -> str:
    """Hash of names and contents as TreeContent has them."""
    digest = hashlib.sha256()
    for name in sorted(files):
        digest.update(os.fsencode(f"{name}\0{files[name]}\n"))
    return digest.hexdigest()


def read_tree(root: Path) -> TreeContent:
    """Read a tree. Raises HowdahError naming a file that cannot be read."""
    reader = _ArchiveReader(str(root))
    try:
        reader.directory("", (os.path.realpath(root),))
    except OSError as error:
        raise HowdahError(
            f"a file of the kernel tree cannot be read: {error.strerror}", where=str(error.filename or root)
        ) from error
    return TreeContent(root, reader.files)


def content_of(path: str, mode: int) -> tuple[str, bytes]:
    """What a regular file is, as TreeContent has it, and its bytes."""
    with open(path, "rb", buffering=0) as file:  # noqa: PTH123 - 30 000 files: Path objects double the time
        data = file.readall()
    kind = PROGRAM if mode & 0o111 else FILE
    return f"{kind}:{hashlib.sha256(data).hexdigest()}", data


class _ArchiveReader:
    def __init__(self, root: str) -> None:
        self.root = root
        self.real_root = os.path.realpath(root)
        self.files: dict[str, str] = {}

    def directory(self, name: str, above: tuple[str, ...]) -> None:
        """``name`` is relative and ends with a slash, empty for the root; ``above`` are real paths, against loops."""
        with os.scandir(f"{self.root}/{name}") as entries:
            for entry in entries:
                if entry.name == _GIT or _EDITORS.fullmatch(entry.name):
                    continue
                if entry.is_symlink():
                    self._link(name, entry, above)
                elif entry.is_dir():
                    self.directory(f"{name}{entry.name}/", (*above, f"{above[-1]}/{entry.name}"))
                elif entry.is_file() and not is_left_packed(name, entry.name):
                    self._file(name + entry.name, entry)

    def _file(self, name: str, entry: os.DirEntry[str]) -> None:
        with contextlib.suppress(FileNotFoundError):  # it was removed since the directory was read
            self.files[name] = content_of(entry.path, entry.stat().st_mode)[0]

    def _link(self, name: str, entry: os.DirEntry[str], above: tuple[str, ...]) -> None:
        """A link within the tree stays one. What lies outside is content like any other file."""
        target = str(Path(entry.path).readlink())
        real = os.path.realpath(entry.path)
        stays = not target.startswith("/") and not _leads_out(name + target)
        if stays and real.startswith(f"{self.real_root}/"):
            self.files[name + entry.name] = f"{LINK}:{target}"
        elif entry.is_dir():
            if real in above:
                raise OSError(errno.ELOOP, os.strerror(errno.ELOOP), entry.path)
            self.directory(f"{name}{entry.name}/", (*above, real))
        elif entry.is_file() and not is_left_packed(name, entry.name):
            self._file(name + entry.name, entry)
        # Any other leads nowhere: there is nothing that a build could read.


def _leads_out(path: str) -> bool:
    """Whether a path relative to the tree climbs above it on its way."""
    depth = 0
    for part in path.split("/"):
        depth += -1 if part == ".." else part not in ("", ".")
        if depth < 0:
            return True
    return False


@remembered
def _patterns() -> re.Pattern[str]:
    lines = LEFT_PACKED.read_text(encoding="utf-8").splitlines()
    return re.compile("|".join(fnmatch.translate(line) for line in lines if line and not line.startswith("#")))


def is_left_packed(directory: str, name: str) -> bool:
    """Whether left-packed.txt leaves a file out. ``directory`` is relative to the tree and ends with a slash."""
    _stem, dot, suffix = name.rpartition(".")
    return _is_left_packed(directory, dot + suffix if dot else "")


@remembered
def _is_left_packed(directory: str, suffix: str) -> bool:
    # No pattern names more of a file than its suffix, so one answer serves all files of a directory that share it. The
    # patterns are written for an archive in which everything lies in one directory.
    return _patterns().match(f"linux/{directory}any{suffix}") is not None
