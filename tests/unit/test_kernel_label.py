# SPDX-License-Identifier: Apache-2.0
"""One kernel has one label, also where a run failed before it was known which release it would be."""

from __future__ import annotations

from pathlib import Path

import pytest

from howdah.errors import RunFailedError
from howdah.record.directory import RunDirectory, read_json, write_json
from howdah.record.result import Run, load_experiment
from howdah.record.run import EngineReport, KernelOrigin
from howdah.report.variant import Variants
from howdah.work import stage
from tests.experiment_factory import Scenario, make_experiment, rewrite_plan


def _experiment(tmp_path: Path, *releases: str) -> Path:
    """Two algorithms with two repetitions; the first run failed early, the others had these releases."""
    scenario = Scenario(name="labels", algorithms=("cubic", "reno"), repetitions=2, failed=(("cubic", 0),))
    root = make_experiment(tmp_path, scenario)
    for number, cell in enumerate(read_json(root / "experiment.json")["cells"]):
        file = root / cell["run"] / "run.json"
        record = read_json(file)
        if record["status"] == "failed":
            del record["kernel"]
        else:
            record["kernel"]["release"] = releases[number % len(releases)]
        write_json(file, record)
    return root


def _failed(runs: list[Run]) -> Run:
    (run,) = (run for run in runs if run.status == "failed")
    return run


def test_a_failed_run_is_told_with_the_kernel_of_the_others(tmp_path: Path) -> None:
    experiment = load_experiment(_experiment(tmp_path, "6.12.117"))
    assert {run.kernel for run in experiment.runs} == {"6.12.117"}
    assert _failed(experiment.runs).release is None, "nothing ran, and nothing says that it did"
    assert {variant.label for variant in Variants([experiment]).all} == {"cubic", "reno"}


def test_where_the_others_had_two_kernels_it_is_not_guessed(tmp_path: Path) -> None:
    runs = load_experiment(_experiment(tmp_path, "6.12.117", "6.12.118")).runs
    failed = _failed(runs)
    assert failed.plan is not None
    assert failed.kernel == failed.plan.kernel


def test_another_kernel_was_asked_for(tmp_path: Path) -> None:
    root = _experiment(tmp_path, "6.12.117")
    run = next(
        root / cell["run"] for cell in read_json(root / "experiment.json")["cells"] if cell["status"] == "failed"
    )
    rewrite_plan(run, kernel="debian-6.1")
    assert _failed(load_experiment(root).runs).kernel == "debian-6.1"


def test_run_json_of_a_failed_run_keeps_what_the_engine_knew(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    root = _experiment(tmp_path, "6.12.117")
    directory = RunDirectory(root / read_json(root / "experiment.json")["cells"][0]["run"])
    write_json(directory.provenance, {"status": "running", "stages": []})

    class Engine:
        def run(self, *_arguments: object) -> None:
            error = RunFailedError("the module does not build")
            error.known = EngineReport(kernel=KernelOrigin(release="6.12.117"))
            raise error

    monkeypatch.setattr(stage, "find_engine", lambda _name: Engine())
    assert stage.execute(directory, lambda _phase, _done, _of: None) == "invalid"
    record = read_json(directory.provenance)
    assert (record["status"], record["kernel"]) == ("failed", {"release": "6.12.117"})
