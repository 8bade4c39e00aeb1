# SPDX-License-Identifier: Apache-2.0
"""What of a run goes into a pack: its files as they are, but for paths of this machine, and raw/ on demand."""

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
from howdah.record.digest import MANIFEST, MINISIGN_SIGNATURE, SSH_SIGNATURE, covered, mismatches, refusal
from howdah.record.directory import RunDirectory, read_json
from howdah.record.index import DRAWN_NAME, read_index
from howdah.record.raw import LEAST_BYTES, ZSTD, content_name, open_raw
from howdah.record.run import read_record
from howdah.report.template import script_json

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
    """Replaces paths of this machine in bytes: the runs' directory, the cache, howdah itself, the home, and others.

    Records are JSON and the report is HTML, which write ``ü``, ``"`` and ``&`` in their own ways.
    """

    def __init__(self, runs: Path, others: Iterable[str] = ()) -> None:
        named = {str(Path(other)): f"ELSEWHERE/{Path(other).name}" for other in others}
        home = os.path.expanduser("~")  # noqa: PTH111 - stays as it is for a user without one
        named |= {home: "HOME", tempfile.gettempdir(): "TMP", str(Path.cwd()): "HERE"}
        named |= {str(PROJECT): "HOWDAH", str(cache_root()): "CACHE", str(runs): "RUNS", str(runs.resolve()): "RUNS"}
        # $HOME may be "1": a relative path is a word like any other.
        named = {path: name for path, name in named.items() if path.startswith("/") and path != "/"}
        self._names = {form: name.encode() for path, name in named.items() for form in _written(path)}
        longest_first = sorted(self._names, key=len, reverse=True)
        self._pattern = re.compile(_BEGIN + rb"(?:" + rb"|".join(map(re.escape, longest_first)) + rb")" + _END)

    def replaced(self, content: bytes) -> bytes:
        return self._pattern.sub(lambda match: self._names[match[0]], content)


def _written(path: str) -> set[bytes]:
    """A path as it is, in JSON with and without letters beyond ASCII, and in HTML and its scripts."""
    json_texts = [json.dumps(path, ensure_ascii=plain)[1:-1] for plain in (True, False)]
    return {os.fsencode(form) for form in (path, *json_texts, str(escape(path)), str(script_json(path))[1:-1])}


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


_SIGNATURES = (MANIFEST, SSH_SIGNATURE, MINISIGN_SIGNATURE)
_TEXTS = (".json", ".jsonl", ".log", ".txt", ".yaml", ".html", ".csv")
_LARGEST_TEXT = 64 * 1024 * 1024


class Held:
    """Contents in a file that has no name, beside ``target``: those of ten thousand runs need no memory. Use in
    ``with``. An OSError names ``target``.
    """

    def __init__(self, target: Path) -> None:
        self._target = target
        with self._named():
            self._file = tempfile.TemporaryFile(dir=target.parent)  # noqa: SIM115 - closed in __exit__

    def add(self, content: bytes) -> int:
        """Where it begins."""
        with self._named():
            place = self._file.seek(0, os.SEEK_END)
            self._file.write(content)
            self._file.flush()  # or the disk would be told to be full when it is read
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

    def __enter__(self) -> Held:
        return self

    def __exit__(self, *_error: object) -> None:
        with suppress(OSError):
            self._file.close()


@dataclass(frozen=True, slots=True)
class PackedFile:
    """A file of a pack: where it comes from (the file, or its place and size among what is held), or what it holds."""

    name: str
    source: Path | None = None
    content: bytes = b""
    held: tuple[Held, int, int] | None = None

    @property
    def size(self) -> int:
        if self.held is not None:
            return self.held[2]
        return self.source.stat().st_size if self.source else len(self.content)

    def opened(self) -> io.BufferedReader | io.BytesIO:
        if self.source is not None:
            return open_foreign(self.source)
        held = self.held
        return io.BytesIO(held[0].read(held[1], held[2]) if held is not None else self.content)

    def sha256(self) -> str:
        with self.opened() as opened:
            return hashlib.file_digest(opened, "sha256").hexdigest()


@dataclass
class Content:
    """Entries of a pack, and what is to be said of them."""

    held: Held
    entries: list[PackedFile] = field(default_factory=list)
    rewritten: list[str] = field(default_factory=list)
    left_out: list[str] = field(default_factory=list)

    def add(self, name: str, content: bytes) -> None:
        self.entries.append(PackedFile(name, held=(self.held, self.held.add(content), len(content))))


_DATA = ("raw/", "tables/", "share/")


def add_run(content: Content, run: RunDirectory, prefix: str, paths: Paths, *, kind: Kind) -> None:
    """The files of one run; run.json names them as they are in the pack.

    As ``results`` it has neither records nor tables, like a run whose data were removed; as ``tables`` it lacks large
    records.

    Raises MismatchError for a file that is not the one that was recorded.
    """
    record = read_record(run)
    wrong = mismatches(run, record)
    if wrong:
        raise refusal(run, wrong[0])
    known = dict(record.digests or {})
    rewritten: dict[str, str | None] = {}
    dropped: list[str] = []
    gone: list[str] = []  # of results: whole folders
    for name in covered(run):
        file = run.path / name
        if kind == "results" and name.startswith(_DATA):
            known.pop(name, None)
            gone.append(name)
            continue
        if kind == "tables" and _is_bulk(file, name):
            dropped.append(name)
            known.pop(name, None)
            continue
        changed = _rewritten(file, paths)
        if changed is None:
            content.entries.append(PackedFile(f"{prefix}/{name}", file))
            continue
        content.add(f"{prefix}/{name}", changed)
        entry = content.entries[-1]
        rewritten[name] = known.get(name)
        known[name] = entry.sha256()
        content.rewritten.append(entry.name)
    content.left_out += [f"{prefix}/{name}" for name in dropped]
    if gone:
        folders = sorted({name.partition("/")[0] for name in gone})
        content.left_out += [f"{prefix}/{folder}/" for folder in folders]
        record.data_removed, record.packed_as = True, kind
    if "plan.json" in rewritten:
        record.plan_sha256 = known["plan.json"]
    if record.digests is not None:
        record.digests = known
    if dropped:
        record.raw_left_out = dropped
    if rewritten:
        record.rewritten = rewritten
    differs = bool(rewritten or dropped or gone)
    text = f"{json.dumps(record.plain(), indent=1)}\n".encode() if differs else read_foreign(run.provenance)
    content.add(f"{prefix}/run.json", paths.replaced(text))
    differs |= paths.replaced(text) != text
    _add_signature(content, run.path, prefix, changed=differs)


def _add_signature(content: Content, place: Path, prefix: str, *, changed: bool) -> None:
    """A signature is of the files as they were: it stays where none of them changed."""
    for name in _SIGNATURES:
        if not (place / name).exists():
            continue
        if changed:
            content.left_out.append(f"{prefix}/{name}")
        else:
            content.entries.append(PackedFile(f"{prefix}/{name}", place / name))


def _is_bulk(file: Path, name: str) -> bool:
    """Large records that tables are made from; what measures and checks read of raw/ is JSON, and stays."""
    plain = content_name(file)
    return name.startswith("raw/") and plain.suffix != ".json" and (plain != file or file.stat().st_size >= LEAST_BYTES)


def _rewritten(file: Path, paths: Paths) -> bytes | None:
    """The content of a text without paths of this machine; None if it has no such paths or is not text."""
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
    """What a .gz holds, as a stream: a file of a megabyte may become all memory."""
    with open_foreign(file) as opened, gzip.open(opened) as content:
        yield cast("BinaryIO", content)


def add_experiment(
    content: Content, path: Path, runs: list[RunDirectory], prefix: str, paths: Paths, page: str
) -> None:
    """What an experiment has beside its runs, of which only ``runs`` are packed; its page is made for it."""
    index = read_index(path / "experiment.json")
    names = {run.name for run in runs}
    cells = [cell for cell in index.cells if cell.run in names]
    part = len(cells) < len(index.cells)
    text = index.model_copy(update={"cells": cells}).text() if part else read_foreign(path / "experiment.json").decode()
    files = {"experiment.json": text.encode(), "report.html": page.encode()}
    for name in ("profile.yaml", "claims.json", DRAWN_NAME):
        # Claims are about all runs of the experiment.
        if os.path.lexists(path / name) and not (part and name == "claims.json"):
            files[name] = read_foreign(path / name)
    changed = part
    profile = files.get("profile.yaml", b"")
    for name, before in files.items():
        after = paths.replaced(before)
        if name == "experiment.json":
            after = _with_profile(after, paths.replaced(profile), "profile.yaml" in files)
        if name == "report.html":  # which names the profile by its digest
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
    """The index names the profile that is in the pack."""
    value = json.loads(index)
    digest = hashlib.sha256(profile).hexdigest()
    said = value.get("profile") or {}
    if not there or said.get("sha256") == digest:
        return index
    return (json.dumps({**value, "profile": {**said, "sha256": digest}}, indent=1) + "\n").encode()


def local_paths(runs: list[RunDirectory]) -> set[str]:
    """Paths of this machine that plans and records of the runs name: kernel trees, modules, profiles."""
    found: set[str] = set()
    for run in runs:
        for file in (run.plan, run.provenance):
            if file.exists():
                found.update(paths_in(read_json(file)))
    return found
