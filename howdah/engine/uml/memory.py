# SPDX-License-Identifier: Apache-2.0
"""The directory for a guest's memory: a file, unlinked at once, which the user-mode kernel maps and executes.

If every directory is mounted noexec, the memory is an anonymous file (memfd_create(2), shim.c).
"""

from __future__ import annotations

import mmap
import os
import re
import shutil
import tempfile
from dataclasses import dataclass
from pathlib import Path

from howdah.errors import EngineUnavailableError

MEMFD = Path("memfd")


@dataclass(frozen=True)
class MemoryDirectory:
    """A candidate. ``problem`` is None if a guest of the requested size fits there."""

    path: Path
    free_bytes: int
    problem: str | None


def is_chosen_by_user() -> bool:
    """Return whether the user has chosen the directory. If not, the launcher may mount huge pages of its own."""
    return bool(os.environ.get("HOWDAH_MEMORY_DIR"))


def candidates() -> list[Path]:
    """Return only ``$HOWDAH_MEMORY_DIR`` if set; otherwise /dev/shm, ``$TMPDIR`` and /tmp, in that order, and MEMFD."""
    named = os.environ.get("HOWDAH_MEMORY_DIR")
    if named:
        return [Path(named)]
    places = [Path("/dev/shm"), Path(os.environ.get("TMPDIR") or "/tmp"), Path("/tmp")]
    return [*dict.fromkeys(places), MEMFD]


def directories() -> list[Path]:
    """Return the candidates that are directories."""
    return [path for path in candidates() if path != MEMFD]


def examine(path: Path, needs_bytes: int) -> MemoryDirectory:
    """Try a candidate: a file there must be writable, mappable with PROT_EXEC, and have room."""
    try:
        if path == MEMFD:
            free = _available_bytes()
            with os.fdopen(os.memfd_create("howdah", os.MFD_CLOEXEC), "wb") as file:
                _execute(file.fileno())
        else:
            free = shutil.disk_usage(path).free
            with tempfile.TemporaryFile(dir=path) as file:
                _execute(file.fileno())
    except PermissionError as error:
        executable = "it is mounted noexec" if error.filename is None else "it is not writable"
        return MemoryDirectory(path, 0, executable)
    except OSError as error:
        return MemoryDirectory(path, 0, error.strerror or str(error))
    if free < needs_bytes:
        return MemoryDirectory(path, free, f"{free >> 20} MiB free, {needs_bytes >> 20} MiB needed")
    return MemoryDirectory(path, free, None)


def _execute(descriptor: int) -> None:
    """Map a page of a file as executable. Raises OSError if that is forbidden."""
    os.ftruncate(descriptor, mmap.PAGESIZE)
    protection = mmap.PROT_READ | mmap.PROT_WRITE | mmap.PROT_EXEC
    mmap.mmap(descriptor, mmap.PAGESIZE, flags=mmap.MAP_PRIVATE, prot=protection).close()


def _available_bytes() -> int:
    """Return the memory available without swapping (proc(5), MemAvailable)."""
    match = re.search(r"^MemAvailable:\s+(\d+) kB$", Path("/proc/meminfo").read_text(encoding="ascii"), re.MULTILINE)
    return int(match[1]) * 1024 if match else 0


def choose(needs_bytes: int) -> Path:
    """Return the first suitable directory. Raises EngineUnavailableError with the problem of each one tried."""
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
