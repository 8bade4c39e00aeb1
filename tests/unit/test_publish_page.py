# SPDX-License-Identifier: Apache-2.0
"""Pages of metrics whose readers go away: no traceback, and the next reader is answered."""

from __future__ import annotations

import http.client
import socket
import struct
import threading
from collections.abc import Callable
from typing import cast

import pytest

from howdah.publish.endpoint import Endpoint
from howdah.publish.exporter import Exporter
from howdah.publish.machine import Machine

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


def _endpoint(write: Callable[[], str]) -> Endpoint:
    return Endpoint(write)


def _exporter(write: Callable[[], str]) -> Exporter:
    exporter = Exporter("127.0.0.1", 0, Machine("here"))
    exporter.text = write  # type: ignore[method-assign]
    return exporter


def _place(server: Endpoint | Exporter) -> tuple[str, int]:
    return cast("tuple[str, int]", server.socket.getsockname())


def _connect(server: Endpoint | Exporter) -> socket.socket:
    return socket.create_connection(_place(server), timeout=_LIMIT_S)


def _give_up(end: socket.socket) -> None:
    end.setsockopt(socket.SOL_SOCKET, socket.SO_LINGER, _RESET)
    end.close()


@pytest.mark.parametrize("make", [_endpoint, _exporter])
def test_a_reader_that_goes_away_is_no_error(
    make: Callable[[Callable[[], str]], Endpoint | Exporter], capfd: pytest.CaptureFixture[str]
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
            assert (answer.status, len(answer.read())) == (200, 20_000_000)
            patient.close()
        finally:
            server.shutdown()
            thread.join()
    assert capfd.readouterr().err == ""
