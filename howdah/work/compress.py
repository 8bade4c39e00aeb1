# SPDX-License-Identifier: Apache-2.0
"""Compress the raw records of runs made by releases that did not.

A new run compresses its own (``howdah/work/stage.py``). Here a copy of the run, of hard links and compressed files, is
made beside it. The kernel exchanges the two in one step, so a killed command leaves the old run or the new one.
"""

from __future__ import annotations

import ctypes
import errno
import hashlib
import os
import shutil
from dataclasses import dataclass
from pathlib import Path

from howdah.build.cache import link_file
from howdah.errors import HowdahError, RecordError, explain
from howdah.record.digest import MANIFEST, digests, file_sha256, mismatches
from howdah.record.directory import PARTIAL, RunDirectory
from howdah.record.raw import LEAST_BYTES, SUFFIXES, compress_raw, open_raw, raw_files
from howdah.record.run import read_record, write_record

_AT_FDCWD = -100  # <fcntl.h>
_RENAME_EXCHANGE = 2  # <linux/fs.h>
_CANNOT = (errno.EINVAL, errno.ENOSYS, errno.ENOTSUP)
_CHUNK_BYTES = 1 << 20


@dataclass(frozen=True)
class Compressed:
    """The size of raw/ in bytes before and after."""

    before: int
    after: int


def why_not_compressible(directory: RunDirectory) -> str | None:
    """Return why a run with large files must not be compressed, or None if it may be."""
    try:
        record = read_record(directory)
    except RecordError as error:
        return error.what
    if record.status != "finished":
        return f"it is {record.status}"
    if (directory.path / MANIFEST).exists():
        return "its signature is of the files as they are"
    wrong = mismatches(directory, record)
    return str(wrong[0]) if wrong else None


def is_large(directory: RunDirectory) -> bool:
    """Return whether raw/ has files that a new run would compress."""
    if not directory.raw.is_dir():
        return False
    return any(file.suffix not in SUFFIXES and file.stat().st_size >= LEAST_BYTES for file in raw_files(directory.raw))


def compress_run(directory: RunDirectory) -> Compressed | None:
    """Compress the large files in raw/ of a finished run for which ``why_not_compressible`` returns None.

    Return None if nothing becomes smaller. The caller holds the experiment's lock. A run without digests gets none,
    because nothing records what its files were. Raise HowdahError on failure; the run is then unchanged.
    """
    copy = RunDirectory(directory.path.with_name(f"{PARTIAL}{directory.path.name}-{os.getpid()}"))
    shutil.rmtree(copy.path, ignore_errors=True)
    try:
        before = _size(directory.raw)
        _link(directory.path, copy.path)
        if not compress_raw(copy.raw):
            return None
        _compare(directory, copy)
        record = read_record(directory)
        if record.digests is not None and not record.data_removed:
            write_record(copy, record.replaced(digests=digests(copy)))
        after = _size(copy.raw)
        _exchange(copy.path, directory.path)
    except OSError as error:
        raise HowdahError(
            f"its raw records cannot be compressed: {explain(error)}", where=str(directory.path)
        ) from error
    finally:
        shutil.rmtree(copy.path, ignore_errors=True)
    return Compressed(before, after)


def _size(folder: Path) -> int:
    return sum(file.stat().st_size for file in raw_files(folder))


def _link(source: Path, target: Path) -> None:
    """Copy a tree as hard links, or as files if the file system has no links."""
    shutil.copytree(source, target, symlinks=True, copy_function=link_file)


def _compare(directory: RunDirectory, copy: RunDirectory) -> None:
    """Raise OSError unless every compressed file decompresses to the original."""
    for file in raw_files(directory.raw):
        if (copy.path / file.relative_to(directory.path)).exists():
            continue
        digest = hashlib.sha256()
        with open_raw(copy.path / file.relative_to(directory.path)) as opened:
            while part := opened.read(_CHUNK_BYTES):
                digest.update(part)
        if digest.hexdigest() != file_sha256(file):
            raise OSError(errno.EIO, "what was compressed does not read as before", str(file))


def _exchange(one: Path, other: Path) -> None:
    """Exchange the names of two directories in one step (renameat2(2)). Raise OSError on failure."""
    libc = ctypes.CDLL(None, use_errno=True)
    if libc.renameat2(_AT_FDCWD, os.fsencode(one), _AT_FDCWD, os.fsencode(other), _RENAME_EXCHANGE) == 0:
        return
    number = ctypes.get_errno()
    why = "this file system cannot exchange two directories" if number in _CANNOT else os.strerror(number)
    raise OSError(number, why, str(other))
