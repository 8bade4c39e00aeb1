# SPDX-License-Identifier: Apache-2.0
"""Two stores: of packed pieces, bundles and unfetched runs in a worker machine's cache, and of finished runs in a place
that workers and client share.

All workers of a machine with the same cache share the first. The second is a file system or an object store: each key
has a directory with, for each time it was made, a pack and a record, both named by the hash of the pack. The record is
written last, so a pack without a record does not count.

A run is packed for transport with the digest of every file; the client checks and unpacks it. The agent's part of
share/ is in the cache of both sides, so it is only named.
"""

from __future__ import annotations

import errno
import json
import os
import platform
import re
import secrets
import shutil
import socket
import tempfile
import time
from collections.abc import Sequence
from contextlib import suppress
from io import BufferedRandom
from pathlib import Path

from howdah.build.cache import UNFETCHED, Cache
from howdah.build.packed_piece import PackedPiece, unpack_piece
from howdah.build.supply import by_digest, has_digest
from howdah.cluster.message import MadeRun, WantedBundle
from howdah.engine.engine_bundle import write_sent
from howdah.errors import HowdahError, explain
from howdah.pack.archive import INDEX, extract, write_archive
from howdah.pack.content import PackedFile
from howdah.pack.shape import PackIndex, check_run_index
from howdah.record.digest import covered_files, file_sha256, mismatch_error, mismatches
from howdah.record.directory import PARTIAL, RunDirectory, remove_abandoned, write_whole
from howdah.record.provenance import now, sha256_text
from howdah.record.run import RunRecord, read_record
from howdah.scratch import scratch

_SENT, _BUNDLE = "sent", "bundle"
_RESULT, _PACK = "result.json", "run.howdah.tar.zst"
_GLIBC = re.compile(rb"GLIBC_(\d+)\.(\d+)")
_KEPT_S = 7 * 86400  # a run that nobody has fetched is deleted after a week
_KEY = re.compile(r"[0-9a-f]{8,64}")


class Store:
    """The store in the user's cache. Raises HowdahError if the cache cannot be used."""

    def __init__(self, cache: Cache | None = None) -> None:
        self.cache = cache or Cache()

    @property
    def name(self) -> str:
        """A name that all workers with this store have, and that differs on every other machine."""
        file = self.cache.root / "store-name"
        try:
            return file.read_text()
        except FileNotFoundError:
            file.parent.mkdir(parents=True, exist_ok=True)
            own = file.with_name(f"{file.name}-{os.getpid()}-{secrets.token_hex(4)}")
            own.write_text(f"{socket.gethostname()}-{secrets.token_hex(8)}")
            try:
                os.link(own, file)  # the first one wins
            except FileExistsError:
                pass
            finally:
                own.unlink()
            return file.read_text()

    # Packed pieces and bundles

    def has(self, sha256: str) -> bool:
        """Return whether a piece was sent here or is in a bundle on this machine."""
        return self.cache.find(_SENT, _checked(sha256)) is not None or has_digest(sha256, self.cache)

    def place(self, packed_piece: PackedPiece) -> Path:
        """Return where a piece is unpacked. Raise HowdahError if it is missing, or if it is in a damaged bundle."""
        sent = self.cache.find(_SENT, _checked(packed_piece.sha256))
        found = sent / packed_piece.name.rpartition("/")[2] if sent else by_digest(packed_piece.sha256, self.cache)
        if found is None:
            raise HowdahError(f"{packed_piece.name} is not here")
        return found

    def incoming(self) -> BufferedRandom:
        """Return an unnamed file on the disk of the cache, to receive a packed piece."""
        self.cache.root.mkdir(parents=True, exist_ok=True)
        return tempfile.TemporaryFile(dir=self.cache.root)

    def take(self, packed_piece: PackedPiece, file: BufferedRandom) -> None:
        """Check, unpack and keep a received packed piece. Raise HowdahError if its content is wrong."""

        def build(directory: Path, _log: Path) -> None:
            unpack_piece(file, packed_piece, directory / packed_piece.name.rpartition("/")[2])

        self.cache.build(_SENT, _checked(packed_piece.sha256), build, needs_bytes=4 * packed_piece.size)

    def lacks(self, packed_pieces: Sequence[PackedPiece]) -> list[PackedPiece]:
        return [packed_piece for packed_piece in packed_pieces if not self.has(packed_piece.sha256)]

    def keep_bundle(self, bundle: WantedBundle) -> None:
        """Store a bundle whose pieces are all here. Raise HowdahError if this machine cannot start its programs."""
        places = {name: self.cache.path(*name.split("/")) for name in bundle.own}
        for packed_piece in bundle.packed_pieces:
            places[packed_piece.name] = self.place(packed_piece)
        check_programs([places[name] / file for name, files in bundle.programs.items() for file in files])

        def build(directory: Path, _log: Path) -> None:
            write_sent(directory / "bundle.json", bundle.engine, bundle.content, places)

        self.cache.build(_BUNDLE, _checked(bundle.id), build)

    def bundle(self, identity: str) -> Path | None:
        """Return the file of a bundle, or None unless all its pieces are stored."""
        entry = self.cache.find(_BUNDLE, _checked(identity))
        if entry is None:
            return None
        places = json.loads((entry / "bundle.json").read_text())["places"].values()
        return entry / "bundle.json" if all(Path(place).is_dir() for place in places) else None

    # Finished runs

    @property
    def scratch(self) -> Path:
        """The directory in which runs are made. Access removes what killed workers left there."""
        place = self.cache.root / UNFETCHED
        place.mkdir(parents=True, exist_ok=True)
        for partial in place.glob(f"{PARTIAL}*"):
            remove_abandoned(partial)
        return place

    def unfetched(self) -> list[MadeRun]:
        """Return the finished runs that no client has fetched; delete those older than a week."""
        found = []
        for file in sorted(self.scratch.glob(f"[!.]*/{_RESULT}")):
            with suppress(FileNotFoundError):  # fetched meanwhile
                if time.time() - file.stat().st_mtime > _KEPT_S:
                    self.drop(file.parent.name)
                elif (made := _read(file)) is not None:
                    found.append(made)
        return found

    def find(self, key: str) -> MadeRun | None:
        with suppress(FileNotFoundError):
            return _read(self.cache.root / UNFETCHED / _checked(key) / _RESULT)
        return None

    def pack_of(self, key: str) -> Path:
        return self.cache.root / UNFETCHED / _checked(key) / _PACK

    def put(self, made: MadeRun, pack: Path) -> None:
        """Keep a finished run until it is fetched; ``pack`` is moved."""
        final = self.cache.root / UNFETCHED / _checked(made.key)
        with scratch(PARTIAL, self.scratch) as place:
            partial = place / final.name
            partial.mkdir()
            pack.rename(partial / _PACK)
            write_whole(partial / _RESULT, made.to_json())
            _replace(final, partial)
        with self.made.open("a", encoding="utf-8") as log:
            if not made.failed:
                log.write(f"{now()} {made.key} {made.results_sha256} {made.wall_s}\n")

    @property
    def made(self) -> Path:
        """The log of runs finished here: a line with time, key, hash of the results and duration of each."""
        return self.cache.root / UNFETCHED / ".made"

    def drop(self, key: str) -> None:
        """Delete a run that has been fetched."""
        place = self.cache.root / UNFETCHED / _checked(key)
        (place / _RESULT).unlink(missing_ok=True)  # first, so that no result is without its pack
        shutil.rmtree(place, ignore_errors=True)


def _replace(final: Path, partial: Path) -> None:
    """Rename a directory. Another worker that shares this store may do the same with the same run at any moment."""
    while True:
        with suppress(FileNotFoundError):
            shutil.rmtree(final)
        try:
            partial.rename(final)
        except OSError as error:
            if error.errno not in (errno.ENOTEMPTY, errno.EEXIST):
                raise
        else:
            return


def _read(file: Path) -> MadeRun | None:
    """Read a record, or return None for one of another version, whose run is made again. Raise FileNotFoundError."""
    with suppress(ValueError):
        return MadeRun.from_json(file.read_text())
    return None


def _checked(name: str) -> str:
    """Return a hexadecimal name. Raise HowdahError for others, which could leave their directory."""
    if not _KEY.fullmatch(name):
        raise HowdahError(f"{name!r} is not a hash")
    return name


def check_programs(files: Sequence[Path]) -> None:
    """Raise HowdahError if a program needs a newer C library than this machine has."""
    name, version = platform.libc_ver()
    has = tuple(int(part) for part in re.findall(r"\d+", version)[:2])
    for file in files:
        needed = [(int(major), int(minor)) for major, minor in _GLIBC.findall(file.read_bytes())]
        if needed and (name != "glibc" or max(needed) > has):
            wanted = ".".join(map(str, max(needed)))
            raise HowdahError(
                f"{file.name} needs glibc {wanted}, and this machine has {name or 'another C library'} {version}",
                hint="Run the command on the machine with the oldest C library: its programs run on newer ones.",
            )


_SUFFIX, _RECORD = ".howdah.tar.zst", ".json"


class SharedStore:
    """A store at an fsspec ``url``: file:///shared/runs, s3://bucket/runs. Raises HowdahError for an unusable URL."""

    def __init__(self, url: str) -> None:
        from fsspec.core import url_to_fs

        self.url = url
        try:
            self._files, root = url_to_fs(url)
        except (ImportError, ValueError, OSError) as error:
            raise HowdahError(
                f"this store cannot be used: {error}",
                where=url,
                hint="Name a directory or bucket as fsspec does: file:///shared/runs, s3://bucket/runs.",
            ) from error
        self._root = str(root).rstrip("/")

    def put(self, made: MadeRun, pack: Path) -> None:
        """Store a finished run. Raise HowdahError if that fails."""
        place = f"{self._root}/{made.key}"
        try:
            self._files.makedirs(place, exist_ok=True)
            self._write(f"{place}/{made.sha256}{_SUFFIX}", pack.read_bytes())
            self._write(f"{place}/{made.sha256}{_RECORD}", made.to_json().encode())
        except Exception as error:
            raise HowdahError(f"the run cannot be put into the store: {_explain(error)}", where=self.url) from error

    def _write(self, target: str, content: bytes) -> None:
        """Write under another name and rename, so that no reader sees a partial file."""
        partial = f"{target}.writing-{secrets.token_hex(4)}"
        self._files.pipe_file(partial, content)
        self._files.mv(partial, target)

    def keys(self) -> set[str]:
        """Return the keys of runs that may be here. Raise HowdahError if the store does not answer."""
        try:
            return {str(name).rstrip("/").rpartition("/")[2] for name in self._files.ls(self._root, detail=False)}
        except FileNotFoundError:
            return set()
        except Exception as error:
            raise HowdahError(f"the store cannot be read: {_explain(error)}", where=self.url) from error

    def find(self, key: str) -> list[MadeRun]:
        """Return the records of all runs of this key, without unreadable ones."""
        found = []
        with suppress(Exception):
            self._files.invalidate_cache()
            for name in sorted(map(str, self._files.ls(f"{self._root}/{key}", detail=False))):
                if name.endswith(_RECORD):
                    with suppress(ValueError):
                        made = MadeRun.from_json(self._files.cat_file(name))
                        if made.key == key and name.endswith(f"/{made.sha256}{_RECORD}"):
                            found.append(made)
        return found

    def read(self, made: MadeRun) -> bytes:
        """Read the pack of a record. Raise HowdahError if that fails."""
        try:
            return bytes(self._files.cat_file(f"{self._root}/{made.key}/{made.sha256}{_SUFFIX}"))
        except Exception as error:
            raise HowdahError(f"the run cannot be taken from the store: {_explain(error)}", where=self.url) from error


def _explain(error: Exception) -> str:
    """Return the message of an error, which depends on the kind of store."""
    return explain(error) if isinstance(error, OSError) else str(error) or type(error).__name__


_RESULTS = ("metrics.json", "verdict.json")


def results_sha256(directory: RunDirectory) -> str:
    """Return the SHA-256 of measures and verdict, which must be equal wherever a run is made."""
    return sha256_text("".join(file_sha256(directory.path / name) for name in _RESULTS))


def pack_run(directory: RunDirectory, name: str, target: Path) -> str:
    """Write the run's files except share/ to ``target``, and return the SHA-256 of that file."""
    names = [each for each in (*covered_files(directory), "run.json") if not each.startswith("share/")]
    files = [PackedFile(each, directory.path / each) for each in names]
    write_archive(target, name, PackIndex(runs=[name]), files, check_run_index)
    return file_sha256(target)


def unpack_run(pack: Path, directory: RunDirectory, plan_json: str, key: str, agent: Path | None) -> None:
    """Unpack a run into the partial ``directory``, and check every file.

    share/ comes from ``agent``, the agent's entry in the cache. Raise HowdahError if the run has another key or plan,
    or if a file differs from its digest.
    """
    shutil.rmtree(directory.path, ignore_errors=True)
    extract(pack, directory.path, check_run_index)
    (directory.path / INDEX).unlink()
    record = read_record(directory)
    if record.key != key or directory.plan.read_text(encoding="utf-8") != plan_json:
        raise HowdahError("a worker sent a different run than requested", where=str(directory.path))
    _fill_share(directory, record, agent)
    wrong = mismatches(directory, record)
    if wrong:
        raise mismatch_error(directory, wrong[0])


def _fill_share(directory: RunDirectory, record: RunRecord, agent: Path | None) -> None:
    for name in record.digests or {}:
        if not name.startswith("share/"):
            continue
        inside = name.removeprefix("share/")
        source = directory.plan if inside == "plan.json" else agent / inside if agent else None
        if source is None or not source.is_file():
            raise HowdahError(f"{name} of this run is not in the cache", where=str(directory.path))
        target = directory.path / name
        target.parent.mkdir(parents=True, exist_ok=True)
        if inside == "plan.json":
            shutil.copyfile(source, target)
            continue
        try:
            os.link(source, target)
        except OSError:
            shutil.copyfile(source, target)
