# SPDX-License-Identifier: Apache-2.0
"""No page of the web reads what Dask serves: without a dashboard there is none, and with one names are looked at."""

from __future__ import annotations

import gc
import http.client
import subprocess
import sys
import time
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import pytest

from howdah.publish.server import free_port

pytest.importorskip("distributed", reason="Dask is not installed")

import dask
from distributed import Client, LocalCluster
from distributed.scheduler import TaskState

from howdah.cluster import worker
from howdah.cluster.connect import SETTINGS
from howdah.cluster.message import Delivery, MadeRun

_PATHS = ("/health", "/metrics", "/info/main/workers.html", "/json/counts.json", "/status", "/proxy/1/127.0.0.1/x")


@contextmanager
def _scheduler(*options: str) -> Iterator[int]:
    """Its process."""
    command = [sys.executable, "-m", "howdah.command.main", "cluster", "scheduler", "--port", "0", *options]
    with subprocess.Popen(command, stderr=subprocess.PIPE, text=True) as running:
        assert running.stderr is not None
        assert "scheduler tcp://127.0.0.1:" in running.stderr.readline()
        try:
            yield running.pid
        finally:
            running.terminate()


def _ports(process: int) -> list[int]:
    """Ports on which it listens (proc_net_tcp(5): state 0A, inode in column 9)."""
    inodes = {str(each.readlink())[8:-1] for each in Path(f"/proc/{process}/fd").iterdir() if each.is_symlink()}
    rows = [line.split() for line in Path("/proc/net/tcp").read_text().splitlines()[1:]]
    listening = [row for row in rows if row[3] == "0A" and row[9] in inodes]
    assert all(row[1].startswith("0100007F:") for row in listening), "another address than loopback"
    return [int(row[1].rpartition(":")[2], 16) for row in listening]


def _status(port: int, path: str, host: str, **headers: str) -> int | None:
    connection = http.client.HTTPConnection("127.0.0.1", port, timeout=20)
    try:
        connection.request("GET", path, headers={"Host": host, **headers})
        return connection.getresponse().status
    except (OSError, http.client.HTTPException):
        return None  # it speaks no HTTP
    finally:
        connection.close()


def test_a_scheduler_without_a_dashboard_has_no_page() -> None:
    with _scheduler() as process:
        ports = _ports(process)
        assert ports
        for port in ports:
            for path in _PATHS:
                assert _status(port, path, f"127.0.0.1:{port}") in (404, None), (port, path)


def test_a_dashboard_is_refused_to_pages_of_the_web() -> None:
    port = free_port()
    with _scheduler("--dashboard", str(port)) as process:
        assert port in _ports(process)
        own = f"127.0.0.1:{port}"
        assert _status(port, "/health", own) == 200
        assert _status(port, "/health", f"localhost:{port}", Origin=f"http://localhost:{port}") == 200
        for path in _PATHS:
            assert _status(port, path, f"rebound.example:{port}") == 421, path
            assert _status(port, path, own, Origin="http://evil.example") == 403, path


# What a real scheduler keeps of runs that passed it

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
