# SPDX-License-Identifier: Apache-2.0
"""The cache of build results: kernels, modules, guest trees, tools. An entry's name is a key of its ingredients.

An entry is built in a directory beside its final place, then sealed (seal.py) and renamed. It is used only while it
matches its seal; a damaged one is reported and built again. A lock file makes a second builder of the same entry wait
and then use the first one's result. Build logs, including those of failed builds, are kept in ``log/``.
"""

from __future__ import annotations

import errno
import fcntl
import hashlib
import hmac
import logging
import os
import re
import secrets
import shutil
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager, suppress
from pathlib import Path
from typing import IO

from howdah.build.seal import problem_of, write_seal
from howdah.errors import HowdahError, file_of_error
from howdah.place import cache_directory


@contextmanager
def locked(lock_file: Path, waiting: Callable[[], None]) -> Iterator[IO[str]]:
    """Hold ``lock_file`` during the context; call ``waiting`` once if another process holds it. Yields the open file.

    The kernel releases the lock when a process and all children that inherited the file have ended, however they end.
    Raises OSError if the file cannot be opened.
    """
    # The file stays: removing it while another process waits for it would let a third one lock a new file.
    with lock_file.open("w") as lock:
        try:
            fcntl.flock(lock, fcntl.LOCK_EX | fcntl.LOCK_NB)
        except BlockingIOError:
            waiting()
            fcntl.flock(lock, fcntl.LOCK_EX)
        yield lock


@contextmanager
def hold_alone(directory: Path, taken: HowdahError) -> Iterator[None]:
    """Hold a directory of the cache, created if missing. Raises ``taken`` if another process holds it."""
    try:
        directory.mkdir(parents=True, exist_ok=True)
        lock = (directory / ".lock").open("w")
    except OSError as error:
        raise HowdahError(f"the cache cannot be written: {error.strerror}", where=str(directory)) from error
    with lock:
        try:
            fcntl.flock(lock, fcntl.LOCK_EX | fcntl.LOCK_NB)
        except BlockingIOError:
            raise taken from None
        yield


# The kernel's makefiles split at spaces and colons, gcc's -Wp at commas; make expands $ and %, a shell the rest.
_PLAIN = re.compile(r"[\w/.+@^=~-]+")


def require_plain(path: Path, what: str, hint: str) -> None:
    """Raise HowdahError if the absolute ``path`` has characters that the kernel's build cannot handle, naming them."""
    if _PLAIN.fullmatch(str(path)):
        return
    wrong = " ".join(
        "a space" if character == " " else f"{character!r}"
        for character in dict.fromkeys(character for character in str(path) if not _PLAIN.fullmatch(character))
    )
    raise HowdahError(
        f"{what} has {wrong} in its path, and the kernel's own build does not work in such a directory",
        where=str(path),
        hint=hint,
    )


def qemu_value(path: Path | str) -> str:
    """Quote ``path`` for one of QEMU's options of the form name=value,name=value: commas are doubled."""
    return str(path).replace(",", ",,")


Progress = Callable[[str, int, int], None]  # what is being done, steps done, all steps (0: unknown)
UNFETCHED = "unfetched"  # not a kind of entry: workers of a cluster make runs there, without locks
_PARTIAL = ".partial-"
_BEGUN = ".begun-"  # like a partial entry, but the next builder of the same key continues it
_BEGUN_S = 7 * 24 * 3600
_LOG = logging.getLogger(__name__)


def cache_root() -> Path:
    """Return the location of the cache.

    Raises HowdahError for a path that the kernel's build cannot handle, since kernels and modules are built there.
    """
    root = cache_directory()
    require_plain(root, "the cache", "Set HOWDAH_CACHE to a directory with letters, digits, '-', '_' and '.' only.")
    return root


def content_key(*parts: str | bytes) -> str:
    """Return the name of an entry: 20 hexadecimal digits of the SHA-256 of its ingredients, in order."""
    digest = hashlib.sha256()
    for part in parts:
        data = part.encode() if isinstance(part, str) else part
        digest.update(f"{len(data)}:".encode() + data)
    return digest.hexdigest()[:20]


def file_sha256(path: Path) -> str:
    with path.open("rb") as file:
        return hashlib.file_digest(file, "sha256").hexdigest()


def explain(error: OSError, doing: str, where: Path) -> HowdahError:
    """Turn an error of the file system into one for the user."""
    place = file_of_error(error) or str(where)
    if error.errno in (errno.ENOSPC, errno.EDQUOT):
        free = _free_bytes(where) // 2**20
        return HowdahError(
            f"the disk is full ({free} MiB free) while {doing}",
            where=place,
            hint="Free some space ('howdah clean --cache' removes what can be built again), or set HOWDAH_CACHE to a "
            "directory on another disk.",
        )
    if error.errno in (errno.EACCES, errno.EPERM, errno.EROFS):
        return HowdahError(
            f"no permission to write ({error.strerror}) while {doing}",
            where=place,
            hint="Set HOWDAH_CACHE to a directory you can write to.",
        )
    hint = "Is that a directory where files can be made? HOWDAH_CACHE names another one."
    return HowdahError(f"{error.strerror or error} while {doing}", where=place, hint=hint)


def _free_bytes(path: Path) -> int:
    while not path.exists() and path != path.parent:
        path = path.parent
    return shutil.disk_usage(path).free


class Cache:
    """Entries ``root/kind/key/``. Every method raises HowdahError for an error of the file system."""

    def __init__(self, root: Path | None = None) -> None:
        self.root = root or cache_root()
        self._sound: set[Path] = set()
        self._reported: set[Path] = set()

    def path(self, kind: str, key: str) -> Path:
        """Return where the entry is, or would be."""
        return self.root / kind / key

    def log(self, kind: str, key: str) -> Path:
        """Return the log of the entry's last build."""
        return self.root / "log" / f"{kind}-{key}.log"

    def find(self, kind: str, key: str) -> Path | None:
        """Return the entry if it exists and matches its seal."""
        entry = self.path(kind, key)
        try:
            return entry if entry.is_dir() and self._is_sound(entry) else None
        except OSError as error:
            raise explain(error, f"reading the {kind} {key}", self.root) from error

    def _is_sound(self, entry: Path) -> bool:
        """Return whether the entry matches its seal, checked once per process. Damage, which causes a rebuild, is
        logged."""
        if entry in self._sound:
            return True
        problem = problem_of(entry)
        if problem is None:
            self._sound.add(entry)
            return True
        if entry not in self._reported:
            self._reported.add(entry)
            _LOG.warning("the cache's %s %s is not used and is built again: %s", entry.parent.name, entry.name, problem)
        return False

    def entries(self, kind: str) -> list[Path]:
        """Return all complete entries of a kind, oldest first."""
        directory = self.root / kind
        if not directory.is_dir():
            return []
        found = [entry for entry in directory.iterdir() if entry.is_dir() and not entry.name.startswith(".")]
        return sorted(found, key=lambda entry: entry.stat().st_mtime)

    def sweep(self, *, begun: bool = False) -> list[Path]:
        """Remove what killed builders left, and return it. With ``begun`` also interrupted builds that nobody has
        continued for a week. Raises OSError.

        A partial directory has no builder any more if its entry's lock is free.
        """
        removed = []
        named = [
            (each, each.name.removeprefix(_PARTIAL).rpartition("-")[0]) for each in self.root.glob(f"*/{_PARTIAL}*")
        ]
        if begun:
            left = [each for each in self.root.glob(f"*/{_BEGUN}*") if time.time() - each.stat().st_mtime > _BEGUN_S]
            named += [(each, each.name.removeprefix(_BEGUN)) for each in left]
        for partial, key in named:
            if partial.parent.name == UNFETCHED:
                continue
            with (partial.parent / f".lock-{key}").open("w") as lock:
                try:
                    fcntl.flock(lock, fcntl.LOCK_EX | fcntl.LOCK_NB)
                except BlockingIOError:
                    continue
                shutil.rmtree(partial, ignore_errors=True)
            removed.append(partial)
        return removed

    def build(
        self,
        kind: str,
        key: str,
        builder: Callable[[Path, Path], None],
        *,
        needs_bytes: int = 0,
        waiting: Callable[[], None] | None = None,
        sealed: tuple[str, ...] = (),
        goes_on: bool = False,
    ) -> Path:
        """Return the entry; if it is missing or damaged, have ``builder(directory, log)`` fill it first.

        ``needs_bytes`` of disk space are required before anything is started; ``waiting`` is called if another process
        is building the same entry. ``sealed`` names the files and directories that must stay as built; all, if it is
        empty. With ``goes_on`` an interrupted builder's directory is kept, and the next builder continues there.
        """
        entry = self.path(kind, key)
        if self.find(kind, key):
            return entry
        try:
            entry.parent.mkdir(parents=True, exist_ok=True)
            log = self.log(kind, key)
            log.parent.mkdir(exist_ok=True)
            with locked(self.root / kind / f".lock-{key}", waiting or (lambda: None)):
                if not self.find(kind, key):
                    self._build(entry, builder, log, needs_bytes, sealed, goes_on=goes_on)
        except OSError as error:
            raise explain(error, f"building the {kind} {key}", self.root) from error
        except HowdahError as error:
            full = os.strerror(errno.ENOSPC)
            if full not in error.what:
                raise
            # A compiler or linker ran out of space, and its message was taken for one about the source.
            met = OSError(errno.ENOSPC, full, str(self.root))
            raise explain(met, f"building the {kind} {key}", self.root) from error
        return entry

    def _build(
        self,
        entry: Path,
        builder: Callable[[Path, Path], None],
        log: Path,
        needs_bytes: int,
        sealed: tuple[str, ...],
        *,
        goes_on: bool,
    ) -> None:
        # The lock is held, so any partial directory of this key belongs to a builder that was killed.
        for stale in entry.parent.glob(f"{_PARTIAL}{entry.name}-*"):
            shutil.rmtree(stale)
        self.sweep()
        free = _free_bytes(self.root)
        if free < needs_bytes:
            raise OSError(errno.ENOSPC, os.strerror(errno.ENOSPC), str(self.root))
        partial = entry.with_name(f"{_BEGUN}{entry.name}" if goes_on else f"{_PARTIAL}{entry.name}-{os.getpid()}")
        partial.mkdir(exist_ok=goes_on)
        log.unlink(missing_ok=True)
        try:
            builder(partial, log)
            write_seal(entry, partial, sealed)
            if entry.is_symlink():
                entry.unlink()
            elif entry.is_dir():  # damaged; programs that still run from it keep their files
                shutil.rmtree(entry)
            partial.rename(entry)
            self._sound.add(entry)
        except BaseException as error:
            if not goes_on or isinstance(error, Exception):
                shutil.rmtree(partial, ignore_errors=True)
            raise


def link_file(source: str, target: str) -> None:
    """Make a hard link, or a copy if the file system has no links."""
    try:
        os.link(source, target, follow_symlinks=False)
    except OSError:
        shutil.copy2(source, target, follow_symlinks=False)


def secret() -> bytes:
    """Return random bytes known only to this user, created on first use."""
    file = cache_root() / "secret"
    with suppress(FileNotFoundError):
        return file.read_bytes()
    file.parent.mkdir(parents=True, exist_ok=True)
    made = file.with_name(f"secret-{secrets.token_hex(4)}")
    descriptor = os.open(made, os.O_WRONLY | os.O_CREAT | os.O_EXCL, 0o600)
    with os.fdopen(descriptor, "wb") as opened:
        opened.write(secrets.token_bytes(32))
    with suppress(FileExistsError):
        os.link(made, file)  # unlike a rename, it keeps a file that another process made meanwhile
    made.unlink()
    return file.read_bytes()


def authentication_code(content: bytes) -> str:
    """Return an authentication code that proves that this user wrote ``content``.

    It is for files that a command acts on and that could be a stranger's, because directories are passed on.
    """
    return hmac.new(secret(), content, hashlib.sha256).hexdigest()[:32]


def is_authentic(content: bytes, said: object) -> bool:
    """Return whether ``said`` is the code of ``content``."""
    return isinstance(said, str) and hmac.compare_digest(
        said.encode(errors="replace"), authentication_code(content).encode()
    )
