# SPDX-License-Identifier: Apache-2.0
"""Refuses requests that a web page sends under its own host name (DNS rebinding), and too many concurrent requests.

Any web page can make a browser send requests to loopback. If the page's own name resolves to 127.0.0.1, the page can
also read the answers, but the request still has that name in ``Host``. Standard library only.
"""

from __future__ import annotations

import ipaddress
import socketserver
import threading
from typing import Any, Protocol

LOOPBACK = "127.0.0.1"
MOST_AT_ONCE = 16  # a Prometheus needs one, a person's browser six


def is_loopback(host: str) -> bool:
    """Whether a host is loopback. ``localhost`` is the only name accepted, because name servers decide on others."""
    try:
        return ipaddress.ip_address(host.strip("[]").partition("%")[0]).is_loopback
    except ValueError:
        return host == "localhost"


def is_addressed(host: str | None, address: str, port: int) -> bool:
    """Whether a request's ``Host`` (None: HTTP/1.0 without one) names this server.

    Always true beyond loopback: there a machine has names it does not know, and what it serves is meant for others.
    """
    if host is None or not is_loopback(address):
        return True
    return host.lower() in {f"{name}:{port}" for name in ("localhost", "127.0.0.1", "[::1]", address)}


class RequestHeaders(Protocol):
    """The headers of a request, looked up by name in any case."""

    def get(self, name: str, /) -> Any: ...


def refusal(headers: RequestHeaders, address: str, port: int) -> tuple[int, str] | None:
    """The status and reason for refusing a request; None if it is to be answered.

    ``Origin`` names the page that sent it, if that is not the server's own.
    """
    if not is_addressed(headers.get("Host"), address, port):
        return 421, "this server has another name"
    origin = headers.get("Origin")
    if origin is not None and is_loopback(address):
        scheme, _, host = str(origin).partition("://")
        if scheme != "http" or not is_addressed(host, address, port):
            return 403, "a page of another origin asks"
    return None


class FewAtOnce(socketserver.ThreadingMixIn):
    """Answers at most MOST_AT_ONCE requests at a time and closes further connections without an answer."""

    daemon_threads = True

    def __init__(self, *arguments: Any, **options: Any) -> None:
        self._free = threading.BoundedSemaphore(MOST_AT_ONCE)
        super().__init__(*arguments, **options)

    def process_request(self, request: Any, client_address: Any) -> None:
        if not self._free.acquire(blocking=False):
            self.shutdown_request(request)  # type: ignore[attr-defined]
            return
        try:
            super().process_request(request, client_address)
        except BaseException:
            self._free.release()
            raise

    def process_request_thread(self, request: Any, client_address: Any) -> None:
        try:
            super().process_request_thread(request, client_address)
        finally:
            self._free.release()
