# SPDX-License-Identifier: Apache-2.0
"""The file format: a tar archive in one zstd frame. Equal runs give equal bytes; extracted content is checked first."""

from __future__ import annotations

import hashlib
import io
import json
import os
import shutil
import tarfile
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path, PurePosixPath
from typing import BinaryIO, Self, cast

import zstandard

from howdah.errors import HowdahError
from howdah.pack.content import PackedFile
from howdah.pack.shape import IndexCheck, IndexedFile, PackIndex, check_index
from howdah.record.directory import PARTIAL, beside, in_its_place, of_place, parse_json
from howdah.record.model import checked

SUFFIX = ".howdah.tar.zst"
INDEX = "pack.json"
FORMAT = 1
_LEVEL = 3
# The largest window that zstd decompresses by default. Each run has the same agent, some megabytes apart.
_WINDOW_LOG = 27
_CHUNK_BYTES = 1 << 20
_LARGEST_HEADER_BYTES = 1 << 16
_LARGEST_INDEX = 256 * 1024 * 1024  # for 10 000 runs it has 60 MB


class PackError(HowdahError):
    """The file is not a pack, is damaged, or would write outside its directory."""


def write_archive(
    target: Path,
    name: str,
    about: PackIndex,
    entries: list[PackedFile],
    check: IndexCheck = check_index,
    tell: Callable[[str, int, int], None] | None = None,
) -> PackIndex:
    """Write the archive, with everything in the directory ``name`` and the index first. Return the index, which
    ``check`` must accept.

    ``about`` is the index without its files.
    """
    entries = sorted(entries, key=lambda entry: entry.name)
    files = {entry.name: IndexedFile(bytes=entry.size, sha256=entry.sha256()) for entry in entries}
    index = about.model_copy(update={"format": FORMAT, "files": files})
    first = _index_file(index, check)
    how = zstandard.ZstdCompressionParameters.from_level(
        _LEVEL, window_log=_WINDOW_LOG, enable_ldm=True, write_checksum=True
    )
    compressor = zstandard.ZstdCompressor(compression_params=how)
    with (
        in_its_place(target) as temporary,
        temporary.open("wb") as opened,
        compressor.stream_writer(opened, closefd=False) as packed,
    ):
        with tarfile.open(fileobj=cast("BinaryIO", packed), mode="w|", format=tarfile.PAX_FORMAT) as archive:
            for number, entry in enumerate((first, *entries)):
                _add(archive, f"{name}/{entry.name}", entry)
                if tell is not None:
                    tell("pack files", number, len(entries))
        packed.flush(zstandard.FLUSH_FRAME)
    return index


def _index_file(index: PackIndex, check: IndexCheck) -> PackedFile:
    """pack.json. Raises PackError if ``check`` refuses it, or it is too large."""
    written = index.plain()
    try:
        check(written)
    except ValueError as error:
        raise PackError(f"this cannot be packed: {error}") from error
    file = PackedFile(INDEX, content=(json.dumps(written, indent=1) + "\n").encode())
    if file.size > _LARGEST_INDEX:
        raise PackError(
            f"these are too many files for one pack: {len(index.files)}",
            hint="Pack parts, or use --tables or --results.",
        )
    return file


def _add(archive: tarfile.TarFile, name: str, entry: PackedFile) -> None:
    """Add a file without owner, time or place of packing."""
    member = tarfile.TarInfo(name)
    member.size, member.mode, member.mtime = entry.size, 0o644, 0
    with entry.opened() as opened:
        archive.addfile(member, opened)


def extract(file: Path, target: Path, check: IndexCheck = check_index) -> PackIndex:
    """Extract a pack into the new directory ``target`` and return its index.

    Only plain files of the index are written, with the size and digest it gives, and only below ``target``. That
    directory appears complete and correct, or not at all. Raises PackError.
    """
    if target.exists() and (not target.is_dir() or any(target.iterdir())):
        raise PackError("this exists already", where=str(target), hint="Name a directory that does not exist.")
    partial = beside(target, PARTIAL)
    shutil.rmtree(partial, ignore_errors=True)
    try:
        partial.mkdir(parents=True)
        index = _extract_all(file, partial, check)
        if target.exists():
            target.rmdir()
        partial.rename(target)
    except BaseException as error:
        shutil.rmtree(partial, ignore_errors=True)
        if isinstance(error, OSError):
            raise of_place(error, partial, target) from error
        raise
    return index


def _extract_all(file: Path, place: Path, check: IndexCheck) -> PackIndex:
    index: PackIndex | None = None
    seen: set[str] = set()
    shared: dict[str, Path] = {}  # files that the guests of several runs received, by digest
    with _members(file) as members:
        for member, content in members:
            name = _name(member, file)
            if index is None:
                index = _index(name, member, content, file, place, check)
                continue
            if name in seen or name not in index.files:
                raise PackError(f"it has a file that is not in its index: {name}", where=str(file))
            seen.add(name)
            said = index.files[name]
            _write(place, name, content, said, file)
            if _is_shared(name):
                _link(shared.setdefault(said.sha256, place / name), place / name)
    if index is None:
        raise PackError("it is empty", where=str(file))
    missing = sorted(set(index.files) - seen)
    if missing:
        raise PackError(f"{missing[0]} is missing from it", where=str(file), hint="Was it cut off? Fetch it again.")
    return index


def _is_shared(name: str) -> bool:
    """Whether the file is in ``share/``, whose equal files howdah links between runs (howdah/engine/share.py)."""
    return "share" in PurePosixPath(name).parts[:-1]


def _link(first: Path, again: Path) -> None:
    """Replace ``again`` by a hard link to the equal file ``first``, if the file system has links."""
    if first == again:
        return
    linked = again.with_name(f"{PARTIAL}{again.name}")
    try:
        os.link(first, linked)
    except OSError:
        return
    linked.replace(again)


def size_on_disk(index: PackIndex) -> int:
    """Bytes of the unpacked files; files that runs share count once."""
    files = {each.sha256 if _is_shared(name) else name: each.bytes for name, each in index.files.items()}
    return sum(files.values())


@contextmanager
def _members(file: Path) -> Iterator[Iterator[tuple[tarfile.TarInfo, BinaryIO]]]:
    def each(archive: tarfile.TarFile) -> Iterator[tuple[tarfile.TarInfo, BinaryIO]]:
        for member in archive:
            content = archive.extractfile(member) if member.isreg() else io.BytesIO()
            yield member, cast("BinaryIO", content)

    try:
        with file.open("rb") as opened, zstandard.ZstdDecompressor().stream_reader(opened, closefd=False) as plain:
            with tarfile.open(fileobj=cast("BinaryIO", plain), mode="r|", tarinfo=_Header) as archive:
                yield each(archive)
            while plain.read(_CHUNK_BYTES):  # read to the end, where the checksum is
                pass
    except (tarfile.TarError, zstandard.ZstdError, EOFError) as error:
        raise PackError(f"this is not a howdah pack, or a damaged one: {error}", where=str(file)) from error


class _Header(tarfile.TarInfo):
    """A member's header. A header that describes the next member is read into memory, so its size is limited."""

    @classmethod
    def frombuf(cls, buf: bytes | bytearray, encoding: str, errors: str) -> Self:
        found = super().frombuf(buf, encoding, errors)
        if found.size > _LARGEST_HEADER_BYTES and not (found.isreg() or found.isdir() or found.issym()):
            raise PackError(f"it has a header of {found.size} bytes")
        return found


def _name(member: tarfile.TarInfo, file: Path) -> str:
    """The member's path below the top directory. Raises PackError for anything that could be written elsewhere."""
    path = PurePosixPath(member.name)
    plain = member.isreg() and not member.issparse()
    inside = not path.is_absolute() and len(path.parts) > 1 and not {"..", "."} & set(member.name.split("/"))
    if not plain or not inside or "\\" in member.name or "\0" in member.name:
        raise PackError(f"it would write outside its directory: {member.name!r}", where=str(file))
    return "/".join(path.parts[1:])


def _index(
    name: str, member: tarfile.TarInfo, content: BinaryIO, file: Path, place: Path, check: IndexCheck
) -> PackIndex:
    if name != INDEX or member.size > _LARGEST_INDEX:
        raise PackError(f"this is not a howdah pack: it does not begin with {INDEX}", where=str(file))
    text = content.read()
    try:
        read = parse_json(text, file / INDEX)
        if isinstance(read, dict) and read.get("format") != FORMAT:
            raise PackError(f"format {read.get('format')!r} is not known: howdah is too old for it", where=str(file))
        check(read)
        index = checked(PackIndex, read, file / INDEX)
    except ValueError as error:
        said = error.what if isinstance(error, HowdahError) else str(error)
        raise PackError(f"{INDEX} cannot be read: {said}", where=str(file)) from error
    whole = sum(each.bytes for each in index.files.values())
    if whole > shutil.disk_usage(place).free:
        what = f"its {whole} bytes do not fit on the disk of {place.parent}"
        raise PackError(what, where=str(file), hint="Make room there, or name a directory on another disk.")
    (place / INDEX).write_bytes(text)
    return index


def _write(place: Path, name: str, content: BinaryIO, said: IndexedFile, file: Path) -> None:
    target = place / name
    digest, left = hashlib.sha256(), said.bytes
    try:
        target.parent.mkdir(parents=True, exist_ok=True)
        handle = os.open(target, os.O_WRONLY | os.O_CREAT | os.O_EXCL | os.O_NOFOLLOW, 0o644)
    except OSError as error:
        raise PackError(f"{name} cannot be written: {error.strerror}", where=str(file)) from error
    with os.fdopen(handle, "wb") as opened:
        while part := content.read(_CHUNK_BYTES):
            left -= len(part)
            if left < 0:
                break
            digest.update(part)
            opened.write(part)
    if left or digest.hexdigest() != said.sha256:
        raise PackError(f"{name} is not the file that was packed", where=str(file), hint="Fetch the pack again.")
