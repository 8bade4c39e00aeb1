# SPDX-License-Identifier: Apache-2.0
"""Pages of metrics: the format that the reader asks for, HEAD, compression; and readers that go away."""

from __future__ import annotations

import gzip
import http.client
import socket
import struct
import threading
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from typing import cast

import pytest
from prometheus_client.openmetrics.parser import text_string_to_metric_families as openmetrics_families
from prometheus_client.parser import text_string_to_metric_families as text_families

from howdah.publish.endpoint import ScrapeEndpoint
from howdah.publish.exporter import Exporter
from howdah.publish.machine import LiveMachine
from howdah.publish.metric import PublishedMetric
from howdah.publish.openmetrics import MetricSamples
from howdah.publish.page import OPENMETRICS, TEXT, negotiated, takes_gzip

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


def _exporter(write: Callable[[], str]) -> Exporter:
    exporter = Exporter("127.0.0.1", 0, LiveMachine("here"))
    exporter.text = lambda content_type=TEXT: f"{content_type} {write()}"  # type: ignore[method-assign]
    return exporter


@contextmanager
def _serving(server: ScrapeEndpoint | Exporter) -> Iterator[http.client.HTTPConnection]:
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


@pytest.mark.parametrize(
    ("accept", "wanted"),
    [
        (_PROMETHEUS, OPENMETRICS),
        ("application/openmetrics-text", OPENMETRICS),
        ("application/openmetrics-text; version=1.0.0; q=0.3, text/plain; q=0.2", OPENMETRICS),
        ("application/openmetrics-text; version=1.0.0; q=0.2, text/plain; q=0.3", TEXT),
        ("application/openmetrics-text; version=1.0.0; q=0", TEXT),
        ("application/openmetrics-text; version=9.0.0", TEXT),
        ("application/openmetrics-text; version=1.0.0; q=much", TEXT),
        ("text/plain", TEXT),
        ("*/*", TEXT),
        ("image/png", TEXT),
        ("", TEXT),
        (None, TEXT),
    ],
)
def test_the_format_is_the_one_that_is_asked_for(accept: str | None, wanted: str) -> None:
    assert negotiated(accept) == wanted


@pytest.mark.parametrize(
    ("accept", "wanted"),
    [("gzip", True), ("deflate, GZIP;q=0.5", True), ("gzip;q=0, *", False), ("*", True), ("br", False), (None, False)],
)
def test_gzip_is_used_where_it_is_allowed(accept: str | None, wanted: bool) -> None:
    assert takes_gzip(accept) is wanted


@pytest.mark.parametrize("make", [_endpoint, _exporter])
@pytest.mark.parametrize("accept", [_PROMETHEUS, "text/plain;version=0.0.4"])
@pytest.mark.parametrize("encoding", ["gzip", "identity"])
def test_head_says_what_get_would_answer(
    make: Callable[[Callable[[], str]], ScrapeEndpoint | Exporter], accept: str, encoding: str
) -> None:
    with _serving(make(lambda: "x" * 2000)) as connection:
        answers = []
        for method in ("HEAD", "GET"):
            connection.request(method, "/metrics", headers={"Accept": accept, "Accept-Encoding": encoding})
            answer = connection.getresponse()
            headers = {name: answer.getheader(name) for name in ("Content-Type", "Content-Encoding", "Content-Length")}
            answers.append((answer.status, headers, answer.read()))
            connection.close()
    (head, of_head, nothing), (get, of_get, body) = answers
    assert (head, get, nothing) == (200, 200, b"")
    assert of_head["Content-Type"] == of_get["Content-Type"]
    assert str(of_get["Content-Type"]).startswith(
        "application/openmetrics-text" if accept == _PROMETHEUS else TEXT[:25]
    )
    assert of_head["Content-Length"] == of_get["Content-Length"] == str(len(body))
    assert of_head["Content-Encoding"] == of_get["Content-Encoding"] == ("gzip" if encoding == "gzip" else None)
    text = (gzip.decompress(body) if encoding == "gzip" else body).decode()
    assert "x" * 2000 in text
    assert len(body) < 500 or encoding == "identity"


@pytest.mark.parametrize("make", [_endpoint, _exporter])
@pytest.mark.parametrize("method", ["GET", "HEAD"])
def test_there_is_no_other_page(make: Callable[[Callable[[], str]], ScrapeEndpoint | Exporter], method: str) -> None:
    with _serving(make(str)) as connection:
        connection.request(method, "/other")
        assert connection.getresponse().status == 404


def _refuse() -> str:
    raise OSError("no such thing")


@pytest.mark.parametrize("make", [_endpoint, _exporter])
@pytest.mark.parametrize("method", ["GET", "HEAD"])
def test_what_cannot_be_read_is_an_error_of_the_server(
    make: Callable[[Callable[[], str]], ScrapeEndpoint | Exporter], method: str
) -> None:
    with _serving(make(_refuse)) as connection:
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


def _place(server: ScrapeEndpoint | Exporter) -> tuple[str, int]:
    return cast("tuple[str, int]", server.socket.getsockname())


def _connect(server: ScrapeEndpoint | Exporter) -> socket.socket:
    return socket.create_connection(_place(server), timeout=_LIMIT_S)


def _give_up(end: socket.socket) -> None:
    end.setsockopt(socket.SOL_SOCKET, socket.SO_LINGER, _RESET)
    end.close()


@pytest.mark.parametrize("make", [_endpoint, _exporter])
def test_a_reader_that_goes_away_is_no_error(
    make: Callable[[Callable[[], str]], ScrapeEndpoint | Exporter], capfd: pytest.CaptureFixture[str]
) -> None:
    slow = _Slow()
    with make(slow) as server:
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
