# SPDX-License-Identifier: Apache-2.0
"""No page of the web reads what Dask serves: without a dashboard there is none, and with one names are looked at."""

from __future__ import annotations

import http.client
import subprocess
import sys
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

import pytest

from howdah.publish.server import free_port

pytest.importorskip("distributed")

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
