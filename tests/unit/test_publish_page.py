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
from howdah.publish.exporter import Exporter, LiveMachine
from howdah.publish.metric import MetricSamples, PublishedMetric

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
            headers = {name: answer.getheader(name) for name in ("Content-Type", "Content-Encoding", "Content-Length")}
            answers.append((answer.status, headers, answer.read()))
            connection.close()
    (head, of_head, nothing), (get, of_get, body) = answers
    assert (head, get, nothing) == (200, 200, b"")
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
