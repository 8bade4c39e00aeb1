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
from dataclasses import replace
from pathlib import Path

import zstandard

from howdah.build.cache import Cache, content_key
from howdah.engine.uml.engine import UmlEngine
from howdah.engine.vm.engine import VmEngine
from howdah.place import file_of
from howdah.plan.plan import Plan
from howdah.record.closure import remembered_sha256
from howdah.record.directory import RunDirectory
from howdah.record.provenance import run_key

KIND = "guest-run"
REPORT = "report.json"  # of the engine, where a command made the run
MOST_BYTES = 512 << 20  # of all that is remembered; what was asked for last stays
_ARCHIVE = "run.tar.zst"
_COMPARED = "compared"  # empty: when it was touched, a new run was equal
_SOURCES = ("howdah/build", "howdah/engine/{}")  # the shim and the kernel's options lie beside their modules
_LEVEL = 1  # a trace shrinks to a thirteenth of its size, and less with ten times the work


def key_of(engine: UmlEngine | VmEngine, plan: Plan) -> str:
    """Of the raw files that the engine would write; it is prepared for the plan.

    A profile's own modules are known by their contents: a test has them in another directory each time.
    """
    identity = engine.prepare([plan], lambda _what, _done, _of: None)
    anywhere = replace(plan, modules=[Path(file).name for file in plan.modules])
    wiring = engine.wiring if isinstance(engine, UmlEngine) else ""
    return content_key(run_key(anywhere.to_json(), identity), wiring, launcher_sha256(engine.name))


def launcher_sha256(engine: str = UmlEngine.name) -> str:
    """Version of the code that builds what guests are made of, and starts them."""
    below = [file_of(place.format(engine)) for place in _SOURCES]
    files = [path for each in below for path in sorted(each.rglob("*")) if path.is_file() and path.suffix != ".pyc"]
    return remembered_sha256([f"howdah.engine.{engine}.engine"], data=files)


def may_be_remembered(plan: Plan) -> bool:
    """Whether its next run is equal: processor time is that of one moment, where a processor is not simulated."""
    return plan.traits.virtual_clock and (plan.traits.finite_processor or not plan.collect.cpu)


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
    """Keys and plans of remembered runs that can be made again.

    First come those that were never compared, or not for the longest time.
    """

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
                if plan.engine == UmlEngine.name and not plan.modules:  # whose files were those of a test
                    yield entry.name, plan


def was_equal(key: str) -> None:
    """A guest wrote the same now."""
    (Cache().path(KIND, key) / _COMPARED).touch()


def remember(key: str, directory: RunDirectory) -> None:
    """Keep the plan and the engine's report, if there are any, and the raw files of a run that is valid."""

    def write(entry: Path, _log: Path) -> None:
        with (
            (entry / _ARCHIVE).open("wb") as file,
            zstandard.ZstdCompressor(level=_LEVEL).stream_writer(file) as content,
            tarfile.open(fileobj=content, mode="w|") as archive,
        ):
            for part in (directory.plan, directory.path / REPORT, directory.raw):
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
