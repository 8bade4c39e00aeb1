# SPDX-License-Identifier: Apache-2.0
"""The seal of a cache entry: written when the entry is complete, and checked when it is looked up.

A command checks once; its workers inherit the result.

A seal is a file beside the entry. It lists each file with size and SHA-256, each link with its target. Comparing
contents every time would cost as much as a short run, so the seal also remembers the files' sizes, times and inodes at
the last comparison. While these are unchanged, contents are not read again.

The owner of the entry can also write the seal: a seal detects damage, and files that others put there.
"""

from __future__ import annotations

import hashlib
import json
import os
import secrets
import stat
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path

from howdah.errors import HowdahError

_FORMAT = 1


@dataclass(slots=True)
class _Found:
    """A file, link or special file of an entry, by its relative path. Directories count only by their content."""

    name: str
    path: str
    status: os.stat_result

    @property
    def state(self) -> str:
        """A text that changes when the file is written or replaced, but not when a link to it is made."""
        return f"{self.name}\0{self.status.st_size}\0{self.status.st_mtime_ns}\0{self.status.st_ino}\n"

    def content(self) -> str:
        if stat.S_ISLNK(self.status.st_mode):
            return f"link {Path(self.path).readlink()}"
        if not stat.S_ISREG(self.status.st_mode):
            return f"special {stat.S_IFMT(self.status.st_mode):o} {self.status.st_rdev}"
        with Path(self.path).open("rb") as file:
            return f"{self.status.st_size} {hashlib.file_digest(file, 'sha256').hexdigest()}"


def seal_of(entry: Path) -> Path:
    return entry.with_name(f".seal-{entry.name}")


def write_seal(entry: Path, directory: Path, scope: tuple[str, ...] = ()) -> None:
    """Seal ``entry``, whose files are still in ``directory``. ``scope`` names what is sealed; all, if empty.

    Raises OSError.
    """
    found = list(_files(directory, scope))
    contents = {each.name: each.content() for each in found}
    _write(entry, {"format": _FORMAT, "scope": scope, "state": _state(found)}, json.dumps(contents))


def problem_of(entry: Path) -> str | None:
    """Return how the entry differs from its seal; None if it does not.

    Raises OSError, and HowdahError for an entry of another user, which is neither used nor replaced.
    """
    try:
        head, said, _ = seal_of(entry).read_bytes().split(b"\n")
        seal = json.loads(head)
        scope, state = tuple(seal["scope"]), seal["state"]
    except FileNotFoundError:
        return "an older howdah made it, which kept no record of its files"
    except (ValueError, KeyError, TypeError):
        return "its seal cannot be read"
    found = list(_files(entry, scope))
    _check_owner(entry, found)
    if _state(found) == state:
        return None
    text = said.decode(errors="surrogateescape")
    contents: dict[str, str] = json.loads(text)
    for each in found:
        if each.name not in contents:
            return f"{each.name} was not there when it was made"
        if contents.pop(each.name) != each.content():
            return f"{each.name} is not what was made"
    if contents:
        return f"{next(iter(contents))} is missing"
    _write(entry, {**seal, "state": _state(found)}, text)
    return None


def _check_owner(entry: Path, found: list[_Found]) -> None:
    """Raise HowdahError for files of another user, except root's: root could change anything anyway."""
    mine = (os.geteuid(), 0)
    for path in (entry, seal_of(entry)):
        status = path.stat()
        if status.st_uid not in mine or status.st_mode & stat.S_IWOTH:
            raise _foreign_error(path, status)
    for each in found:
        if each.status.st_uid not in mine:
            raise _foreign_error(Path(each.path), each.status)


def _foreign_error(path: Path, status: os.stat_result) -> HowdahError:
    why = (
        f"belongs to user {status.st_uid}" if status.st_uid not in (os.geteuid(), 0) else "can be written by everybody"
    )
    return HowdahError(
        f"this file of the cache {why}, and would run as you",
        where=str(path),
        hint="Set HOWDAH_CACHE to a directory of your own; what is there is built again.",
    )


def _files(directory: Path, scope: tuple[str, ...]) -> Iterator[_Found]:
    """Yield the entry's files in an order that depends only on their names."""
    base = f"{directory}/"
    waiting = sorted(scope) or _names(directory)
    while waiting:
        name = waiting.pop()
        path = base + name
        try:
            status = os.lstat(path)
        except FileNotFoundError:
            continue  # a missing file is noticed by its name in the seal
        if stat.S_ISDIR(status.st_mode):
            waiting += [f"{name}/{each}" for each in _names(path)]
        else:
            yield _Found(name, path, status)


def _names(directory: Path | str) -> list[str]:
    with os.scandir(directory) as entries:
        return sorted(entry.name for entry in entries)


def _state(found: list[_Found]) -> str:
    return hashlib.sha256(os.fsencode("".join([each.state for each in found]))).hexdigest()


def _write(entry: Path, head: dict[str, object], contents: str) -> None:
    place = seal_of(entry)
    partial = place.with_name(f"{place.name}-{secrets.token_hex(4)}")  # several threads may renew it at once
    partial.write_text(f"{json.dumps(head)}\n{contents}\n", encoding="utf-8", errors="surrogateescape")
    partial.replace(place)
