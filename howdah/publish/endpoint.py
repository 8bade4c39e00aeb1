# SPDX-License-Identifier: Apache-2.0
"""A page of metrics on loopback for a Prometheus of the same command to scrape, served from a thread."""

from __future__ import annotations

import http.server
import logging
import socketserver
import threading
from collections.abc import Callable, Iterator
from contextlib import contextmanager

from howdah.publish.page import Page
from howdah.publish.server import LOOPBACK

_LOG = logging.getLogger(__name__)


class _Handler(Page):
    server: Endpoint

    def reply(self, path: str) -> None:
        if path != "/metrics":
            self.answer(404, "there is only /metrics\n")
            return
        try:
            text = self.server.text()
        except (OSError, ValueError) as error:
            _LOG.warning("not scraped: %s", error)
            self.answer(500, f"{error}\n")
        else:
            self.answer(200, text)


class Endpoint(http.server.ThreadingHTTPServer):
    """Calls ``write`` at every scrape, one at a time."""

    daemon_threads = True

    def __init__(self, write: Callable[[], str]) -> None:
        self._write = write
        self._writing = threading.Lock()
        super().__init__((LOOPBACK, 0), _Handler)

    def server_bind(self) -> None:
        """Without the look-up of its own name that http.server adds, which may wait for a name server."""
        socketserver.TCPServer.server_bind(self)
        self.server_name, self.server_port = LOOPBACK, int(self.socket.getsockname()[1])

    def text(self) -> str:
        with self._writing:
            return self._write()

    @property
    def address(self) -> str:
        return f"{LOOPBACK}:{self.server_port}"


@contextmanager
def endpoint(write: Callable[[], str]) -> Iterator[Endpoint]:
    """An endpoint on a free port for the length of a ``with`` block."""
    with Endpoint(write) as served:
        thread = threading.Thread(target=served.serve_forever, daemon=True)
        thread.start()
        try:
            yield served
        finally:
            served.shutdown()
            thread.join()
