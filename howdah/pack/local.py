# SPDX-License-Identifier: Apache-2.0
"""Paths of the machine on which runs were made, in what is to be given away: each gets a name that tells nothing."""

from __future__ import annotations

import os
import re
import tempfile
from collections.abc import Iterable, Iterator
from pathlib import Path
from typing import Any

from howdah.build.cache import cache_root
from howdah.place import PROJECT

# What every Linux has by these names, and what guests see.
_COMMON = (
    "/bin",
    "/boot",
    "/dev",
    "/etc",
    "/howdah",
    "/lib",
    "/lib64",
    "/proc",
    "/run",
    "/sbin",
    "/sys",
    "/usr",
    "/var",
)
_HOMES = ("/home/", "/root/", "/Users/")  # also of whoever gave the run to this machine
_END = rb"(?![\w.-])"
_BEGIN = rb"(?<![\w./-])"


class Paths:
    """Replaces paths of this machine in bytes: the runs' directory, the cache, howdah itself, the home, and others."""

    def __init__(self, runs: Path, others: Iterable[str] = ()) -> None:
        named = {str(Path(other)): f"ELSEWHERE/{Path(other).name}" for other in others}
        home = os.path.expanduser("~")  # noqa: PTH111 - stays as it is for a user without one
        named |= {home: "HOME", tempfile.gettempdir(): "TMP", str(Path.cwd()): "HERE"}
        named |= {str(PROJECT): "HOWDAH", str(cache_root()): "CACHE", str(runs): "RUNS", str(runs.resolve()): "RUNS"}
        # $HOME may be "1": a relative path is a word like any other.
        named = {path: name for path, name in named.items() if path.startswith("/") and path != "/"}
        self._names = {os.fsencode(path): name.encode() for path, name in named.items()}
        longest_first = sorted(self._names, key=len, reverse=True)
        self._pattern = re.compile(_BEGIN + rb"(?:" + rb"|".join(map(re.escape, longest_first)) + rb")" + _END)

    def replaced(self, content: bytes) -> bytes:
        return self._pattern.sub(lambda match: self._names[match[0]], content)


def paths_in(value: Any) -> Iterator[str]:
    """Absolute paths in a JSON value that this machine has, other than those that all machines have; and those below
    anybody's home, which a run that came from elsewhere may name."""
    if isinstance(value, dict):
        for item in value.values():
            yield from paths_in(item)
    elif isinstance(value, list):
        for item in value:
            yield from paths_in(item)
    elif isinstance(value, str) and value.startswith("/"):
        path = value.partition(":")[0]  # file:line
        if len(path) > 1 and not path.startswith(_COMMON) and (path.startswith(_HOMES) or os.path.lexists(path)):
            yield path
