# SPDX-License-Identifier: Apache-2.0
"""Memory that a scheduler takes with each run that passes it: tasks that answer at once, as those of runs do."""

from __future__ import annotations

import os
from collections.abc import Iterator
from pathlib import Path
from typing import Any

from distributed import Client, fire_and_forget, get_worker

from howdah.cluster import worker
from howdah.cluster.message import Delivery, MadeRun, RunProgress
from howdah.codec import encoded
from tests.bench.figure import Figure
from tests.cluster_processes import Processes

_PACK_BYTES, _PLAN_BYTES = 70_000, 10_000  # of a run of 1 s at 10 Mbit/s
_FIRST, _LAST = 250, 1000  # Dask keeps the last hundred of some things


def scheduler_memory(place: Path) -> Iterator[Figure]:
    place.mkdir(parents=True)
    cluster = Processes(place)
    seen = {}
    try:
        cluster.worker("worker")
        with Client(cluster.address, set_as_default=False, direct_to_workers=True) as client:
            client.subscribe_topic(worker.EVENTS, lambda _event: None)
            for number in range(_LAST):
                seen[number] = _resident_bytes(cluster.scheduler.pid)
                order = {"key": f"{number:064x}", "plan": os.urandom(_PLAN_BYTES // 2).hex()}
                future = client.submit(_answer, order, key=f"{worker.TASK}-{order['key']}-1", pure=False)
                fire_and_forget(future)
                assert isinstance(future.exception(), worker.MadeError)
                future.release()
            seen[_LAST] = _resident_bytes(cluster.scheduler.pid)
    finally:
        cluster.end()
    grown = (seen[_LAST] - seen[_FIRST]) / (_LAST - _FIRST)
    note = f"{seen[0] / 1e6:.0f} MB at first, {seen[_FIRST] / 1e6:.1f} MB after {_FIRST} runs"
    yield Figure("cluster: memory of the scheduler, more with each run", grown / 1e3, "kB", note=note)


def _answer(order: dict[str, Any]) -> None:
    """As ``worker.make_run`` answers."""
    here = get_worker()
    for _ in range(2):
        here.log_event(worker.EVENTS, encoded(RunProgress(order["key"], here.address, "engine", 1)))
    made = MadeRun(order["key"], "", "pass", False, None, True, "", "", _PACK_BYTES, 1.0)
    raise worker.MadeError(Delivery(made, here.address, "", os.urandom(_PACK_BYTES)))


def _resident_bytes(process: int) -> int:
    return int(Path(f"/proc/{process}/statm").read_text().split()[1]) * os.sysconf("SC_PAGE_SIZE")
