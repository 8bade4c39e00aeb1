# SPDX-License-Identifier: Apache-2.0
"""The model of a large cluster, and the copied runs that it is measured with."""

from __future__ import annotations

import sys
from pathlib import Path

import pytest

pytest.importorskip("distributed", reason="Dask is not installed")

from howdah.cluster.store import pack_run, unpack_run
from howdah.record.directory import RunDirectory, read_json
from howdah.work.experiment import begin_run
from howdah.work.local import Ended, WorkerProcesses
from tests.bench.cluster_cost import Cost
from tests.bench.copied_run import RUN, SECONDS, copy
from tests.bench.scale import CORES, Atlas, makespan, modelled
from tests.experiment_factory import Scenario, make_experiment
from tests.unit.plan_factory import make_plan


@pytest.mark.parametrize(
    ("runs", "cores", "serial_s", "wanted"),
    [
        ([1.0] * 10, 2, 0.0, 5.0),
        ([4.0, 1.0, 1.0, 1.0], 2, 0.0, 4.0),  # no shorter than the longest run
        ([1.0, 1.0, 1.0, 4.0], 2, 0.0, 5.0),  # which begins late here
        ([1.0] * 100, 1000, 0.5, 51.0),  # all end at once, and go through one after the other
        ([1.0] * 4, 4, 0.5, 3.0),
        ([1.0] * 8, 1, 5.0, 41.0),  # the core waits for what goes through: it has no run to make
    ],
)
def test_the_model_of_a_batch(runs: list[float], cores: int, serial_s: float, wanted: float) -> None:
    assert makespan(runs, cores, serial_s) == pytest.approx(wanted)


def test_the_slowest_place_that_runs_go_through_is_what_they_wait_for() -> None:
    found = Atlas([2.0] * 4000, [60.0])
    cost = Cost(8, 300, 4.0, 3.0, client_s=0.05, scheduler_s=0.01, worker_s=0.1, scheduler_bytes=2e5,
                client_growth_bytes=0.0, scheduler_growth_bytes=0.0)  # fmt: skip
    figures = {figure.name: figure for figure in modelled(cost, found)}
    by_cores = [figures[f"full atlas, model, {cores} cores"].value * 60 for cores in CORES]
    assert by_cores[0] == pytest.approx(2.0 * 4000 / 2, rel=0.01)
    assert by_cores[-1] == pytest.approx(0.05 * 4000, rel=0.02), "the client takes twenty runs a second"
    assert figures["most runs that the client takes"].value == pytest.approx(20)
    assert figures["most runs that a link of 1 Gbit/s takes"].value == pytest.approx(1250)
    assert figures["full atlas, what the client's machine alone makes"].value == 1


def test_a_copied_run_is_taken_as_one_that_was_made(tmp_path: Path) -> None:
    scenario = Scenario(duration_s=1.0, flows=1, algorithms=("cubic",))
    made = next(make_experiment(tmp_path / "made", scenario).glob("*/run.json"))
    plan, key = make_plan().to_json(), "a" * 64
    begun = begin_run(tmp_path / "run", plan, key, {})
    assert copy(RunDirectory(made.parent), begun) == read_json(made.parent / "verdict.json")["verdict"]
    pack_run(begun, "run", tmp_path / "pack")
    unpack_run(tmp_path / "pack", RunDirectory(tmp_path / "taken"), plan, key, None)
    assert read_json(tmp_path / "taken" / "run.json")["status"] == "finished"


def test_the_stand_in_understands_what_a_worker_is_told(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    scenario = Scenario(duration_s=1.0, flows=1, algorithms=("cubic",))
    made = next(make_experiment(tmp_path / "made", scenario).glob("*/run.json")).parent
    monkeypatch.setenv(RUN, str(made))
    monkeypatch.setenv(SECONDS, "0")
    makers = WorkerProcesses((sys.executable, "-m", "tests.bench.copied_run"))
    try:
        making = makers.give(begin_run(tmp_path / "run", make_plan().to_json(), "a" * 64, {}), keep_data=False)
        while making.read():
            pass
        assert making.last == Ended(verdict=read_json(made / "verdict.json")["verdict"])
    finally:
        makers.kill()
