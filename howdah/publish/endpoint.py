# SPDX-License-Identifier: Apache-2.0
"""An HTTP endpoint of metrics for Prometheus, for the running command (in a thread) or for a live machine.

``prometheus_client`` writes the page: it negotiates the format (text or OpenMetrics) and compresses.
"""

from __future__ import annotations

import contextlib
import logging
import socket
import socketserver
import threading
from collections.abc import Callable, Iterable, Iterator
from contextlib import contextmanager
from http import HTTPStatus
from wsgiref.simple_server import WSGIRequestHandler, WSGIServer
from wsgiref.types import StartResponse, WSGIApplication, WSGIEnvironment

from prometheus_client import CollectorRegistry, Metric, make_wsgi_app
from prometheus_client.registry import Collector

from howdah.publish.guard import LOOPBACK, FewAtOnce, refusal
from howdah.publish.metric import Families, unit_of

_LOG = logging.getLogger(__name__)
_REQUEST_LIMIT_S = 10.0
_SERVER = "howdah"  # not which Python: anyone may ask who reaches the port
_MOST_KEPT = 8  # answers; whoever asks may write a query string of his own


class _Reading(Collector):
    """Collects what ``read`` returns at a scrape: the last sample of each series, one scrape at a time."""

    def __init__(self, read: Callable[[], Families]) -> None:
        self._read = read
        self._reading = threading.Lock()

    def describe(self) -> list[Metric]:
        """Describe nothing, so that the registry does not call ``read`` to learn names."""
        return []

    def collect(self) -> Iterable[Metric]:
        with self._reading:
            found = self._read()
        for metric in sorted(found, key=lambda each: each.name):
            family = Metric(metric.family, metric.help, metric.kind, unit=unit_of(metric))
            for samples in found[metric]:
                family.add_sample(metric.name, samples.labels, samples.values[-1])
            yield family


def registry(read: Callable[[], Families]) -> CollectorRegistry:
    """A registry for ``prometheus_client`` that calls ``read`` at every scrape."""
    found = CollectorRegistry(auto_describe=False)
    found.register(_Reading(read))
    return found


class _ScrapeHandler(WSGIRequestHandler):
    timeout = _REQUEST_LIMIT_S
    server_version, sys_version = _SERVER, ""  # of what it refuses itself

    def handle(self) -> None:
        """Handle one request. A client that disconnects early is not an error."""
        with contextlib.suppress(ConnectionError):
            super().handle()

    def log_message(self, format: str, *arguments: object) -> None:
        """Log nothing: a scrape comes every second."""


class ScrapeEndpoint(FewAtOnce, WSGIServer):
    """Serves what ``read`` returns at every scrape. With ``stamp``, ``read`` is called again only after ``stamp``
    returned another object."""

    def __init__(
        self, read: Callable[[], Families], stamp: Callable[[], object] = object, address: str = LOOPBACK, port: int = 0
    ) -> None:
        if ":" in address:
            self.address_family = socket.AF_INET6
        super().__init__((address, port), _ScrapeHandler)
        self.set_app(self._guarded(_application(_remembering(make_wsgi_app(registry(read)), stamp))))

    def _guarded(self, application: WSGIApplication) -> WSGIApplication:
        def answer(environ: WSGIEnvironment, start: StartResponse) -> Iterable[bytes]:
            def begin(status: str, said: list[tuple[str, str]], _error: object = None, /) -> Callable[[bytes], object]:
                return start(status, [*said, ("Server", _SERVER)])

            headers = {"Host": environ.get("HTTP_HOST"), "Origin": environ.get("HTTP_ORIGIN")}
            refused = refusal(headers, self.server_name, self.server_port)
            if refused is None:
                return application(environ, begin)
            return _text(begin, f"{refused[0]} {HTTPStatus(refused[0]).phrase}", f"{refused[1]}\n")

        return answer

    def server_bind(self) -> None:
        """Bind without http.server's look-up of the host name, which may wait for a name server."""
        socketserver.TCPServer.server_bind(self)
        self.server_name, self.server_port = self.socket.getsockname()[:2]
        self.setup_environ()

    @property
    def address(self) -> str:
        host = f"[{self.server_name}]" if ":" in self.server_name else self.server_name
        return f"{host}:{self.server_port}"


def _application(metrics: WSGIApplication) -> WSGIApplication:
    """Serve only /metrics, with HEAD as well as GET; answer 500 with the reason if reading fails."""

    def answer(environ: WSGIEnvironment, start: StartResponse) -> Iterable[bytes]:
        if environ["PATH_INFO"] == "/":
            return _text(start, "200 OK", "see /metrics\n")
        if environ["PATH_INFO"] != "/metrics":
            return _text(start, "404 Not Found", "there is only /metrics\n")
        if environ["REQUEST_METHOD"] != "HEAD":
            return _metrics(environ, start)
        told = _Told()
        body = b"".join(_metrics({**environ, "REQUEST_METHOD": "GET"}, told))
        start(told.status, [*told.headers, ("Content-Length", str(len(body)))])
        return []

    def _metrics(environ: WSGIEnvironment, start: StartResponse) -> Iterable[bytes]:
        try:
            return metrics(environ, start)
        except (OSError, ValueError) as error:
            _LOG.warning("not scraped: %s", error)
            return _text(start, "500 Internal Server Error", f"{error}\n")

    return answer


def _remembering(metrics: WSGIApplication, stamp: Callable[[], object]) -> WSGIApplication:
    """Cache the newest answers, one for each format, as long as ``stamp`` returns the same object."""
    made: dict[tuple[object, ...], tuple[_Told, list[bytes]]] = {}
    lock = threading.Lock()

    def answer(environ: WSGIEnvironment, start: StartResponse) -> Iterable[bytes]:
        names = ("REQUEST_METHOD", "HTTP_ACCEPT", "HTTP_ACCEPT_ENCODING", "QUERY_STRING")
        with lock:
            now = stamp()
            key = (now, *(environ.get(name) for name in names))
            if key not in made:
                kept = [each for each in made if each[0] is now][1 - _MOST_KEPT :]
                for old in [each for each in made if each not in kept]:
                    del made[old]
                told = _Told()
                made[key] = told, list(metrics(environ, told))
            told, body = made[key]
        start(told.status, list(told.headers))
        return body

    return answer


class _Told:
    """The status and headers that a WSGI application sets before the body."""

    def __init__(self) -> None:
        self.status = ""
        self.headers: list[tuple[str, str]] = []

    def __call__(
        self, status: str, headers: list[tuple[str, str]], _error: object = None, /
    ) -> Callable[[bytes], object]:
        self.status, self.headers = status, headers
        return lambda _data: None


def _text(start: StartResponse, status: str, text: str) -> list[bytes]:
    start(status, [("Content-Type", "text/plain; charset=utf-8")])
    return [text.encode()]


@contextmanager
def endpoint(read: Callable[[], Families], stamp: Callable[[], object] = object) -> Iterator[ScrapeEndpoint]:
    """Run an endpoint on a free port for the length of a ``with`` block."""
    with ScrapeEndpoint(read, stamp) as served:
        thread = threading.Thread(target=served.serve_forever, daemon=True)
        thread.start()
        try:
            yield served
        finally:
            served.shutdown()
            thread.join()
