# SPDX-License-Identifier: Apache-2.0
"""Runs that come back from a cluster: checked, kept once, told apart. The cluster itself is a stand-in."""

from __future__ import annotations

from concurrent.futures import CancelledError
from dataclasses import replace
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import pytest

pytest.importorskip("distributed", reason="Dask is not installed")

from distributed import KilledWorker

from howdah.build.cache import Cache
from howdah.cluster import worker
from howdah.cluster.executor import ClusterExecutor
from howdah.cluster.message import Delivery, Order, RunProgress
from howdah.cluster.store import SharedStore
from howdah.errors import HowdahError
from howdah.work.experiment import ExperimentDirectory
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


def test_a_changed_file_is_not_published(experiment: ExperimentDirectory, tmp_path: Path) -> None:
    def answers(order: Order, number: int) -> Any:
        answer = make_answer(tmp_path / f"w{number}", order)
        return replace(answer, pack=answer.pack[:-9] + b"\0" + answer.pack[-8:])

    outcomes, _, _ = make_runs([make_job(experiment)], answers, tmp_path)
    assert "and it was damaged in transit each time" in str(outcomes[0].error)
    assert not list(experiment.path.glob("[!.]*"))


def test_another_run_than_was_asked_for_is_not_published(experiment: ExperimentDirectory, tmp_path: Path) -> None:
    outcomes, _, _ = make_runs(
        [make_job(experiment)], lambda order, _n: make_answer(tmp_path / "w", replace(order, key="f" * 64)), tmp_path
    )
    assert "a different run than requested" in str(outcomes[0].error)


def test_two_results_of_one_key_are_an_alarm(experiment: ExperimentDirectory, tmp_path: Path) -> None:
    """The first one stays. The second comes from a worker that was given up."""
    _, client, executor = make_runs(
        [make_job(experiment)], lambda order, _n: make_answer(tmp_path / "w", order), tmp_path
    )
    equal = make_answer(tmp_path / "again", client.orders[0], worker=THERE)
    other = make_answer(tmp_path / "other", client.orders[0], value=2.0, worker=THERE)
    killed = failed(other)  # its guest was killed: that is no result
    for late in (Future(equal), Future(CancelledError()), Future(killed)):
        assert executor._done(client.orders[0].key, 1, late) == []
    with pytest.raises(HowdahError, match="ALARM: the run was made twice"):
        executor._done(client.orders[0].key, 1, Future(other))


@pytest.mark.parametrize("value", [1.0, 2.0])
def test_a_run_of_a_command_before_is_compared_with_what_is_in_its_place(
    experiment: ExperimentDirectory, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, value: float
) -> None:
    """That command was killed after it had put the run there, before the worker was told."""
    job, later = make_job(experiment), make_job(experiment, 1)
    _, client, _ = make_runs([job], lambda order, _n: make_answer(tmp_path / "w", order), tmp_path)
    executor, _ = make_executor(None, tmp_path)
    called: list[Any] = []
    hear(called, monkeypatch)
    executor.open([later])
    executor._events.put(("unfetched", make_answer(tmp_path / "again", client.orders[0], value=value)))
    if value == 1.0:
        assert executor.wait(0.1) == []
        assert (HERE, worker.drop_runs, [job.cell.key]) in called
    else:
        with pytest.raises(HowdahError, match="ALARM: the run was made twice"):
            executor.wait(0.1)


def test_a_result_of_another_version_of_the_analysis_is_no_alarm(
    experiment: ExperimentDirectory, tmp_path: Path
) -> None:
    _, client, executor = make_runs(
        [make_job(experiment)], lambda order, _n: make_answer(tmp_path / "w", order), tmp_path
    )
    other = make_answer(tmp_path / "other", client.orders[0], value=2.0, worker=THERE)
    assert (
        executor._done(client.orders[0].key, 1, Future(replace(other, made=replace(other.made, analysis="0" * 64))))
        == []
    )


def test_what_was_made_while_nobody_listened_is_not_made_again(experiment: ExperimentDirectory, tmp_path: Path) -> None:
    orders: list[Order] = []

    def answers(order: Order, _number: int) -> Any:
        orders.append(order)
        return FAILURE

    first = Client(answers)
    job = make_job(experiment)
    run_jobs([job], 1, False, lambda *_: None, executor=ClusterExecutor(first, print, cache=Cache(tmp_path / "cache")))
    result = make_answer(tmp_path / "w", orders[0])
    client = Client(None)
    executor = ClusterExecutor(client, lambda _text: None, cache=Cache(tmp_path / "cache"))
    executor._events.put(("unfetched", result))
    executor.open([job])
    assert executor.wait(0.1) == []
    executor.give(job)
    assert [each.verdict for each in executor.wait(0.1)] == ["pass"]
    assert client.orders == []


def test_a_run_that_is_finished_elsewhere_is_ended(
    experiment: ExperimentDirectory, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """A worker died with a run that it had finished, and came back while another was making it once more."""
    client = Client(lambda *_: None)
    monkeypatch.setattr(Future, "add_done_callback", lambda *_: None)
    executor = ClusterExecutor(client, lambda _text: None, cache=Cache(tmp_path / "cache"))
    called: list[Any] = []
    hear(called, monkeypatch)
    job = make_job(experiment)
    executor.open([job])
    executor.give(job)
    executor._events.put(("event", RunProgress(job.cell.key, THERE, "flows", 1, 2)))
    assert executor.wait(0.1) == []
    assert [work.share for work in executor.active] == [0.5]
    executor._events.put(("unfetched", make_answer(tmp_path / "w", client.orders[0])))
    assert [each.verdict for each in executor.wait(0.1)] == ["pass"]
    assert (THERE, worker.abandon, [job.cell.key]) in called
    assert (HERE, worker.drop_runs, [job.cell.key]) in called


def test_a_run_that_waits_to_be_begun_is_not_begun_when_it_is_there(
    experiment: ExperimentDirectory, tmp_path: Path, waiting: Waiting
) -> None:
    """A worker tells of what it has finished after the run was given to another one."""
    executor, client = make_executor(waiting, tmp_path, make_job(experiment))
    executor._events.put(("unfetched", make_answer(tmp_path / "w", client.orders[0], worker=THERE)))
    assert [each.verdict for each in executor.wait(0.01)] == ["pass"]
    assert len(client.cancelled) == 1


def _put(shared: SharedStore, place: Path, answer: Delivery) -> None:
    """What a worker does that has made the run."""
    pack = place / "stored"
    pack.write_bytes(answer.pack)
    shared.put(replace(answer.made, host=answer.host), pack)


def _orders(experiment: ExperimentDirectory, tmp_path: Path) -> Order:
    """The order of the run, as a worker gets it."""
    first = Client(lambda *_: FAILURE)
    executor = ClusterExecutor(first, print, cache=Cache(tmp_path / "cache"))
    run_jobs([make_job(experiment)], 1, False, lambda *_: None, executor=executor)
    return first.orders[0]


def _executor(client: Client, tmp_path: Path, shared: SharedStore) -> ClusterExecutor:
    return ClusterExecutor(client, lambda _text: None, cache=Cache(tmp_path / "cache"), shared=shared)


def test_a_run_of_the_shared_store_is_taken_and_not_made(experiment: ExperimentDirectory, tmp_path: Path) -> None:
    shared = SharedStore(f"file://{tmp_path}/shared")
    _put(shared, tmp_path, make_answer(tmp_path / "w", _orders(experiment, tmp_path)))
    client = Client(None)
    outcomes = run_jobs([make_job(experiment)], 1, False, lambda *_: None, executor=_executor(client, tmp_path, shared))
    assert [each.verdict for each in outcomes] == ["pass"]
    assert experiment.finished(make_job(experiment).cell) is not None
    assert client.orders == []


def test_a_damaged_one_of_the_shared_store_is_made_again(experiment: ExperimentDirectory, tmp_path: Path) -> None:
    shared = SharedStore(f"file://{tmp_path}/shared")
    _put(shared, tmp_path, make_answer(tmp_path / "w", _orders(experiment, tmp_path)))
    (pack,) = (tmp_path / "shared").glob("*/*.zst")
    pack.write_bytes(pack.read_bytes()[:-1] + b"\0")
    client = Client(lambda order, n: make_answer(tmp_path / f"again{n}", order))
    outcomes = run_jobs([make_job(experiment)], 1, False, lambda *_: None, executor=_executor(client, tmp_path, shared))
    assert [each.verdict for each in outcomes] == ["pass"]
    assert [order.store for order in client.orders] == [f"file://{tmp_path}/shared"]


def test_two_results_in_the_shared_store_are_an_alarm(experiment: ExperimentDirectory, tmp_path: Path) -> None:
    shared, order = SharedStore(f"file://{tmp_path}/shared"), _orders(experiment, tmp_path)
    for value in (1.0, 2.0):
        _put(shared, tmp_path, make_answer(tmp_path / f"w{value}", order, value=value))
    outcomes = run_jobs(
        [make_job(experiment)], 1, False, lambda *_: None, executor=_executor(Client(None), tmp_path, shared)
    )
    assert "ALARM: the run was made twice" in str(outcomes[0].error)


def test_what_a_lost_worker_had_put_into_the_store_is_taken_at_once(
    experiment: ExperimentDirectory, tmp_path: Path, waiting: Waiting
) -> None:
    shared, client = SharedStore(f"file://{tmp_path}/shared"), Client(waiting)
    executor = _executor(client, tmp_path, shared)
    executor.open([make_job(experiment)])
    executor.give(make_job(experiment))
    _put(shared, tmp_path, make_answer(tmp_path / "w", client.orders[0]))
    waiting.end(0, KilledWorker("x", SimpleNamespace(address=THERE), 0))
    assert [each.verdict for each in executor.wait(0.01)] == ["pass"]
    assert len(client.orders) == 1
