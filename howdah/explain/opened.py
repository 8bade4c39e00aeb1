# SPDX-License-Identifier: Apache-2.0
"""A file that somebody brings, as a stream of its content: plain, gzip, xz or zstd, told by how it begins."""

from __future__ import annotations

import gzip
import lzma
import os
import zlib
from collections.abc import Iterator
from contextlib import contextmanager
from io import BufferedReader
from pathlib import Path
from typing import Any

import zstandard

from howdah.errors import RecordError, explain
from howdah.foreign import open_foreign

_GZIP, _ZSTD, _XZ = b"\x1f\x8b", b"\x28\xb5\x2f\xfd", b"\xfd7zXZ\x00"
_HEAD_BYTES, _CHUNK_BYTES = 8, 1 << 20
_MEGABYTE = 1_000_000
# A capture of zeros shrinks to a thousandth. What becomes more is made to keep a reader busy.
_MOST_EXPANSION, _LEAST_CONTENT_BYTES = 1200, 256 << 20
_MOST_XZ_BYTES = 128 << 20  # of memory, which the file itself asks for
_DAMAGE = (zstandard.ZstdError, zlib.error, lzma.LZMAError, gzip.BadGzipFile, EOFError)


class Opened:
    """Content of one file. ``problem`` says why it ended before the file did."""

    def __init__(self, path: Path) -> None:
        self.path = path
        self.problem: str | None = None
        self._file = open_foreign(path)
        self._size = os.fstat(self._file.fileno()).st_size
        self._left = _LEAST_CONTENT_BYTES + _MOST_EXPANSION * self._size
        head = self._file.read(_HEAD_BYTES)
        self._file.seek(0)
        self._reader: Any = self._file
        if head.startswith(_GZIP):
            self._reader = _Gzip(gzip.GzipFile(fileobj=self._file))
        elif head.startswith(_ZSTD):
            self._reader = zstandard.ZstdDecompressor().stream_reader(self._file, read_across_frames=True)
        elif head.startswith(_XZ):
            self._reader = _Xz(self._file)

    @property
    def megabytes(self) -> tuple[int, int]:
        """What of the file is read, and its size."""
        return self._file.tell() // _MEGABYTE, -(-self._size // _MEGABYTE)

    def read(self, most_bytes: int) -> bytes:
        """The next bytes; fewer at the end alone. Damage ends the content and is kept in ``problem``."""
        parts: list[bytes] = []
        wanted = most_bytes
        while wanted and self.problem is None:
            try:
                part = self._reader.read(wanted)
            except _DAMAGE as error:
                self.problem = f"the compressed file is damaged or cut off ({error})"
                break
            if not part:
                break
            parts.append(part)
            wanted -= len(part)
            self._left -= len(part)
            if self._left < 0:
                self.problem = "its content is larger than a recording becomes"
        return b"".join(parts)

    def read_all(self, most_bytes: int) -> bytes:
        """The whole content. Raises RecordError where it is larger."""
        content = self.read(most_bytes + 1)
        if len(content) > most_bytes:
            raise RecordError(f"its content is larger than {most_bytes} bytes", where=str(self.path))
        return content

    def close(self) -> None:
        self._file.close()


@contextmanager
def opened(path: Path) -> Iterator[Opened]:
    """The content of a file while it is read. Raises RecordError where that is not possible."""
    try:
        file = Opened(path)
        try:
            yield file
        finally:
            file.close()
    except OSError as error:
        raise RecordError(f"this cannot be read: {explain(error)}", where=str(path)) from error


class _Gzip:
    """A stream of gzip that gives what comes before damage, too."""

    def __init__(self, file: gzip.GzipFile) -> None:
        self._file = file

    def read(self, most_bytes: int) -> bytes:
        return self._file.read1(most_bytes)


class _Xz:
    """A stream of xz that takes no more memory than is allowed, whatever it asks for."""

    def __init__(self, file: BufferedReader) -> None:
        self._file = file
        self._unpacked = lzma.LZMADecompressor(lzma.FORMAT_XZ, memlimit=_MOST_XZ_BYTES)

    def read(self, most_bytes: int) -> bytes:
        while not self._unpacked.eof:
            data = self._file.read(_CHUNK_BYTES) if self._unpacked.needs_input else b""
            if self._unpacked.needs_input and not data:
                raise EOFError("it ends too early")
            part = self._unpacked.decompress(data, most_bytes)
            if part:
                return part
        return b""
