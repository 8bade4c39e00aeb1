# SPDX-License-Identifier: Apache-2.0
"""An experiment: the directory with all runs of one profile, and the index that assigns runs to cells."""

from __future__ import annotations

import fcntl
import glob
import os
import shutil
from collections.abc import Iterable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field
from pathlib import Path

from howdah.errors import HowdahError, RecordError, explain, nearest
from howdah.plan.plan import Plan
from howdah.record.digest import remove_data
from howdah.record.directory import (
    PARTIAL,
    RunDirectory,
    experiment_indexes,
    of_place,
    remove_abandoned,
    sweep_writing,
    writing_name,
)
from howdah.record.index import (
    EXPERIMENT_FORMAT,
    PENDING,
    ExperimentIndex,
    IndexedRun,
    ProfileSource,
    read_index,
    write_index,
)
from howdah.record.provenance import analysis_sha256, first_record, now, sha256_text
from howdah.record.run import read_record, write_record
from howdah.record.verdict import read_verdict
from howdah.work.trust import signed

_MOST_NAMED = 5


@dataclass
class PlannedRun:
    """A run that a profile asks for: its plan, its key and its directory.

    Without ``keep_data`` only its results are kept when it is done (``howdah/record/digest.py``). ``patience_s`` is the
    processor time that it may use without simulated time passing; None means the engine's limit.
    """

    plan: Plan
    key: str
    keep_data: bool = True
    number: int = field(default=0, kw_only=True)  # its index among the runs of its experiment
    patience_s: float | None = field(default=None, kw_only=True)

    @property
    def directory_name(self) -> str:
        return f"{self.plan.run}-{self.key[:8]}" if self.key else self.plan.run


class ExperimentDirectory:
    """``runs/<name>/``. Finished runs are never changed: a changed plan has another key and so another directory."""

    def __init__(self, path: Path) -> None:
        self.path = path

    @property
    def index(self) -> Path:
        return self.path / "experiment.json"

    def create(self) -> None:
        try:
            self.path.mkdir(parents=True, exist_ok=True)
            probe = writing_name(self.path / "probe")
            probe.touch()
            probe.unlink()
        except OSError as error:
            raise HowdahError(
                f"the experiment directory cannot be written: {explain(error)}",
                where=str(self.path),
                hint="Choose another place with --runs DIR.",
            ) from error

    @contextmanager
    def locked(self) -> Iterator[None]:
        """Hold the experiment for one command. Raise HowdahError with the process ID of a command that holds it
        already."""
        lock = self.path / ".lock"
        with lock.open("a+") as file:
            try:
                fcntl.flock(file, fcntl.LOCK_EX | fcntl.LOCK_NB)
            except BlockingIOError:
                file.seek(0)
                holder = file.read().strip() or "unknown"
                raise HowdahError(
                    f"another howdah (process {holder}) is working in this experiment",
                    where=str(self.path),
                    hint="Wait for it, or give this run a place of its own with --runs DIR.",
                ) from None
            try:
                file.seek(0)
                file.truncate()
                file.write(str(os.getpid()))
                file.flush()
            except OSError as error:  # of a full disk it names no file
                raise of_place(error, lock, self.path) from error
            yield

    def sweep_partial(self) -> list[str]:
        """Remove what interrupted commands left, and return the names. The caller holds the lock, so no run is being
        made."""
        removed = []
        for entry in self.path.glob(f"{PARTIAL}*"):
            shutil.rmtree(entry, ignore_errors=True)
            removed.append(entry.name)
        # Reports are made without the lock: their files and blocks are removed once their command has ended.
        left = [entry for entry in self.path.glob(f"*/{PARTIAL}*") if remove_abandoned(entry)]
        removed += [str(entry.relative_to(self.path)) for entry in left]
        for directory in (self.path, *self.path.glob("*/"), *self.path.glob("*/tables/")):
            removed += [str(entry.relative_to(self.path)) for entry in sweep_writing(directory)]
        return removed

    def finished(self, cell: PlannedRun) -> RunDirectory | None:
        """Return the finished run of this cell if it has the same key and all data that are to be kept; else None.

        A run of which only results were kept must have been analysed by the current version: it cannot be measured
        again.
        """
        directory = RunDirectory(self.path / cell.directory_name)
        if not directory.provenance.exists():
            return None
        try:
            record = read_record(directory)
            if record.status == "finished":
                read_verdict(directory)
        except (RecordError, FileNotFoundError):
            return None  # damaged: the repeated run replaces it
        if record.status != "finished" or record.key != cell.key:
            return None
        if not record.data_removed:
            return directory
        return None if cell.keep_data or record.analysis_sha256 != analysis_sha256() else directory

    def begin(self, cell: PlannedRun) -> RunDirectory:
        """Make a partial directory with the plan in it, ready for a worker."""
        text = cell.plan.to_json()
        directory = begin_run(self.path / cell.directory_name, text, cell.key, cell.plan.parameter_places)
        record = read_record(directory)
        if (made_here := signed(record, cell.plan, text)) is not record:
            write_record(directory, made_here)
        return directory

    def keep(self, cell: PlannedRun, partial: RunDirectory) -> RunDirectory:
        """Give a complete run its final name. It replaces a failed run of the same key."""
        final = RunDirectory(self.path / cell.directory_name)
        if not cell.keep_data:
            remove_data(partial)
        before = self.path / f"{PARTIAL}replaced-{cell.directory_name}-{os.getpid()}"
        shutil.rmtree(before, ignore_errors=True)
        if final.path.exists():
            final.path.rename(before)
        partial.path.rename(final.path)
        shutil.rmtree(before, ignore_errors=True)
        return final

    def write_index(
        self,
        profile_text: str,
        profile_file: str,
        description: str,
        runs: Iterable[IndexedRun],
        *,
        quick: bool = False,
        axes: dict[str, list[str]] | None = None,
        total: int | None = None,
    ) -> None:
        """Write experiment.json. ``axes`` has the swept fields with all their values in the profile; a ``quick`` subset
        may leave values out.

        A large sweep, whose runs have no names before they are planned, lists only the runs that ended; ``total`` is
        the number of all its runs.
        """
        source = ProfileSource(file=profile_file, sha256=sha256_text(profile_text))
        index = ExperimentIndex(
            format=EXPERIMENT_FORMAT,
            name=self.path.name,
            profile=source,
            description=description,
            created=now(),
            quick=quick,
            axes={name: [*values] for name, values in (axes or {}).items()},
            cells=[],
        )
        if total is not None:
            index.total = total
        write_index(self.index, index, runs)

    def indexed(self, cells: Iterable[PlannedRun]) -> Iterator[IndexedRun]:
        """Yield the rows of experiment.json from what is on disk, so that they are right however the last command
        ended."""
        for cell in cells:
            status, verdict = self._state(cell.directory_name)
            yield indexed(cell, status, verdict)

    def _state(self, run: str) -> tuple[str, str | None]:
        """Return status and verdict of a run on disk; ``pending`` if it is missing."""
        directory = RunDirectory(self.path / run)
        if not directory.provenance.exists():
            return PENDING, None
        try:
            verdict = read_verdict(directory).verdict if directory.verdict.exists() else None
            return read_record(directory).status, verdict
        except RecordError:
            return "failed", None

    def update_index(self) -> None:
        """Bring status and verdict of every run listed in experiment.json up to date.

        Do nothing without an index, or while another command works in the experiment and will write it.
        """
        if not self.index.exists():
            return
        try:
            with self.locked():
                index = read_index(self.index)
                updated = []
                for cell in index.cells:
                    status, verdict = self._state(cell.run)
                    updated.append(cell.model_copy(update={"status": status, "verdict": verdict}))
                if updated != index.cells:
                    write_index(self.index, index, updated)
        except HowdahError:
            return


def indexed(cell: PlannedRun, status: str, verdict: str | None) -> IndexedRun:
    """Return the row of experiment.json for a run of this plan."""
    plan = cell.plan
    return IndexedRun(
        run=cell.directory_name,
        axes=plan.axes,
        algorithm=plan.algorithm,
        repetition=plan.repetition,
        status=status,
        verdict=verdict,
    )


def from_here(place: str) -> str:
    """Return ``file:line`` with the file relative to the working directory, or only the file's name if it is elsewhere.

    Runs are shared: directories of the machine that made them mean nothing to others, and reveal its owner.
    """
    here = f"{Path.cwd()}/"
    return place.removeprefix(here) if place.startswith(here) or not place.startswith("/") else place.rpartition("/")[2]


def begin_run(final: Path, plan_json: str, key: str, parameter_places: dict[str, str]) -> RunDirectory:
    """Make the partial directory of a run whose final name is ``final``, with its plan in it, ready for a worker."""
    directory = RunDirectory(final.with_name(f"{PARTIAL}{final.name}-{os.getpid()}"))
    shutil.rmtree(directory.path, ignore_errors=True)
    directory.raw.mkdir(parents=True)
    directory.share.mkdir()
    directory.plan.write_text(plan_json, encoding="utf-8")
    places = {name: from_here(place) for name, place in parameter_places.items()}
    write_record(directory, first_record(plan_json, key).replaced(parameter_places=places))
    return directory


def set_latest(runs: Path, experiment: ExperimentDirectory) -> None:
    """Point ``runs/latest`` at the experiment, by rename so that it is never missing."""
    sweep_writing(runs)
    temporary = writing_name(runs / "latest")
    temporary.unlink(missing_ok=True)
    temporary.symlink_to(experiment.path.name)
    temporary.replace(runs / "latest")


def find(runs: Path, name: str) -> Path:
    """Return the directory that a name means: a path, an experiment, ``experiment/run``, a run, or ``latest``.

    A run's name, also at the end of a path, may lack its key if that is unambiguous. Links, such as ``latest``, are
    followed. The result begins as ``runs`` or the path does. Raise HowdahError unless the name means one directory.
    """
    for candidate in (Path(name), runs / name):
        if candidate.is_dir() and ((candidate / "plan.json").exists() or (candidate / "experiment.json").exists()):
            return _as_given(candidate)
    experiment, _, run = name.rpartition("/")
    pattern = f"{glob.escape(experiment) or '*'}/{glob.escape(run)}*/plan.json"
    matches = sorted(runs.glob(pattern)) if not Path(name).is_absolute() and run else []
    if experiment and run and not matches:  # an experiment elsewhere, such as an unpacked one
        matches = sorted(Path(experiment).glob(f"{glob.escape(run)}*/plan.json"))
    matches = [match for match in matches if not match.parent.name.startswith(PARTIAL)]
    if not experiment:  # 'latest' and reruns match only if they are named
        matches = [match for match in matches if match.parts[-3] not in ("latest", "reruns")]
    if len(matches) == 1:
        return _as_given(matches[0].parent)
    if matches:
        names = ", ".join(f"{match.parts[-3]}/{match.parent.name}" for match in matches[:_MOST_NAMED])
        names += f" and {len(matches) - _MOST_NAMED} more" if len(matches) > _MOST_NAMED else ""
        raise HowdahError(f"'{name}' means more than one run: {names}", hint="Name one of them.")
    if (given := Path(name)).is_dir() and name != "latest":
        raise HowdahError(
            "this directory is neither a run nor an experiment",
            where=name,
            hint="A run has a plan.json, an experiment an experiment.json. --runs names a directory of experiments.",
        )
    if not (known := _names_below(runs, with_runs=bool(experiment))) and not given.exists():
        what = "there are no runs in it yet" if runs.is_dir() else "there is no such directory yet, and so no runs"
        hint = "'howdah run quick' makes some; --runs or HOWDAH_RUNS names another directory of experiments."
        raise HowdahError(what, where=str(runs), hint=hint)
    close = nearest(name, known)
    listed = "'howdah list runs' shows what is there."
    hint = f"Did you mean {close}? {listed}" if close else listed
    raise HowdahError(f"there is no run or experiment '{name}'", where=str(runs), hint=hint)


def _as_given(path: Path) -> Path:
    """Return a directory by its real names, after the leading part as the user wrote it."""
    names = 2 if (path / "plan.json").exists() else 1  # a run's has its experiment's name as well
    found = path.resolve()
    before = path.parents[names - 1] if len(path.parts) >= names else None
    if before is None or before.resolve() != found.parents[names - 1]:
        return found
    return before.joinpath(*found.parts[-names:])


def _names_below(runs: Path, *, with_runs: bool) -> list[str]:
    """Return every name that ``find`` would accept: experiments, and runs by their own names or by both."""
    found = [file.parent.name for file in experiment_indexes(runs)]
    for plan in runs.glob("*/*/plan.json"):
        run, experiment = plan.parent.name, plan.parts[-3]
        if not run.startswith(PARTIAL) and not experiment.startswith(PARTIAL) and experiment != "latest":
            found.append(f"{experiment}/{run}" if with_runs else run)
    return found


LEAST_FREE_BYTES = 64_000_000  # with less free space, no run starts after a failed one


def free_bytes(experiment: ExperimentDirectory) -> int | None:
    """The free bytes, or None if the file system does not report them."""
    try:
        return shutil.disk_usage(experiment.path).free
    except OSError:
        return None


def add_free_space_hint(error: HowdahError, experiment: ExperimentDirectory) -> None:
    """Add a full disk to an error's hint: errors it causes often give another reason, and no log can be written."""
    free = free_bytes(experiment)
    if free is not None and free < LEAST_FREE_BYTES:
        room = f"Only {free / 1e6:.1f} MB are free there. Make room and run the command again: finished runs are kept."
        error.hint = f"{error.hint}\n  {room}" if error.hint else room
