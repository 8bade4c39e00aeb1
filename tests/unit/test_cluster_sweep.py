# SPDX-License-Identifier: Apache-2.0
"""A sweep that is planned run by run, on a cluster: handed out in a window, resumed, ended by Ctrl-C, and forgotten."""

from __future__ import annotations

import sys
from pathlib import Path
from typing import Any

import pytest

pytest.importorskip("distributed", reason="Dask is not installed")

from howdah.cluster import worker
from howdah.cluster.place import DetachedError
from howdah.profile import load
from howdah.work.batch import run_queue
from howdah.work.compiled import compile_plans
from howdah.work.experiment import ExperimentDirectory
from howdah.work.job import Outcome, Rest, Work
from howdah.work.planned import Prepared, Runs
from howdah.work.prepared import find_existing_runs
from howdah.work.queue import RunQueue
from howdah.work.sweep_memory import SweepMemory
from tests.unit.cluster_stand_in import Future, Waiting, experiment, hear, make_answer, make_executor, waiting

__all__ = ["experiment", "waiting"]  # fixtures

RUNS = 24
WINDOW = 6  # of two workers that make one run at a time: one is made, and two wait
PROFILE = f"""\
howdah: 1
name: wide
duration: 1 s
path: {{{{rate: 10 Mbit/s, rtt: 20 ms}}}}
algorithm: [cubic, reno]
repetitions: {RUNS // 2}
""".replace("{{", "{").replace("}}", "}")


@pytest.fixture(autouse=True)
def wide(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("HOWDAH_CACHE", str(tmp_path / "cache"))
    monkeypatch.setattr(sys.modules["howdah.profile.load"], "MOST_CELLS", 20)
    (tmp_path / "wide.yaml").write_text(PROFILE)


class Sweep:
    """Two workers that make a run when the sweep is shown: ``stop`` is raised after so many runs, if there is one."""

    def __init__(self, tmp_path: Path, waiting: Waiting, stop: tuple[int, BaseException] | None = None) -> None:
        self.waiting, self.stop = waiting, stop
        self.place = tmp_path / "made"
        waiting.heard.clear()
        self.executor, self.client = make_executor(waiting, tmp_path)
        profile = load(tmp_path / "wide.yaml", confirmed_runs=RUNS)
        cells = Runs(compile_plans(profile), {"uml": {"kernel": "a"}})
        experiment = ExperimentDirectory(tmp_path / "runs" / "exp")
        self.memory = SweepMemory(experiment.path)
        prepared = Prepared(experiment, profile, cells, True, cells.places, self.memory)
        prepared.open()
        found = find_existing_runs([prepared], 1, False, lambda _text: None)
        self.there = found.known
        self.queue = RunQueue(found.waiting, found.there, known=found.known)
        self.told = 0
        self.most = 0

    def listen(self, active: list[Work], outcomes: list[Outcome], _rest: Rest) -> None:
        """Where this is called, the batch goes on."""
        self.most = max(self.most, len(active) + len(self.executor.handed))
        self.told += len(outcomes)
        if self.stop is not None and self.told >= self.stop[0]:
            raise self.stop[1]
        if self.waiting.heard:
            number = len(self.client.orders) - len(self.waiting.heard)
            heard, order = self.waiting.heard.pop(0), self.client.orders[number]
            heard(Future(make_answer(self.place, order)))

    def make(self) -> list[Outcome]:
        try:
            return run_queue(self.queue, self.executor, self.listen)
        finally:
            self.memory.close()

    @property
    def names(self) -> list[str]:
        return [order.name for order in self.client.orders]


def _finished(experiment: ExperimentDirectory) -> list[str]:
    return sorted(file.parent.name for file in experiment.path.glob("[!.]*/run.json"))


def test_runs_are_handed_out_in_a_window_and_forgotten(
    experiment: ExperimentDirectory, tmp_path: Path, waiting: Waiting
) -> None:
    sweep = Sweep(tmp_path, waiting)
    assert sweep.make() == []
    assert sweep.most == WINDOW
    assert sorted(sweep.names) == _finished(experiment)
    assert len(set(sweep.names)) == sweep.queue.past.made == RUNS
    held = [vars(each) for each in (sweep.executor, sweep.executor._publisher, sweep.executor._tally)]
    grown = [name for each in held for name, value in each.items() if hasattr(value, "__len__") and len(value) > WINDOW]
    assert grown == [], "nothing that grows with the sweep"


def test_ctrl_c_ends_what_was_handed_out_and_the_rest_is_made_later(
    experiment: ExperimentDirectory, tmp_path: Path, waiting: Waiting, monkeypatch: pytest.MonkeyPatch
) -> None:
    called: list[Any] = []
    hear(called, monkeypatch)
    first = Sweep(tmp_path, waiting, (10, KeyboardInterrupt()))
    with pytest.raises(KeyboardInterrupt):
        first.make()
    made = _finished(experiment)
    assert len(made) == 10
    assert len(first.client.cancelled) == len(first.names) - 10
    handed = {order.key for order in first.client.orders if order.name not in made}
    assert {key for _, what, keys in called if what is worker.abandon for key in keys} == handed
    second = Sweep(tmp_path, waiting)
    assert second.there == 9, "by the sweep's memory; the last run is found as its turn comes"
    assert second.make() == []
    assert second.queue.past.reused == 10
    assert sorted([*made, *second.names]) == _finished(experiment)
    assert len(_finished(experiment)) == RUNS


def test_what_workers_finished_while_the_client_was_away_is_taken(
    experiment: ExperimentDirectory, tmp_path: Path, waiting: Waiting
) -> None:
    """Its terminal was closed: what it had handed out goes on."""
    first = Sweep(tmp_path, waiting, (4, DetachedError()))
    with pytest.raises(DetachedError):
        first.make()
    assert first.client.cancelled == []
    left = [order for order in first.client.orders if order.name not in _finished(experiment)]
    assert len(left) == WINDOW - 1, "as many as were handed out, less one that has ended since"
    second = Sweep(tmp_path, waiting)
    for order in left:
        second.executor._events.put(("unfetched", make_answer(second.place, order)))
    assert second.make() == []
    assert len(_finished(experiment)) == RUNS
    given = set(second.names) & set(first.names)  # before the worker had told of them
    assert len(second.client.cancelled) == len(given) <= WINDOW
