# SPDX-License-Identifier: Apache-2.0
"""The run directory, which all stages read from and write to; and the state of its small files according to the file
system, which shows changes without reading them."""

from __future__ import annotations

import fcntl
import json
import math
import os
import re
import shutil
import struct
from collections.abc import Iterable, Iterator
from contextlib import contextmanager, suppress
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from howdah.errors import RecordError
from howdah.foreign import is_too_dense, read_foreign
from howdah.scratch import remove_if_abandoned

PARTIAL = ".partial-"
WRITING = ".writing-"  # prefix of a file that is being written, in the directory of its final path
_OWN_NAME_BYTES = 200
_OWNER = re.compile(r"-(\d+)$")
_PARTIAL_NAME = re.compile(rf"{re.escape(PARTIAL)}(.+)-\d+")


@dataclass(frozen=True)
class RunDirectory:
    """The paths of the files of one run (one boot of one plan). See docs/data-format.md."""

    path: Path

    @property
    def name(self) -> str:
        """The run's name, even while its directory still has a partial one's name."""
        partial = _PARTIAL_NAME.fullmatch(self.path.name)
        return partial.group(1) if partial else self.path.name

    @property
    def plan(self) -> Path:
        return self.path / "plan.json"

    @property
    def provenance(self) -> Path:
        """run.json: written first with status ``running`` and last with the final status."""
        return self.path / "run.json"

    @property
    def share(self) -> Path:
        """What the guest may read: the plan, the agent, collectors, and kernel modules."""
        return self.path / "share"

    @property
    def raw(self) -> Path:
        """What the guest writes, and its console."""
        return self.path / "raw"

    @property
    def console(self) -> Path:
        return self.raw / "console.log"

    @property
    def tables(self) -> Path:
        return self.path / "tables"

    @property
    def ingested(self) -> Path:
        """The report of ingest on its sources, as JSON."""
        return self.tables / "ingest.json"

    def table(self, name: str) -> Path:
        return self.tables / f"{name}.parquet"

    @property
    def metrics(self) -> Path:
        return self.path / "metrics.json"

    @property
    def connections(self) -> Path:
        """The measures of each connection of a group; only for runs with groups."""
        return self.path / "connections.parquet"

    @property
    def verdict(self) -> Path:
        return self.path / "verdict.json"

    @property
    def log(self) -> Path:
        """What the host did to make this run, with times."""
        return self.path / "engine.log"


def writing_name(path: Path) -> Path:
    """The temporary path of a file that is being written; ``sweep_writing`` finds it if the command is killed."""
    return beside(path, WRITING)


def beside(path: Path, mark: str) -> Path:
    """The name of what becomes ``path``, with this process in it; cut, because a name has at most 255 bytes."""
    return path.with_name(f"{mark}{os.fsdecode(os.fsencode(path.name)[:_OWN_NAME_BYTES])}-{os.getpid()}")


def of_place(error: OSError, temporary: Path, path: Path) -> OSError:
    """The error about ``path``, which the user gave, where it is about what becomes it, or about no file."""
    name = error.filename
    if error.errno and (name is None or str(name).startswith(str(temporary))):
        return OSError(error.errno, error.strerror or os.strerror(error.errno), str(path))
    return error


@contextmanager
def in_its_place(path: Path) -> Iterator[Path]:
    """A file beside ``path`` to write to, which takes its place at the end, or goes after an error.

    A reader sees either the old file or the whole new one. An OSError names ``path``, which the user gave.
    """
    temporary = writing_name(path)
    try:
        descriptor = os.open(temporary, os.O_RDWR | os.O_CREAT | os.O_CLOEXEC, 0o666)
        try:
            with suppress(OSError):  # a file system without locks
                fcntl.flock(descriptor, fcntl.LOCK_EX)  # shows that it is being written (remove_if_abandoned)
            yield temporary
        finally:
            os.close(descriptor)
        temporary.replace(path)
    except BaseException as error:
        with suppress(OSError):
            temporary.unlink(missing_ok=True)
        if isinstance(error, OSError):
            raise of_place(error, temporary, path) from error
        raise


def write_whole(path: Path, content: str | bytes | Iterable[str]) -> None:
    """Write a file as ``in_its_place`` does, and to the disk. The parts of an iterable are not in memory together."""
    with in_its_place(path) as temporary, temporary.open("wb") as file:
        parts = [content] if isinstance(content, str | bytes) else content
        file.writelines(part.encode() if isinstance(part, str) else part for part in parts)
        file.flush()
        os.fsync(file.fileno())


def write_json(path: Path, value: Any) -> None:
    """Write JSON as ``write_whole`` does."""
    write_whole(path, json.dumps(value, indent=1, sort_keys=False) + "\n")


def remove_abandoned(path: Path) -> bool:
    """Remove a partial directory or file if the process whose number ends its name has ended. Return whether it was."""
    owner = _OWNER.search(path.name)
    return remove_if_abandoned(path, owner.group(1) if owner else None)


def experiment_indexes(runs: Path) -> list[Path]:
    """``experiment.json`` of each experiment in a directory of runs, sorted, except those being removed."""
    found = sorted(runs.glob("*/experiment.json"))
    return [index for index in found if not index.parent.name.startswith(PARTIAL)]


def sweep_writing(directory: Path) -> list[Path]:
    """Remove files that killed commands were writing into ``directory`` itself; return them."""
    return [entry for entry in directory.glob(f"{WRITING}*") if remove_abandoned(entry)]


def remove_whole(path: Path) -> None:
    """Remove a directory; rename it first, so that it never looks complete while it is removed. Raise OSError."""
    doomed = path.with_name(f"{PARTIAL}{path.name}-{os.getpid()}")
    if path != doomed and not path.name.startswith(PARTIAL):
        shutil.rmtree(doomed, ignore_errors=True)
        path = path.rename(doomed)
    # If the command is killed from here on, it leaves an experiment without an index, and unfinished runs.
    for pattern in ("experiment.json", "run.json", "*/run.json"):
        for mark in path.glob(pattern):
            mark.unlink(missing_ok=True)
    shutil.rmtree(path)


def read_json(path: Path) -> Any:
    """The value in a JSON file; numbers are finite. Raise RecordError, and FileNotFoundError without a file."""
    try:
        return parse_json(read_foreign(path), path)
    except FileNotFoundError:
        raise
    except OSError as error:
        raise RecordError(f"this cannot be read: {error.strerror}", where=str(path)) from error


def read_object(path: Path) -> dict[str, Any]:
    """The object in a JSON file; empty if it holds something else or cannot be read."""
    try:
        found = read_json(path)
    except (OSError, ValueError):
        return {}
    return found if isinstance(found, dict) else {}


def parse_json(content: bytes, path: Path) -> Any:
    """The value of JSON text read from ``path``; numbers are finite. Raise RecordError."""
    if is_too_dense(content):
        raise RecordError("this has more values than its size is good for", where=str(path))
    try:
        return json.loads(content, parse_constant=_refused, parse_float=_finite)
    except RecursionError:
        raise RecordError("this is not JSON: it is nested too deeply", where=str(path)) from None
    except ValueError as error:
        raise RecordError(f"this is not JSON: {error}", where=str(path)) from error


def _refused(text: str) -> float:
    raise ValueError(f"{text} is not a JSON number")


def _finite(text: str) -> float:
    value = float(text)
    return value if math.isfinite(value) else _refused(text)


_STATE = struct.Struct("<" + "Qqqq" * 4)
_NOTHING = (0, 0, 0, 0)
# Coarsest resolution of file times, 2 s: two writes within it look the same.
STEP_NS = 2_000_000_000


def states_of(experiment: Path, names: Iterable[str]) -> dict[str, bytes]:
    """The state of each run: inode, size and times of its plan, record, measures and verdict, zeros if missing.

    A user who writes a file can set its modification time, but not its change time (``ctime``).
    """
    files = [place.name for place in (_RUN.plan, _RUN.provenance, _RUN.metrics, _RUN.verdict)]
    handle = os.open(experiment, os.O_RDONLY | os.O_DIRECTORY)
    try:
        return {
            name: _STATE.pack(*(number for file in files for number in _stat(f"{name}/{file}", handle)))
            for name in names
        }
    finally:
        os.close(handle)


def is_settled(state: bytes, now_ns: int) -> bool:
    """Whether the last change is old enough that a further one would show."""
    changed: list[int] = list(_STATE.unpack(state)[3::4])
    return max(changed) + STEP_NS < now_ns


_RUN = RunDirectory(Path())


def _stat(place: str, handle: int) -> tuple[int, int, int, int]:
    try:
        found = os.stat(place, dir_fd=handle)
    except OSError:
        return _NOTHING
    return found.st_ino, found.st_size, found.st_mtime_ns, found.st_ctime_ns
