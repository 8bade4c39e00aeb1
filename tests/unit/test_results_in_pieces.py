# SPDX-License-Identifier: Apache-2.0
"""Results of thousands of runs are checked with a few of them in memory."""

from __future__ import annotations

import gc
import weakref
from pathlib import Path

import pytest

from howdah.record.digest import MismatchError, seal
from howdah.record.directory import RunDirectory, read_json, write_json
from howdah.record.provenance import analysis_sha256
from howdah.record.result import Experiment, Run, load_experiment
from howdah.record.run import read_record
from howdah.work import results
from howdah.work.results import check_results
from tests.experiment_factory import Scenario, make_experiment


@pytest.fixture
def experiment(tmp_path: Path) -> Path:
    """Four runs."""
    root = make_experiment(tmp_path, Scenario(duration_s=1.0, second_flow_s=0.3, repetitions=2))
    for file in root.glob("*/run.json"):
        run = RunDirectory(file.parent)
        seal(run, read_record(run).replaced(analysis_sha256=analysis_sha256()))
    return root


def test_each_run_is_read_and_let_go(experiment: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    runs: list[weakref.ref[Run]] = []
    there: list[int] = []

    def seen(path: Path, **named: object) -> Experiment:
        gc.collect()
        there.append(sum(each() is not None for each in runs))
        found = load_experiment(path, **named)  # type: ignore[arg-type]
        runs.extend(weakref.ref(run) for run in found.runs)
        return found

    monkeypatch.setattr(results, "PIECE", 1)
    monkeypatch.setattr(results, "load_experiment", seen)
    check_results(experiment)
    assert len(runs) == 4
    assert len(there) == 4
    assert max(there) <= 1


def test_each_run_is_checked(experiment: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(results, "PIECE", 1)
    for file in sorted(experiment.glob("*/metrics.json")):
        before = file.read_bytes()
        write_json(file, {**read_json(file), "more": 1})
        with pytest.raises(MismatchError, match="was changed after it was recorded"):
            check_results(experiment)
        with pytest.raises(MismatchError, match="was changed after it was recorded"):
            check_results(file.parent)
        file.write_bytes(before)
    check_results(experiment)
