# SPDX-License-Identifier: Apache-2.0
"""Pages of metrics: formats, HEAD, compression, readers that go away, and what our own servers refuse."""

from __future__ import annotations

import gzip
import http.client
import json
import socket
import struct
import threading
import urllib.parse
import urllib.request
from collections.abc import Callable, Iterator
from contextlib import ExitStack, contextmanager
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import cast

import pytest
from prometheus_client.openmetrics.parser import text_string_to_metric_families as openmetrics_families
from prometheus_client.parser import text_string_to_metric_families as text_families

from howdah.publish.endpoint import ScrapeEndpoint, endpoint
from howdah.publish.exporter import Exporter, LiveMachine
from howdah.publish.guard import MOST_AT_ONCE, is_addressed
from howdah.publish.metric import Families, MetricSamples, PublishedMetric
from howdah.publish.server import running
from tests.prometheus_fixture import prometheus_or_skip

_LIMIT_S = 30.0
_RESET = struct.pack("ii", 1, 0)  # SO_LINGER on, for 0 s: what is closed is reset


class _Slow:
    """A page that is written when ``allowed``, longer than any socket's buffer."""

    def __init__(self) -> None:
        self.begun, self.allowed = threading.Event(), threading.Event()

    def __call__(self) -> str:
        self.begun.set()
        assert self.allowed.wait(_LIMIT_S)
        return "x" * 20_000_000


def _endpoint(write: Callable[[], str]) -> ScrapeEndpoint:
    metric = PublishedMetric("things_total", "counter", "Things.")
    return ScrapeEndpoint(lambda: {metric: [MetricSamples({"name": write()}, [0], [1.0])]})


@contextmanager
def _serving(server: ScrapeEndpoint) -> Iterator[http.client.HTTPConnection]:
    with server:
        thread = threading.Thread(target=server.serve_forever, daemon=True)
        thread.start()
        connection = http.client.HTTPConnection(*_place(server), timeout=_LIMIT_S)
        try:
            yield connection
        finally:
            connection.close()
            server.shutdown()
            thread.join()


# What Prometheus 2.42 asks with.
_PROMETHEUS = (
    "application/openmetrics-text;version=1.0.0,application/openmetrics-text;version=0.0.1;q=0.75,"
    "text/plain;version=0.0.4;q=0.5,*/*;q=0.1"
)


@pytest.mark.parametrize("accept", [_PROMETHEUS, "text/plain;version=0.0.4"])
@pytest.mark.parametrize("encoding", ["gzip", "identity"])
def test_head_says_what_get_would_answer(accept: str, encoding: str) -> None:
    with _serving(_endpoint(lambda: "x" * 2000)) as connection:
        answers = []
        for method in ("HEAD", "GET"):
            connection.request(method, "/metrics", headers={"Accept": accept, "Accept-Encoding": encoding})
            answer = connection.getresponse()
            names = ("Content-Type", "Content-Encoding", "Content-Length", "Server")
            headers = {name: answer.getheader(name) for name in names}
            answers.append((answer.status, headers, answer.read()))
            connection.close()
    (head, of_head, nothing), (get, of_get, body) = answers
    assert (head, get, nothing) == (200, 200, b"")
    assert of_head["Server"] == of_get["Server"] == "howdah"
    assert of_head["Content-Type"] == of_get["Content-Type"]
    assert str(of_get["Content-Type"]).startswith(
        "application/openmetrics-text" if accept == _PROMETHEUS else "text/plain; version=0.0.4"
    )
    assert of_head["Content-Length"] == of_get["Content-Length"] == str(len(body))
    assert of_head["Content-Encoding"] == of_get["Content-Encoding"] == ("gzip" if encoding == "gzip" else None)
    text = (gzip.decompress(body) if encoding == "gzip" else body).decode()
    assert "x" * 2000 in text
    assert len(body) < 500 or encoding == "identity"


@pytest.mark.parametrize("method", ["GET", "HEAD"])
def test_there_is_no_other_page(method: str) -> None:
    with _serving(_endpoint(str)) as connection:
        connection.request(method, "/other")
        assert connection.getresponse().status == 404


def _refuse() -> str:
    raise OSError("no such thing")


@pytest.mark.parametrize("method", ["GET", "HEAD"])
def test_what_cannot_be_read_is_an_error_of_the_server(method: str) -> None:
    with _serving(_endpoint(_refuse)) as connection:
        connection.request(method, "/metrics")
        answer = connection.getresponse()
        assert answer.status == 500
        assert (b"no such thing" in answer.read()) is (method == "GET")


def test_the_exporter_speaks_both_formats() -> None:
    with _serving(Exporter("127.0.0.1", 0, LiveMachine("here"))) as connection:
        texts = []
        for accept in (_PROMETHEUS, "text/plain"):
            connection.request("GET", "/metrics", headers={"Accept": accept})
            texts.append(connection.getresponse().read().decode())
    (openmetrics, plain) = (
        list(parse(text)) for parse, text in ((openmetrics_families, texts[0]), (text_families, texts[1]))
    )
    names = [{sample.name for family in found for sample in family.samples} for found in (openmetrics, plain)]
    assert names[0] == names[1]
    assert "howdah_tcp_sent_packets_total" in names[0]
    kinds = {family.name: family.type for family in openmetrics}
    assert kinds["howdah_tcp_sent_packets"] == "counter"
    assert texts[0].endswith("# EOF\n")


def _place(server: ScrapeEndpoint) -> tuple[str, int]:
    return cast("tuple[str, int]", server.socket.getsockname())


def _connect(server: ScrapeEndpoint) -> socket.socket:
    return socket.create_connection(_place(server), timeout=_LIMIT_S)


def _give_up(end: socket.socket) -> None:
    end.setsockopt(socket.SOL_SOCKET, socket.SO_LINGER, _RESET)
    end.close()


def test_a_reader_that_goes_away_is_no_error(capfd: pytest.CaptureFixture[str]) -> None:
    slow = _Slow()
    with _endpoint(slow) as server:
        server.daemon_threads = False  # so that closing waits for every answer
        thread = threading.Thread(target=server.serve_forever, daemon=True)
        thread.start()
        try:
            hasty = _connect(server)
            hasty.sendall(b"GET /metri")
            _give_up(hasty)
            impatient = _connect(server)
            impatient.sendall(b"GET /metrics HTTP/1.0\r\n\r\n")
            assert slow.begun.wait(_LIMIT_S)
            _give_up(impatient)
            slow.allowed.set()
            patient = http.client.HTTPConnection(*_place(server), timeout=_LIMIT_S)
            patient.request("GET", "/metrics")
            answer = patient.getresponse()
            assert answer.status == 200
            assert len(answer.read()) >= 20_000_000
            patient.close()
        finally:
            server.shutdown()
            thread.join()
    assert capfd.readouterr().err == ""


_THINGS = PublishedMetric("things", "gauge", "Things.")


def _families() -> Families:
    return {_THINGS: [MetricSamples({}, [0], [7.0])]}


@contextmanager
def _exporting() -> Iterator[int]:
    with _serving(Exporter("127.0.0.1", 0, LiveMachine("bench"))) as connection:
        yield int(connection.port)


@contextmanager
def _scraped() -> Iterator[int]:
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


@pytest.mark.parametrize("server", [_exporting, _scraped])
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


@pytest.mark.parametrize("server", [_exporting, _scraped])
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


@pytest.mark.parametrize("server", [_exporting, _scraped, _prometheus])
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
