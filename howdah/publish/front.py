# SPDX-License-Identifier: Apache-2.0
"""A proxy between browser and Prometheus: refuses what guard.py refuses, and forwards the rest.

It is needed because Prometheus checks neither ``Host`` nor ``Origin``. Prometheus itself wants a password.
"""

from __future__ import annotations

import contextlib
import http.client
import http.server
import shutil
import socketserver
import threading
from collections.abc import Iterator
from contextlib import contextmanager

from howdah.publish.guard import LOOPBACK, FewAtOnce, refusal

_REQUEST_LIMIT_S = 10.0
_ANSWER_LIMIT_S = 150.0  # a query may take 120
_MOST_BYTES = 2**20  # of a request's body: a query is a few lines
_OF_ONE_CONNECTION = {"connection", "keep-alive", "transfer-encoding", "upgrade", "te", "trailer", "authorization"}


class Front(FewAtOnce, http.server.HTTPServer):
    """``inner`` is the port of Prometheus, ``authorization`` the header it wants. Raises OSError."""

    def __init__(self, port: int, inner: int, authorization: str) -> None:
        self.inner, self.authorization = inner, authorization
        super().__init__((LOOPBACK, port), _Passing)

    def server_bind(self) -> None:
        """Bind without the look-up of its own name in http.server, which may wait for a name server."""
        socketserver.TCPServer.server_bind(self)
        self.server_name, self.server_port = LOOPBACK, int(self.socket.getsockname()[1])


class _Passing(http.server.BaseHTTPRequestHandler):
    timeout = _REQUEST_LIMIT_S
    server: Front

    def handle(self) -> None:
        """Handle requests. A client that disconnects early is not an error."""
        with contextlib.suppress(ConnectionError):
            super().handle()

    def do_GET(self) -> None:
        if (refused := refusal(self.headers, LOOPBACK, self.server.server_port)) is not None:
            self._say(*refused)
            return
        try:
            length = int(self.headers.get("Content-Length") or 0)
        except ValueError:
            length = -1
        if not 0 <= length <= _MOST_BYTES:
            self._say(413, "this request is too large")
            return
        self._pass_on(self.rfile.read(length) if length else None)

    def do_HEAD(self) -> None:
        self.do_GET()

    def do_POST(self) -> None:
        self.do_GET()

    def _pass_on(self, body: bytes | None) -> None:
        sent = {name: value for name, value in self.headers.items() if name.lower() not in _OF_ONE_CONNECTION}
        sent["Host"] = f"{LOOPBACK}:{self.server.inner}"
        sent["Authorization"] = self.server.authorization
        connection = http.client.HTTPConnection(LOOPBACK, self.server.inner, timeout=_ANSWER_LIMIT_S)
        try:
            connection.request(self.command, self.path, body, sent)
            answer = connection.getresponse()
        except (OSError, http.client.HTTPException) as error:
            self._say(502, f"prometheus does not answer: {error}")
            return
        with contextlib.closing(connection):
            self.send_response(answer.status)
            for name, value in answer.getheaders():
                if name.lower() not in _OF_ONE_CONNECTION | {"date", "server"}:
                    self.send_header(name, value)
            self.end_headers()
            with contextlib.suppress(http.client.HTTPException):
                shutil.copyfileobj(answer, self.wfile)

    def _say(self, status: int, text: str) -> None:
        body = f"{text}\n".encode()
        self.send_response(status)
        self.send_header("Content-Type", "text/plain; charset=utf-8")
        self.send_header("Content-Length", str(len(body)))
        self.end_headers()
        self.wfile.write(body)

    def log_message(self, format: str, *arguments: object) -> None:
        """Log nothing: a page asks every second."""


@contextmanager
def fronted(front: Front) -> Iterator[None]:
    """Serve from a thread for the length of a ``with`` block."""
    thread = threading.Thread(target=front.serve_forever, args=(0.05,), daemon=True)
    thread.start()
    try:
        yield
    finally:
        front.shutdown()
        thread.join()
        front.server_close()
