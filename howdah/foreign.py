# SPDX-License-Identifier: Apache-2.0
"""Safe reading of untrusted files: run directories and packs that somebody else made, and the names in them.

Such a file may be a link to one of the reader's own, a pipe without a writer, an endless device, or larger than memory.
Code that reads such files must open them here.
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

LARGEST_JSON_BYTES = 1 << 28  # the index of a pack with 10 000 runs has 60 MB
# A guest's output compresses to no less than a hundredth. A file that expands more is made to fill memory.
MOST_EXPANSION, LEAST_CONTENT_BYTES = 500, 64 << 20
_BLOCK_BYTES = 512  # unit of st_blocks
_LONGEST_NAME_BYTES = 200
# A JSON value takes some 60 bytes of memory, and perhaps two bytes of text: too much for a large text.
_DENSE_BYTES, _BYTES_A_VALUE = 1 << 24, 12
_KINDS = {
    stat.S_IFDIR: "a directory",
    stat.S_IFLNK: "a link",
    stat.S_IFIFO: "a pipe",
    stat.S_IFSOCK: "a socket",
    stat.S_IFCHR: "a device",
    stat.S_IFBLK: "a device",
}
# Characters that control a terminal or change the direction of text, instead of being shown.
_ACTS = re.compile("[\x00-\x08\x0b-\x1f\x7f-\x9f\u061c\u200b-\u200f\u2028-\u202e\u2060-\u2069\ufeff\udc80-\udc9f]")


def open_foreign(path: Path, most_bytes: int | None = None) -> BufferedReader:
    """Open a regular file of at most ``most_bytes`` for reading. A link at the end of ``path`` is not followed.

    Large sparse files are refused: reading their zeros takes as long as reading data, but costs no disk space. Raises
    RecordError for anything that is refused, FileNotFoundError for a missing file, and other OSErrors.
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
    """Return whether a file is sparse and much larger than its allocated blocks.

    A file system that compresses, or counts no blocks, reports no hole in such a file.
    """
    if status.st_size <= LEAST_CONTENT_BYTES + MOST_EXPANSION * _BLOCK_BYTES * status.st_blocks:
        return False
    hole = os.lseek(handle, 0, os.SEEK_HOLE)
    os.lseek(handle, 0, os.SEEK_SET)
    return hole < status.st_size


def read_foreign(path: Path, most_bytes: int = LARGEST_JSON_BYTES) -> bytes:
    """Return the content of a file opened with ``open_foreign``, limited even if the file grows meanwhile."""
    with open_foreign(path, most_bytes) as opened:
        return opened.read(most_bytes)


def kind_of(path: Path) -> str | None:
    """Describe what is at ``path`` in words, such as "a directory"; None for a regular file or a missing one."""
    try:
        mode = path.lstat().st_mode
    except OSError:
        return None
    return _KINDS.get(stat.S_IFMT(mode))


def files_below(directory: Path) -> Iterator[tuple[str, str | None]]:
    """Yield each path below a directory except directories, with its kind in words if it is not a regular file.

    Links are not followed.
    """
    for folder, folders, names in os.walk(directory):
        below = os.path.relpath(folder, directory)
        links = [name for name in folders if os.path.islink(os.path.join(folder, name))]  # noqa: PTH114, PTH118
        for name in [*names, *links]:
            mode = os.lstat(os.path.join(folder, name)).st_mode  # noqa: PTH118 - of some million files
            yield name if below == "." else f"{below}/{name}", _KINDS.get(stat.S_IFMT(mode))


def is_plain_name(name: str) -> bool:
    """Return whether a name is a safe file name: no path, no option, no hidden file, no invisible characters.

    It must be in NFC, as unpackers write it, so that no two names look alike and become one on another disk.
    """
    return (
        bool(name)
        and name[0] not in ".-~"
        and not any(letter in "/\\" or (unicodedata.category(letter)[0] in "CZ" and letter != " ") for letter in name)
        and name == name.strip(" ")
        and len(name.encode(errors="surrogatepass")) <= _LONGEST_NAME_BYTES
        and unicodedata.is_normalized("NFC", name)
    )


def is_too_dense(content: bytes) -> bool:
    """Return whether JSON would take far more memory than its size suggests: a large text of very short values."""
    if len(content) <= _DENSE_BYTES:
        return False
    values = content.count(b",") + content.count(b"[") + content.count(b"{")
    return values > len(content) // _BYTES_A_VALUE


def escape_controls(text: str) -> str:
    """Escape control characters as ``\\x1b``, so that an untrusted name cannot control the terminal."""
    return _ACTS.sub(_written, text)


def _written(match: re.Match[str]) -> str:
    code = ord(match[0])
    code -= 0xDC00 if 0xDC00 <= code < 0xE000 else 0  # a byte that is not UTF-8 in a file name
    return f"\\x{code:02x}" if code < 0x100 else f"\\u{code:04x}"
