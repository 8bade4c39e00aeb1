# SPDX-License-Identifier: Apache-2.0
"""What a real scheduler keeps of runs that passed it."""

from __future__ import annotations

import gc
import time
from typing import Any

import pytest

pytest.importorskip("distributed", reason="Dask is not installed")

import dask
from distributed import Client, LocalCluster
from distributed.scheduler import TaskState

from howdah.cluster import worker
from howdah.cluster.connect import SETTINGS
from howdah.cluster.message import Delivery, MadeRun

_RUNS = 5
_WITHIN_S = 60.0


def _made(number: int) -> None:
    raise worker.MadeError(Delivery(MadeRun(f"{number:064x}", "", "pass", False, None, True, "", "", 0, 1.0), "", ""))


def test_a_scheduler_forgets_the_runs_that_it_passed_on() -> None:
    """It has their plans: in a sweep of 100 000 they would be gigabytes."""
    with (
        dask.config.set(SETTINGS),
        LocalCluster(
            n_workers=1, threads_per_worker=1, processes=False, dashboard_address=None, protocol="inproc"
        ) as cluster,
        Client(cluster, set_as_default=False) as client,
    ):
        scheduler: Any = cluster.scheduler
        keys = [f"{worker.TASK}-{number:064x}-1" for number in range(_RUNS)]
        for number, key in enumerate(keys):
            future = client.submit(_made, number, key=key, pure=False)
            assert isinstance(future.exception(), worker.MadeError)
            future.release()
        del future
        end = time.monotonic() + _WITHIN_S
        while scheduler.tasks and time.monotonic() < end:
            time.sleep(0.05)
        assert not scheduler.tasks
        gc.collect()
        left = [each for each in gc.get_objects() if isinstance(each, TaskState) and each.key in keys]
        assert left == []
