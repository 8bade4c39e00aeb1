# SPDX-License-Identifier: Apache-2.0
"""Hashes of closures that an earlier command found, in ``closure/`` of the cache.

To find a closure, some two hundred files are parsed, which takes longer than planning a run. To read every file that
can belong to one takes a tenth of that. A hash is kept under the content of them all, so it is never out of date.
Without a cache that can be written, each command finds the closures itself.
"""

from __future__ import annotations

import hashlib
import os
import re
from collections.abc import Iterable
from contextlib import suppress
from functools import cache
from pathlib import Path

from howdah.place import cache_place, root_of
from howdah.record.closure import PACKAGES, closure_sha256
from howdah.record.directory import write_whole

_HASH = re.compile(r"[0-9a-f]{64}")


def memory_place() -> Path:
    """Where the hashes are kept, whether or not it is there."""
    return cache_place() / "closure"


def remembered_sha256(entries: Iterable[str], *, deferred: bool = True, data: Iterable[Path] = ()) -> str:
    """As ``closure_sha256`` of the program's own files: from an earlier command, or found now and kept."""
    entries, data = tuple(entries), tuple(data)
    key = hashlib.sha256(f"{_modules_sha256()} {deferred} {' '.join(entries)}".encode())
    for each in data:
        key.update(f"\0{each}\0".encode() + each.read_bytes())
    place = memory_place() / key.hexdigest()[:20]
    try:
        known = place.read_text(encoding="ascii")
    except (OSError, ValueError):
        known = ""
    if _HASH.fullmatch(known):
        return known
    found = closure_sha256(entries, deferred=deferred, data=data)
    with suppress(OSError):
        place.parent.mkdir(parents=True, exist_ok=True)
        write_whole(place, found)
    return found


@cache
def _modules_sha256() -> str:
    """Hash of the names and contents of all modules of howdah's."""
    digest = hashlib.sha256()
    for package in PACKAGES:
        top = f"{root_of(package)}/"  # a Path for each file would take longer than to read it
        for directory, below, files in os.walk(top + package):
            below.sort()
            for name in sorted(files):
                if name.endswith(".py"):
                    file = f"{directory}/{name}"
                    with open(file, "rb", buffering=0) as opened:  # noqa: PTH123
                        content = opened.read()
                    digest.update(f"{file.removeprefix(top)}\0{len(content)}\0".encode() + content)
    return digest.hexdigest()
