# SPDX-License-Identifier: Apache-2.0
"""Refuses requests that a web page sends under its own host name (DNS rebinding), and too many at once.

A browser sends any page's requests to loopback. A page's name that a name server turns into 127.0.0.1 makes them
readable for that page, but the request still says the name in ``Host``. Standard library only.
"""

from __future__ import annotations

import ipaddress
import socketserver
import threading
from typing import Any, Protocol

LOOPBACK = "127.0.0.1"
MOST_AT_ONCE = 16  # a Prometheus needs one, a person's browser six


def is_loopback(host: str) -> bool:
    """Whether a host is loopback. ``localhost`` is the only name that counts: name servers decide on others."""
    try:
        return ipaddress.ip_address(host.strip("[]").partition("%")[0]).is_loopback
    except ValueError:
        return host == "localhost"


def is_addressed(host: str | None, address: str, port: int) -> bool:
    """Whether a request's ``Host`` (None: HTTP/1.0 without one) names this server.

    Beyond loopback a machine has names that only others know, and what it serves is for others to read.
    """
    if host is None or not is_loopback(address):
        return True
    return host.lower() in {f"{name}:{port}" for name in ("localhost", "127.0.0.1", "[::1]", address)}


class RequestHeaders(Protocol):
    """The headers of a request, by name in any case."""

    def get(self, name: str, /) -> Any: ...


def refusal(headers: RequestHeaders, address: str, port: int) -> tuple[int, str] | None:
    """The status and the reason with which a request is refused; None for one that is answered.

    ``Origin`` says which page sends it, if another one than the server's own does.
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
    """Answers so many requests at once; further connections are closed without an answer."""

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
