# SPDX-License-Identifier: Apache-2.0
"""What our own servers refuse: a page of the web that reaches loopback by a name of its own, and too many at once."""

from __future__ import annotations

import http.client
import json
import socket
import threading
import urllib.parse
import urllib.request
from collections.abc import Iterator
from contextlib import ExitStack, contextmanager
from pathlib import Path
from tempfile import TemporaryDirectory

import pytest

from howdah.publish.endpoint import ScrapeEndpoint, endpoint
from howdah.publish.exporter import Exporter, LiveMachine
from howdah.publish.guard import MOST_AT_ONCE, is_addressed
from howdah.publish.metric import Families, MetricSamples, PublishedMetric
from howdah.publish.server import running
from tests.prometheus_fixture import prometheus_or_skip

_THINGS = PublishedMetric("things", "gauge", "Things.")


def _families() -> Families:
    return {_THINGS: [MetricSamples({}, [0], [7.0])]}


@contextmanager
def _exporter() -> Iterator[int]:
    with Exporter("127.0.0.1", 0, LiveMachine("bench")) as exporter:
        thread = threading.Thread(target=exporter.serve_forever, daemon=True)
        thread.start()
        yield exporter.server_port
        exporter.shutdown()
        thread.join()


@contextmanager
def _endpoint() -> Iterator[int]:
    with endpoint(_families) as served:
        yield int(served.server_port)


def _status(port: int, host: str, path: str = "/metrics", origin: str | None = None) -> int:
    connection = http.client.HTTPConnection("127.0.0.1", port, timeout=20)
    connection.putrequest("GET", path, skip_host=True)
    connection.putheader("Host", host)
    if origin is not None:
        connection.putheader("Origin", origin)
    connection.endheaders()
    answer = connection.getresponse()
    answer.read()
    connection.close()
    return answer.status


@pytest.mark.parametrize("server", [_exporter, _endpoint])
def test_a_request_by_another_name_is_refused(server: object) -> None:
    with server() as port:  # type: ignore[operator]
        for host in (f"127.0.0.1:{port}", f"localhost:{port}", f"LOCALHOST:{port}"):
            assert _status(port, host) == 200
        for host in ("evil.example", f"evil.example:{port}", "127.0.0.1", f"127.0.0.1.evil.example:{port}", ""):
            assert _status(port, host) == 421, host


def test_beyond_loopback_a_machine_may_have_any_name() -> None:
    assert is_addressed("node-17.example:9750", "10.0.0.7", 9750)
    assert is_addressed(None, "127.0.0.1", 9750)
    assert is_addressed("[::1]:9750", "::1", 9750)
    assert not is_addressed("node-17.example:9750", "::1", 9750)


@pytest.mark.parametrize("server", [_exporter, _endpoint])
def test_slow_clients_take_no_more_than_their_share(server: object) -> None:
    with server() as port, ExitStack() as stack:  # type: ignore[operator]
        before = threading.active_count()
        slow = [stack.enter_context(socket.create_connection(("127.0.0.1", port))) for _ in range(MOST_AT_ONCE)]
        for each in slow:
            each.sendall(b"GET /metrics HTTP/1.1\r\n")
        refused = 0
        for _ in range(3 * MOST_AT_ONCE):
            with socket.create_connection(("127.0.0.1", port), timeout=20) as one_more:
                try:
                    refused += one_more.recv(1) == b""
                except ConnectionError:
                    refused += 1
        assert refused == 3 * MOST_AT_ONCE
        assert threading.active_count() - before <= MOST_AT_ONCE
        for each in slow:
            each.sendall(f"Host: localhost:{port}\r\nConnection: close\r\n\r\n".encode())
            assert each.recv(12).endswith(b"200")


def test_query_strings_are_not_remembered_without_end() -> None:
    stamp = object()
    with endpoint(_families, lambda: stamp) as served:
        port = int(served.server_port)
        for number in range(50):
            assert _status(port, f"localhost:{port}", f"/metrics?name%5B%5D=things&x={number}") == 200
        assert _kept(served) <= 8


def _kept(served: ScrapeEndpoint) -> int:
    """Answers that the endpoint holds: the one dictionary below its application."""
    found, waiting = [], [served.get_app()]
    while waiting:
        function = waiting.pop()
        for cell in getattr(function, "__closure__", None) or ():
            value = cell.cell_contents
            if callable(value):
                waiting.append(value)
            elif isinstance(value, dict):
                found.append(len(value))
    (count,) = found
    return count


@contextmanager
def _prometheus() -> Iterator[int]:
    with TemporaryDirectory() as data, running(prometheus_or_skip(), Path(data)) as server:
        yield server.port


@pytest.mark.parametrize("server", [_exporter, _endpoint, _prometheus])
def test_a_page_of_another_origin_is_refused(server: object) -> None:
    with server() as port:  # type: ignore[operator]
        assert _status(port, f"127.0.0.1:{port}") == 200
        assert _status(port, f"127.0.0.1:{port}", origin=f"http://127.0.0.1:{port}") == 200
        for origin in ("http://evil.example", "null", f"https://127.0.0.1:{port}", f"http://127.0.0.1:{port + 1}"):
            assert _status(port, f"127.0.0.1:{port}", origin=origin) == 403, origin


def test_prometheus_answers_no_page_by_another_name() -> None:
    """Neither its front, nor the server behind it, which a page finds by trying ports."""
    with TemporaryDirectory() as data, running(prometheus_or_skip(), Path(data)) as server:
        query = "/api/v1/query?query=up"
        for port in (server.port, server.own_port):
            assert _status(port, f"rebound.example:{port}", query) in (401, 421)
            assert _status(port, f"rebound.example:{port}", "/") in (401, 421)
        assert _status(server.own_port, f"127.0.0.1:{server.own_port}", query) == 401
        assert _status(server.port, f"localhost:{server.port}", query) == 200
        assert server.client().instant("vector(7)", 1000)[0].value == 7.0
        form = urllib.parse.urlencode({"query": "vector(8)", "time": "1"}).encode()
        with urllib.request.urlopen(f"{server.url}/api/v1/query", form, timeout=20) as answer:
            assert json.load(answer)["data"]["result"][0]["value"][1] == "8"
        command = Path(f"/proc/{server.process.pid}/cmdline").read_bytes().decode()
        assert server.password.word not in command
        assert (Path(data) / "web.yml").stat().st_mode & 0o077 == 0
