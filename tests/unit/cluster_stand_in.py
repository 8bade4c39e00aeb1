# SPDX-License-Identifier: Apache-2.0
"""Stand-ins for a cluster: a client that answers what a test says, workers, an engine, and what a worker answers."""

from __future__ import annotations

import pickle
from collections.abc import Iterator, Sequence
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest

from howdah.build.cache import Cache
from howdah.build.packed_piece import Piece
from howdah.cluster import executor as executor_module
from howdah.cluster import publisher, worker
from howdah.cluster.executor import ClusterExecutor
from howdah.cluster.message import Delivery, Failure, MadeRun, Order
from howdah.cluster.store import SharedStore, pack_run, results_sha256
from howdah.cluster.workers import Member
from howdah.engine.engine_bundle import EngineBundle
from howdah.plan.plan import Plan
from howdah.record.digest import seal
from howdah.record.directory import PARTIAL, write_json
from howdah.record.provenance import analysis_sha256
from howdah.record.run import read_record
from howdah.work.batch import Outcome
from howdah.work.experiment import ExperimentDirectory, PlannedRun, begin_run
from howdah.work.job import Job
from tests.unit.made_jobs import run_jobs
from tests.unit.plan_factory import make_plan

HERE, THERE = "tcp://1.2.3.4:1", "tcp://5.6.7.8:1"


class Future:
    def __init__(self, answer: Any) -> None:
        self.answer = answer
        self.released = False

    def add_done_callback(self, heard: Any) -> None:
        heard(self)

    def release(self) -> None:
        self.released = True

    def exception(self, timeout: float) -> BaseException | None:
        assert timeout > 0
        if isinstance(self.answer, BaseException):
            return self.answer
        if isinstance(self.answer, Delivery):
            made: worker.MadeError = pickle.loads(pickle.dumps(worker.MadeError(self.answer)))
            return made
        return None

    def result(self, timeout: float) -> Any:
        if (error := self.exception(timeout)) is not None:
            raise error
        return self.answer


class Client:
    """Answers orders one after the other with what ``answers`` makes of them."""

    def __init__(self, answers: Any) -> None:
        self.answers = answers
        self.orders: list[Order] = []
        self.may: list[Any] = []
        self.keys: list[str] = []
        self.cancelled: list[Future] = []

    def submit(self, _function: Any, order: Order, *, key: str, workers: Any, pure: bool) -> Future:
        assert not pure
        self.orders.append(order)
        self.keys.append(key)
        self.may.append(workers)
        return Future(self.answers(order, len(self.orders)))

    def subscribe_topic(self, *_: Any) -> None: ...
    def unsubscribe_topic(self, *_: Any) -> None: ...

    def cancel(self, futures: list[Future], *, force: bool) -> None:
        assert force, "it is wanted by nobody else, and would go on without its client"
        self.cancelled += futures


class Workers:
    """Two workers, each on a machine of its own."""

    def __init__(self, *_: Any) -> None:
        self.members = [
            Member(HERE, ready=True, host="one", store="a", slots=1),
            Member(THERE, ready=True, host="two", store="b", slots=1),
        ]
        self.forgotten: list[str] = []
        self.sent_bytes = 4096

    @property
    def ready(self) -> list[Member]:
        return [each for each in self.members if each.ready]

    @property
    def slots(self) -> int:
        return len(self.ready)

    def refuse(self, address: str, why: str, *, full: bool = False) -> None:
        assert full or "nothing" in why
        for each in self.members:
            if each.address == address:
                each.ready, each.refused, each.full = False, why, full

    def store_of(self, address: str) -> str:
        return next((each.store for each in self.members if each.address == address), "")

    def shares_our_disk(self, address: str) -> bool:
        return address == "here"

    def forget(self, address: str) -> None:
        self.forgotten.append(address)

    def close(self) -> None: ...


class Engine:
    name = "uml"

    def __init__(self, agent: Path) -> None:
        self.agent = agent

    def check_portable(self, plan: Plan) -> None: ...

    def bundle(self, plans: Sequence[Plan], _progress: Any) -> EngineBundle:
        assert plans
        return EngineBundle(self.name, {"agent/a": Piece("agent/a", self.agent)}, {})


@pytest.fixture
def experiment(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[ExperimentDirectory]:
    """With the stand-ins around the executor; no part of a run is left at the end."""
    agent = tmp_path / "cache" / "agent" / "a"
    (agent / "howdah").mkdir(parents=True)
    (agent / "howdah" / "run.py").write_text("pass\n")
    monkeypatch.setattr(executor_module, "find_engine", lambda _name: Engine(agent))
    monkeypatch.setattr(executor_module, "Workers", Workers)
    monkeypatch.setattr(executor_module, "fire_and_forget", lambda _future: None)
    for each in (executor_module, publisher):
        monkeypatch.setattr(each, "call", lambda *_, **__: None)
    found = ExperimentDirectory(tmp_path / "runs" / "exp")
    found.create()
    yield found
    assert not list(found.path.glob(f"{PARTIAL}*"))


def make_job(experiment: ExperimentDirectory, number: int = 0) -> Job:
    return Job(experiment, PlannedRun(make_plan(run=f"cubic-r{number}", repetition=number), f"{number:064x}"))


def make_answer(place: Path, order: Order, *, value: float = 1.0, worker: str = HERE) -> Delivery:
    """What a worker answers that has made the run; its one measure is ``value``."""
    place.mkdir(parents=True, exist_ok=True)
    run = begin_run(place / order.name, order.plan, order.key, order.parameter_places)
    (run.share / "howdah").mkdir()
    (run.share / "howdah" / "run.py").write_text("pass\n")
    (run.share / "plan.json").write_text(order.plan)
    write_json(run.metrics, {"format": 1, "rows": [{"value": value}]})
    write_json(run.verdict, {"format": 1, "verdict": "pass", "checks": []})
    seal(run, read_record(run).replaced(status="finished", analysis_sha256=analysis_sha256()))
    pack = place / "pack"
    sha256 = pack_run(run, order.name, pack)
    made = MadeRun(
        key=order.key,
        name=order.name,
        verdict="pass",
        failed=False,
        analysis=analysis_sha256(),
        keep_data=order.keep_data,
        results_sha256=results_sha256(run),
        sha256=sha256,
        pack_bytes=pack.stat().st_size,
        wall_s=1.0,
    )
    return Delivery(made, worker, "one", pack.read_bytes())


def failed(delivery: Delivery) -> Delivery:
    """The same, of a guest that died."""
    return replace(delivery, made=replace(delivery.made, failed=True))


FAILURE = Failure("", HERE, "one", "no such module", hint="build it")


def make_executor(
    answers: Any, tmp_path: Path, *jobs: Job, given: int | None = None, shared: SharedStore | None = None
) -> tuple[ClusterExecutor, Client]:
    """One that is open with these jobs, if there are any, and was given all of them or the first ones."""
    client = Client(answers)
    executor = ClusterExecutor(client, lambda _text: None, cache=Cache(tmp_path / "cache"), shared=shared)
    if jobs:
        executor.open(jobs)
    for job in jobs[:given]:
        executor.give(job)
    return executor, client


def make_runs(jobs: list[Job], answers: Any, tmp_path: Path) -> tuple[list[Outcome], Client, ClusterExecutor]:
    executor, client = make_executor(answers, tmp_path)
    return run_jobs(jobs, 1, False, lambda *_: None, executor=executor), client, executor


class Waiting:
    """Of a client whose futures end when the test says so."""

    def __init__(self) -> None:
        self.heard: list[Any] = []

    def __call__(self, _order: Order, _number: int) -> Any:
        return None

    def end(self, number: int, answer: Any) -> None:
        self.heard[number](Future(answer))


@pytest.fixture
def waiting(monkeypatch: pytest.MonkeyPatch) -> Waiting:
    found = Waiting()
    monkeypatch.setattr(Future, "add_done_callback", lambda _self, heard: found.heard.append(heard))
    return found


def hear(calls: list[Any], monkeypatch: pytest.MonkeyPatch) -> None:
    """Keep what workers are asked."""
    for each in (executor_module, publisher):
        monkeypatch.setattr(each, "call", lambda _client, *words, **_: calls.append(words))
