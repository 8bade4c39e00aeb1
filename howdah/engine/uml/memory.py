# SPDX-License-Identifier: Apache-2.0
"""The directory that holds a guest's memory: a file, unlinked at once, that the user-mode kernel maps and executes."""

from __future__ import annotations

import mmap
import os
import shutil
import tempfile
from dataclasses import dataclass
from pathlib import Path

from howdah.errors import EngineUnavailableError


@dataclass(frozen=True)
class MemoryDirectory:
    """A candidate. ``problem`` is None when a guest of the asked size can live there."""

    path: Path
    free_bytes: int
    problem: str | None


def is_named() -> bool:
    """Whether a person says where memory is to be. Elsewhere the launcher may mount huge pages of its own."""
    return bool(os.environ.get("HOWDAH_MEMORY_DIR"))


def candidates() -> list[Path]:
    """``$HOWDAH_MEMORY_DIR`` alone if set; otherwise /dev/shm, ``$TMPDIR`` and /tmp, in that order."""
    named = os.environ.get("HOWDAH_MEMORY_DIR")
    if named:
        return [Path(named)]
    places = [Path("/dev/shm"), Path(os.environ.get("TMPDIR") or "/tmp"), Path("/tmp")]
    return list(dict.fromkeys(places))


def examine(path: Path, needs_bytes: int) -> MemoryDirectory:
    """Try it: a file there must be writable, mappable with PROT_EXEC, and have room."""
    try:
        free = shutil.disk_usage(path).free
        with tempfile.TemporaryFile(dir=path) as file:
            file.truncate(mmap.PAGESIZE)
            protection = mmap.PROT_READ | mmap.PROT_WRITE | mmap.PROT_EXEC
            mmap.mmap(file.fileno(), mmap.PAGESIZE, flags=mmap.MAP_PRIVATE, prot=protection).close()
    except PermissionError as error:
        executable = "it is mounted noexec" if error.filename is None else "it is not writable"
        return MemoryDirectory(path, 0, executable)
    except OSError as error:
        return MemoryDirectory(path, 0, error.strerror or str(error))
    if free < needs_bytes:
        return MemoryDirectory(path, free, f"{free >> 20} MiB free, {needs_bytes >> 20} MiB needed")
    return MemoryDirectory(path, free, None)


def choose(needs_bytes: int) -> Path:
    """The first directory that will do. Raises EngineUnavailableError naming each one tried and its problem."""
    tried = []
    for path in candidates():
        found = examine(path, needs_bytes)
        if found.problem is None:
            return path
        tried.append(f"{path}: {found.problem}")
    raise EngineUnavailableError(
        f"no directory can hold a guest's memory of {needs_bytes >> 20} MiB ({'; '.join(tried)})",
        hint="Free some memory, run fewer guests at once (--jobs), enlarge /dev/shm (mount -o remount,size=…), or name "
        "a directory that is not mounted noexec in HOWDAH_MEMORY_DIR.",
    )
