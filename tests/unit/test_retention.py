# SPDX-License-Identifier: Apache-2.0
"""keep: first – what stays of a run, what is said of it, and when it is made again."""

from __future__ import annotations

import json
from pathlib import Path

import pytest

from howdah.command.main import main
from howdah.profile import load
from howdah.record.digest import has_data, keeps_data, remove_data
from howdah.record.directory import RunDirectory, read_json, write_json
from howdah.record.provenance import analysis_sha256
from howdah.record.result import load_experiment
from howdah.report.build import report
from howdah.report.figure import drawn_runs
from howdah.work.experiment import ExperimentDirectory, PlannedRun
from howdah.work.stage import outdated, refresh
from tests.experiment_factory import Scenario, make_experiment
from tests.unit.plan_factory import make_plan


def _run(parent: Path, verdict: str = "pass", status: str = "finished") -> RunDirectory:
    run = RunDirectory(parent / "cubic-r1-aaaaaaaa")
    for folder in (run.raw, run.tables, run.share):
        folder.mkdir(parents=True)
        (folder / "data").write_text("much")
    run.plan.write_text(make_plan().to_json())
    write_json(run.metrics, {"format": 1, "rows": []})
    write_json(run.verdict, {"verdict": verdict})
    write_json(run.provenance, {"status": status, "key": "a" * 64, "stages": [], "analysis_sha256": "old"})
    return run


def test_the_first_repetition_keeps_its_data() -> None:
    assert [keeps_data("first", number) for number in range(3)] == [True, False, False]
    assert all(keeps_data("everything", number) for number in range(3))


def test_results_stay_and_data_go(tmp_path: Path) -> None:
    run = _run(tmp_path)
    assert remove_data(run)
    assert sorted(entry.name for entry in run.path.iterdir()) == [
        "metrics.json",
        "plan.json",
        "run.json",
        "verdict.json",
    ]
    assert not has_data(run)


@pytest.mark.parametrize(("verdict", "status"), [("invalid", "finished"), ("invalid", "failed")])
def test_a_run_that_does_not_count_keeps_everything(tmp_path: Path, verdict: str, status: str) -> None:
    run = _run(tmp_path, verdict, status)
    assert not remove_data(run)
    assert (run.raw / "data").exists()
    assert has_data(run)


def test_what_is_kept_is_decided_when_the_run_gets_its_name(tmp_path: Path) -> None:
    experiment = ExperimentDirectory(tmp_path)
    cell = PlannedRun(make_plan(run="cubic-r1", repetition=1), "a" * 64, keep_data=False)
    partial = experiment.begin(cell)
    write_json(partial.verdict, {"verdict": "pass"})
    write_json(partial.metrics, {"rows": []})
    finished = {"status": "finished", "analysis_sha256": analysis_sha256()}
    write_json(partial.provenance, {**read_json(partial.provenance), **finished})
    final = experiment.keep(cell, partial)
    assert not final.raw.exists()
    assert experiment.finished(cell) is not None
    write_json(final.provenance, {**read_json(final.provenance), "analysis_sha256": "older"})
    assert experiment.finished(cell) is None, "what was measured otherwise, and cannot be measured anew, is made again"
    everything = PlannedRun(cell.plan, cell.key)
    assert experiment.finished(everything) is None, "who asks for everything gets the run anew"


def test_more_than_is_asked_for_is_there_already(tmp_path: Path) -> None:
    experiment = ExperimentDirectory(tmp_path)
    cell = PlannedRun(make_plan(run="cubic-r1", repetition=1), "a" * 64)
    partial = experiment.begin(cell)
    write_json(partial.provenance, {**read_json(partial.provenance), "status": "finished"})
    write_json(partial.metrics, {"format": 1, "rows": []})
    write_json(partial.verdict, {"format": 1, "verdict": "pass", "checks": []})
    experiment.keep(cell, partial)
    assert experiment.finished(PlannedRun(cell.plan, cell.key, keep_data=False)) is not None


def test_a_run_without_data_is_not_analysed_again(tmp_path: Path) -> None:
    run = _run(tmp_path)
    remove_data(run)
    before = run.metrics.read_bytes()
    assert not refresh(run, force=True)
    assert run.metrics.read_bytes() == before
    assert outdated(run)
    write_json(run.provenance, {**read_json(run.provenance), "analysis_sha256": analysis_sha256()})
    assert not outdated(run)


def test_keep_is_no_part_of_a_run(tmp_path: Path) -> None:
    from howdah.plan.compile import compile_plan

    text = "howdah: 1\nname: kept\npath: {rate: 10 Mbit/s, rtt: 20 ms}\nduration: 2 s\nrepetitions: 2\n"
    file = tmp_path / "kept.yaml"
    file.write_text(text)
    plain = load(file)
    file.write_text(text + "keep: first\n")
    kept = load(file)
    assert (plain.keep, kept.keep) == ("everything", "first")
    assert [compile_plan(cell).to_json() for cell in plain.cells()] == [
        compile_plan(cell).to_json() for cell in kept.cells()
    ]


def _thinned_experiment(parent: Path) -> Path:
    root = make_experiment(parent, Scenario(repetitions=3, duration_s=3.0, second_flow_s=1.0))
    for path in root.glob("*-r[12]-*"):
        remove_data(RunDirectory(path))
    return root


def test_the_report_draws_what_there_is_and_says_what_is_not(tmp_path: Path) -> None:
    root = _thinned_experiment(tmp_path)
    assert [run.repetition for run in drawn_runs([load_experiment(root)])] == [0, 0]
    page = report(root, prometheus="off").read_text()
    assert "of 4 other runs the profile keeps only the results (keep: first)" in page
    assert "n=3" in page, "all repetitions count in the results"
    assert "the collector was off" not in page


def test_the_report_command_names_results_of_an_earlier_version(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    root = _thinned_experiment(tmp_path)
    for path in root.glob("*-r[12]-*"):
        record = read_json(path / "run.json")
        write_json(path / "run.json", {**record, "analysis_sha256": "older"})
    assert main(["report", str(root), "--runs", str(tmp_path), "--without-prometheus", "--json"]) == 0
    said = capsys.readouterr()
    assert "4 runs were analysed by another version" in said.err
    assert "--again" in said.err
    assert json.loads(said.out)["report"] == str(root / "report.html")
