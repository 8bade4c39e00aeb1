# SPDX-License-Identifier: Apache-2.0
"""Build directories of kernel trees: a copy of each tree's source, and the objects of its last build.

The copy follows the tree by content. A changed file is written again, so its modification time is now, whatever that of
the original; an unchanged file keeps its time. Kbuild compares times, so it compiles what changed.

Kbuild's records are reliable only if it ended by itself. The state file lists every file of the build directory as the
last such end left it. Files that differ from the list were touched by a killed build and are removed; if that could
hide a change of the configuration, all objects are removed.
"""

from __future__ import annotations

import os
import re
import shutil
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path

from howdah.build.cache import Cache, content_key, locked
from howdah.build.kernel_source import LINK, PROGRAM, TreeContent, content_of, read_tree
from howdah.record.directory import read_json, write_json

KIND = "build-tree"
_FORMAT = 1
_ABOUT = "about.json"
_LONGEST_WAIT_S = 3.0  # longer than a tick of the coarsest file system clock
_CONFIGURATION = (".config", "include/config/", "include/generated/autoconf.h", "include/generated/rustc_cfg")
_DEPENDENCY = re.compile(rb"^  (?:\S*/)?([^\s/]+)", re.MULTILINE)
_WITH_SYSTEM_HEADERS = ("arch/", "scripts/", "tools/")
_ASKS = b"__has_include"

# Size, modification time in ns, inode. The status change time is left out: it differs if a cache is copied with links,
# and whoever writes a file changes one of these anyway.
Status = list[int]


class TreeChangedError(Exception):
    """The tree was edited after its content was read."""


class BuildTree:
    """The build directory of a tree. Hold it for ``make -C source O=build``.

    ``configured`` is a key of the inputs of the configuration in ``build``; None without a configuration.
    """

    def __init__(self, tree: Path, cache: Cache) -> None:
        self.tree = tree
        self.directory = cache.path(KIND, content_key(str(tree)))
        self.source = self.directory / "source"
        self.build = self.directory / "build"
        self.configured: str | None = None
        self._about = self.directory / _ABOUT
        self._state = self.directory / "state.json"
        self._probe = self.directory / "probe"
        self._fresh = self.directory / "fresh"

    @contextmanager
    def held(self, waiting: Callable[[], None]) -> Iterator[int]:
        """Hold the tree, which one process at a time may use. Yields a descriptor: children that inherit it hold the
        tree.

        Otherwise a build that survives its command could still be writing when the next command begins.
        """
        self.source.mkdir(parents=True, exist_ok=True)
        with locked(self.directory / ".lock", waiting) as lock:
            write_json(self._about, {"format": _FORMAT, "tree": str(self.tree)})
            yield lock.fileno()

    def follow(self, content: TreeContent, fingerprint: str) -> None:
        """Make ``source`` equal to the tree, and leave in ``build`` only what Kbuild can safely continue from.

        ``fingerprint`` names compilers and flags: if it changes, everything is compiled again. Raises TreeChangedError.
        """
        self._recover(fingerprint)
        newest_ns = max((status[1] for _name, status in _statuses(self.build)), default=0)
        # Read the copy as well, to notice an interrupted copy or a manual change in the cache.
        have = read_tree(self.source).files
        change = _Change(have, content.files)
        # Remove objects before copying: after a kill in between, the next command would no longer see the change.
        if not self._clock_is_ahead_of(newest_ns) or self._misleads_kbuild(change, have):
            self._discard()
        self._copy(content, change)
        if any((self.source / name).lstat().st_mtime_ns <= newest_ns for name in change.written):
            self._discard()  # the clock has just been set back
        self.build.mkdir(exist_ok=True)

    def record_state(self, fingerprint: str) -> None:
        """Record the state after make has ended by itself, successfully or not, for the next build to continue."""
        state = {"format": _FORMAT, "fingerprint": fingerprint, "configured": self.configured}
        write_json(self._state, {**state, "files": dict(_statuses(self.build))})

    def remove(self) -> None:
        """Remove the copy and the objects; the lock's file stays, because other processes may be waiting for it."""
        for path in (self.build, self.source):
            shutil.rmtree(path, ignore_errors=True)
        for path in (self._state, self._about, self._probe, self._fresh):
            path.unlink(missing_ok=True)

    def _discard(self) -> None:
        self.configured = None
        self._state.unlink(missing_ok=True)
        if self.build.exists():
            shutil.rmtree(self.build)

    def _recover(self, fingerprint: str) -> None:
        """Remove the files that the last build left unfinished, or everything it left."""
        try:
            state = read_json(self._state)
            sound = state["format"] == _FORMAT and state["fingerprint"] == fingerprint
            known: dict[str, Status] = state["files"]
            self.configured = state["configured"]
        except (OSError, ValueError, TypeError, KeyError):
            sound, known = False, {}
        if not sound:
            self._discard()
            return
        now = dict(_statuses(self.build))
        touched = [name for name, status in now.items() if known.get(name) != status]
        gone = known.keys() - now.keys()
        if any(name.startswith(_CONFIGURATION) for name in (*touched, *gone)):
            self._discard()
            return
        for name in touched:
            (self.build / name).unlink()

    def _copy(self, content: TreeContent, change: _Change) -> None:
        for name in change.removed:
            (self.source / name).unlink()
        _remove_empty_directories(self.source)
        for name in change.written:
            copy_file(content, name, self.source, self._fresh)

    def _clock_is_ahead_of(self, newest_ns: int) -> bool:
        """Return whether a file written now would be newer; wait a little for file systems that store whole seconds."""
        for _attempt in range(round(_LONGEST_WAIT_S * 100)):
            self._probe.unlink(missing_ok=True)
            self._probe.touch()
            if self._probe.stat().st_mtime_ns > newest_ns:
                return True
            time.sleep(0.01)
        return False

    def _misleads_kbuild(self, change: _Change, have: dict[str, str]) -> bool:
        """Return whether objects may be outdated without Kbuild noticing. The cases are:

        An include directive that finds a new file instead of the previous one: both have the same name. System headers,
        which host programs and a part of the architecture include and Kbuild does not record. A link with another
        target, because it shows the time of its target. Code that tests whether a header exists without including it.
        """
        if not self.build.exists():
            return False
        if change.relinked:
            return True
        if any(name.startswith(_WITH_SYSTEM_HEADERS) and name.endswith(".h") for name in change.added):
            return True
        added = {_base(name) for name in change.added}
        if added and any(added & included_names(record.read_bytes()) for record in self.build.rglob(".*.cmd")):
            return True
        come_or_gone = added | {_base(name) for name in change.removed}
        for name in have if come_or_gone else ():
            if name.endswith((".c", ".h", ".S")):
                text = (self.source / name).read_bytes()
                if _ASKS in text and any(one in text for one in come_or_gone):
                    return True
        return False


class _Change:
    """The difference between two states of a tree: names that are ``written`` (some of them ``added``), ``removed``,
    and ``relinked``: links that appear, disappear or get another target."""

    def __init__(self, have: dict[str, str], wanted: dict[str, str]) -> None:
        self.removed = have.keys() - wanted.keys()
        self.written = {name for name, what in wanted.items() if have.get(name) != what}
        self.added = self.written - have.keys()
        different = self.written | self.removed
        self.relinked = {
            name for name in different if any(files.get(name, "").startswith(LINK) for files in (have, wanted))
        }


def _base(name: str) -> bytes:
    return os.fsencode(name.rpartition("/")[2])


def copy_file(content: TreeContent, name: str, into: Path, fresh: Path) -> None:
    """Copy a file of a tree through ``fresh`` and a rename. Raises TreeChangedError if its content has changed."""
    kind, _, value = content.files[name].partition(":")
    fresh.unlink(missing_ok=True)
    if kind == LINK:
        fresh.symlink_to(value)
    else:
        origin = f"{content.root}/{name}"
        try:
            found, data = content_of(origin, os.stat(origin).st_mode)  # noqa: PTH116
        except OSError as error:
            raise TreeChangedError(name) from error
        if found != content.files[name]:
            raise TreeChangedError(name)
        fresh.write_bytes(data)
        fresh.chmod(0o755 if kind == PROGRAM else 0o644)
    place = into / name
    place.parent.mkdir(parents=True, exist_ok=True)
    fresh.replace(place)


def copy_tree(content: TreeContent, into: Path) -> None:
    """Copy a whole tree into an empty directory. Raises TreeChangedError."""
    for name in content.files:
        copy_file(content, name, into, into.with_name(f"{into.name}.fresh"))


def included_names(record: bytes) -> set[bytes]:
    """Return the base names of all files that an object was made of, according to its .cmd file from Kbuild."""
    return set(_DEPENDENCY.findall(record))


def _statuses(directory: Path) -> Iterator[tuple[str, Status]]:
    """Yield the relative name and status of every file below a directory, links included."""
    for here, _directories, names in os.walk(directory):
        for name in names:
            path = os.path.join(here, name)  # noqa: PTH118
            status = os.lstat(path)
            yield os.path.relpath(path, directory), [status.st_size, status.st_mtime_ns, status.st_ino]


def _remove_empty_directories(root: Path) -> None:
    """Remove empty directories: a new copy would not have them either."""
    for here, directories, names in os.walk(root, topdown=False):
        if not names and here != str(root) and all(not os.path.lexists(f"{here}/{one}") for one in directories):
            os.rmdir(here)  # noqa: PTH106


def orphaned_trees(cache: Cache) -> Iterator[BuildTree]:
    """Yield the build trees whose original tree no longer exists."""
    for directory in cache.entries(KIND):
        try:
            tree = Path(read_json(directory / _ABOUT)["tree"])
        except (OSError, ValueError, TypeError, KeyError):
            continue
        if not tree.exists():
            yield BuildTree(tree, cache)
