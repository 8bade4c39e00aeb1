# SPDX-License-Identifier: Apache-2.0
"""Packs files of a cache entry into one file, named by its hash: the same files give the same bytes.

Unlike a pack of runs (howdah/pack/archive.py) it may contain links and programs: a guest tree is a file system.
"""

from __future__ import annotations

import hashlib
import json
import os
import stat
import tarfile
from collections.abc import Iterator
from dataclasses import asdict, dataclass
from io import BufferedIOBase
from itertools import accumulate
from pathlib import Path
from typing import BinaryIO, cast

import zstandard

from howdah.build.cache import Cache, content_key, file_sha256
from howdah.errors import HowdahError

_LAYOUT = "1"  # part of the key: raise it when the files of a packed piece change
_LEVEL = 3
_STREAM_BYTES, _BUFFER_BYTES = 32 << 10, 1 << 20
_ARCHIVE, _RECORD = "piece.tar.zst", "piece.json"


@dataclass(frozen=True)
class Piece:
    """Files to pack. ``name`` is ``KIND/KEY``. ``files`` are paths in ``directory``; None means all files in it.

    ``programs`` are those that the machine's own C library starts.
    """

    name: str
    directory: Path
    files: tuple[str, ...] | None = None
    programs: tuple[str, ...] = ()


@dataclass(frozen=True)
class PackedPiece:
    """A packed piece. ``name`` is the piece's, ``size`` is that of the packed file in bytes."""

    name: str
    sha256: str
    size: int


def pack_piece(piece: Piece, cache: Cache, level: int = _LEVEL) -> tuple[PackedPiece, Path]:
    """Return the packed piece and its file in the cache, packed on first use; ``level`` is zstd's.

    Raises HowdahError if that fails.
    """

    def build(directory: Path, _log: Path) -> None:
        file = directory / _ARCHIVE
        _write(piece, file, level)
        packed_piece = PackedPiece(piece.name, file_sha256(file), file.stat().st_size)
        (directory / _RECORD).write_text(json.dumps(asdict(packed_piece)))

    entry = cache.build("packed_piece", content_key(_LAYOUT, str(level), piece.name, *(piece.files or ("*",))), build)
    return PackedPiece(**json.loads((entry / _RECORD).read_text())), entry / _ARCHIVE


def _write(piece: Piece, file: Path, level: int) -> None:
    compressor = zstandard.ZstdCompressor(level=level, write_checksum=True)
    with file.open("wb") as opened, compressor.stream_writer(opened, closefd=False) as packed:
        with tarfile.open(fileobj=cast("BinaryIO", packed), mode="w|", format=tarfile.PAX_FORMAT) as archive:
            for name in sorted(piece.files or _all(piece.directory)):
                _add(archive, name, piece.directory / name)
        packed.flush(zstandard.FLUSH_FRAME)


def _all(directory: Path) -> Iterator[str]:
    for place in directory.rglob("*"):
        mode = place.lstat().st_mode
        if stat.S_ISDIR(mode) or stat.S_ISREG(mode) or stat.S_ISLNK(mode):  # devices are left to the guest
            yield place.relative_to(directory).as_posix()


def _add(archive: tarfile.TarFile, name: str, place: Path) -> None:
    """Add a file without owner, location and time, so that equal files give equal bytes."""
    status = place.lstat()
    member = tarfile.TarInfo(name)
    member.mode, member.mtime = stat.S_IMODE(status.st_mode) & 0o777, 0
    if stat.S_ISDIR(status.st_mode):
        member.type = tarfile.DIRTYPE
        archive.addfile(member)
    elif stat.S_ISLNK(status.st_mode):
        member.type, member.linkname = tarfile.SYMTYPE, str(place.readlink())
        archive.addfile(member)
    else:
        member.size = status.st_size
        with place.open("rb") as opened:
            archive.addfile(member, opened)


def unpack_piece(file: BufferedIOBase, packed_piece: PackedPiece, into: Path) -> None:
    """Unpack the open file into a new directory. Raises HowdahError if its hash is wrong."""
    file.seek(0)
    found = hashlib.file_digest(file, "sha256").hexdigest()
    if found != packed_piece.sha256:
        raise HowdahError(
            f"what was received as {packed_piece.name} has the hash {found[:12]}, not {packed_piece.sha256[:12]}"
        )
    file.seek(0)
    unpacking = _Unpacking(packed_piece.name, into)
    with (
        zstandard.ZstdDecompressor().stream_reader(cast("BinaryIO", file), closefd=False) as plain,
        tarfile.open(fileobj=cast("BinaryIO", plain), mode="r|", bufsize=_STREAM_BYTES) as archive,
    ):
        for member in archive:
            unpacking.take(archive, member)
    unpacking.close()


class _Unpacking:
    """Unpacks members, thousands of small files: paths are strings, and each directory is made once."""

    def __init__(self, piece: str, into: Path) -> None:
        self._piece = piece
        into.mkdir(parents=True, exist_ok=True)
        self._base = f"{into}/"
        self._made: set[str] = set()
        self._links: set[str] = set()
        self._directories: list[tuple[str, int]] = []

    def take(self, archive: tarfile.TarFile, member: tarfile.TarInfo) -> None:
        parts = member.name.split("/")
        above = list(accumulate(parts[:-1], "{}/{}".format))
        if not {"", ".", ".."}.isdisjoint(parts) or not self._links.isdisjoint((*above, member.name)):
            raise HowdahError(f"{self._piece} would write where it must not: {member.name!r}")
        for name in above:
            self._make(name)
        target = self._base + member.name
        if member.isdir():
            self._make(member.name)
            self._directories.append((target, member.mode))
        elif member.issym():
            self._links.add(member.name)
            Path(target).symlink_to(member.linkname)
        elif member.isreg():
            source = archive.extractfile(member)
            assert source is not None
            with Path(target).open("xb") as written:
                while part := source.read(_BUFFER_BYTES):
                    written.write(part)
                os.fchmod(written.fileno(), member.mode & 0o777)
        else:
            raise HowdahError(f"{self._piece} contains something that is not a file: {member.name!r}")

    def _make(self, name: str) -> None:
        if name not in self._made:
            Path(self._base + name).mkdir(parents=True, exist_ok=True)
            self._made.add(name)

    def close(self) -> None:
        for place, mode in reversed(self._directories):
            Path(place).chmod((mode & 0o777) | 0o700)  # its owner must be able to remove it
