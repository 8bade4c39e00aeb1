# SPDX-License-Identifier: Apache-2.0
"""Read and compress the files of raw/: readers get what the guest wrote, whether the file is compressed or not. Also
the agent's records of its run (agent.json) and of the path (calibration-*.json), and the record of perf's samples.

A compressed file is ``NAME.zst``, or ``NAME.xz`` if its records have one length, for which xz has a filter. Digests are
those of the stored files: ``sha256sum`` checks them, and ``zstd -d`` or ``xz -d`` gives what the guest wrote.
"""

from __future__ import annotations

import errno
import io
import json
import lzma
import os
from collections.abc import Iterator
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any, BinaryIO, cast

import numpy as np
import zstandard

from howdah.codec import OCCASIONAL
from howdah.errors import HowdahError, RecordError
from howdah.foreign import LEAST_CONTENT_BYTES, MOST_EXPANSION, open_foreign
from howdah.record.agent import AgentRecord
from howdah.record.calibration import CalibrationRecord
from howdah.record.directory import RunDirectory, parse_json, writing_name
from howdah.record.model import checked

ZSTD, XZ = ".zst", ".xz"
SUFFIXES = (ZSTD, XZ)
LEAST_BYTES = 256 * 1024  # smaller files stay uncompressed: most are JSON, which people read
LEAST_RECORDS_BYTES = 1 << 20  # least size of a file for which the length of records is determined
# The fastest levels: on traces of ACKs, higher ones take at least twice as long for 5 %.
_ZSTD_LEVEL, _XZ_PRESET = 1, 0
_WORTH = 0.9  # a file that does not shrink below this share of its size stays uncompressed
_CHUNK_BYTES = 1 << 20
_HEADER_BYTES = 18  # largest header of a zstd frame
_STRIDES = range(16, 257, 4)  # record lengths to try; xz's delta filter reaches 256 bytes
_ALIKE = 0.8  # least share of equal bytes in two neighbouring records
_TOO_LARGE = "its content is larger than what a guest writes becomes"
_DAMAGE = (zstandard.ZstdError, lzma.LZMAError, EOFError)


def stored(path: Path) -> Path:
    """The file that holds ``path``: itself, or with a suffix of compression. Raise FileNotFoundError if neither
    exists."""
    if path.exists():
        return path
    for suffix in SUFFIXES:
        compressed = path.with_name(f"{path.name}{suffix}")
        if compressed.exists():
            return compressed
    raise FileNotFoundError(errno.ENOENT, os.strerror(errno.ENOENT), str(path))


def raw_exists(path: Path) -> bool:
    try:
        stored(path)
    except FileNotFoundError:
        return False
    return True


def content_name(path: Path) -> Path:
    """The name that the guest gave a stored file."""
    return path.with_suffix("") if path.suffix in SUFFIXES else path


def open_raw(path: Path) -> BinaryIO:
    """Open the content as a stream. It raises OSError if the file is damaged or cut off, and RecordError if it is
    not a regular file (``open_foreign``)."""
    file = stored(path)
    if file == path:
        return open_foreign(file)
    return cast("BinaryIO", io.BufferedReader(_Content(file), _CHUNK_BYTES))


def read_raw_bytes(path: Path) -> bytes:
    with open_raw(path) as opened:
        return opened.read()


def read_raw_text(path: Path, encoding: str = "utf-8", errors: str = "strict") -> str:
    return read_raw_bytes(path).decode(encoding, errors)


def raw_value(text: str | bytes) -> Any:
    """The value of JSON text from a guest. Raise ValueError, also if it is nested too deeply."""
    try:
        return json.loads(text)
    except RecursionError as error:
        raise ValueError("it is nested too deeply") from error


def read_raw_json(path: Path) -> Any:
    """The value in a JSON file; numbers are finite. Raise RecordError, and FileNotFoundError without a file."""
    try:
        return parse_json(read_raw_bytes(path), path)
    except FileNotFoundError:
        raise
    except OSError as error:
        raise RecordError(f"this cannot be read: {error.strerror}", where=str(path)) from error


def raw_files(folder: Path) -> Iterator[Path]:
    """Stored files below a folder, sorted by name, without hidden ones."""
    for file in sorted(folder.rglob("*")):
        if file.is_file() and not file.is_symlink() and not file.name.startswith("."):
            yield file


class _Content(io.RawIOBase):
    """The content of a compressed file. A truncated zstd frame is an error, which zstd's own reader does not report."""

    def __init__(self, file: Path) -> None:
        self._file, self._opened = file, open_foreign(file)
        most = LEAST_CONTENT_BYTES + MOST_EXPANSION * os.fstat(self._opened.fileno()).st_size
        self._most: int = most
        self._left: int | None = None
        if file.suffix == XZ:
            self._reader: Any = lzma.LZMAFile(self._opened)  # noqa: SIM115
            return
        try:
            size = zstandard.frame_content_size(self._opened.read(_HEADER_BYTES))
        except zstandard.ZstdError as error:
            raise self._damaged(str(error)) from error
        if size < 0:
            raise self._damaged("it does not say how large its content is")
        if size > most:
            raise self._damaged(_TOO_LARGE)
        self._left = int(size)
        self._opened.seek(0)
        self._reader = zstandard.ZstdDecompressor().stream_reader(self._opened, read_size=_CHUNK_BYTES)

    def readable(self) -> bool:
        return True

    def readinto(self, buffer: object) -> int:
        view = memoryview(cast("bytearray", buffer))
        try:
            data = self._reader.read(len(view))
        except _DAMAGE as error:
            raise self._damaged(str(error)) from error
        self._most -= len(data)
        if self._most < 0:
            raise self._damaged(_TOO_LARGE)
        if self._left is not None:
            self._left -= len(data)
            if self._left < 0 or (not data and len(view) and self._left):
                raise self._damaged("it is cut off" if self._left > 0 else "it is longer than it says")
        view[: len(data)] = data
        return len(data)

    def close(self) -> None:
        self._opened.close()
        super().close()

    def _damaged(self, why: str) -> OSError:
        return OSError(errno.EIO, f"the compressed file is damaged ({why})", str(self._file))


def compress_raw(folder: Path) -> int:
    """Compress the large files below raw/ of a run; return the number of bytes saved.

    The compressed file is renamed into place before the original is removed. A process that is killed leaves one or
    both, with equal content. Raise OSError.
    """
    saved = 0
    for file in raw_files(folder):
        size = file.stat().st_size
        if size < LEAST_BYTES or file.suffix in SUFFIXES:
            continue
        packed = _compress(file, size)
        if packed is not None:
            file.unlink()
            saved += size - packed
    return saved


def _compress(file: Path, size: int) -> int | None:
    """Compress a file; return the size, or None, without a file, if it is not worth it."""
    stride = record_bytes(file, size) if size >= LEAST_RECORDS_BYTES else None
    target = file.with_name(f"{file.name}{ZSTD if stride is None else XZ}")
    temporary = writing_name(target)
    try:
        with file.open("rb") as content, temporary.open("wb") as opened:
            if stride is None:
                compressor = zstandard.ZstdCompressor(level=_ZSTD_LEVEL, write_checksum=True, write_content_size=True)
                compressor.copy_stream(content, opened, size=size, read_size=_CHUNK_BYTES)
            else:
                filters = [{"id": lzma.FILTER_DELTA, "dist": stride}, {"id": lzma.FILTER_LZMA2, "preset": _XZ_PRESET}]
                with lzma.LZMAFile(opened, "w", check=lzma.CHECK_CRC64, filters=filters) as packing:
                    while part := content.read(_CHUNK_BYTES):
                        packing.write(part)
            opened.flush()
            os.fsync(opened.fileno())
        packed = temporary.stat().st_size
        if packed > size * _WORTH:
            temporary.unlink()
            return None
        temporary.replace(target)
    except BaseException:
        temporary.unlink(missing_ok=True)
        raise
    return packed


def record_bytes(file: Path, size: int) -> int | None:
    """The length of a file's records if most bytes of each equal those of the one before; else None.

    A megabyte in the middle of the file decides.
    """
    with file.open("rb") as opened:
        opened.seek(max(size // 2 - (1 << 19), 0))
        sample = np.frombuffer(opened.read(1 << 20), dtype=np.uint8)
    alike = {stride: float((sample[stride:] == sample[:-stride]).mean()) for stride in _STRIDES if stride < sample.size}
    best = max(alike, key=lambda stride: alike[stride], default=None)
    return best if best is not None and alike[best] >= _ALIKE else None


def read_agent(directory: RunDirectory) -> AgentRecord:
    """Read agent.json of a run. Raise FileNotFoundError without it, and RecordError, which names the place of what is
    wrong."""
    path = directory.raw / "agent.json"
    return checked(AgentRecord, read_raw_json(path), path)


def agent_or_empty(directory: RunDirectory) -> AgentRecord:
    """Read agent.json; return an empty record if it is missing or wrong, which the report of ingest says."""
    try:
        return read_agent(directory)
    except (OSError, HowdahError):
        return AgentRecord()


def read_calibration(path: Path) -> CalibrationRecord | None:
    """Read one of the files; None if it is missing or damaged."""
    try:
        return checked(CalibrationRecord, read_raw_json(path), path)
    except (OSError, ValueError, HowdahError):
        return None


PROFILE_FILE, PROFILE_SAMPLES = "cpu-profile.json", "cpu-profile.txt"


@dataclass
class CpuProfile:
    """``why`` says why there are no samples (None: there are). ``stamps`` are pairs of simultaneous times: the guest's
    CLOCK_MONOTONIC in ns and the host's CLOCK_REALTIME in us. ``inlined_why`` says why inlined functions are unknown
    ("" until somebody looks for their names)."""

    event: str
    period_ns: int
    format: int = 1
    samples: int = 0
    lost: int = 0
    why: str | None = None
    stamps: list[tuple[int, int]] = field(default_factory=list)
    inlined_why: str | None = field(default="", metadata=OCCASIONAL)
