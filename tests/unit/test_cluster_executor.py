# SPDX-License-Identifier: Apache-2.0
"""The cluster's executor: what it does with the answers of workers. The cluster itself is a stand-in."""

from __future__ import annotations

import errno
import json
import pickle
from collections.abc import Iterator, Sequence
from concurrent.futures import CancelledError
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import pytest

pytest.importorskip("distributed", reason="Dask is not installed")

from distributed import KilledWorker

from howdah.build.cache import Cache
from howdah.cluster import executor as module
from howdah.cluster import tally, worker
from howdah.cluster.crew import Member
from howdah.cluster.executor import ClusterExecutor
from howdah.cluster.result import pack_run, results_sha256
from howdah.cluster.shared import SharedStore
from howdah.engine.kit import Kit, Piece
from howdah.errors import HowdahError
from howdah.plan.plan import Plan
from howdah.publish.sweep import sweep_families
from howdah.record.digest import seal
from howdah.record.directory import PARTIAL, RunDirectory, read_json, write_json
from howdah.work.batch import Outcome, run_cells
from howdah.work.experiment import Cell, Experiment, begin_run
from howdah.work.job import Job
from tests.unit.plan_factory import make_plan

HERE, THERE = "tcp://1.2.3.4:1", "tcp://5.6.7.8:1"


class Future:
    def __init__(self, answer: Any) -> None:
        self.answer = answer

    def add_done_callback(self, heard: Any) -> None:
        heard(self)

    def result(self, timeout: float) -> Any:
        assert timeout > 0
        if isinstance(self.answer, BaseException):
            raise self.answer
        if "verdict" in self.answer:
            raise pickle.loads(pickle.dumps(worker.MadeError(self.answer)))
        return self.answer


class Client:
    """Answers orders one after the other with what ``answers`` makes of them."""

    def __init__(self, answers: Any) -> None:
        self.answers = answers
        self.orders: list[dict[str, Any]] = []
        self.may: list[Any] = []
        self.keys: list[str] = []
        self.cancelled: list[Future] = []

    def submit(self, _function: Any, order: dict[str, Any], *, key: str, workers: Any, pure: bool) -> Future:
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


class Crew:
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

    def kit(self, plans: Sequence[Plan], _progress: Any) -> Kit:
        assert plans
        return Kit(self.name, {"agent/a": Piece("agent/a", self.agent)}, {})


@pytest.fixture
def experiment(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[Experiment]:
    agent = tmp_path / "cache" / "agent" / "a"
    (agent / "howdah").mkdir(parents=True)
    (agent / "howdah" / "run.py").write_text("pass\n")
    monkeypatch.setattr(module, "find_engine", lambda _name: Engine(agent))
    monkeypatch.setattr(module, "Crew", Crew)
    monkeypatch.setattr(module, "fire_and_forget", lambda _future: None)
    monkeypatch.setattr(module, "call", lambda *_, **__: None)
    found = Experiment(tmp_path / "runs" / "exp")
    found.create()
    yield found
    assert not list(found.path.glob(f"{PARTIAL}*"))


def _job(experiment: Experiment, number: int = 0) -> Job:
    return Job(experiment, Cell(make_plan(run=f"cubic-r{number}", repetition=number), f"{number:064x}"))


def _answer(place: Path, order: dict[str, Any], *, value: float = 1.0, worker: str = HERE) -> dict[str, Any]:
    """What a worker answers that has made the run; its one measure is ``value``."""
    place.mkdir(parents=True, exist_ok=True)
    run = begin_run(place / order["name"], order["plan"], order["key"], order["parameter_places"])
    (run.share / "howdah").mkdir()
    (run.share / "howdah" / "run.py").write_text("pass\n")
    (run.share / "plan.json").write_text(order["plan"])
    write_json(run.metrics, {"format": 1, "rows": [{"value": value}]})
    write_json(run.verdict, {"format": 1, "verdict": "pass", "checks": []})
    seal(run, {**read_json(run.provenance), "status": "finished"})
    pack = place / "pack"
    sha256 = pack_run(run, order["name"], pack)
    about = {"key": order["key"], "worker": worker, "host": "one", "verdict": "pass", "failed": False}
    more = {"keep_data": order["keep_data"], "results_sha256": results_sha256(run), "wall_s": 1.0}
    return {**about, **more, "sha256": sha256, "bytes": pack.stat().st_size, "pack": pack.read_bytes()}


def _make(jobs: list[Job], answers: Any, tmp_path: Path) -> tuple[list[Outcome], Client, ClusterExecutor]:
    client = Client(answers)
    executor = ClusterExecutor(client, lambda _text: None, cache=Cache(tmp_path / "cache"))
    return run_cells(jobs, 1, False, lambda *_: None, executor=executor), client, executor


def test_a_run_comes_back_whole(experiment: Experiment, tmp_path: Path) -> None:
    jobs = [_job(experiment, number) for number in range(3)]
    outcomes, client, _ = _make(jobs, lambda order, n: _answer(tmp_path / f"w{n}", order), tmp_path)
    assert [(each.verdict, each.worker) for each in outcomes] == [("pass", "one")] * 3
    run = RunDirectory(experiment.path / jobs[0].cell.directory_name)
    assert experiment.finished(jobs[0].cell) is not None
    assert (run.share / "howdah" / "run.py").read_text() == "pass\n"
    assert json.loads((run.share / "plan.json").read_text()) == json.loads(run.plan.read_text())
    assert client.may == [None] * 3
    again = run_cells(jobs, 1, False, lambda *_: None, executor=ClusterExecutor(Client(None), print))
    assert all(each.reused for each in again)


def test_a_run_of_a_lost_worker_is_given_to_another(experiment: Experiment, tmp_path: Path) -> None:
    lost = [CancelledError(), {"error": "it ended with -9", "where": "x", "hint": None, "host": "one", "killed": True}]

    def answers(order: dict[str, Any], number: int) -> Any:
        return lost[number - 1] if number <= 2 else _answer(tmp_path / "w", order)

    outcomes, client, _ = _make([_job(experiment)], answers, tmp_path)
    assert [each.verdict for each in outcomes] == ["pass"]
    assert len(set(client.keys)) == 3, "Dask would answer the same key with the same end"


def test_its_numbers_are_there_while_it_goes_on(
    experiment: Experiment, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Two of three runs are made, one of them at the second attempt; the third is not given."""
    jobs = [_job(experiment, number) for number in range(3)]
    lost = iter([CancelledError()])
    client = Client(lambda order, n: next(lost, None) or _answer(tmp_path / f"w{n}", order))
    executor = ClusterExecutor(client, lambda _text: None, cache=Cache(tmp_path / "cache"), runs=tmp_path)
    monkeypatch.setattr(tally, "_EVERY_S", 0.0)
    executor.open(jobs)
    for job in jobs[:2]:
        executor.give(job)
    while executor.handed:
        executor.wait(0.01)
    found = {
        (metric.name, each.labels.get("state")): each.values[0]
        for metric, samples in sweep_families(tmp_path).items()
        for each in samples
    }
    assert [found["howdah_sweep_runs", state] for state in ("made", "failed", "waiting")] == [2, 0, 1]
    assert found["howdah_sweep_repeated_runs_total", None] == 1
    assert found["howdah_sweep_workers", "ready"] == 2
    assert found["howdah_sweep_received_bytes_total", None] > 1000
    plan = jobs[0].cell.plan
    assert found["howdah_sweep_simulated_seconds_total", None] == 2 * (plan.epoch_us + plan.duration_us) / 1e6
    executor.close()
    assert sweep_families(tmp_path) == {}


def test_one_that_is_lost_each_time_is_an_error(experiment: Experiment, tmp_path: Path) -> None:
    outcomes, _, _ = _make([_job(experiment)], lambda _order, _number: CancelledError(), tmp_path)
    assert "the run was begun 20 times" in str(outcomes[0].error)


def test_an_error_of_a_run_is_its_outcome(experiment: Experiment, tmp_path: Path) -> None:
    said = {"error": "no such module", "where": None, "hint": "build it", "host": "one", "killed": False}
    outcomes, client, _ = _make([_job(experiment)], lambda *_: said, tmp_path)
    assert str(outcomes[0].error) == "one: no such module\n  build it"
    assert len(client.orders) == 1


def test_a_full_disk_ends_one_machine_and_not_the_sweep(experiment: Experiment, tmp_path: Path) -> None:
    full = {"error": "No space left on device", "where": None, "hint": None, "host": "one", "worker": HERE}

    def answers(order: dict[str, Any], number: int) -> Any:
        return {**full, "errno": errno.ENOSPC} if number == 1 else _answer(tmp_path / "w", order, worker=THERE)

    outcomes, client, _ = _make([_job(experiment)], answers, tmp_path)
    assert [each.verdict for each in outcomes] == ["pass"]
    assert client.may == [None, [THERE]]


def test_a_sweep_whose_workers_all_lack_room_waits_for_it(
    experiment: Experiment, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """But not for ever."""
    full = {"error": "No space left on device", "where": None, "hint": None, "host": "one", "errno": errno.ENOSPC}
    here = iter([HERE, THERE])

    def answers(order: dict[str, Any], number: int) -> Any:
        return {**full, "worker": next(here)} if number <= 2 else _answer(tmp_path / "w", order)

    client = Client(answers)
    executor = ClusterExecutor(client, lambda _text: None, cache=Cache(tmp_path / "cache"))
    executor.open([_job(experiment)])
    executor.give(_job(experiment))
    for _ in range(3):
        assert executor.wait(0.01) == []
    assert len(client.orders) == 2
    assert all(each.full for each in executor.crew.members)
    executor.crew.members[1].ready, executor.crew.members[1].refused, executor.crew.members[1].full = True, None, False
    assert [each.verdict for _ in range(2) for each in executor.wait(0.01)] == ["pass"]
    monkeypatch.setattr(module, "_FULL_LIMIT_S", 0.0)
    executor.crew.refuse(THERE, "its disk is full", full=True)
    with pytest.raises(HowdahError, match="none of the 2 workers can be used: its disk is full"):
        executor.wait(0.01)


def test_the_disk_of_the_command_itself_is_not_waited_for(experiment: Experiment, tmp_path: Path) -> None:
    full = {"error": "No space left on device", "where": None, "hint": None, "host": "one", "worker": "here"}
    outcomes, client, _ = _make([_job(experiment)], lambda *_: {**full, "errno": errno.ENOSPC}, tmp_path)
    assert "No space left on device" in str(outcomes[0].error)
    assert len(client.orders) == 1


def test_a_worker_that_lacks_something_is_made_ready_again(experiment: Experiment, tmp_path: Path) -> None:
    """However long that takes: a run that was not begun is not lost."""

    def answers(order: dict[str, Any], number: int) -> Any:
        return {"lacks": order["kit"], "worker": HERE} if number < 30 else _answer(tmp_path / "w", order)

    outcomes, _, executor = _make([_job(experiment)], answers, tmp_path)
    assert [each.verdict for each in outcomes] == ["pass"]
    assert executor.crew.forgotten == [HERE] * 29  # type: ignore[attr-defined]


def test_a_run_waits_for_a_worker_that_is_ready(experiment: Experiment, tmp_path: Path) -> None:
    client = Client(lambda order, _n: _answer(tmp_path / "w", order))
    executor = ClusterExecutor(client, lambda _text: None, cache=Cache(tmp_path / "cache"))
    executor.open([_job(experiment)])
    for member in executor.crew.members:
        member.ready = False
    executor.give(_job(experiment))
    assert executor.wait(0.01) == []
    assert client.orders == []
    executor.crew.members[1].ready = True
    assert [each.verdict for _ in range(2) for each in executor.wait(0.01)] == ["pass"]
    assert client.may == [[THERE]], "the other one lacks what the run is made with"


def test_a_guest_that_dies_each_time_dies_by_itself(experiment: Experiment, tmp_path: Path) -> None:
    outcomes, client, _ = _make(
        [_job(experiment)], lambda order, n: {**_answer(tmp_path / f"w{n}", order), "failed": True}, tmp_path
    )
    assert [each.verdict for each in outcomes] == ["pass"], "it is kept as it is"
    assert len(client.orders) == 3


class Waiting:
    """Of a client whose futures end when the test says so."""

    def __init__(self) -> None:
        self.heard: list[Any] = []

    def __call__(self, _order: dict[str, Any], _number: int) -> Any:
        return None

    def end(self, number: int, answer: Any) -> None:
        self.heard[number](Future(answer))


@pytest.fixture
def waiting(monkeypatch: pytest.MonkeyPatch) -> Waiting:
    found = Waiting()
    monkeypatch.setattr(Future, "add_done_callback", lambda _self, heard: found.heard.append(heard))
    return found


def _begun(experiment: Experiment, tmp_path: Path, waiting: Waiting) -> tuple[ClusterExecutor, Client]:
    """One run, begun by the second worker, which is lost then."""
    client = Client(waiting)
    executor = ClusterExecutor(client, lambda _text: None, cache=Cache(tmp_path / "cache"))
    job = _job(experiment)
    executor.open([job])
    executor.give(job)
    executor._told.put(("event", {"key": job.cell.key, "worker": THERE, "phase": "flows", "done_us": 1, "of_us": 2}))
    executor.wait(0.01)
    waiting.end(0, CancelledError())
    assert executor.wait(0.01) == []
    assert len(client.orders) == 1, "its worker may have finished it, and come back"
    assert executor.handed == [job]
    assert executor.has_room()
    return executor, client


def test_a_run_that_its_lost_worker_had_finished_is_not_made_again(
    experiment: Experiment, tmp_path: Path, waiting: Waiting
) -> None:
    executor, client = _begun(experiment, tmp_path, waiting)
    executor._told.put(("spool", _answer(tmp_path / "w", client.orders[0], worker=THERE)))
    executor._told.put(("ready", executor.crew.members[1]))
    assert [each.verdict for each in executor.wait(0.01)] == ["pass"]
    assert len(client.orders) == 1


def test_a_run_that_a_lost_worker_may_have_begun_unheard_is_held_too(
    experiment: Experiment, tmp_path: Path, waiting: Waiting
) -> None:
    client = Client(waiting)
    executor = ClusterExecutor(client, lambda _text: None, cache=Cache(tmp_path / "cache"))
    executor.open([_job(experiment)])
    executor.give(_job(experiment))
    waiting.end(0, KilledWorker("x", SimpleNamespace(address=THERE), 0))
    executor.wait(0.01)
    assert len(client.orders) == 1
    executor._told.put(("ready", executor.crew.members[1]))
    executor.wait(0.01)
    assert len(client.orders) == 2


def test_a_run_that_its_lost_worker_still_makes_is_given_to_it(
    experiment: Experiment, tmp_path: Path, waiting: Waiting
) -> None:
    executor, client = _begun(experiment, tmp_path, waiting)
    executor.crew.members[1].making = [client.orders[0]["key"]]
    executor._told.put(("ready", executor.crew.members[1]))
    executor.wait(0.01)
    assert client.may == [None, [THERE]]


def test_a_run_that_a_worker_makes_for_a_command_before_is_joined(
    experiment: Experiment, tmp_path: Path, waiting: Waiting, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Whether that worker was ready before the run was given, or after another one had begun it."""
    called: list[Any] = []
    monkeypatch.setattr(module, "call", lambda _client, *words, **_: called.append(words))
    client = Client(waiting)
    executor = ClusterExecutor(client, lambda _text: None, cache=Cache(tmp_path / "cache"))
    jobs = [_job(experiment, number) for number in range(2)]
    executor.open(jobs)
    executor.crew.members[1].making = [jobs[0].cell.key]
    executor.give(jobs[0])
    assert client.may == [[THERE]]
    executor.crew.members[1].ready = False
    executor.give(jobs[1])
    executor._told.put(("event", {"key": jobs[1].cell.key, "worker": HERE}))
    executor.crew.members[1].ready, executor.crew.members[1].making = True, [jobs[1].cell.key]
    executor._told.put(("ready", executor.crew.members[1]))
    executor.wait(0.01)
    assert client.may == [[THERE], [HERE], [THERE]]
    assert (HERE, worker.abandon, [jobs[1].cell.key]) in called
    assert executor._done(jobs[1].cell.key, 1, Future(CancelledError())) == []
    assert len(client.orders) == 3, "what becomes of the other one does not matter any more"


def test_a_run_that_its_lost_worker_had_not_finished_is_given_to_any(
    experiment: Experiment, tmp_path: Path, waiting: Waiting, monkeypatch: pytest.MonkeyPatch
) -> None:
    """As soon as the worker is back, or after some time without it."""
    executor, client = _begun(experiment, tmp_path, waiting)
    executor._told.put(("ready", executor.crew.members[0]))
    executor.wait(0.01)
    assert len(client.orders) == 1, "that was another one"
    executor._told.put(("ready", executor.crew.members[1]))
    executor.wait(0.01)
    assert client.may == [None, None]
    monkeypatch.setattr(module, "_HELD_S", -1.0)
    executor._told.put(("event", {"key": client.orders[0]["key"], "worker": THERE}))
    executor.wait(0.01)
    waiting.end(1, CancelledError())
    executor.wait(0.01)
    assert len(client.orders) == 3


def test_workers_that_were_lost_do_not_count_as_guests_that_died(experiment: Experiment, tmp_path: Path) -> None:
    def answers(order: dict[str, Any], number: int) -> Any:
        return CancelledError() if number <= 5 else {**_answer(tmp_path / f"w{number}", order), "failed": number == 6}

    outcomes, client, _ = _make([_job(experiment)], answers, tmp_path)
    assert [each.verdict for each in outcomes] == ["pass"]
    assert len(client.orders) == 7


def test_a_changed_file_is_not_published(experiment: Experiment, tmp_path: Path) -> None:
    def answers(order: dict[str, Any], number: int) -> Any:
        answer = _answer(tmp_path / f"w{number}", order)
        return {**answer, "pack": answer["pack"][:-9] + b"\0" + answer["pack"][-8:]}

    outcomes, _, _ = _make([_job(experiment)], answers, tmp_path)
    assert "and it was damaged on its way each time" in str(outcomes[0].error)
    assert not list(experiment.path.glob("[!.]*"))


def test_another_run_than_was_asked_for_is_not_published(experiment: Experiment, tmp_path: Path) -> None:
    outcomes, _, _ = _make(
        [_job(experiment)], lambda order, _n: _answer(tmp_path / "w", {**order, "key": "f" * 64}), tmp_path
    )
    assert "another run than it was asked for" in str(outcomes[0].error)


def test_two_results_of_one_key_are_an_alarm(experiment: Experiment, tmp_path: Path) -> None:
    """The first one stays. The second comes from a worker that was given up."""
    _, client, executor = _make([_job(experiment)], lambda order, _n: _answer(tmp_path / "w", order), tmp_path)
    equal = _answer(tmp_path / "again", client.orders[0], worker=THERE)
    other = _answer(tmp_path / "other", client.orders[0], value=2.0, worker=THERE)
    for late in (Future(equal), Future(CancelledError())):
        assert executor._done(client.orders[0]["key"], 1, late) == []
    with pytest.raises(HowdahError, match="ALARM: the run was made twice"):
        executor._done(client.orders[0]["key"], 1, Future(other))


def test_what_was_made_while_nobody_listened_is_not_made_again(experiment: Experiment, tmp_path: Path) -> None:
    orders: list[dict[str, Any]] = []

    def answers(order: dict[str, Any], _number: int) -> Any:
        orders.append(order)
        return {"error": "", "where": "", "hint": "", "host": ""}

    first = Client(answers)
    job = _job(experiment)
    run_cells([job], 1, False, lambda *_: None, executor=ClusterExecutor(first, print, cache=Cache(tmp_path / "cache")))
    result = _answer(tmp_path / "w", orders[0])
    client = Client(None)
    executor = ClusterExecutor(client, lambda _text: None, cache=Cache(tmp_path / "cache"))
    executor._told.put(("spool", result))
    executor.open([job])
    assert executor.wait(0.1) == []
    executor.give(job)
    assert [each.verdict for each in executor.wait(0.1)] == ["pass"]
    assert client.orders == []


def test_a_run_that_is_finished_elsewhere_is_ended(
    experiment: Experiment, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """A worker died with a run that it had finished, and came back while another was making it once more."""
    client = Client(lambda *_: None)
    monkeypatch.setattr(Future, "add_done_callback", lambda *_: None)
    executor = ClusterExecutor(client, lambda _text: None, cache=Cache(tmp_path / "cache"))
    called: list[Any] = []
    monkeypatch.setattr(module, "call", lambda _client, *words, **_: called.append(words))
    job = _job(experiment)
    executor.open([job])
    executor.give(job)
    executor._told.put(("event", {"key": job.cell.key, "worker": THERE, "phase": "flows", "done_us": 1, "of_us": 2}))
    assert executor.wait(0.1) == []
    assert [work.share for work in executor.active] == [0.5]
    executor._told.put(("spool", _answer(tmp_path / "w", client.orders[0])))
    assert [each.verdict for each in executor.wait(0.1)] == ["pass"]
    assert (THERE, worker.abandon, [job.cell.key]) in called
    assert (HERE, worker.drop_runs, [job.cell.key]) in called


def test_a_run_that_waits_to_be_begun_is_not_begun_when_it_is_there(
    experiment: Experiment, tmp_path: Path, waiting: Waiting
) -> None:
    """A worker tells of what it has finished after the run was given to another one."""
    client = Client(waiting)
    executor = ClusterExecutor(client, lambda _text: None, cache=Cache(tmp_path / "cache"))
    executor.open([_job(experiment)])
    executor.give(_job(experiment))
    executor._told.put(("spool", _answer(tmp_path / "w", client.orders[0], worker=THERE)))
    assert [each.verdict for each in executor.wait(0.01)] == ["pass"]
    assert len(client.cancelled) == 1


def test_a_sweep_that_no_worker_can_make_ends_with_the_reason(experiment: Experiment, tmp_path: Path) -> None:
    executor = ClusterExecutor(Client(None), lambda _text: None, cache=Cache(tmp_path / "cache"))
    executor.open([_job(experiment)])
    for member in executor.crew.members:
        member.ready, member.refused = False, "it is a riscv64"
    with pytest.raises(HowdahError, match="none of the 2 workers can be used: it is a riscv64"):
        executor.wait(0.01)


def _put(shared: SharedStore, place: Path, answer: dict[str, Any]) -> None:
    """What a worker does that has made the run."""
    pack = place / "stored"
    pack.write_bytes(answer["pack"])
    shared.put({name: value for name, value in answer.items() if name not in ("pack", "worker")}, pack)


def _orders(experiment: Experiment, tmp_path: Path) -> dict[str, Any]:
    """The order of the run, as a worker gets it."""
    first = Client(lambda *_: {"error": "", "where": "", "hint": "", "host": ""})
    executor = ClusterExecutor(first, print, cache=Cache(tmp_path / "cache"))
    run_cells([_job(experiment)], 1, False, lambda *_: None, executor=executor)
    return first.orders[0]


def _executor(client: Client, tmp_path: Path, shared: SharedStore) -> ClusterExecutor:
    return ClusterExecutor(client, lambda _text: None, cache=Cache(tmp_path / "cache"), shared=shared)


def test_a_run_of_the_shared_store_is_taken_and_not_made(experiment: Experiment, tmp_path: Path) -> None:
    shared = SharedStore(f"file://{tmp_path}/shared")
    _put(shared, tmp_path, _answer(tmp_path / "w", _orders(experiment, tmp_path)))
    client = Client(None)
    outcomes = run_cells([_job(experiment)], 1, False, lambda *_: None, executor=_executor(client, tmp_path, shared))
    assert [each.verdict for each in outcomes] == ["pass"]
    assert experiment.finished(_job(experiment).cell) is not None
    assert client.orders == []


def test_a_damaged_one_of_the_shared_store_is_made_again(experiment: Experiment, tmp_path: Path) -> None:
    shared = SharedStore(f"file://{tmp_path}/shared")
    _put(shared, tmp_path, _answer(tmp_path / "w", _orders(experiment, tmp_path)))
    (pack,) = (tmp_path / "shared").glob("*/*.zst")
    pack.write_bytes(pack.read_bytes()[:-1] + b"\0")
    client = Client(lambda order, n: _answer(tmp_path / f"again{n}", order))
    outcomes = run_cells([_job(experiment)], 1, False, lambda *_: None, executor=_executor(client, tmp_path, shared))
    assert [each.verdict for each in outcomes] == ["pass"]
    assert [order["store"] for order in client.orders] == [f"file://{tmp_path}/shared"]


def test_two_results_in_the_shared_store_are_an_alarm(experiment: Experiment, tmp_path: Path) -> None:
    shared, order = SharedStore(f"file://{tmp_path}/shared"), _orders(experiment, tmp_path)
    for value in (1.0, 2.0):
        _put(shared, tmp_path, _answer(tmp_path / f"w{value}", order, value=value))
    outcomes = run_cells(
        [_job(experiment)], 1, False, lambda *_: None, executor=_executor(Client(None), tmp_path, shared)
    )
    assert "ALARM: the run was made twice" in str(outcomes[0].error)


def test_what_a_lost_worker_had_put_into_the_store_is_taken_at_once(
    experiment: Experiment, tmp_path: Path, waiting: Waiting
) -> None:
    shared, client = SharedStore(f"file://{tmp_path}/shared"), Client(waiting)
    executor = _executor(client, tmp_path, shared)
    executor.open([_job(experiment)])
    executor.give(_job(experiment))
    _put(shared, tmp_path, _answer(tmp_path / "w", client.orders[0]))
    waiting.end(0, KilledWorker("x", SimpleNamespace(address=THERE), 0))
    assert [each.verdict for each in executor.wait(0.01)] == ["pass"]
    assert len(client.orders) == 1
