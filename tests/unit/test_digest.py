# SPDX-License-Identifier: Apache-2.0
"""Digests in run.json: every file has one, and a file that is not what was recorded is told."""

from __future__ import annotations

import hashlib
import os
from pathlib import Path

import pytest

from howdah.record import digest
from howdah.record.digest import MismatchError, check, covered_files, mismatches, remove_data, seal
from howdah.record.directory import RunDirectory, read_json, write_json
from howdah.record.provenance import analysis_sha256
from howdah.record.result import load_run
from howdah.record.run import read_record
from howdah.work import stage
from howdah.work.stage import refresh
from tests.experiment_factory import Scenario, make_experiment
from tests.unit.recorded_run import make_recorded_run


@pytest.fixture
def run(tmp_path: Path) -> RunDirectory:
    """A run with tables, metrics and verdict, whose files are recorded."""
    root = make_experiment(tmp_path, Scenario(algorithms=("cubic",), repetitions=1, duration_s=3.0, second_flow_s=1.0))
    directory = RunDirectory(next(root.glob("cubic-r0-*")))
    (directory.raw / "http").mkdir(parents=True)
    (directory.raw / "http" / "0-client.txt").write_text("transaction\n")
    directory.log.write_text("made\n")
    seal(directory, read_record(directory))
    return directory


def _said(run: RunDirectory) -> list[str]:
    return [str(each) for each in mismatches(run, read_record(run))]


def test_every_file_has_a_digest_but_the_one_that_holds_them(run: RunDirectory) -> None:
    (run.path / ".metrics.json.77").write_text("half")
    everything = {str(file.relative_to(run.path)) for file in run.path.rglob("*") if file.is_file()}
    assert set(covered_files(run)) == everything - {"run.json", ".metrics.json.77"}
    assert set(read_json(run.provenance)["digests"]) == set(covered_files(run))
    assert _said(run) == []


@pytest.mark.parametrize("name", ["plan.json", "metrics.json", "verdict.json", "engine.log", "tables/flow.parquet",
                                  "raw/http/0-client.txt"])  # fmt: skip
def test_a_change_of_any_file_is_told_though_size_and_time_are_the_same(run: RunDirectory, name: str) -> None:
    file = run.path / name
    content, status = bytearray(file.read_bytes()), file.stat()
    content[len(content) // 2] ^= 1
    file.write_bytes(content)
    os.utime(file, ns=(status.st_atime_ns, status.st_mtime_ns))
    assert _said(run) == [f"{name} was changed after it was recorded"]
    file.unlink()
    assert _said(run) == [f"{name} is missing"]


def test_a_file_that_was_added_is_told(run: RunDirectory) -> None:
    (run.tables / "more.parquet").write_bytes(b"more")
    assert _said(run) == ["tables/more.parquet was added after the files were recorded"]
    with pytest.raises(MismatchError, match="was added"):
        check(run, read_record(run), [run.table("more")])


def test_who_reads_a_run_is_refused_what_is_not_what_was_recorded(run: RunDirectory) -> None:
    loaded = load_run(run.path, "x")
    assert loaded.table("flow") is not None
    run.table("flow").write_bytes(run.table("flow").read_bytes() + b"\0")
    with pytest.raises(MismatchError, match=r"tables/flow\.parquet was changed") as refused:
        loaded.table("flow")
    assert refused.value.exit_code == 6
    assert "--reanalyse" in str(refused.value.hint)
    write_json(run.verdict, {"verdict": "pass", "checks": ["none"]})
    with pytest.raises(MismatchError, match=r"verdict\.json was changed"):
        load_run(run.path, "x")


def test_a_source_that_was_changed_needs_the_run_made_anew(run: RunDirectory) -> None:
    run.plan.write_text(run.plan.read_text() + "\n")
    with pytest.raises(MismatchError, match=r"plan\.json was changed") as refused:
        load_run(run.path, "x")
    assert "'howdah run --again'" in str(refused.value.hint)


def test_results_that_stay_keep_their_digests_when_the_data_go(run: RunDirectory) -> None:
    assert remove_data(run)
    assert _said(run) == []
    assert set(read_json(run.provenance)["digests"]) == {"engine.log", "metrics.json", "plan.json", "verdict.json"}
    write_json(run.metrics, {"format": 1, "rows": []})
    assert _said(run) == ["metrics.json was changed after it was recorded"]


def test_a_removal_that_is_killed_half_way_refuses_no_result(
    run: RunDirectory, monkeypatch: pytest.MonkeyPatch
) -> None:
    def killed(*_: object, **__: object) -> None:
        raise KeyboardInterrupt

    monkeypatch.setattr("shutil.rmtree", killed)
    with pytest.raises(KeyboardInterrupt):
        remove_data(run)
    assert read_json(run.provenance)["data_removed"] is True
    assert load_run(run.path, "x").metrics


def _finished(parent: Path) -> RunDirectory:
    """A real recording, not yet analysed."""
    run = make_recorded_run(parent)
    record = {"status": "finished", "key": "a" * 64, "stages": [], "analysis_sha256": "older"}
    write_json(run.provenance, record)
    return run


def test_an_analysis_ends_with_digests_of_what_it_wrote(tmp_path: Path) -> None:
    run = _finished(tmp_path)
    assert refresh(run)
    record = read_json(run.provenance)
    assert record["analysis_sha256"] == analysis_sha256()
    assert {"metrics.json", "verdict.json", "tables/tcp_probe.parquet", "raw/tcp_probe.bin"} <= set(record["digests"])
    assert _said(run) == []
    assert not refresh(run)
    assert refresh(run, force=True)
    assert _said(run) == []


@pytest.mark.parametrize("step", ["analyse", "seal"])
def test_an_analysis_that_is_killed_at_any_step_is_done_again(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, step: str
) -> None:
    run = _finished(tmp_path)
    refresh(run)
    true = run.metrics.read_bytes()

    def killed(*_: object) -> None:
        write_json(run.metrics, {"format": 1, "rows": []})
        raise KeyboardInterrupt

    with monkeypatch.context() as patch:
        patch.setattr(stage, step, killed)
        with pytest.raises(KeyboardInterrupt):
            refresh(run, force=True)
    assert read_json(run.provenance)["analysis_sha256"] is None
    assert refresh(run), "without being forced"
    assert run.metrics.read_bytes() == true
    assert _said(run) == []


def test_data_that_are_gone_are_not_analysed_into_nothing(tmp_path: Path) -> None:
    run = _finished(tmp_path)
    write_json(run.metrics, {"format": 1, "rows": ["kept"]})
    (run.raw / "agent.json").unlink()
    with pytest.raises(Exception, match="raw/ is gone"):
        refresh(run)
    assert read_json(run.metrics)["rows"] == ["kept"]


def test_the_newest_digests_are_remembered_and_no_more(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """A command may take in a million runs."""
    monkeypatch.setattr(digest, "_MOST_KNOWN", 3)
    digest.forget_digests()
    files = [tmp_path / str(number) for number in range(8)]
    for file in files:
        file.write_text(file.name)
        assert digest.file_sha256(file) == hashlib.sha256(file.name.encode()).hexdigest()
    assert len(digest._known) == 3
    monkeypatch.setattr(hashlib, "file_digest", None)  # nothing is read any more
    for file in files[-3:]:
        assert digest.file_sha256(file) == hashlib.sha256(file.name.encode()).hexdigest()
