# SPDX-License-Identifier: Apache-2.0
"""A place of its own for howdah commands that will be killed: cache, runs, temporary files; and what must hold of it.

*Left* is what is there when the next command has ended: until then a killed command may have left partial directories
(``.partial-…``) and files (``.writing-…``), which no command takes for whole ones. Processes, mounts and locks must be
gone at once.
"""

from __future__ import annotations

import fcntl
import gzip
import json
import os
import re
import secrets
import shutil
import subprocess
import sys
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

import pyarrow as pa
import pyarrow.parquet as pq

from howdah.build.cache import cache_root
from howdah.build.seal import seal_of
from howdah.record.directory import PARTIAL, WRITING, RunDirectory
from howdah.record.table import equal
from tests.faults.processes import end_all, left_after
from tests.faults.starter import Request, Started, Starter
from tests.unit.recorded_run import make_recorded_experiment

ROOT = Path(__file__).resolve().parents[2]
PROFILE = """\
howdah: 1
name: tiny
path: {rate: 10 Mbit/s, rtt: 20 ms}
algorithm: [cubic, reno]
duration: 1 s
"""
NAME = "recorded"  # of the experiment in a sandbox without guests
_GONE_WITHIN_S = 15.0
_MEMORY = Path("/dev/shm")
_PROBE_NAME = re.compile("[a-z0-9_]{8}")  # of tempfile._RandomNameSequence
_BUILT = ("agent", "kernel", "module", "prometheus", "tool", "tree")
REBUILT = ("agent", "tool")  # what the killed 'howdah build' builds
# Of runs that nobody disturbs: a second worker would load for one run what the first has loaded.
_QUIETLY = ("--no-report", "--jobs", "1")

_State = tuple[str, int, int, int, int]


class Sandbox:
    """``root`` has a short name: sockets of a guest lie in it."""

    def __init__(self, root: Path) -> None:
        self.root = root
        self.cache = root / "cache"
        self.runs = root / "runs"
        self.profile = root / "tiny.yaml"
        self.reference: Path | None = None
        self.starter: Starter | None = None  # with one, commands are forks of a process that has loaded howdah
        self._whole: set[_State] = set()  # files, and runs, that were looked at and have not changed since
        self._alike: set[tuple[_State, ...]] = set()
        self._memory = _MEMORY / root.name
        self._places = {"TMPDIR": root / "tmp", "XDG_RUNTIME_DIR": root / "run", "HOME": root / "home"}
        self.expected_mounts = self.mounts()

    def prepare(self) -> None:
        """Directories, the profile, and what is built already, as links to the cache of this machine.

        An entry of a cache does not change, so nothing is looked for behind a link.
        """
        for directory in (*self._places.values(), self._memory, self.cache):
            directory.mkdir()
        for kind in _BUILT:
            self.link(kind)
        self.profile.write_text(PROFILE)

    def link(self, kind: str) -> None:
        """The entries of a kind in the cache of this machine, as they are in this one."""
        entries = cache_root() / kind
        # Others build in that cache: locks and partial entries are theirs.
        for entry in entries.glob("[!.]*") if entries.is_dir() else ():
            link = self.cache / kind / entry.name
            link.parent.mkdir(exist_ok=True)
            if kind in REBUILT:  # a guest does not follow a link out of what it mounts
                shutil.copytree(entry, link, copy_function=os.link, symlinks=True)
            else:
                link.symlink_to(entry)
            if (seal := seal_of(entry)).exists():
                shutil.copy2(seal, seal_of(link))

    def remove(self) -> None:
        if self.starter is not None:
            self.starter.end()
        end_all(self.root)
        shutil.rmtree(self._memory, ignore_errors=True)
        shutil.rmtree(self.root, ignore_errors=True)

    @property
    def environment(self) -> dict[str, str]:
        places = {name: str(place) for name, place in self._places.items()}
        own = {"HOWDAH_CACHE": str(self.cache), "HOWDAH_MEMORY_DIR": str(self._memory), "PYTHONPATH": str(ROOT)}
        return {**os.environ, **places, **own, "LC_ALL": "C.UTF-8"}

    def start(self, arguments: list[str]) -> subprocess.Popen[bytes]:
        """``howdah ARGUMENTS`` as the leader of a session, as in a terminal of its own."""
        with (self.root / "said.txt").open("wb") as said:
            return subprocess.Popen(
                [sys.executable, "-m", "howdah.command.main", *arguments],
                cwd=self.root,
                env=self.environment,
                stdin=subprocess.DEVNULL,
                stdout=said,
                stderr=said,
                start_new_session=True,
            )

    def fork(
        self,
        arguments: list[str],
        *,
        operations: Path | None = None,
        limits: dict[str, int] | None = None,
        said: str = "said.txt",
        recorded: bool = False,
        around: dict[str, str | None] | None = None,
    ) -> Started:
        """The same as a fork."""
        assert self.starter is not None
        operations_file = "" if operations is None else str(operations)
        environment = {
            name: value for name, value in {**self.environment, **(around or {})}.items() if value is not None
        }
        place, output = str(self.root), str(self.root / said)
        return self.starter.start(
            Request(arguments, environment, place, output, limits or {}, recorded, operations_file)
        )

    def said(self) -> str:
        return (self.root / "said.txt").read_text(errors="replace")

    def run(self, arguments: list[str], limit_s: float = 300.0, limits: dict[str, int] | None = None) -> int:
        """The command to its end, which is its status; -1 where it does not come. A fork may have limits."""
        process = self.fork(arguments, limits=limits) if self.starter else self.start(arguments)
        try:
            return process.wait(limit_s)
        except subprocess.TimeoutExpired:
            process.kill()
            process.wait()
            return -1

    def make_reference(self) -> None:
        """The runs as they are when nothing disturbs them."""
        status = self.run(["run", str(self.profile), *_QUIETLY, "--runs", str(self.root / "reference")])
        if status:
            raise AssertionError(f"the undisturbed run ended with {status}: {self.said()}")
        self.reference = self.root / "reference" / "tiny"

    def make_recorded(self) -> None:
        """The recording as an experiment: it needs no guest."""
        (self.root / "reference").mkdir()
        self.reference = make_recorded_experiment(self.root / "reference" / NAME).path.parent

    def copy_reference(self) -> None:
        """Finished runs beside what is there, as an undisturbed run would make them."""
        assert self.reference is not None
        shutil.copytree(self.reference, self.runs / self.reference.name, symlinks=True, dirs_exist_ok=True)

    # What must hold.

    def at_once(self) -> Iterator[str]:
        """Faults that no next command is waited for to see."""
        for process in left_after(self.root, _GONE_WITHIN_S):
            yield f"a process is left: {process.kind} {process.pid} {process.words[:200]!r}"
        end_all(self.root)
        if (now := self.mounts()) != self.expected_mounts:
            yield f"mounts have changed: {sorted(now ^ self.expected_mounts)}"
            self.expected_mounts = now
        yield from self.locks_held()
        yield from self.half_written()

    def mounts(self) -> frozenset[str]:
        """Mounts on, or of, something in the sandbox, where everything that howdah writes is; others mount, too."""
        lines = Path("/proc/self/mountinfo").read_text().splitlines()
        return frozenset(line for line in lines if str(self.root) in line)

    def locks_held(self) -> Iterator[str]:
        """Locks that somebody still has."""
        for lock in (*self.root.glob("**/.lock*"), *self._places["XDG_RUNTIME_DIR"].glob("*.lock")):
            if lock.is_file() and _is_held(lock):
                yield f"a lock is held by nobody: {lock}"

    def half_written(self) -> Iterator[str]:
        """Files and runs that look whole and are not."""
        hidden = (PARTIAL, WRITING)
        for file in sorted(self.runs.rglob("*")):
            parts = file.relative_to(self.runs).parts
            if any(part.startswith(hidden) for part in parts) or "raw" in parts or "share" in parts or file.is_dir():
                continue
            if (state := _state(file)) in self._whole:
                continue
            if problem := _problem(file):
                yield f"{file.relative_to(self.root)} is half-written: {problem}"
            else:
                self._whole.add(state)
        for record in sorted(self.runs.glob("*/*/run.json")):
            if record.parent.name.startswith(hidden) or record.parent.parent.is_symlink():
                continue
            states = tuple(_state(file) for file in sorted(record.parent.rglob("*")))
            if states in self._alike:
                continue
            faults = list(self._unlike_reference(RunDirectory(record.parent)))
            yield from faults
            if not faults:
                self._alike.add(states)

    def _unlike_reference(self, run: RunDirectory) -> Iterator[str]:
        status = json.loads(run.provenance.read_text())["status"]
        if status == "running":
            yield f"{run.path.name} has its whole name and is still running"
        if status != "finished" or self.reference is None:
            return
        for name in ("plan.json", "metrics.json", "verdict.json"):
            if not (run.path / name).exists():
                yield f"{run.path.name} is finished and has no {name}"
        # A rerun has a time behind its name; a night makes a repetition more, with which nothing is compared.
        other = next((RunDirectory(path) for path in self.reference.glob(f"{run.path.name[:12]}*")), None)
        if other is None:
            return
        tables, expected = ({file.name for file in each.tables.glob("*")} for each in (run, other))
        tables = {name for name in tables if not name.startswith(WRITING)}  # an old table's successor, half-way
        if different := tables ^ expected:
            yield f"{run.path.name} is finished and its tables are others: {', '.join(sorted(different))}"
        elif difference := equal(other, run):
            yield f"{run.path.name} differs from the undisturbed run: {difference}"

    def left(self) -> Iterator[str]:
        """What a killed command left although another has ended since."""
        for name in ("TMPDIR", "XDG_RUNTIME_DIR"):
            for entry in self._places[name].iterdir():
                # Lock files of processors stay.
                if not entry.name.startswith("howdah-processor-") and not _is_probe(entry):
                    yield f"left in ${name}: {entry.name}"
        for entry in self._memory.iterdir():
            yield f"left in the memory directory: {entry.name}"
        for entry in self._unfinished():
            yield f"left: {entry.relative_to(self.root)}"

    def _unfinished(self) -> list[Path]:
        """Partial directories and files."""
        found = []
        for root in (self.cache, self.runs):
            for place, directories, files in os.walk(root):
                found += [Path(place, name) for name in (*directories, *files) if name.startswith((PARTIAL, WRITING))]
        return found

    def traceback(self) -> list[str]:
        said = self.said()
        if "Traceback" not in said or said.rstrip().endswith("KeyboardInterrupt"):
            return []  # a Ctrl-C before the command has loaded is told by Python itself
        return [f"a traceback: {said[-1500:]}"]

    def resume(self) -> list[str]:
        """What the next command finds: it ends well, nothing is left, and the runs are those of an undisturbed one."""
        status = self.run(["run", str(self.profile), "--runs", str(self.runs), *_QUIETLY])
        faults = [] if status == 0 else [f"the next command ended with {status}: {self.said()[-1500:]}"]
        if any(self.left()):
            self.run(["clean", "--runs", str(self.runs)])
        faults += [*self.at_once(), *self.left()]
        self.clear_left()
        whole = [path for path in self.runs.glob("tiny/*/run.json") if '"finished"' in path.read_text()]
        if len(whole) < 2:
            faults.append(f"{len(whole)} of 2 runs are finished after the next command")
        return faults

    def clear_left(self) -> None:
        """So that the next round does not tell of it again."""
        for name in ("TMPDIR", "XDG_RUNTIME_DIR"):
            for entry in self._places[name].iterdir():
                _remove(entry)
        for entry in self._unfinished():
            _remove(entry)


def _state(file: Path) -> _State:
    status = file.lstat()
    return str(file), status.st_ino, status.st_size, status.st_mtime_ns, status.st_ctime_ns


def _remove(entry: Path) -> None:
    if entry.is_dir() and not entry.is_symlink():
        shutil.rmtree(entry, ignore_errors=True)
    else:
        entry.unlink(missing_ok=True)


def _is_probe(entry: Path) -> bool:
    """Whether Python's tempfile wrote it to see whether the directory can be written, and was killed before the next
    line, which removes it (``tempfile._get_default_tempdir``). No command can keep that from being left."""
    return _PROBE_NAME.fullmatch(entry.name) is not None and entry.is_file() and entry.read_bytes() in (b"", b"blat")


def _is_held(lock: Path) -> bool:
    with lock.open("r+") as file:
        try:
            fcntl.flock(file, fcntl.LOCK_EX | fcntl.LOCK_NB)
        except BlockingIOError:
            return True
    return False


def _problem(file: Path) -> str | None:
    try:
        if file.suffix == ".json":
            json.loads(file.read_bytes())
        elif file.suffix == ".parquet":
            pq.ParquetFile(file).read()  # read_table loads pandas, in every process
        elif file.suffix == ".gz":
            json.loads(gzip.decompress(file.read_bytes()))
        elif file.suffix == ".html" and not file.read_text().rstrip().endswith("</html>"):
            return "it has no end"
        elif file.name == "profile.yaml" and file.parent.name == "tiny" and file.read_text() != PROFILE:
            return "it is not the profile"
    except (OSError, ValueError, EOFError, pa.ArrowInvalid) as error:
        return str(error)
    return None


@contextmanager
def sandbox(*, recorded: bool = False, forks: bool = False) -> Iterator[Sandbox]:
    """A sandbox with its reference made, or recorded, removed at the end; ``forks``: its commands are forks."""
    root = Path("/tmp") / f"hf-{os.getpid()}-{secrets.token_hex(3)}"
    root.mkdir(mode=0o700)
    place = Sandbox(root)
    try:
        place.prepare()
        if forks:
            place.starter = Starter()
        if recorded:
            place.make_recorded()
        else:
            place.make_reference()
        yield place
    finally:
        place.remove()
