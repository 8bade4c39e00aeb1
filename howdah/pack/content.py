# SPDX-License-Identifier: Apache-2.0
"""The files of a run that go into a pack: unchanged, except for paths of this machine, and with raw/ on demand."""

from __future__ import annotations

import gzip
import hashlib
import io
import json
import lzma
import os
import re
import tempfile
import zlib
from collections.abc import Iterable, Iterator
from contextlib import contextmanager, suppress
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any, BinaryIO, cast

import zstandard
from markupsafe import escape

from howdah.build.cache import cache_root
from howdah.errors import HowdahError
from howdah.foreign import open_foreign, read_foreign
from howdah.pack.shape import Kind
from howdah.place import PROJECT
from howdah.record.digest import MANIFEST, MINISIGN_SIGNATURE, SSH_SIGNATURE, covered_files, mismatch_error, mismatches
from howdah.record.directory import RunDirectory, read_json
from howdah.record.index import DRAWN_NAME, read_index
from howdah.record.raw import LEAST_BYTES, ZSTD, content_name, open_raw
from howdah.record.run import RunRecord, read_record
from howdah.report.template import script_json

# Paths that every Linux system has, and the paths that guests see.
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
_HOMES = ("/home/", "/root/", "/Users/")  # also homes on the machine that the run came from
_END = rb"(?![\w.-])"
_BEGIN = rb"(?<![\w./-])"


class Paths:
    """Replaces paths of this machine in bytes: the runs' directory, the cache, howdah itself, the home, and others.

    Records are JSON and the report is HTML, which escape ``ü``, ``"`` and ``&`` differently.
    """

    def __init__(self, runs: Path, others: Iterable[str] = ()) -> None:
        named = {str(Path(other)): f"ELSEWHERE/{Path(other).name}" for other in others}
        home = os.path.expanduser("~")  # noqa: PTH111 - stays as it is for a user without one
        named |= {home: "HOME", tempfile.gettempdir(): "TMP", str(Path.cwd()): "HERE"}
        named |= {str(PROJECT): "HOWDAH", str(cache_root()): "CACHE", str(runs): "RUNS", str(runs.resolve()): "RUNS"}
        # $HOME may be "1": a relative path could be any word of a text.
        named = {path: name for path, name in named.items() if path.startswith("/") and path != "/"}
        self._names = {form: name.encode() for path, name in named.items() for form in _spellings(path)}
        longest_first = sorted(self._names, key=len, reverse=True)
        self._pattern = re.compile(_BEGIN + rb"(?:" + rb"|".join(map(re.escape, longest_first)) + rb")" + _END)

    def replaced(self, content: bytes) -> bytes:
        return self._pattern.sub(lambda match: self._names[match[0]], content)


def _spellings(path: str) -> set[bytes]:
    """All spellings of a path: plain, in JSON with and without non-ASCII letters, and in HTML and its scripts."""
    json_texts = [json.dumps(path, ensure_ascii=plain)[1:-1] for plain in (True, False)]
    return {os.fsencode(form) for form in (path, *json_texts, str(escape(path)), str(script_json(path))[1:-1])}


def paths_in(value: Any) -> Iterator[str]:
    """Absolute paths in a JSON value that exist on this machine but not on every machine; and those below any home
    directory, which a run from elsewhere may name."""
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


_SIGNATURES = (MANIFEST, SSH_SIGNATURE, MINISIGN_SIGNATURE)
_TEXTS = (".json", ".jsonl", ".log", ".txt", ".yaml", ".html", ".csv")
_LARGEST_TEXT = 64 * 1024 * 1024


class Spool:
    """An unnamed temporary file for contents, beside ``target``, so that ten thousand runs need no memory. Use it as a
    context manager. An OSError names ``target``.
    """

    def __init__(self, target: Path) -> None:
        self._target = target
        with self._named():
            self._file = tempfile.TemporaryFile(dir=target.parent)  # noqa: SIM115 - closed in __exit__

    def add(self, content: bytes) -> int:
        """Append the content and return its offset."""
        with self._named():
            place = self._file.seek(0, os.SEEK_END)
            self._file.write(content)
            self._file.flush()  # so that a full disk is reported here, not on reading
        return place

    @contextmanager
    def _named(self) -> Iterator[None]:
        try:
            yield
        except OSError as error:
            raise OSError(error.errno, error.strerror, str(self._target)) from error

    def read(self, place: int, size: int) -> bytes:
        self._file.seek(place)
        return self._file.read(size)

    def __enter__(self) -> Spool:
        return self

    def __exit__(self, *_error: object) -> None:
        with suppress(OSError):
            self._file.close()


@dataclass(frozen=True, slots=True)
class PackedFile:
    """A file of a pack: its source file, its content, or the offset and size of its content in a ``Spool``."""

    name: str
    source: Path | None = None
    content: bytes = b""
    spooled: tuple[Spool, int, int] | None = None

    @property
    def size(self) -> int:
        if self.spooled is not None:
            return self.spooled[2]
        return self.source.stat().st_size if self.source else len(self.content)

    def opened(self) -> io.BufferedReader | io.BytesIO:
        if self.source is not None:
            return open_foreign(self.source)
        spooled = self.spooled
        return io.BytesIO(spooled[0].read(spooled[1], spooled[2]) if spooled is not None else self.content)

    def sha256(self) -> str:
        with self.opened() as opened:
            return hashlib.file_digest(opened, "sha256").hexdigest()


@dataclass
class Content:
    """The files of a pack, and the names of those rewritten and left out."""

    spool: Spool
    entries: list[PackedFile] = field(default_factory=list)
    rewritten: list[str] = field(default_factory=list)
    left_out: list[str] = field(default_factory=list)

    def add(self, name: str, content: bytes) -> None:
        self.entries.append(PackedFile(name, spooled=(self.spool, self.spool.add(content), len(content))))


_DATA = ("raw/", "tables/", "share/")


def add_run(content: Content, run: RunDirectory, prefix: str, paths: Paths, *, kind: Kind) -> None:
    """Add the files of one run; run.json is changed to describe them as packed.

    ``kind`` results leaves out raw records and tables, as in a run whose data were removed; ``kind`` tables leaves out
    large raw records.

    Raises MismatchError for a file that differs from the one recorded.
    """
    record = read_record(run)
    wrong = mismatches(run, record)
    if wrong:
        raise mismatch_error(run, wrong[0])
    files = list(covered_files(run))
    removed = [name for name in files if kind == "results" and name.startswith(_DATA)]
    bulk = [name for name in files if kind == "tables" and _is_bulk(run.path / name, name)]
    rewritten = _add_files(content, run, [name for name in files if name not in {*removed, *bulk}], prefix, paths)
    content.left_out += [f"{prefix}/{name}" for name in bulk]
    content.left_out += [f"{prefix}/{folder}/" for folder in sorted({name.partition("/")[0] for name in removed})]
    differs = bool(rewritten or bulk or removed)
    if differs:
        _describe_packed(record, rewritten, bulk, removed, kind)
        text = f"{json.dumps(record.plain(), indent=1)}\n".encode()
    else:
        text = read_foreign(run.provenance)
    content.add(f"{prefix}/run.json", paths.replaced(text))
    differs |= paths.replaced(text) != text
    _add_signature(content, run.path, prefix, changed=differs)


def _add_files(content: Content, run: RunDirectory, names: list[str], prefix: str, paths: Paths) -> dict[str, str]:
    """Add files of a run, without paths of this machine; return the new digests of those that had any."""
    digests: dict[str, str] = {}
    for name in names:
        changed = _rewritten(run.path / name, paths)
        if changed is None:
            content.entries.append(PackedFile(f"{prefix}/{name}", run.path / name))
        else:
            content.add(f"{prefix}/{name}", changed)
            content.rewritten.append(f"{prefix}/{name}")
            digests[name] = content.entries[-1].sha256()
    return digests


def _describe_packed(
    record: RunRecord, rewritten: dict[str, str], bulk: list[str], removed: list[str], kind: Kind
) -> None:
    """Change a run's record to say what the pack has: the digests of files, and which were rewritten or left out."""
    before = record.digests or {}
    if record.digests is not None:
        absent = {*bulk, *removed}
        record.digests = {name: digest for name, digest in before.items() if name not in absent} | rewritten
    if "plan.json" in rewritten:
        record.plan_sha256 = rewritten["plan.json"]
    if removed:
        record.data_removed, record.packed_as = True, kind
    if bulk:
        record.raw_left_out = bulk
    if rewritten:
        record.rewritten = {name: before.get(name) for name in rewritten}


def _add_signature(content: Content, place: Path, prefix: str, *, changed: bool) -> None:
    """Keep a signature only if no signed file was changed."""
    for name in _SIGNATURES:
        if not (place / name).exists():
            continue
        if changed:
            content.left_out.append(f"{prefix}/{name}")
        else:
            content.entries.append(PackedFile(f"{prefix}/{name}", place / name))


def _is_bulk(file: Path, name: str) -> bool:
    """Whether the file is a large record for tables alone. JSON in raw/ is not: measures and checks read it."""
    plain = content_name(file)
    return name.startswith("raw/") and plain.suffix != ".json" and (plain != file or file.stat().st_size >= LEAST_BYTES)


def _rewritten(file: Path, paths: Paths) -> bytes | None:
    """The content of a text with paths of this machine replaced; None if it has none or is not text."""
    plain = content_name(file)
    packed = file.suffix == ".gz"
    if not packed and plain.suffix not in _TEXTS:
        return None
    if file.stat().st_size > _LARGEST_TEXT:
        return None
    try:
        with _unpacked(file) if packed else open_raw(plain) as opened:
            before = opened.read(_LARGEST_TEXT + 1)
    except (OSError, EOFError, zlib.error) as error:
        raise HowdahError(f"cannot be read: {error}", where=str(file)) from error
    if len(before) > _LARGEST_TEXT:
        return None
    after = paths.replaced(before)
    if after == before:
        return None
    if packed:
        return gzip.compress(after, compresslevel=6, mtime=0)
    if file.suffix == ZSTD:
        return zstandard.ZstdCompressor(level=3, write_checksum=True, write_content_size=True).compress(after)
    return after if file == plain else lzma.compress(after)


@contextmanager
def _unpacked(file: Path) -> Iterator[BinaryIO]:
    """The content of a .gz as a stream, because a file of a megabyte may expand beyond memory."""
    with open_foreign(file) as opened, gzip.open(opened) as content:
        yield cast("BinaryIO", content)


def add_experiment(
    content: Content, path: Path, runs: list[RunDirectory], prefix: str, paths: Paths, page: str
) -> None:
    """Add the files beside an experiment's runs. Only ``runs`` are packed, and ``page`` is their report."""
    index = read_index(path / "experiment.json")
    names = {run.name for run in runs}
    cells = [cell for cell in index.cells if cell.run in names]
    part = len(cells) < len(index.cells)
    text = index.model_copy(update={"cells": cells}).text() if part else read_foreign(path / "experiment.json").decode()
    files = {"experiment.json": text.encode(), "report.html": page.encode()}
    for name in ("profile.yaml", "claims.json", DRAWN_NAME):
        # Claims are about all runs, so a part of them has no claims.json.
        if os.path.lexists(path / name) and not (part and name == "claims.json"):
            files[name] = read_foreign(path / name)
    changed = part
    profile = files.get("profile.yaml", b"")
    for name, before in files.items():
        after = paths.replaced(before)
        if name == "experiment.json":
            after = _with_profile(after, paths.replaced(profile), "profile.yaml" in files)
        if name == "report.html":  # the page names the profile by its digest
            after = after.replace(_hex(profile), _hex(paths.replaced(profile)))
        elif after != before:
            changed = True
            content.rewritten.append(f"{prefix}/{name}")
        content.add(f"{prefix}/{name}", after)
    inside = [name for name in (*content.rewritten, *content.left_out) if name.startswith(f"{prefix}/")]
    _add_signature(content, path, prefix, changed=changed or bool(inside))


def _hex(text: bytes) -> bytes:
    return hashlib.sha256(text).hexdigest().encode()


def _with_profile(index: bytes, profile: bytes, there: bool) -> bytes:
    value = json.loads(index)
    digest = hashlib.sha256(profile).hexdigest()
    said = value.get("profile") or {}
    if not there or said.get("sha256") == digest:
        return index
    return (json.dumps({**value, "profile": {**said, "sha256": digest}}, indent=1) + "\n").encode()


def local_paths(runs: list[RunDirectory]) -> set[str]:
    """Paths of this machine in the runs' plans and records: kernel trees, modules, profiles."""
    found: set[str] = set()
    for run in runs:
        for file in (run.plan, run.provenance):
            if file.exists():
                found.update(paths_in(read_json(file)))
    return found
