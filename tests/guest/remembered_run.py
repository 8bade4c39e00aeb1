# SPDX-License-Identifier: Apache-2.0
"""What guests wrote in earlier sessions of tests, remembered by what decides it.

A run's key names its plan, its kernel and modules, the guest's tree and the agent (``howdah.record.provenance``); here
the code that starts guests belongs to it as well. Runs with one key have equal raw files: test_repeatability.py looks
at new runs, and compares some that are remembered with new ones, others in each session. Only raw
files are remembered. Tables, measures and verdicts are made in every session.
"""

from __future__ import annotations

import shutil
import tarfile
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from pathlib import Path

import zstandard

from howdah.build.cache import Cache, content_key
from howdah.engine.uml.engine import UmlEngine
from howdah.place import file_of
from howdah.plan.plan import Plan
from howdah.record.closure import remembered_sha256
from howdah.record.directory import RunDirectory
from howdah.record.provenance import run_key

KIND = "guest-run"
MOST_BYTES = 512 << 20  # of all that is remembered; what was asked for last stays
_ARCHIVE = "run.tar.zst"
_COMPARED = "compared"  # empty: when it was touched, a new run was equal
_SOURCES = (
    "howdah/build",
    "howdah/engine/uml",
)  # the shim, what starts guests, and the kernel's options lie beside their modules
_LEVEL = 1  # a trace shrinks to a thirteenth of its size, and less with ten times the work (docs/performance.md)


def key_of(engine: UmlEngine, plan: Plan) -> str:
    """Of the raw files that the engine would write; it is prepared for the plan."""
    identity = engine.prepare([plan], lambda _what, _done, _of: None)
    return content_key(run_key(plan.to_json(), identity), engine.wiring, launcher_sha256())


def launcher_sha256() -> str:
    """Version of the code that builds what guests are made of, and starts them."""
    files = [path for below in _SOURCES for path in sorted(file_of(below).rglob("*")) if path.is_file()]
    return remembered_sha256(["howdah.engine.uml.engine"], data=[path for path in files if path.suffix != ".pyc"])


@contextmanager
def _opened(entry: Path) -> Iterator[tarfile.TarFile]:
    """Its archive, to be read from its beginning to its end."""
    with (
        (entry / _ARCHIVE).open("rb") as file,
        zstandard.ZstdDecompressor().stream_reader(file) as content,
        tarfile.open(fileobj=content, mode="r|") as archive,
    ):
        yield archive


def recall(key: str, path: Path) -> bool:
    """Make ``path`` the directory of a remembered run, with raw files alone; whether there is one."""
    entry = Cache().find(KIND, key)
    if entry is None:
        return False
    try:
        with _opened(entry) as archive:
            archive.extractall(path, filter="data")
        entry.touch()  # it was asked for now
    except (OSError, tarfile.TarError, zstandard.ZstdError):  # damaged, or removed meanwhile
        shutil.rmtree(path, ignore_errors=True)
        shutil.rmtree(entry, ignore_errors=True)
        return False
    return True


def unchecked() -> Iterator[tuple[str, Plan]]:
    """Keys and plans of remembered runs; first those that were never compared, or not for the longest time."""

    def compared(entry: Path) -> float:
        try:
            return (entry / _COMPARED).stat().st_mtime
        except OSError:
            return 0.0

    for entry in sorted(Cache().entries(KIND), key=lambda entry: (compared(entry), entry.name)):
        with suppress(OSError, tarfile.TarError, zstandard.ZstdError), _opened(entry) as archive:
            first = archive.next()
            if first is not None and first.name == "plan.json" and (content := archive.extractfile(first)):
                try:
                    plan = Plan.from_json(content.read().decode())
                except (ValueError, TypeError):  # other code of howdah, with the same cache, writes other plans
                    continue
                yield entry.name, plan


def was_equal(key: str) -> None:
    """A guest wrote the same now."""
    (Cache().path(KIND, key) / _COMPARED).touch()


def remember(key: str, directory: RunDirectory) -> None:
    """Keep the plan, if there is one, and the raw files of a run that is valid."""

    def write(entry: Path, _log: Path) -> None:
        with (
            (entry / _ARCHIVE).open("wb") as file,
            zstandard.ZstdCompressor(level=_LEVEL).stream_writer(file) as content,
            tarfile.open(fileobj=content, mode="w|") as archive,
        ):
            for part in (directory.plan, directory.raw):
                if part.exists():
                    archive.add(part, part.name)

    Cache().build(KIND, key, write)
    forget(MOST_BYTES)


def forget(most_bytes: int) -> None:
    """Remove what was not asked for for the longest time, until no more than ``most_bytes`` are kept."""
    kept = 0
    with suppress(OSError):  # another session removes the same
        for entry in reversed(Cache().entries(KIND)):
            kept += (entry / _ARCHIVE).stat().st_size
            if kept > most_bytes:
                shutil.rmtree(entry)
