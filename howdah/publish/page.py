# SPDX-License-Identifier: Apache-2.0
"""One page of text over HTTP. Standard library only: it also answers on the hosts of a lab."""

from __future__ import annotations

import contextlib
import http.server

CONTENT_TYPE = "text/plain; version=0.0.4; charset=utf-8"
_REQUEST_LIMIT_S = 10.0


class Page(http.server.BaseHTTPRequestHandler):
    """What pages of metrics have in common: the way they answer, and that they write nothing down."""

    timeout = _REQUEST_LIMIT_S

    def handle(self) -> None:
        """Requests of one connection. Who goes away before the answer gets none, which is no error of ours."""
        with contextlib.suppress(ConnectionError):
            super().handle()

    def do_GET(self) -> None:
        self.reply(self.path.split("?", 1)[0])

    def reply(self, path: str) -> None:
        """Answer a request for ``path``, once."""
        raise NotImplementedError

    def answer(self, status: int, text: str) -> None:
        body = text.encode()
        self.send_response(status)
        self.send_header("Content-Type", CONTENT_TYPE)
        self.send_header("Content-Length", str(len(body)))
        self.end_headers()
        self.wfile.write(body)

    def log_message(self, format: str, *arguments: object) -> None:
        """A scrape a second is nothing to write down."""
