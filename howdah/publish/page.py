# SPDX-License-Identifier: Apache-2.0
"""Pages of metrics over HTTP. Standard library only: it also answers on the hosts of several machines.

Elsewhere ``prometheus_client`` does this (endpoint.py).
"""

from __future__ import annotations

import contextlib
import gzip
import http.server
import socketserver

from howdah.publish.guard import refusal

TEXT = "text/plain; version=0.0.4; charset=utf-8"
OPENMETRICS = "application/openmetrics-text; version=1.0.0; charset=utf-8"
_OPENMETRICS_TYPE = "application/openmetrics-text"
_OPENMETRICS_VERSIONS = (None, "1.0.0")
_TEXT_RANGES = ("text/plain", "text/*")
_REQUEST_LIMIT_S = 10.0


def negotiated(accept: str | None) -> str:
    """The content type for a request with this Accept header.

    OpenMetrics must be named, with a weight not below that of text. A client that accepts neither gets text, as from
    Prometheus' own libraries.
    """
    wanted = 0.0
    text = 0.0
    for media, parameters in _ranges(accept or ""):
        quality = _quality(parameters)
        if media == _OPENMETRICS_TYPE and parameters.get("version") in _OPENMETRICS_VERSIONS:
            wanted = max(wanted, quality)
        elif media in _TEXT_RANGES:
            text = max(text, quality)
    return OPENMETRICS if wanted > 0 and wanted >= text else TEXT


def takes_gzip(accept: str | None) -> bool:
    """Whether an Accept-Encoding header allows gzip: by its name or by ``*``, of which the name counts more."""
    found = {coding: _quality(parameters) for coding, parameters in _ranges(accept or "")}
    return found.get("gzip", found.get("*", 0.0)) > 0


def _ranges(header: str) -> list[tuple[str, dict[str, str]]]:
    """Elements of a header that is a list, with their parameters, in small letters."""
    found = []
    for element in header.lower().split(","):
        name, *rest = (part.strip() for part in element.split(";"))
        pairs = (part.partition("=") for part in rest)
        found.append((name, {key.strip(): value.strip().strip('"') for key, _, value in pairs}))
    return found


def _quality(parameters: dict[str, str]) -> float:
    try:
        return float(parameters.get("q", "1"))
    except ValueError:
        return 0.0


class Page(http.server.BaseHTTPRequestHandler):
    """The common part of pages of metrics: how they answer. They log nothing."""

    timeout = _REQUEST_LIMIT_S
    server: socketserver.TCPServer

    def handle(self) -> None:
        """Handle the requests of one connection. A client that disconnects early is not an error."""
        with contextlib.suppress(ConnectionError):
            super().handle()

    def do_GET(self) -> None:
        address, port = self.server.server_address[:2]
        refused = refusal(self.headers, str(address), int(port))
        if refused is None:
            self.reply(self.path.split("?", 1)[0])
        else:
            self.answer(refused[0], f"{refused[1]}\n")

    def do_HEAD(self) -> None:
        self.do_GET()  # answer() leaves the body out

    def reply(self, path: str) -> None:
        """Answer a request for ``path``, once."""
        raise NotImplementedError

    @property
    def content_type(self) -> str:
        """The format of metrics that this request is answered in: TEXT or OPENMETRICS."""
        return negotiated(self.headers.get("Accept"))

    def answer(self, status: int, text: str, content_type: str = TEXT) -> None:
        body = text.encode()
        compressed = status == 200 and takes_gzip(self.headers.get("Accept-Encoding"))
        if compressed:
            body = gzip.compress(body, compresslevel=6, mtime=0)
        self.send_response(status)
        self.send_header("Content-Type", content_type)
        self.send_header("Content-Length", str(len(body)))
        self.send_header("Vary", "Accept, Accept-Encoding")
        if compressed:
            self.send_header("Content-Encoding", "gzip")
        self.end_headers()
        if self.command != "HEAD":
            self.wfile.write(body)

    def log_message(self, format: str, *arguments: object) -> None:
        """Log nothing: a scrape comes every second."""
