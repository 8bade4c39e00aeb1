# SPDX-License-Identifier: Apache-2.0
"""What somebody else sends: files of a run directory or a pack, and the names in them.

A file that a stranger made may be a link to one of the reader's own, a pipe that nobody writes to, a device that never
ends, or larger than all memory. Whoever reads one opens it here.
"""

from __future__ import annotations

import os
import re
import stat
import unicodedata
from collections.abc import Iterator
from io import BufferedReader
from pathlib import Path

from howdah.errors import RecordError

LARGEST_JSON_BYTES = 1 << 28  # a pack's index of 10 000 runs has 60 MB
# What a guest writes shrinks to a hundredth at most. A file that becomes more is one to fill memories with.
MOST_EXPANSION, LEAST_CONTENT_BYTES = 500, 64 << 20
_BLOCK_BYTES = 512  # of st_blocks
_LONGEST_NAME_BYTES = 200
# A value of JSON takes some 60 bytes of memory, and two bytes of text: of a large text that is too much.
_DENSE_BYTES, _BYTES_A_VALUE = 1 << 24, 12
_KINDS = {
    stat.S_IFDIR: "a directory",
    stat.S_IFLNK: "a link",
    stat.S_IFIFO: "a pipe",
    stat.S_IFSOCK: "a socket",
    stat.S_IFCHR: "a device",
    stat.S_IFBLK: "a device",
}
# Letters that act on a terminal or turn its text around, instead of being shown.
_ACTS = re.compile("[\x00-\x08\x0b-\x1f\x7f-\x9f\u061c\u200b-\u200f\u2028-\u202e\u2060-\u2069\ufeff\udc80-\udc9f]")


def open_foreign(path: Path, most_bytes: int | None = None) -> BufferedReader:
    """A regular file for reading, of at most ``most_bytes``. A link at the end of ``path`` is not followed.

    A large file is none of holes: reading zeros that no disk holds takes as long as reading data.
    Raises RecordError for anything else, FileNotFoundError where there is nothing, and other OSErrors.
    """
    try:
        handle = os.open(path, os.O_RDONLY | os.O_NOFOLLOW | os.O_NONBLOCK | os.O_CLOEXEC)
    except OSError as error:
        kind = kind_of(path)
        if kind is None:
            raise
        raise RecordError(f"this is {kind}, not a file", where=str(path)) from error
    status = os.fstat(handle)
    if not stat.S_ISREG(status.st_mode):
        os.close(handle)
        raise RecordError(f"this is {_KINDS[stat.S_IFMT(status.st_mode)]}, not a file", where=str(path))
    if most_bytes is not None and status.st_size > most_bytes:
        os.close(handle)
        what = f"this has {status.st_size} bytes; at most {most_bytes} are read"
        raise RecordError(what, where=str(path))
    if _is_of_holes(handle, status):
        os.close(handle)
        raise RecordError(f"this has {status.st_size} bytes, and most of them are holes", where=str(path))
    return os.fdopen(handle, "rb")


def _is_of_holes(handle: int, status: os.stat_result) -> bool:
    """Whether a file is much larger than what the disk holds of it.

    A file system that compresses, or knows no blocks, says that such a file has no hole.
    """
    if status.st_size <= LEAST_CONTENT_BYTES + MOST_EXPANSION * _BLOCK_BYTES * status.st_blocks:
        return False
    hole = os.lseek(handle, 0, os.SEEK_HOLE)
    os.lseek(handle, 0, os.SEEK_SET)
    return hole < status.st_size


def read_foreign(path: Path, most_bytes: int = LARGEST_JSON_BYTES) -> bytes:
    """The content of a file as ``open_foreign`` opens it, also of one that grows meanwhile."""
    with open_foreign(path, most_bytes) as opened:
        return opened.read(most_bytes)


def kind_of(path: Path) -> str | None:
    """What there is that is not a regular file, in words; None for a file, and where nothing can be seen."""
    try:
        mode = path.lstat().st_mode
    except OSError:
        return None
    return _KINDS.get(stat.S_IFMT(mode))


def files_below(directory: Path) -> Iterator[tuple[str, str | None]]:
    """Each path below a directory that is not a directory, and what it is if it is not a file. No link is followed."""
    for folder, folders, names in os.walk(directory):
        below = os.path.relpath(folder, directory)
        links = [name for name in folders if os.path.islink(os.path.join(folder, name))]  # noqa: PTH114, PTH118
        for name in [*names, *links]:
            mode = os.lstat(os.path.join(folder, name)).st_mode  # noqa: PTH118 - of some million files
            yield name if below == "." else f"{below}/{name}", _KINDS.get(stat.S_IFMT(mode))


def is_plain(name: str) -> bool:
    """Whether a name is one of a file and nothing else: no way to another directory, no option, nothing unseen.

    It is NFC, as whoever unpacks it writes it, so that no two names look alike and are one on another disk.
    """
    return (
        bool(name)
        and name[0] not in ".-~"
        and not any(letter in "/\\" or (unicodedata.category(letter)[0] in "CZ" and letter != " ") for letter in name)
        and name == name.strip(" ")
        and len(name.encode(errors="surrogatepass")) <= _LONGEST_NAME_BYTES
        and unicodedata.is_normalized("NFC", name)
    )


def too_dense(content: bytes) -> bool:
    """Whether JSON is to become more memory than its size lets expect: values of a byte or two by the million."""
    if len(content) <= _DENSE_BYTES:
        return False
    values = content.count(b",") + content.count(b"[") + content.count(b"{")
    return values > len(content) // _BYTES_A_VALUE


def visible(text: str) -> str:
    """A text with its control characters as ``\\x1b``: a name from elsewhere moves no cursor and writes no line."""
    return _ACTS.sub(_written, text)


def _written(match: re.Match[str]) -> str:
    code = ord(match[0])
    code -= 0xDC00 if 0xDC00 <= code < 0xE000 else 0  # a byte of a name that is no UTF-8
    return f"\\x{code:02x}" if code < 0x100 else f"\\u{code:04x}"
