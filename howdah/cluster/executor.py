# SPDX-License-Identifier: Apache-2.0
"""Make runs on the workers of a Dask cluster, and submit them again if a worker is lost."""

from __future__ import annotations

import errno
import queue
import sys
import threading
import time
from collections import defaultdict
from collections.abc import Callable, Sequence
from concurrent.futures import CancelledError
from contextlib import suppress
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from distributed import Client, Future, KilledWorker, fire_and_forget

from howdah.build.cache import Cache
from howdah.cluster import worker
from howdah.cluster.message import Delivery, Failure, Order, RunProgress, Unready, call
from howdah.cluster.place import DetachedError
from howdah.cluster.publisher import Publisher
from howdah.cluster.store import SharedStore
from howdah.cluster.workers import Load, Member, Tally, Workers, identity
from howdah.engine.engine_bundle import Portable
from howdah.engine.registry import engine as find_engine
from howdah.errors import HowdahError
from howdah.work.experiment import LEAST_FREE_BYTES
from howdah.work.job import Job, Outcome, Rest, Work

_MOST_ATTEMPTS = 20  # attempts of a run whose worker is lost each time
_ATTEMPTS_AT_FAILED = 3  # attempts of a run whose guest dies: one killed by its machine may survive elsewhere
_STALLED_AFTER_S = 60.0  # without a message, after which a worker is lost; it sends one each second of a run
_RESULT_LIMIT_S = 60.0  # to receive a result that Dask has
_HELD_S = 30.0  # to wait for a lost worker, which may have finished its run, before repeating the run
_FULL_LIMIT_S = 60.0  # to wait while the disks of all workers are full
_QUEUED = 2  # runs queued on the scheduler per run in progress, so that no worker waits for the client
Tell = Callable[[str], None]


@dataclass
class _Given:
    """A job that was handed out, its current attempt, and the workers that may make it (``may``; None: all).

    ``attempt`` numbers the attempts, each of which has its own Dask key. ``lost`` counts attempts whose worker was
    lost, ``died`` those whose guest died while the worker survived. ``store`` is that of the worker that has the job;
    until ``held_until`` the client waits for that worker and for a run that it may have finished.
    """

    job: Job
    attempt: int = 0
    lost: int = 0
    died: int = 0
    future: Future | None = None
    may: frozenset[str] | None = None
    work: Work | None = None
    worker: str = ""
    store: str = ""
    held_until: float = 0.0
    last_message: float = field(default_factory=time.monotonic)
    others: list[Job] = field(default_factory=list)  # jobs of other experiments with the same key


class ClusterExecutor:
    """Makes runs through a connected client. ``tell`` reports changes of workers; ``runs`` is the directory for the
    numbers of ``Tally``; ``shared`` is the store where workers put finished runs.
    """

    def __init__(
        self,
        client: Client,
        tell: Tell,
        *,
        again: bool = False,
        cache: Cache | None = None,
        runs: Path | None = None,
        shared: SharedStore | None = None,
    ) -> None:
        self.client = client
        self.again = again
        self._tell = tell
        self._cache = cache or Cache()
        self._given: dict[str, _Given] = {}
        self._events: queue.Queue[tuple[str, Any]] = queue.Queue()
        self._workers: Workers | None = None
        self._sending: dict[str, threading.Lock] = defaultdict(threading.Lock)
        self._bundles: dict[str, str] = {}
        self._asked: set[str] | None = set()  # keys that will be given; None: any
        self._unfetched: dict[str, Delivery] = {}
        self._tally = Tally(runs)
        self._shared = shared
        self._publisher = Publisher(client, shared, self._tally.sweep, again=again)
        self._problems: set[str] = set()  # problems of workers with the shared store, each reported once
        self._known: set[str] = set()  # addresses of workers that were ready earlier, in any batch
        self._last_usable = time.monotonic()  # the last time with a worker that is not refused

    @property
    def workers(self) -> Workers:
        assert self._workers is not None
        return self._workers

    @property
    def active(self) -> list[Work]:
        return [each.work for each in self._given.values() if each.work is not None]

    @property
    def handed(self) -> list[Job]:
        return [each.job for each in self._given.values() if each.work is None]

    def open(self, jobs: Sequence[Job], *, total: int | None = None) -> None:
        bundles = []
        plans: dict[str, list[Any]] = {}
        for job in jobs:
            with suppress(HowdahError):  # give() reports the error
                _portable(job).check_portable(job.cell.plan)
                plans.setdefault(job.cell.plan.engine, []).append(job.cell.plan)
        for name, own in plans.items():
            engine = find_engine(name)
            assert isinstance(engine, Portable)
            bundles.append(engine.bundle(own, lambda _what, _done, _total: None))
            self._bundles[name] = identity(bundles[-1])
            agents = [each.directory for key, each in bundles[-1].pieces.items() if key.startswith("agent/")]
            self._publisher.agents.update(zip([name], agents, strict=False))  # no agent without a built kernel
        self._publisher.paths |= {job.experiment.path for job in jobs}
        self._asked = {job.cell.key for job in jobs} if total is None else None
        stored = self._shared.keys() if self._shared is not None else set()
        self._publisher.in_store = stored if self._asked is None else stored & self._asked
        self.client.subscribe_topic(worker.EVENTS, self._event)
        load = Load(bundles, self._cache)
        self._workers = Workers(self.client, load, lambda what, about: self._events.put((what, about)), self._sending)

    # Giving jobs

    def has_room(self) -> bool:
        now = time.monotonic()
        return sum(each.held_until <= now for each in self._given.values()) < (1 + _QUEUED) * self.workers.slots

    def give(self, job: Job) -> None:
        _portable(job).check_portable(job.cell.plan)
        key = job.cell.key
        if key in self._given:
            self._given[key].others.append(job)
            return
        known = self._unfetched.pop(key, None) or self._publisher.stored(job)
        given = self._given[key] = _Given(job)
        if known is not None and self._publisher.fits(known.made, job):
            self._events.put(("result", known))
        else:
            self._submit(given, at=next((each.address for each in self.workers.ready if key in each.making), None))

    def _submit(self, given: _Given, *, at: str | None = None) -> None:
        """Submit a job to any ready worker, or only to the one at ``at``."""
        cell = given.job.cell
        store = self._shared.url if self._shared is not None else None
        order = Order.of(cell, self._bundles[cell.plan.engine], again=self.again, store=store)
        members = self.workers.members
        ready = frozenset(each.address for each in members if each.ready)
        given.future, given.held_until = None, 0.0
        if not ready:
            return  # _watch() submits it when a worker is ready
        given.may = frozenset([at]) if at is not None else ready if len(ready) < len(members) else None
        given.attempt += 1
        given.work, given.worker, given.store, given.last_message = None, "", "", time.monotonic()
        given.future = self.client.submit(
            worker.make_run,
            order,
            key=f"{worker.TASK}-{cell.key}-{given.attempt}",
            workers=sorted(given.may) if given.may else None,
            pure=False,
        )
        fire_and_forget(given.future)  # it continues while no client is connected
        attempt = given.attempt
        given.future.add_done_callback(lambda future: self._events.put(("done", (cell.key, attempt, future))))

    def _event(self, event: tuple[float, dict[str, Any]]) -> None:
        self._events.put(("event", RunProgress.from_event(event[1])))

    # Waiting for outcomes

    def wait(self, timeout_s: float) -> list[Outcome]:
        outcomes: list[Outcome] = []
        with suppress(queue.Empty):
            self._handle(*self._events.get(timeout=timeout_s), outcomes)
            while len(outcomes) < 32:
                self._handle(*self._events.get_nowait(), outcomes)
        self._watch(outcomes)
        self._publisher.acknowledge()
        self._tally.add(outcomes)
        return outcomes

    def show(self, outcomes: Sequence[Outcome], rest: Rest) -> None:
        self._tally.show(self.active, len(self.handed), self.workers, outcomes, rest)

    def _handle(self, what: str, about: Any, outcomes: list[Outcome]) -> None:
        if what == "event":
            self._progress(about)
        elif what == "done":
            outcomes += self._done(*about)
        elif what == "unfetched":
            outcomes += self._take_unfetched(about)
        elif what == "result" and about.made.key in self._given:
            outcomes += self._published(self._given[about.made.key], about)
        elif what == "refused":
            self._tell(f"worker {_member_name(about)} is not used: {about.refused}")
        elif what == "ready":
            if about.address not in self._known:  # report it once, although a search has dozens of batches
                self._known.add(about.address)
                self._tell(
                    f"worker {_member_name(about)}, {about.slots} at a time, is ready after {about.seconds:.1f} s"
                )
            self._resubmit_lost(about)

    def _resubmit_lost(self, member: Member) -> None:
        """Submit the unfinished runs of a worker that returned; to the same worker if it is still making them."""
        for given in list(self._given.values()):
            key = given.job.cell.key
            if given.held_until and given.store == member.store:
                self._submit(given, at=member.address if key in member.making else None)
            elif key in member.making and given.future is not None and given.worker != member.address:
                # The job went to another worker while this one was away, or an earlier command gave it to this one.
                self.client.cancel([given.future], force=True)
                if given.worker:
                    with suppress(HowdahError):
                        call(self.client, given.worker, worker.abandon, [key], limit_s=5.0)
                self._submit(given, at=member.address)

    def _progress(self, event: RunProgress) -> None:
        given = self._given.get(event.key)
        if given is None:
            return
        if given.work is None:
            given.work = Work(given.job)
        given.worker, given.last_message = event.worker, time.monotonic()
        given.store = self.workers.store_of(given.worker) or given.store
        if event.phase is not None:
            given.work.phase, given.work.done_us, given.work.of_us = event.phase, event.done_us, event.of_us

    def _done(self, key: str, attempt: int, future: Future) -> list[Outcome]:
        given = self._given.get(key)
        try:
            result = _answer(future)
        except KilledWorker as error:
            if given is not None and attempt == given.attempt:
                given.store = self.workers.store_of(error.last_worker.address)  # it may have begun without a message
            return self._retry(given, attempt, "its workers were lost", hold=True)
        except (CancelledError, TimeoutError, OSError) as error:
            return self._retry(given, attempt, str(error) or type(error).__name__, hold=True)
        except Exception as error:  # noqa: BLE001 - whatever was raised on a worker
            return self._ended(given, HowdahError(f"a worker failed: {type(error).__name__}: {error}"))
        future.release()  # lets the scheduler drop the packed run
        if isinstance(result, Delivery):
            if given is not None:
                return self._published(given, result)
            self._publisher.compare(result)
        elif given is not None and isinstance(result, Failure):
            return self._failed(given, attempt, result)
        elif given is not None:
            self.workers.forget(result.worker)
            given.lost -= 1  # the run had not begun
            return self._retry(given, attempt, "")
        return []

    def _failed(self, given: _Given, attempt: int, failure: Failure) -> list[Outcome]:
        no_room = failure.free_bytes is not None and failure.free_bytes < LEAST_FREE_BYTES
        full = no_room or failure.errno in (errno.ENOSPC, errno.EDQUOT)
        if full and not self.workers.shares_our_disk(failure.worker):
            self.workers.refuse(failure.worker, "its disk is full", full=True)
            return self._retry(given, attempt, "no worker has room")
        if failure.killed:
            return self._retry(given, attempt, "its process was killed")
        return self._ended(given, HowdahError(failure.error, where=failure.where or failure.host, hint=failure.hint))

    def _retry(self, given: _Given | None, attempt: int, why: str, *, hold: bool = False) -> list[Outcome]:
        """Submit a job again whose worker was lost. With ``hold``, wait first for a run that may have been finished."""
        if given is None or attempt != given.attempt:
            return []
        given.lost += 1
        self._tally.sweep.repeated += bool(why)
        if given.lost >= _MOST_ATTEMPTS:
            return self._ended(given, HowdahError(f"the run was started {given.lost} times, and {why} each time"))
        if hold and self._shared is not None:
            self._publisher.in_store.add(given.job.cell.key)
            known = self._publisher.stored(given.job)
            if known is not None and self._publisher.fits(known.made, given.job):
                return self._published(given, known)
        if hold and given.store:
            given.future, given.work, given.worker = None, None, ""
            given.held_until = time.monotonic() + _HELD_S
        else:
            self._submit(given)
        return []

    def _ended(self, given: _Given | None, error: HowdahError) -> list[Outcome]:
        if given is None:
            return []
        del self._given[given.job.cell.key]
        return [Outcome(job, error=error, worker=given.worker) for job in (given.job, *given.others)]

    # Publishing runs

    def _take_unfetched(self, delivery: Delivery) -> list[Outcome]:
        """Take a run that a worker finished while no client was connected."""
        key = delivery.made.key
        given = self._given.get(key)
        if given is not None and self._publisher.fits(delivery.made, given.job):
            if given.future is not None:  # even if it has not begun
                self.client.cancel([given.future], force=True)
            if given.worker not in ("", delivery.worker):  # another worker is repeating the finished run
                with suppress(HowdahError):
                    call(self.client, given.worker, worker.abandon, [key], limit_s=5.0)
            return self._published(given, delivery)
        if given is None and not self._publisher.compare(delivery) and (self._asked is None or key in self._asked):
            self._unfetched[key] = delivery
        return []

    def _published(self, given: _Given, delivery: Delivery) -> list[Outcome]:
        if (problem := delivery.not_stored) and problem not in self._problems:
            self._problems.add(problem)
            self._tell(f"worker {delivery.host}: {problem}; its runs are sent")
        given.died += delivery.made.failed
        if delivery.made.failed and given.died < _ATTEMPTS_AT_FAILED:
            return self._retry(given, given.attempt, "its guest died")
        try:
            outcomes = self._publisher.publish([given.job, *given.others], delivery)
        except HowdahError as error:
            return self._retry(given, given.attempt, error.what)
        del self._given[given.job.cell.key]
        return outcomes

    # Watching workers

    def _watch(self, outcomes: list[Outcome]) -> None:
        """Detect lost or silent workers. Raise HowdahError if no worker can be used."""
        members = {each.address: each for each in self.workers.members}
        hopeless = bool(members) and all(each.refused for each in members.values())
        if not hopeless:
            self._last_usable = time.monotonic()
        may_wait = any(each.full for each in members.values()) and time.monotonic() < self._last_usable + _FULL_LIMIT_S
        if hopeless and not may_wait:
            why = next(iter(members.values())).refused
            raise HowdahError(f"none of the {len(members)} workers can be used: {why}")
        for given in list(self._given.values()):
            if given.future is None:
                if given.held_until <= time.monotonic():
                    self._submit(given)
            elif given.worker and time.monotonic() - given.last_message > _STALLED_AFTER_S:
                if given.worker in members and members[given.worker].ready:
                    self.workers.refuse(given.worker, f"it has sent nothing for {_STALLED_AFTER_S:g} s")
                outcomes += self._retry(given, given.attempt, "its worker stalled")
            elif given.may is not None and not given.may & members.keys() and self.workers.ready:
                outcomes += self._retry(given, given.attempt, "its workers are gone")

    def kill(self) -> None:
        if isinstance(sys.exc_info()[1], DetachedError):
            return  # the runs continue; the repeated command takes them
        futures = [each.future for each in self._given.values() if each.future is not None]
        keys = list(self._given)
        self._given.clear()
        with suppress(Exception):  # the command ends even if the connection is broken
            self.client.cancel(futures, force=True)
        for member in self.workers.ready if self._workers else []:
            with suppress(HowdahError, RuntimeError):
                call(self.client, member.address, worker.abandon, keys, limit_s=5.0)

    def close(self) -> None:
        if self._workers is not None:
            self._workers.close()
            self._tally.close(self._workers)
        with suppress(Exception):
            self.client.unsubscribe_topic(worker.EVENTS)


def _answer(future: Future) -> Delivery | Failure | Unready:
    """Return a worker's answer. A made run arrives as an exception that is not raised: its traceback would hold the
    future, and with it the packed run, until Python collects cycles."""
    error = future.exception(timeout=_RESULT_LIMIT_S)
    if isinstance(error, worker.MadeError):
        return error.delivery
    said: Failure | Unready = future.result(timeout=_RESULT_LIMIT_S)
    return said


def _portable(job: Job) -> Portable:
    """Return the job's engine. Raise HowdahError if only this machine can make its runs."""
    engine = find_engine(job.cell.plan.engine)
    if not isinstance(engine, Portable):
        raise HowdahError(
            f"runs of the {engine.name} engine can only be made on this machine",
            hint="Leave out --scheduler and --cluster for this profile.",
        )
    return engine


def _member_name(member: Member) -> str:
    return f"{member.host} {member.address}".strip()
