# SPDX-License-Identifier: Apache-2.0
"""The cluster's executor: what it does with the answers of workers. The cluster itself is a stand-in."""

from __future__ import annotations

import errno
import gc
import json
import weakref
from collections.abc import Sequence
from concurrent.futures import CancelledError
from dataclasses import replace
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import pytest

pytest.importorskip("distributed", reason="Dask is not installed")

from distributed import KilledWorker
from distributed.utils import key_split

from howdah.build.cache import Cache
from howdah.cluster import executor as module
from howdah.cluster import worker, workers
from howdah.cluster.executor import ClusterExecutor
from howdah.cluster.message import Order, RunProgress, Unready
from howdah.errors import HowdahError
from howdah.publish.sweep import sweep_families
from howdah.record.directory import RunDirectory
from howdah.work.experiment import ExperimentDirectory
from howdah.work.job import Job, Outcome, Rest
from tests.unit.cluster_stand_in import (
    FAILURE,
    HERE,
    THERE,
    Client,
    Future,
    Waiting,
    experiment,
    failed,
    hear,
    make_answer,
    make_executor,
    make_job,
    make_runs,
    waiting,
)
from tests.unit.made_jobs import run_jobs

__all__ = ["experiment", "waiting"]  # fixtures


def test_a_run_comes_back_whole(experiment: ExperimentDirectory, tmp_path: Path) -> None:
    jobs = [make_job(experiment, number) for number in range(3)]
    outcomes, client, _ = make_runs(jobs, lambda order, n: make_answer(tmp_path / f"w{n}", order), tmp_path)
    assert [(each.verdict, each.worker) for each in outcomes] == [("pass", "one")] * 3
    run = RunDirectory(experiment.path / jobs[0].cell.directory_name)
    assert experiment.finished(jobs[0].cell) is not None
    assert (run.share / "howdah" / "run.py").read_text() == "pass\n"
    assert json.loads((run.share / "plan.json").read_text()) == json.loads(run.plan.read_text())
    assert client.may == [None] * 3
    again = run_jobs(jobs, 1, False, lambda *_: None, executor=ClusterExecutor(Client(None), print))
    assert all(each.reused for each in again)


def test_a_run_of_a_lost_worker_is_given_to_another(experiment: ExperimentDirectory, tmp_path: Path) -> None:
    lost = [CancelledError(), replace(FAILURE, error="it ended with -9", killed=True)]

    def answers(order: Order, number: int) -> Any:
        return lost[number - 1] if number <= 2 else make_answer(tmp_path / "w", order)

    outcomes, client, _ = make_runs([make_job(experiment)], answers, tmp_path)
    assert [each.verdict for each in outcomes] == ["pass"]
    assert len(set(client.keys)) == 3, "Dask would answer the same key with the same end"
    assert {key_split(key) for key in client.keys} == {worker.TASK}, "it takes them as of one kind"


def test_its_numbers_are_there_while_it_goes_on(
    experiment: ExperimentDirectory, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Two of three runs are made, one of them at the second attempt; the third is not given."""
    jobs = [make_job(experiment, number) for number in range(3)]
    lost = iter([CancelledError()])
    client = Client(lambda order, n: next(lost, None) or make_answer(tmp_path / f"w{n}", order))
    executor = ClusterExecutor(client, lambda _text: None, cache=Cache(tmp_path / "cache"), runs=tmp_path)
    monkeypatch.setattr(workers, "_EVERY_S", 0.0)
    executor.open(jobs)
    for job in jobs[:2]:
        executor.give(job)
    outcomes = []
    while executor.handed:
        outcomes += executor.wait(0.01)
        executor.show(outcomes, Rest(total=3, waiting_core_s=jobs[2].expected_core_s))
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
    assert found["howdah_sweep_left_seconds", None] == pytest.approx(1.0), "as long as each of the two"
    executor.close()
    assert sweep_families(tmp_path) == {}


def test_one_that_is_lost_each_time_is_an_error(experiment: ExperimentDirectory, tmp_path: Path) -> None:
    outcomes, _, _ = make_runs([make_job(experiment)], lambda _order, _number: CancelledError(), tmp_path)
    assert "the run was started 20 times" in str(outcomes[0].error)


def test_an_error_of_a_run_is_its_outcome(experiment: ExperimentDirectory, tmp_path: Path) -> None:
    outcomes, client, _ = make_runs([make_job(experiment)], lambda *_: FAILURE, tmp_path)
    assert str(outcomes[0].error) == "one: no such module\n  build it"
    assert len(client.orders) == 1


def test_a_full_disk_ends_one_machine_and_not_the_sweep(experiment: ExperimentDirectory, tmp_path: Path) -> None:
    full = replace(FAILURE, error="No space left on device", errno=errno.ENOSPC)

    def answers(order: Order, number: int) -> Any:
        return full if number == 1 else make_answer(tmp_path / "w", order, worker=THERE)

    outcomes, client, _ = make_runs([make_job(experiment)], answers, tmp_path)
    assert [each.verdict for each in outcomes] == ["pass"]
    assert client.may == [None, [THERE]]


def test_a_sweep_whose_workers_all_lack_room_waits_for_it(
    experiment: ExperimentDirectory, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """But not for ever."""
    full = replace(FAILURE, error="No space left on device", errno=errno.ENOSPC)
    here = iter([HERE, THERE])

    def answers(order: Order, number: int) -> Any:
        return replace(full, worker=next(here)) if number <= 2 else make_answer(tmp_path / "w", order)

    executor, client = make_executor(answers, tmp_path, make_job(experiment))
    for _ in range(3):
        assert executor.wait(0.01) == []
    assert len(client.orders) == 2
    assert all(each.full for each in executor.workers.members)
    executor.workers.members[1].ready, executor.workers.members[1].refused, executor.workers.members[1].full = (
        True,
        None,
        False,
    )
    assert [each.verdict for _ in range(2) for each in executor.wait(0.01)] == ["pass"]
    monkeypatch.setattr(module, "_FULL_LIMIT_S", 0.0)
    executor.workers.refuse(THERE, "its disk is full", full=True)
    with pytest.raises(HowdahError, match="none of the 2 workers can be used: its disk is full"):
        executor.wait(0.01)


def test_the_disk_of_the_command_itself_is_not_waited_for(experiment: ExperimentDirectory, tmp_path: Path) -> None:
    full = replace(FAILURE, error="No space left on device", errno=errno.ENOSPC, worker="here")
    outcomes, client, _ = make_runs([make_job(experiment)], lambda *_: full, tmp_path)
    assert "No space left on device" in str(outcomes[0].error)
    assert len(client.orders) == 1


def test_a_worker_that_lacks_something_is_made_ready_again(experiment: ExperimentDirectory, tmp_path: Path) -> None:
    """However long that takes: a run that was not begun is not lost."""

    def answers(order: Order, number: int) -> Any:
        return Unready(order.key, HERE) if number < 30 else make_answer(tmp_path / "w", order)

    outcomes, _, executor = make_runs([make_job(experiment)], answers, tmp_path)
    assert [each.verdict for each in outcomes] == ["pass"]
    assert executor.workers.forgotten == [HERE] * 29  # type: ignore[attr-defined]


def test_a_run_waits_for_a_worker_that_is_ready(experiment: ExperimentDirectory, tmp_path: Path) -> None:
    executor, client = make_executor(
        lambda order, _n: make_answer(tmp_path / "w", order), tmp_path, make_job(experiment), given=0
    )
    for member in executor.workers.members:
        member.ready = False
    executor.give(make_job(experiment))
    assert executor.wait(0.01) == []
    assert client.orders == []
    executor.workers.members[1].ready = True
    assert [each.verdict for _ in range(2) for each in executor.wait(0.01)] == ["pass"]
    assert client.may == [[THERE]], "the other one lacks what the run is made with"


def test_a_guest_that_dies_each_time_dies_by_itself(experiment: ExperimentDirectory, tmp_path: Path) -> None:
    outcomes, client, _ = make_runs(
        [make_job(experiment)], lambda order, n: failed(make_answer(tmp_path / f"w{n}", order)), tmp_path
    )
    assert [each.verdict for each in outcomes] == ["pass"], "it is kept as it is"
    assert len(client.orders) == 3


def _begun(experiment: ExperimentDirectory, tmp_path: Path, waiting: Waiting) -> tuple[ClusterExecutor, Client]:
    """One run, begun by the second worker, which is lost then."""
    job = make_job(experiment)
    executor, client = make_executor(waiting, tmp_path, job)
    executor._events.put(("event", RunProgress(job.cell.key, THERE, "flows", 1, 2)))
    executor.wait(0.01)
    waiting.end(0, CancelledError())
    assert executor.wait(0.01) == []
    assert len(client.orders) == 1, "its worker may have finished it, and come back"
    assert executor.handed == [job]
    assert executor.has_room()
    return executor, client


def test_a_run_that_its_lost_worker_had_finished_is_not_made_again(
    experiment: ExperimentDirectory, tmp_path: Path, waiting: Waiting
) -> None:
    executor, client = _begun(experiment, tmp_path, waiting)
    executor._events.put(("unfetched", make_answer(tmp_path / "w", client.orders[0], worker=THERE)))
    executor._events.put(("ready", executor.workers.members[1]))
    assert [each.verdict for each in executor.wait(0.01)] == ["pass"]
    assert len(client.orders) == 1


def test_a_run_that_a_lost_worker_may_have_begun_unheard_is_held_too(
    experiment: ExperimentDirectory, tmp_path: Path, waiting: Waiting
) -> None:
    executor, client = make_executor(waiting, tmp_path, make_job(experiment))
    waiting.end(0, KilledWorker("x", SimpleNamespace(address=THERE), 0))
    executor.wait(0.01)
    assert len(client.orders) == 1
    executor._events.put(("ready", executor.workers.members[1]))
    executor.wait(0.01)
    assert len(client.orders) == 2


def test_a_run_that_its_lost_worker_still_makes_is_given_to_it(
    experiment: ExperimentDirectory, tmp_path: Path, waiting: Waiting
) -> None:
    executor, client = _begun(experiment, tmp_path, waiting)
    executor.workers.members[1].making = [client.orders[0].key]
    executor._events.put(("ready", executor.workers.members[1]))
    executor.wait(0.01)
    assert client.may == [None, [THERE]]


def test_a_run_that_a_worker_makes_for_a_command_before_is_joined(
    experiment: ExperimentDirectory, tmp_path: Path, waiting: Waiting, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Whether that worker was ready before the run was given, or after another one had begun it."""
    called: list[Any] = []
    hear(called, monkeypatch)
    jobs = [make_job(experiment, number) for number in range(2)]
    executor, client = make_executor(waiting, tmp_path, *jobs, given=0)
    executor.workers.members[1].making = [jobs[0].cell.key]
    executor.give(jobs[0])
    assert client.may == [[THERE]]
    executor.workers.members[1].ready = False
    executor.give(jobs[1])
    executor._events.put(("event", RunProgress(jobs[1].cell.key, HERE)))
    executor.workers.members[1].ready, executor.workers.members[1].making = True, [jobs[1].cell.key]
    executor._events.put(("ready", executor.workers.members[1]))
    executor.wait(0.01)
    assert client.may == [[THERE], [HERE], [THERE]]
    assert (HERE, worker.abandon, [jobs[1].cell.key]) in called
    assert executor._done(jobs[1].cell.key, 1, Future(CancelledError())) == []
    assert len(client.orders) == 3, "what becomes of the other one does not matter any more"


def test_a_run_that_its_lost_worker_had_not_finished_is_given_to_any(
    experiment: ExperimentDirectory, tmp_path: Path, waiting: Waiting, monkeypatch: pytest.MonkeyPatch
) -> None:
    """As soon as the worker is back, or after some time without it."""
    executor, client = _begun(experiment, tmp_path, waiting)
    executor._events.put(("ready", executor.workers.members[0]))
    executor.wait(0.01)
    assert len(client.orders) == 1, "that was another one"
    executor._events.put(("ready", executor.workers.members[1]))
    executor.wait(0.01)
    assert client.may == [None, None]
    monkeypatch.setattr(module, "_HELD_S", -1.0)
    executor._events.put(("event", RunProgress(client.orders[0].key, THERE)))
    executor.wait(0.01)
    waiting.end(1, CancelledError())
    executor.wait(0.01)
    assert len(client.orders) == 3


def test_workers_that_were_lost_do_not_count_as_guests_that_died(
    experiment: ExperimentDirectory, tmp_path: Path
) -> None:
    def answers(order: Order, number: int) -> Any:
        if number <= 5:
            return CancelledError()
        answer = make_answer(tmp_path / f"w{number}", order)
        return failed(answer) if number == 6 else answer

    outcomes, client, _ = make_runs([make_job(experiment)], answers, tmp_path)
    assert [each.verdict for each in outcomes] == ["pass"]
    assert len(client.orders) == 7


def test_a_sweep_that_no_worker_can_make_ends_with_the_reason(experiment: ExperimentDirectory, tmp_path: Path) -> None:
    executor, _ = make_executor(None, tmp_path, make_job(experiment), given=0)
    for member in executor.workers.members:
        member.ready, member.refused = False, "it is a riscv64"
    with pytest.raises(HowdahError, match="none of the 2 workers can be used: it is a riscv64"):
        executor.wait(0.01)


def test_a_batch_that_waits_for_its_first_worker_rests_meanwhile(
    experiment: ExperimentDirectory, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """A cluster may have no worker for hours."""
    executor, _ = make_executor(lambda order, _n: make_answer(tmp_path / "w", order), tmp_path)
    waited: list[float] = []
    wait = executor.wait

    def counted(timeout_s: float) -> list[Outcome]:
        waited.append(timeout_s)
        executor.workers.members[0].ready = executor.workers.members[1].ready = len(waited) >= 5
        return wait(0.0)

    monkeypatch.setattr(executor, "wait", counted)
    opened = executor.open

    def open_without_workers(jobs: Sequence[Job], *, total: int | None = None) -> None:
        opened(jobs, total=total)
        for member in executor.workers.members:
            member.ready = False

    monkeypatch.setattr(executor, "open", open_without_workers)
    outcomes = run_jobs([make_job(experiment)], 1, False, lambda *_: None, executor=executor)
    assert [each.verdict for each in outcomes] == ["pass"]
    assert all(each > 0 for each in waited[:5])


class _Held(Future):
    """As Dask's: it keeps the error that it raises."""

    def __init__(self, answer: Any) -> None:
        super().__init__(answer)
        self.error = worker.MadeError(answer)

    def exception(self, timeout: float) -> BaseException | None:
        assert timeout > 0
        return self.error


def test_a_packed_run_does_not_stay_in_memory(
    experiment: ExperimentDirectory, tmp_path: Path, waiting: Waiting
) -> None:
    """Neither that of the scheduler, which is told, nor here until Python looks for cycles."""
    job = make_job(experiment)
    executor, client = make_executor(waiting, tmp_path, job)
    future = _Held(make_answer(tmp_path / "w", client.orders[0]))
    there = weakref.ref(future)
    gc.disable()
    try:
        assert [each.verdict for each in executor._done(job.cell.key, 1, future)] == ["pass"]
        assert future.released
        del future
        assert there() is None
    finally:
        gc.enable()
