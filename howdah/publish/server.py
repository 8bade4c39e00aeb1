# SPDX-License-Identifier: Apache-2.0
"""A real Prometheus on loopback that ends with the process that started it, however that process ends; a proxy in front
of it, which rejects what guard.py rejects and forwards the rest; and instant and range queries.

The proxy is needed because Prometheus checks neither ``Host`` nor ``Origin``. Prometheus itself requires a password
that only this process knows.
"""

from __future__ import annotations

import contextlib
import http.client
import http.server
import json
import os
import shutil
import signal
import socket
import socketserver
import subprocess
import threading
import time
import urllib.error
import urllib.parse
import urllib.request
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path

import numpy as np

from howdah.errors import HowdahError
from howdah.publish.guard import LOOPBACK, LimitedThreading, refusal
from howdah.publish.prometheus import Password, Prometheus, PrometheusUnavailableError, failure_reason, new_password
from howdah.record.sample import Float64, Int64

# Blocks of old runs must survive: the default of 15 days would delete them at the first compaction.
RETENTION = "20y"
# Samples are at most 100 ms apart; the default of five minutes would stretch a flow's last value far past its end.
LOOKBACK = "500ms"
_READY_LIMIT_S = 60.0
_STOP_LIMIT_S = 10.0


def free_port() -> int:
    """A port of loopback that is free now."""
    with socket.socket() as probe:
        probe.bind((LOOPBACK, 0))
        port: int = probe.getsockname()[1]
        return port


def require_port(port: int) -> None:
    """Raise PrometheusUnavailableError if ``port`` cannot be bound."""
    with socket.socket() as probe:
        probe.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
        try:
            probe.bind((LOOPBACK, port))
        except OSError as error:
            raise PrometheusUnavailableError(
                f"port {port} on {LOOPBACK} cannot be used: {error.strerror}",
                hint="Another Prometheus may be there; choose another port with --port.",
            ) from error
        except OverflowError as error:
            raise PrometheusUnavailableError(f"there is no port {port}", hint="Ports are 1 to 65535.") from error


class Server:
    """One running server. ``port`` is that of its proxy if it has one, else its own; ``url`` has no trailing slash."""

    def __init__(self, process: subprocess.Popen[bytes], own_port: int, log: Path, password: Password) -> None:
        self.process = process
        self.own_port = self.port = own_port
        self.log = log
        self.password = password

    @property
    def url(self) -> str:
        return f"http://{LOOPBACK}:{self.port}"

    def client(self) -> Client:
        """A client that queries the server directly, bypassing the proxy."""
        return Client(f"http://{LOOPBACK}:{self.own_port}", self.password.authorization)

    def alive(self) -> bool:
        return self.process.poll() is None

    def wait_ready(self) -> None:
        """Wait until the server answers queries; raise PrometheusUnavailableError if it ends or takes too long."""
        deadline = time.monotonic() + _READY_LIMIT_S
        opener = urllib.request.build_opener(urllib.request.ProxyHandler({}))
        opener.addheaders.append(("Authorization", self.password.authorization))
        while time.monotonic() < deadline:
            if not self.alive():
                raise PrometheusUnavailableError(f"prometheus ended at once: {self.complaint()}", where=str(self.log))
            try:
                with opener.open(f"http://{LOOPBACK}:{self.own_port}/-/ready", timeout=2) as answer:
                    if answer.status == 200:
                        return
            except (urllib.error.URLError, OSError):
                time.sleep(0.03)
        raise PrometheusUnavailableError(f"prometheus was not ready after {_READY_LIMIT_S:.0f} s", where=str(self.log))

    def complaint(self) -> str:
        """The server's last error, or else its last line of output."""
        text = self.log.read_text(encoding="utf-8", errors="replace") if self.log.exists() else ""
        errors = [line for line in text.splitlines() if "level=error" in line]
        return (errors or failure_reason(text).splitlines())[-1]

    def stop(self) -> None:
        """End the server with SIGTERM, then with SIGKILL."""
        if not self.alive():
            return
        self.process.send_signal(signal.SIGTERM)
        try:
            self.process.wait(_STOP_LIMIT_S)
        except subprocess.TimeoutExpired:
            self.process.kill()
            self.process.wait()


@dataclass(frozen=True)
class ServerSetup:
    """What a server does besides serving its blocks: ``configuration`` says what it scrapes, ``lookback`` how long a
    scraped value is valid, and ``assets`` is an optional directory that it serves below /user/."""

    configuration: str
    lookback: str
    assets: Path | None = None


def start(prometheus: Prometheus, data: Path, live: ServerSetup | None = None, proxy_port: int | None = None) -> Server:
    """Start a server on the blocks in ``data``, which it will write to, and wait until it answers. ``proxy_port`` is
    the port of its proxy.

    Call it from the main thread and keep that thread: the kernel kills the server when the thread that started it ends.
    """
    setpriv = shutil.which("setpriv")
    if setpriv is None:
        raise PrometheusUnavailableError("the program setpriv is missing", hint="It is part of Debian's util-linux.")
    port, password = free_port(), new_password()
    web = data / "web.yml"
    password.write(web)
    configuration = data / "prometheus.yml"
    configuration.write_text(live.configuration if live else "scrape_configs: []\n", encoding="utf-8")
    log = data / "prometheus.log"
    command = [
        *(setpriv, "--pdeathsig", "KILL", "--", str(prometheus.server)),
        f"--config.file={configuration}",
        f"--storage.tsdb.path={data}",
        f"--storage.tsdb.retention.time={RETENTION}",
        f"--query.lookback-delta={live.lookback if live else LOOKBACK}",
        f"--web.listen-address={LOOPBACK}:{port}",
        f"--web.config.file={web}",
        f"--web.external-url=http://{LOOPBACK}:{proxy_port or port}/",
        "--web.cors.origin=null",  # the default lets any web page read the answers
        *([f"--web.user-assets={live.assets}"] if live and live.assets else []),
    ]
    environment = {key: value for key, value in os.environ.items() if not key.lower().endswith("_proxy")}
    environment["TMPDIR"] = str(data)  # removed with the directory even if the server is killed
    with log.open("wb") as output:
        process = subprocess.Popen(
            command, cwd=data, stdin=subprocess.DEVNULL, stdout=output, stderr=output, env=environment
        )
    server = Server(process, port, log, password)
    try:
        server.wait_ready()
    except BaseException:
        server.stop()
        raise
    return server


@contextmanager
def running(
    prometheus: Prometheus, data: Path, port: int | None = None, live: ServerSetup | None = None
) -> Iterator[Server]:
    """Run a server and its proxy at ``port`` for the length of a ``with`` block."""
    if port is None:
        port = free_port()
    else:
        require_port(port)
    server = start(prometheus, data, live, port)
    try:
        with serving(FilterProxy(port, server.own_port, server.password.authorization)):
            server.port = port
            yield server
    finally:
        server.stop()


@contextmanager
def queried(prometheus: Prometheus, data: Path) -> Iterator[Client]:
    """Run a server without a proxy, for this process alone, for the length of a ``with`` block."""
    server = start(prometheus, data)
    try:
        yield server.client()
    finally:
        server.stop()


_REQUEST_LIMIT_S = 10.0
_ANSWER_LIMIT_S = 150.0  # a query may take 120 s
_MOST_BYTES = 2**20  # most bytes of a request's body; a query is a few lines
_HOP_BY_HOP = {"connection", "keep-alive", "transfer-encoding", "upgrade", "te", "trailer", "authorization"}


class FilterProxy(LimitedThreading, http.server.HTTPServer):
    """The proxy. ``upstream_port`` is Prometheus' port, ``authorization`` the header it requires. Raises OSError."""

    def __init__(self, port: int, upstream_port: int, authorization: str) -> None:
        self.upstream_port, self.authorization = upstream_port, authorization
        super().__init__((LOOPBACK, port), _ProxyHandler)

    def server_bind(self) -> None:
        """Bind without http.server's look-up of the host name, which may wait for a name server."""
        socketserver.TCPServer.server_bind(self)
        self.server_name, self.server_port = LOOPBACK, int(self.socket.getsockname()[1])


class _ProxyHandler(http.server.BaseHTTPRequestHandler):
    timeout = _REQUEST_LIMIT_S
    server: FilterProxy

    def handle(self) -> None:
        """Handle requests. A client that disconnects early is not an error."""
        with contextlib.suppress(ConnectionError):
            super().handle()

    def do_GET(self) -> None:
        if (refused := refusal(self.headers, LOOPBACK, self.server.server_port)) is not None:
            self._respond(*refused)
            return
        try:
            length = int(self.headers.get("Content-Length") or 0)
        except ValueError:
            length = -1
        if not 0 <= length <= _MOST_BYTES:
            self._respond(413, "this request is too large")
            return
        self._forward(self.rfile.read(length) if length else None)

    def do_HEAD(self) -> None:
        self.do_GET()

    def do_POST(self) -> None:
        self.do_GET()

    def _forward(self, body: bytes | None) -> None:
        sent = {name: value for name, value in self.headers.items() if name.lower() not in _HOP_BY_HOP}
        sent["Host"] = f"{LOOPBACK}:{self.server.upstream_port}"
        sent["Authorization"] = self.server.authorization
        connection = http.client.HTTPConnection(LOOPBACK, self.server.upstream_port, timeout=_ANSWER_LIMIT_S)
        try:
            connection.request(self.command, self.path, body, sent)
            answer = connection.getresponse()
        except (OSError, http.client.HTTPException) as error:
            self._respond(502, f"prometheus does not answer: {error}")
            return
        with contextlib.closing(connection):
            self.send_response(answer.status)
            for name, value in answer.getheaders():
                if name.lower() not in _HOP_BY_HOP | {"date", "server"}:
                    self.send_header(name, value)
            self.end_headers()
            with contextlib.suppress(http.client.HTTPException):
                shutil.copyfileobj(answer, self.wfile)

    def _respond(self, status: int, text: str) -> None:
        body = f"{text}\n".encode()
        self.send_response(status)
        self.send_header("Content-Type", "text/plain; charset=utf-8")
        self.send_header("Content-Length", str(len(body)))
        self.end_headers()
        self.wfile.write(body)

    def log_message(self, format: str, *arguments: object) -> None:
        """Log nothing: a page sends requests every second."""


@contextmanager
def serving(front: FilterProxy) -> Iterator[None]:
    """Serve from a thread for the length of a ``with`` block."""
    thread = threading.Thread(target=front.serve_forever, args=(0.05,), daemon=True)
    thread.start()
    try:
        yield
    finally:
        front.shutdown()
        thread.join()
        front.server_close()


_LIMIT_S = 120


@dataclass(frozen=True)
class Value:
    """One element of an instant vector. ``metric`` is its name if the query keeps it."""

    labels: dict[str, str]
    value: float
    metric: str = ""


@dataclass(frozen=True)
class RangeSeries:
    """One series of a range query; ``time_ms`` counts from 1970."""

    labels: dict[str, str]
    time_ms: Int64
    value: Float64


@dataclass(frozen=True)
class _Series:
    """One series of an answer: each point is a time in seconds and a value."""

    name: str
    labels: dict[str, str]
    points: list[tuple[float, float]]


class Client:
    """A client of the HTTP API at ``url``; proxies are ignored, because the server is on loopback.

    ``authorization`` is the header that the server requires.
    """

    def __init__(self, url: str, authorization: str | None = None) -> None:
        self.url = url.rstrip("/")
        self._opener = urllib.request.build_opener(urllib.request.ProxyHandler({}))
        if authorization is not None:
            self._opener.addheaders.append(("Authorization", authorization))

    def instant(self, query: str, at_ms: int) -> list[Value]:
        """Evaluate a query at one time and return its vector."""
        result = self._call("query", {"query": query, "time": _seconds(at_ms)})
        return [Value(each.labels, each.points[0][1], each.name) for each in result]

    def range(self, query: str, start_ms: int, end_ms: int, step_ms: int) -> list[RangeSeries]:
        """Evaluate a query at ``start``, ``start + step`` … up to ``end``; instants without a value are left out."""
        arguments = {
            "query": query,
            "start": _seconds(start_ms),
            "end": _seconds(end_ms),
            "step": _seconds(step_ms),
        }
        answers = []
        for each in self._call("query_range", arguments):
            times, values = np.array(each.points, dtype=np.float64).T
            answers.append(RangeSeries(each.labels, np.rint(times * 1000).astype(np.int64), values))
        return answers

    def version(self) -> str:
        try:
            with self._opener.open(f"{self.url}/api/v1/status/buildinfo", timeout=_LIMIT_S) as answer:
                return str(json.load(answer)["data"]["version"])
        except (urllib.error.URLError, OSError, json.JSONDecodeError, KeyError) as error:
            raise HowdahError(f"Prometheus does not answer: {error}", where=self.url) from error

    def _call(self, endpoint: str, arguments: dict[str, str]) -> list[_Series]:
        body = urllib.parse.urlencode(arguments).encode()
        request = urllib.request.Request(f"{self.url}/api/v1/{endpoint}", data=body)
        try:
            with self._opener.open(request, timeout=_LIMIT_S) as answer:
                found = json.load(answer)
        except urllib.error.HTTPError as error:
            raise HowdahError(f"Prometheus refused the query: {_reason(error)}", where=arguments["query"]) from error
        except (urllib.error.URLError, OSError, json.JSONDecodeError) as error:
            raise HowdahError(f"Prometheus does not answer: {error}", where=self.url) from error
        return [
            _Series(
                each["metric"].pop("__name__", ""),
                each["metric"],
                [(at_s, float(value)) for at_s, value in each.get("values") or [each["value"]]],
            )
            for each in found["data"]["result"]
        ]


def _seconds(milliseconds: int) -> str:
    return f"{milliseconds // 1000}.{milliseconds % 1000:03d}"


def _reason(error: urllib.error.HTTPError) -> str:
    try:
        return str(json.load(error)["error"])
    except (json.JSONDecodeError, KeyError):
        return f"HTTP status {error.code}"


def matchers(labels: dict[str, str]) -> str:
    """Labels as the inside of a PromQL selector: ``algorithm="cubic",flow="1"``."""
    quoted = {
        key: value.replace("\\", "\\\\").replace('"', '\\"').replace("\n", "\\n") for key, value in labels.items()
    }
    return ",".join(f'{key}="{value}"' for key, value in sorted(quoted.items()))
