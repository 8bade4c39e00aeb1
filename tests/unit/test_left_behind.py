# SPDX-License-Identifier: Apache-2.0
"""Whatever the moment at which a command is killed, nothing it leaves looks whole, and the next one removes it."""

from __future__ import annotations

import fcntl
import os
import shutil
import subprocess
import sys
import tempfile
from collections.abc import Iterator
from pathlib import Path

import pytest

from howdah.build.cache import Cache
from howdah.cluster.message import MadeRun
from howdah.cluster.store import Store
from howdah.command import names
from howdah.command.main import main
from howdah.engine.uml.guest import sweep
from howdah.errors import HowdahError
from howdah.publish.serve import experiments
from howdah.record.directory import PARTIAL, WRITING, RunDirectory, remove_whole, sweep_writing, write_json, write_whole
from howdah.scratch import held, remove_if_abandoned, scratch, sweep_scratch
from howdah.work.experiment import ExperimentDirectory, PlannedRun, begin_run, find
from tests.unit.recorded_run import recorded_plan


class KilledError(Exception):
    """Stands for a kill: nothing after it is done."""


@pytest.fixture
def gone() -> int:
    """The number of a process that has ended."""
    process = subprocess.Popen([sys.executable, "-c", ""])
    process.wait()
    return process.pid


@pytest.fixture
def experiment(tmp_path: Path) -> ExperimentDirectory:
    made = ExperimentDirectory(tmp_path / "runs" / "exp")
    made.create()
    return made


def _whole(experiment: ExperimentDirectory, cell: PlannedRun, note: str) -> RunDirectory:
    partial = experiment.begin(cell)
    write_json(partial.provenance, {"status": "finished", "key": cell.key, "note": note})
    write_json(partial.verdict, {"verdict": "pass", "checks": []})
    (partial.tables).mkdir()
    (partial.tables / "flow.parquet").write_bytes(b"x")
    return partial


def test_a_file_is_the_old_or_the_new_one(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    file = tmp_path / "x.json"
    write_whole(file, "old")

    def killed(_descriptor: int) -> None:
        raise KilledError

    monkeypatch.setattr("os.fsync", killed)
    with pytest.raises(KilledError):
        write_whole(file, "new")
    assert file.read_text() == "old"
    assert list(tmp_path.iterdir()) == [file], "an error, unlike a kill, leaves nothing at all"


@pytest.mark.parametrize("step", [0, 1])
def test_a_run_made_again_is_the_old_or_the_new_one(
    experiment: ExperimentDirectory, monkeypatch: pytest.MonkeyPatch, step: int
) -> None:
    """``--again``, killed at each removal of a directory: before and after the new one has its name."""
    cell = PlannedRun(recorded_plan(), "a" * 64)
    experiment.keep(cell, _whole(experiment, cell, "old"))
    partial = _whole(experiment, cell, "new")
    calls = []

    def killed(path: Path, **_options: bool) -> None:
        calls.append(path)
        if len(calls) == step + 1:
            for file in sorted(Path(path).rglob("*.parquet")):
                file.unlink()  # it was killed in the middle
            raise KilledError

    with monkeypatch.context() as patched:
        patched.setattr(shutil, "rmtree", killed)
        with pytest.raises(KilledError):
            experiment.keep(cell, partial)
    for run in experiment.path.glob("*/run.json"):
        if not run.parent.name.startswith(PARTIAL):
            assert (run.parent / "tables" / "flow.parquet").exists(), f"{run.parent} looks whole"
    experiment.sweep_partial()
    assert not list(experiment.path.glob(f"{PARTIAL}*"))


def test_what_is_removed_loses_its_name_first(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    (tmp_path / "kernel").mkdir()

    def killed(path: Path, ignore_errors: bool = False) -> None:
        if not ignore_errors:
            assert Path(path).name.startswith(PARTIAL)
            raise KilledError

    monkeypatch.setattr(shutil, "rmtree", killed)
    with pytest.raises(KilledError):
        remove_whole(tmp_path / "kernel")
    assert not (tmp_path / "kernel").exists()


def test_nothing_in_what_is_removed_looks_whole(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Killed while the files of an experiment go: what stays is neither an experiment nor a finished run."""
    run = tmp_path / "made" / "cubic-r0"
    run.mkdir(parents=True)
    for file in (run.parent / "experiment.json", run / "run.json", run / "plan.json"):
        file.write_text("{}")

    def killed(_path: Path, ignore_errors: bool = False) -> None:
        if not ignore_errors:
            raise KilledError

    monkeypatch.setattr(shutil, "rmtree", killed)
    with pytest.raises(KilledError):
        remove_whole(run.parent)
    assert [file.name for file in tmp_path.rglob("*.json")] == ["plan.json"]


def test_an_experiment_that_is_being_removed_is_none(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    """Killed after it lost its name and before its index went."""
    doomed = tmp_path / f"{PARTIAL}made-1" / "cubic-r0"
    doomed.mkdir(parents=True)
    (doomed / "plan.json").write_text("{}")
    (doomed.parent / "experiment.json").write_text("{}")
    assert not list(experiments(tmp_path))
    assert not names.experiments(tmp_path)
    assert main(["list", "runs", "--runs", str(tmp_path)]) == 0
    assert PARTIAL not in capsys.readouterr().out
    assert main(["list", "runs", "--json", "--runs", str(tmp_path)]) == 0
    assert PARTIAL not in capsys.readouterr().out
    with pytest.raises(HowdahError) as caught:
        find(tmp_path, "mad")
    assert PARTIAL not in str(caught.value)


def test_a_damaged_run_is_made_again(experiment: ExperimentDirectory) -> None:
    cell = PlannedRun(recorded_plan(), "a" * 64)
    run = experiment.keep(cell, _whole(experiment, cell, "old"))
    assert experiment.finished(cell) is not None
    for file in (run.provenance, run.verdict):
        before = file.read_bytes()
        for content in (b"", before[:20], b"[]", b'{"status": 3}'):
            file.write_bytes(content)
            assert experiment.finished(cell) is None, (file, content)
        file.write_bytes(before)
    run.verdict.unlink()
    assert experiment.finished(cell) is None


def test_files_of_killed_commands_go_with_the_next_one(experiment: ExperimentDirectory, gone: int) -> None:
    cell = PlannedRun(recorded_plan(), "a" * 64)
    run = experiment.keep(cell, _whole(experiment, cell, "old"))
    blocks = experiment.path / "prometheus"
    blocks.mkdir()
    for place in (experiment.path, run.path, run.tables):
        (place / f"{WRITING}x.json-{gone}").touch()
        (place / f"{WRITING}x.json-{os.getpid()}").touch()
    (blocks / f"{PARTIAL}abc-{gone}").mkdir()
    (blocks / f"{PARTIAL}abc-{os.getpid()}").mkdir()
    experiment.sweep_partial()
    left = {str(entry.relative_to(experiment.path)) for entry in experiment.path.rglob(".*-*")}
    own = os.getpid()
    places = ("", f"{run.path.name}/", f"{run.path.name}/tables/")
    assert left == {*(f"{place}{WRITING}x.json-{own}" for place in places), f"prometheus/{PARTIAL}abc-{own}"}


def test_partial_entries_of_the_cache_go_unless_they_are_being_built(tmp_path: Path, gone: int) -> None:
    cache = Cache(tmp_path)
    (tmp_path / "agent").mkdir()
    for key in ("dead", "alive"):
        (tmp_path / "agent" / f"{PARTIAL}{key}-{gone}").mkdir()
    with (tmp_path / "agent" / ".lock-alive").open("w") as lock:
        fcntl.flock(lock, fcntl.LOCK_EX)
        assert [path.name for path in cache.sweep()] == [f"{PARTIAL}dead-{gone}"]
    # Whoever builds another entry sweeps, too; a run that a worker makes in its cache has no lock, and stays.
    (tmp_path / "unfetched" / f"{PARTIAL}cubic-r0-{os.getpid()}").mkdir(parents=True)
    cache.build("tool", "key", lambda _directory, _log: None)
    assert [path.parent.name for path in tmp_path.glob(f"*/{PARTIAL}*")] == ["unfetched"]


def test_a_guests_directory_goes_unless_its_launcher_lives(tmp_path: Path, gone: int) -> None:
    names = [f"howdah-guest-{gone}-dead", f"howdah-guest-{gone}-locked", f"howdah-guest-{os.getpid()}-young"]
    for name in (*names, "somebody-elses"):
        (tmp_path / name).mkdir()
    locked = os.open(tmp_path / names[1], os.O_RDONLY)
    try:
        fcntl.flock(locked, fcntl.LOCK_EX)
        assert [path.name for path in sweep(tmp_path)] == [names[0]]
    finally:
        os.close(locked)
    assert [path.name for path in sweep(tmp_path)] == [names[1]]
    assert sorted(path.name for path in tmp_path.iterdir()) == [names[2], "somebody-elses"]


@pytest.fixture
def elsewhere(monkeypatch: pytest.MonkeyPatch) -> None:
    """The numbers of processes are those of another container: each that a name has is of nobody here."""
    monkeypatch.setattr("howdah.scratch.is_running", lambda _owner: False)


@pytest.mark.usefixtures("elsewhere")
def test_what_another_container_uses_stays(tmp_path: Path, experiment: ExperimentDirectory) -> None:
    """Its lock is seen where its process is not: in the cache that workers share, of reruns, of files, of blocks."""
    store = Store(Cache(tmp_path / "cache"))
    rerun = experiment.path.parent / "reruns" / f"{PARTIAL}x-1"
    rerun.mkdir(parents=True)
    blocks = experiment.path / "prometheus"
    blocks.mkdir()
    kept = experiment.path / "metrics.json"
    seen = []

    def parts() -> Iterator[str]:
        yield "whole"
        seen.append(Store(store.cache).scratch)
        experiment.sweep_partial()
        assert main(["clean", "--runs", str(experiment.path.parent)]) == 0

    with scratch(PARTIAL, store.scratch) as run, scratch(PARTIAL, blocks) as block, held(rerun):
        write_whole(kept, parts())
        assert run.is_dir()
        assert block.is_dir()
        assert rerun.is_dir()
        final = rerun.rename(rerun.with_name("x"))
    assert seen == [tmp_path / "cache" / "unfetched"]
    assert kept.read_text() == "whole"
    assert list(final.iterdir()) == [], "its lock is no part of what is kept"
    for left in (run, block):
        left.mkdir()
    experiment.sweep_partial()
    assert [*store.scratch.iterdir(), *blocks.iterdir()] == [], "without its lock it is nobody's"


@pytest.mark.usefixtures("elsewhere")
def test_what_is_removed_before_it_is_locked_is_not_used(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    place, lock = tmp_path / "x-1", fcntl.flock

    def removed_meanwhile(file: int, how: int) -> None:
        monkeypatch.setattr(fcntl, "flock", lock)
        assert remove_if_abandoned(place, "1")
        lock(file, how)

    place.mkdir()
    monkeypatch.setattr(fcntl, "flock", removed_meanwhile)
    with pytest.raises(FileNotFoundError, match="x-1"), held(place):
        pass


@pytest.mark.usefixtures("elsewhere")
def test_what_is_finished_while_it_is_looked_at_keeps_no_lock(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    place, final, lock = tmp_path / "x-1", tmp_path / "x", fcntl.flock

    def finished_meanwhile(file: int, how: int) -> None:
        lock(file, how)
        if place.exists():
            place.rename(final)

    place.mkdir()
    monkeypatch.setattr(fcntl, "flock", finished_meanwhile)
    remove_if_abandoned(place, "1")
    assert [*tmp_path.rglob("*")] == [final]


@pytest.mark.usefixtures("elsewhere")
def test_a_file_is_locked_until_it_has_its_place(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    close = os.close

    def swept_meanwhile(descriptor: int) -> None:
        close(descriptor)
        sweep_writing(tmp_path)

    monkeypatch.setattr(os, "close", swept_meanwhile)
    write_whole(tmp_path / "x", "whole")
    assert (tmp_path / "x").read_text() == "whole"


def test_workers_of_two_containers_with_one_number_make_the_same_run(tmp_path: Path) -> None:
    store = Store(Cache(tmp_path / "cache"))
    made = MadeRun("ab" * 32, "cubic-r0", "pass", False, None, True, "cd" * 32, "ef" * 32, 3, 1.0)
    with scratch(PARTIAL, store.scratch) as one, scratch(PARTIAL, store.scratch) as other:
        runs = [begin_run(place / "cubic-r0", "{}", made.key, {}).path for place in (one, other)]
        assert all(run.is_dir() for run in runs)
        for place in (one, other):
            (place / "pack").write_bytes(b"run")
            store.put(made, place / "pack")
    assert store.unfetched() == [made]
    assert [entry.name for entry in sorted(store.scratch.iterdir())] == [".made", made.key]


def test_a_scratch_directory_goes_when_nobody_uses_it(
    tmp_path: Path, gone: int, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(tempfile, "tempdir", str(tmp_path))
    hexadecimal = "0123456789abcdef"
    left, locked = (tmp_path / f"howdah-{what}-{hexadecimal}-{gone}" for what in ("verify", "dask"))
    used = tmp_path / f"howdah-verify-{hexadecimal}-{os.getppid()}"
    others = tmp_path / f"howdah-notes-{gone}"
    for directory in (left, locked, used, others):
        directory.mkdir()
    link = tmp_path / f"howdah-{hexadecimal}-{gone}"
    link.symlink_to(used)
    descriptor = os.open(locked, os.O_RDONLY)
    try:
        fcntl.flock(descriptor, fcntl.LOCK_EX)
        assert sweep_scratch() == [left]
    finally:
        os.close(descriptor)
    assert others.exists(), "no name that howdah gives"
    assert link.is_symlink()
    monkeypatch.setattr("howdah.scratch.is_running", lambda _owner: False)  # as seen from another container
    with scratch("howdah-verify-") as place:
        assert place.is_dir()
        assert not locked.exists(), "a new one removes what was left"
        assert not used.exists()
        assert sweep_scratch() == []
    assert {path.name for path in tmp_path.iterdir()} == {others.name, link.name}


def test_clean_removes_what_is_left_everywhere(
    tmp_path: Path, gone: int, monkeypatch: pytest.MonkeyPatch, experiment: ExperimentDirectory
) -> None:
    for name in ("cache/agent", "tmp", "run"):
        (tmp_path / name).mkdir(parents=True)
    monkeypatch.setenv("HOWDAH_CACHE", str(tmp_path / "cache"))
    monkeypatch.setenv("XDG_RUNTIME_DIR", str(tmp_path / "run"))
    monkeypatch.setattr(tempfile, "tempdir", str(tmp_path / "tmp"))
    runs = experiment.path.parent
    (runs / "reruns" / f"{PARTIAL}x-{os.getpid()}").mkdir(parents=True)
    kept = {runs / "reruns" / f"{PARTIAL}x-{os.getpid()}"}
    left = [
        runs / f"{WRITING}latest-{gone}",
        runs / "reruns" / f"{PARTIAL}x-{gone}",
        runs / f"{PARTIAL}reruns-{gone}",
        runs / f"{PARTIAL}made-{gone}",
        experiment.path / f"{PARTIAL}x-{gone}",
        tmp_path / "cache" / "agent" / f"{PARTIAL}x-{gone}",
        tmp_path / f"{PARTIAL}cache-{gone}",
        tmp_path / "tmp" / f"howdah-prometheus-0123456789abcdef-{gone}",
    ]
    for path in left:
        path.touch() if path.name.startswith(WRITING) else path.mkdir()
    assert main(["clean", "--runs", str(runs)]) == 0
    assert not [path for path in left if path.exists()]
    assert all(path.exists() for path in kept)


@pytest.mark.parametrize("when", ["it is made", "it is used", "it is emptied"])
def test_a_scratch_directory_goes_whenever_the_command_is_interrupted(
    when: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """The interrupt is raised once, before an operation on a file or after it."""
    empty, make = shutil.rmtree, Path.mkdir

    def interrupted_mkdir(self: Path, mode: int = 0o777) -> None:
        make(self, mode)
        raise KeyboardInterrupt

    def interrupted_rmtree(_place: Path, **_settings: object) -> None:
        monkeypatch.setattr(shutil, "rmtree", empty)
        raise KeyboardInterrupt

    if when == "it is made":
        monkeypatch.setattr(Path, "mkdir", interrupted_mkdir)
    if when == "it is emptied":
        monkeypatch.setattr(shutil, "rmtree", interrupted_rmtree)
    with pytest.raises(KeyboardInterrupt), scratch("howdah-", tmp_path) as made:
        (made / "some").write_text("data")
        if when == "it is used":
            raise KeyboardInterrupt
    assert list(tmp_path.iterdir()) == []
