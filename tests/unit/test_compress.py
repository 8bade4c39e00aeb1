# SPDX-License-Identifier: Apache-2.0
"""``howdah clean --compress``: runs of earlier releases become small and stay exact, whole whenever it is killed."""

from __future__ import annotations

import os
import shutil
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Any

import pytest

from howdah.command.main import main
from howdah.record import raw as raw_module
from howdah.record.digest import MANIFEST, mismatches, seal
from howdah.record.directory import PARTIAL, RunDirectory, read_json, write_json
from howdah.record.raw import read_raw_bytes
from howdah.record.run import EngineReport, read_record
from howdah.record.table import equal
from howdah.verify.run import verify_run
from howdah.work import again, stage
from howdah.work import compress as compress_module
from howdah.work.compress import compress_run, is_large
from tests.unit.recorded_run import make_recorded_experiment, make_recorded_run


class _KilledError(BaseException):
    """Stands for the end of the process."""


@pytest.fixture
def recorded(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> RunDirectory:
    """A run with digests whose raw records are larger than what stays as it is."""
    monkeypatch.setattr(raw_module, "LEAST_BYTES", 1000)
    monkeypatch.setattr(compress_module, "LEAST_BYTES", 1000)
    (tmp_path / "runs").mkdir()
    run = make_recorded_experiment(tmp_path / "runs" / "recorded")
    seal(run, read_record(run))
    return run


def _written(run: RunDirectory) -> dict[str, bytes]:
    """What the guest wrote, however it is stored."""
    names = [str(file.relative_to(run.raw)) for file in run.raw.rglob("*") if file.is_file()]
    plain = {name.removesuffix(".zst").removesuffix(".xz") for name in names}
    return {name: read_raw_bytes(run.raw / name) for name in plain}


def test_a_run_becomes_smaller_and_is_verified_as_before(
    recorded: RunDirectory, capsys: pytest.CaptureFixture[str]
) -> None:
    runs, written, metrics = recorded.path.parent.parent, _written(recorded), recorded.metrics.read_bytes()
    before = sum(file.stat().st_size for file in recorded.raw.rglob("*") if file.is_file())
    assert main(["clean", "--compress", "--runs", str(runs)]) == 0
    said = capsys.readouterr().out
    assert f"compressed {recorded.path}: " in said
    assert "in 1 run\n" in said
    assert sum(file.stat().st_size for file in recorded.raw.rglob("*") if file.is_file()) < before / 2
    assert _written(recorded) == written
    assert recorded.metrics.read_bytes() == metrics
    assert mismatches(recorded, read_record(recorded)) == []
    report = verify_run(recorded)
    assert report.findings == []
    assert "tables against raw/" in report.checked
    assert sorted(entry.name for entry in recorded.path.parent.iterdir() if entry.name.startswith(PARTIAL)) == []
    assert main(["clean", "--compress", "--runs", str(runs)]) == 0
    assert "no run has anything to compress" in capsys.readouterr().out


def test_what_is_compressed_is_analysed_anew_and_is_the_same(
    recorded: RunDirectory, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    """As after an update of howdah: the tables come from raw/ again."""
    before = RunDirectory(tmp_path / "before" / recorded.name)
    shutil.copytree(recorded.path, before.path)
    assert compress_run(recorded) is not None
    assert sorted(file.name for file in recorded.raw.glob("*.bin")) == [], "all of them are compressed"
    shutil.rmtree(recorded.tables)
    recorded.metrics.write_text("{}")
    seal(recorded, read_record(recorded).replaced(analysis_sha256="of an earlier howdah"))
    assert main(["report", str(recorded.path.parent), "--without-prometheus"]) == 0
    assert equal(before, recorded) is None
    assert recorded.metrics.read_bytes() == before.metrics.read_bytes()
    assert verify_run(recorded).findings == []
    capsys.readouterr()


class _Engine:
    """It makes the recording again, with so many packets of the last reading retransmitted."""

    name, parallel = "uml", True

    def __init__(self, retransmitted: int = 23) -> None:
        self.retransmitted = retransmitted

    def prepare(self, _plans: object, _progress: object) -> dict[str, Any]:
        return {}

    def run(self, directory: RunDirectory, _plan: object, _progress: object) -> EngineReport:
        with TemporaryDirectory() as place:
            made = make_recorded_run(Path(place))
            shutil.copytree(made.raw, directory.raw, dirs_exist_ok=True)
        counters = directory.raw / "counters.jsonl"
        counters.write_text(counters.read_text().replace(": 23", f": {self.retransmitted}"))
        return EngineReport()


@pytest.mark.parametrize(("retransmitted", "differs"), [(23, False), (24, True)])
def test_what_is_compressed_is_compared_with_what_is_made_again(
    recorded: RunDirectory, monkeypatch: pytest.MonkeyPatch, retransmitted: int, differs: bool
) -> None:
    assert compress_run(recorded) is not None
    engines: list[_Engine] = []

    def find_engine(_name: str) -> _Engine:
        engines.append(_Engine(retransmitted))
        return engines[-1]

    for module in (again, stage):
        monkeypatch.setattr(module, "find_engine", find_engine)
    found = again.make_again(recorded, recorded.path.with_name("again"), _quiet, _quiet)
    assert found.tables_compared
    assert [each.file for each in found.differences][:1] == (["tables/counter.parquet"] if differs else [])
    assert len(engines) == 1, "another would look at all that this one has built"


def _quiet(_what: str, _done: int, _all: int) -> None:
    """Nobody is told how far it is."""


@pytest.mark.parametrize("moment", ["link", "fsync", "_compare", "write_record", "_exchange", "rmtree"])
def test_who_is_killed_leaves_a_whole_run(recorded: RunDirectory, moment: str, monkeypatch: pytest.MonkeyPatch) -> None:
    """Nothing is cleaned up after a kill; the next command finds what is left."""
    written = _written(recorded)

    def killed(*_arguments: object, **_named: object) -> None:
        raise _KilledError

    with monkeypatch.context() as patch:
        patch.setattr(shutil, "rmtree", lambda *_arguments, **_named: None)
        if moment == "rmtree":  # the last step: both have changed places already
            compress_run(recorded)
        else:
            patch.setattr(os if moment in ("link", "fsync") else compress_module, moment, killed)
            with pytest.raises(_KilledError):
                compress_run(recorded)
    assert list(recorded.path.parent.glob(f"{PARTIAL}*")), "it was killed"
    assert _written(recorded) == written
    assert mismatches(recorded, read_record(recorded)) == []
    assert is_large(recorded) == (moment != "rmtree")
    assert main(["clean", "--compress", "--runs", str(recorded.path.parent.parent)]) == 0
    assert not list(recorded.path.parent.glob(f"{PARTIAL}*"))
    assert _written(recorded) == written
    assert not is_large(recorded)
    assert mismatches(recorded, read_record(recorded)) == []


def test_what_was_changed_is_not_sealed_anew(recorded: RunDirectory, capsys: pytest.CaptureFixture[str]) -> None:
    file = next(file for file in recorded.raw.iterdir() if file.stat().st_size > 1000)
    file.write_bytes(file.read_bytes() + b"x")
    assert main(["clean", "--compress", "--runs", str(recorded.path.parent.parent)]) == 0
    said = capsys.readouterr().out
    assert f"left {recorded.path} as it is: raw/{file.name} was changed after it was recorded" in said
    assert file.exists()


def test_a_signed_run_and_one_that_failed_stay(recorded: RunDirectory, capsys: pytest.CaptureFixture[str]) -> None:
    command = ["clean", "--compress", "--runs", str(recorded.path.parent.parent)]
    (recorded.path / MANIFEST).write_text("")
    assert main(command) == 0
    assert "its signature is of the files as they are" in capsys.readouterr().out
    (recorded.path / MANIFEST).unlink()
    write_json(recorded.provenance, {**read_json(recorded.provenance), "status": "failed"})
    assert main(command) == 0
    assert "it is failed" in capsys.readouterr().out
    assert is_large(recorded)


def test_a_run_without_digests_gets_none(recorded: RunDirectory) -> None:
    record = {name: value for name, value in read_json(recorded.provenance).items() if name != "digests"}
    write_json(recorded.provenance, record)
    assert compress_run(recorded) is not None
    assert read_json(recorded.provenance) == record
    assert not is_large(recorded)


def test_where_two_directories_cannot_change_places_the_run_stays(
    recorded: RunDirectory, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    written = _written(recorded)
    monkeypatch.setattr(compress_module, "_RENAME_EXCHANGE", 1 << 20)  # a flag that no kernel has
    assert main(["clean", "--compress", "--runs", str(recorded.path.parent.parent)]) == 1
    assert "this file system cannot exchange two directories" in capsys.readouterr().err
    assert _written(recorded) == written
    assert is_large(recorded)
    assert not list(recorded.path.parent.glob(f"{PARTIAL}*"))
