# SPDX-License-Identifier: Apache-2.0
"""Functions that the client calls on a worker through Dask: describe it, send it files, make runs, fetch them.

The functions with ``dask_worker`` run on the worker's event loop while its threads make runs.
"""

from __future__ import annotations

import asyncio
import contextlib
import os
import platform
import select
import shutil
import signal
import socket
import threading
import time
from collections.abc import Iterator
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import Any

from distributed.worker import get_worker

from howdah import __version__
from howdah.build.packed_piece import PackedPiece
from howdah.cluster.incoming import Incoming
from howdah.cluster.message import About, Delivery, Failure, MadeRun, Order, RunProgress, Unready, WantedBundle
from howdah.cluster.store import SharedStore, Store, pack_run, results_sha256
from howdah.codec import encoded
from howdah.engine.engine_bundle import BUNDLE_VARIABLE
from howdah.errors import HowdahError, explain, file_of_error
from howdah.plan.plan import Plan
from howdah.record.digest import remove_data
from howdah.record.directory import PARTIAL, RunDirectory
from howdah.record.provenance import agent_sha256, analysis_sha256
from howdah.record.run import read_record
from howdah.scratch import scratch
from howdah.work.experiment import begin_run
from howdah.work.local import RunInProgress, WorkerProcesses, failure

CHUNK_BYTES = 1 << 22
INLINE_BYTES = 1 << 20  # a packed run up to this size is sent with its result
EVENTS = "howdah"  # Dask's topic for messages of the workers
TASK = "howdah"  # prefix of Dask's keys of runs, by which Dask groups tasks
_SAY_EVERY_S = 1.0
_LOOK_EVERY_S = 0.2
_incoming = Incoming()
_parsing = threading.Lock()  # ast.parse of Python 3.11 sometimes fails in concurrent threads


async def hello(dask_worker: Any) -> Any:
    """Return this worker's description: ``About`` as a dictionary."""

    def look() -> About:
        store = Store()
        store.cache.root.mkdir(parents=True, exist_ok=True)
        with _parsing:
            agent, analysis = agent_sha256(), analysis_sha256()
        with _lock:
            making = list(_making)  # before the unfetched runs: a run that ends in between is in both lists
        return About(
            agent=agent,
            analysis=analysis,
            making=making,
            machine=platform.machine(),
            host=socket.gethostname(),
            version=__version__,
            store=store.name,
            unfetched=store.unfetched(),
            slots=dask_worker.state.nthreads,
        )

    return await _result_or_error(lambda: encoded(look()))


async def free_bytes() -> int:
    """Return the free bytes on the disk of the cache."""
    return shutil.disk_usage(Store().cache.root).free


async def lacks(packed_pieces: list[PackedPiece]) -> Any:
    """Return the digests of pieces that this worker has neither received nor in a bundle."""

    def look() -> list[str]:
        return [packed_piece.sha256 for packed_piece in Store().lacks(packed_pieces)]

    return await _result_or_error(look)


async def _result_or_error(function: Any, *arguments: Any) -> Any:
    """Run a slow function in a thread and return its result, or ``{"error", "where", "hint"}``."""
    try:
        return await asyncio.to_thread(function, *arguments)
    except HowdahError as error:
        return {"error": error.what, "where": error.where, "hint": error.hint}
    except OSError as error:
        return {"error": explain(error), "where": file_of_error(error), "hint": None}


async def take_chunk(packed_piece: PackedPiece, transfer: str, offset: int, chunk: bytes) -> Any:
    """Take a chunk of a packed piece and return the offset at which the client continues; the last one completes it."""
    return await _result_or_error(lambda: _incoming.take(Store(), packed_piece, transfer, offset, chunk))


async def take_bundle(bundle: WantedBundle) -> Any:
    return await _result_or_error(Store().keep_bundle, bundle)


def read_run(key: str, offset: int) -> bytes:
    """Read a part of a stored packed run."""
    with Store().pack_of(key).open("rb") as opened:
        opened.seek(offset)
        return opened.read(CHUNK_BYTES)


def drop_runs(keys: list[str]) -> None:
    """Delete runs that the client has stored."""
    store = Store()
    for key in keys:
        store.drop(key)


# Making runs

_lock = threading.Lock()
_makers: dict[str, WorkerProcesses] = {}
_making: dict[str, RunInProgress] = {}
_turns: dict[str, _Turn] = {}  # by key: a request for a run that is being made waits for it


def abandon(keys: list[str] | None) -> int:
    """Kill the runs of these keys (None: all) on this worker and return their number."""
    with _lock:
        chosen = [making for key, making in _making.items() if keys is None or key in keys]
    for making in chosen:
        with contextlib.suppress(ProcessLookupError):
            os.killpg(making.process.pid, signal.SIGKILL)  # its thread sees the end of the process
    return len(chosen)


@dataclass
class _Turn:
    """The lock of a key. ``users`` counts the threads that hold it or wait for it."""

    lock: threading.Lock = field(default_factory=threading.Lock)
    users: int = 0


@contextlib.contextmanager
def _turn(key: str) -> Iterator[None]:
    """Let only one thread make a run at a time: two would use one directory. A turn is deleted with its last user."""
    with _lock:
        turn = _turns.setdefault(key, _Turn())
        turn.users += 1
    try:
        with turn.lock:
            yield
    finally:
        with _lock:
            turn.users -= 1
            if not turn.users:
                del _turns[key]


class MadeError(Exception):
    """A run was made; ``delivery`` says how it ended.

    A task's return value stays on its worker until the client fetches it, and Dask would repeat the run if the worker
    died before. An exception goes to the scheduler at once and stays there.
    """

    def __init__(self, delivery: Delivery) -> None:
        super().__init__(delivery)
        self.delivery = delivery

    def __repr__(self) -> str:
        return f"the run {self.delivery.made.key[:12]} was made"  # Dask transmits this text, and truncates a long one

    __str__ = __repr__


def make_run(order: Order) -> Failure | Unready:
    """Make one run, or return why that failed. Raise MadeError with the packed run, unless it is so large that the
    client fetches it."""
    worker = get_worker()
    host = socket.gethostname()
    try:
        store = Store()
        bundle = store.bundle(order.bundle)
        if bundle is None:
            return Unready(order.key, worker.address)
        with _turn(order.key):
            found: MadeRun | Failure | None = None if order.again else store.find(order.key)
            if not isinstance(found, MadeRun) or found.keep_data != order.keep_data or found.failed:
                found = _make(store, bundle, order, worker)
        if isinstance(found, Failure):
            return found
        delivery = Delivery(found, worker.address, host)
        if not found.failed and order.store is not None:
            delivery = _share(delivery, store, order.store)
        if not delivery.stored and found.pack_bytes <= INLINE_BYTES:
            delivery = replace(delivery, pack=store.pack_of(order.key).read_bytes())
    except HowdahError as error:
        return Failure(order.key, worker.address, host, error.what, error.where, error.hint)
    except OSError as error:
        where = file_of_error(error)
        return Failure(order.key, worker.address, host, explain(error), where, errno=error.errno)
    raise MadeError(delivery)


def _share(delivery: Delivery, store: Store, url: str) -> Delivery:
    """Put a run into the shared store. If that fails, it is sent as it would be without a store."""
    made = replace(delivery.made, host=delivery.host)
    try:
        SharedStore(url).put(made, store.pack_of(made.key))
    except HowdahError as error:
        return replace(delivery, not_stored=error.what)
    return replace(delivery, stored=True)


def _make(store: Store, bundle: Path, order: Order, worker: Any) -> MadeRun | Failure:
    # In a directory of its own: a worker of another container may have this number, and make the same run.
    with scratch(PARTIAL, store.scratch) as place:
        return _make_in(place, store, bundle, order, worker)


def _make_in(place: Path, store: Store, bundle: Path, order: Order, worker: Any) -> MadeRun | Failure:
    started = time.monotonic()
    directory = begin_run(place / order.name, order.plan, order.key, order.parameter_places)
    with _lock:
        for other, unused in _makers.items():
            if other != str(bundle):
                unused.end()
        makers = _makers.setdefault(str(bundle), WorkerProcesses(environment={BUNDLE_VARIABLE: str(bundle)}))
        making = _making[order.key] = makers.give(directory, keep_data=order.keep_data, patience_s=order.patience_s)
    try:
        _listen(making, order.key, worker)
    finally:
        with _lock:
            _making.pop(order.key, None)
            status = makers.finish(making)
    if making.last is not None and making.last.verdict is not None:
        return _store_result(store, directory, making.last.verdict, order, started)
    host = socket.gethostname()
    error = failure(making, status, Plan.from_json(order.plan).run, host)
    free_bytes = shutil.disk_usage(directory.path).free
    return Failure(
        order.key,
        worker.address,
        host,
        error.what,
        error.where,
        error.hint,
        free_bytes=free_bytes,
        killed=making.last is None or making.last.error is None,
    )


def _store_result(store: Store, directory: RunDirectory, verdict: str, order: Order, started: float) -> MadeRun:
    if not order.keep_data:
        remove_data(directory)
    pack = directory.path.parent / "pack"
    sha256 = pack_run(directory, order.name, pack)
    record = read_record(directory)
    made = MadeRun(
        key=order.key,
        name=order.name,
        verdict=verdict,
        failed=record.status != "finished",
        analysis=record.analysis_sha256,
        keep_data=order.keep_data,
        results_sha256=results_sha256(directory),
        sha256=sha256,
        pack_bytes=pack.stat().st_size,
        wall_s=round(time.monotonic() - started, 3),
    )
    store.put(made, pack)
    return made


def _listen(making: RunInProgress, key: str, worker: Any) -> None:
    last_sent = time.monotonic() - _SAY_EVERY_S
    going = True
    while going:
        if select.select([making.output], [], [], _LOOK_EVERY_S)[0]:
            going = making.read()
        if going and time.monotonic() - last_sent >= _SAY_EVERY_S:
            last_sent = time.monotonic()
            now = vars(making.phase) if making.phase is not None else {}
            worker.log_event(EVENTS, encoded(RunProgress(key, worker.address, **now)))
