# SPDX-License-Identifier: Apache-2.0
"""A sender that fills the buffer waits for room in its socket, and does not ask for it again and again.

In a guest each asking is four system calls of the host, and its virtual time stands still until the clock is read.
"""

from __future__ import annotations

import socket
import time
from collections.abc import Iterator
from typing import Any

import pytest

from howdah.agent.calibration import buffer, udp
from howdah.agent.calibration.buffer import BufferLoad, Filler
from howdah.agent.calibration.udp import SEND_BUFFER_BYTES, departures
from howdah.agent.loop import Loop
from howdah.linux.clock import MS, now_ns
from howdah.plan.plan import CalibrationTarget
from tests.unit.plan_factory import make_plan

ADDRESS = "127.0.0.1"
PAUSE_NS = 20 * MS


class _Host:
    """A namespace whose sockets are of this machine's loopback."""

    def socket(self, kind: socket.SocketKind) -> socket.socket:
        return socket.socket(socket.AF_INET, kind)


def _plain_sender(host: _Host, _address: str, _segment_bytes: int | None = None) -> socket.socket:
    opened = host.socket(socket.SOCK_DGRAM)
    opened.setblocking(False)
    return opened


@pytest.fixture
def asked(monkeypatch: pytest.MonkeyPatch) -> Iterator[list[socket.socket]]:
    """The sockets that were asked to send, in order. Of each only the first datagram finds room."""
    found: list[socket.socket] = []
    plain = udp.send

    def send(sender: socket.socket, *arguments: Any) -> bool:
        found.append(sender)
        return sender not in found[:-1] and plain(sender, *arguments)

    monkeypatch.setattr(buffer, "send", send)
    monkeypatch.setattr(buffer, "open_sender", _plain_sender)
    monkeypatch.setattr("howdah.agent.calibration.udp.SO_RCVBUFFORCE", socket.SO_RCVBUF)
    yield found


def _filler(loop: Loop) -> Filler:
    calibration = make_plan().calibration
    assert calibration.frame_bytes == 1514
    target = CalibrationTarget("s1", "r1", ADDRESS, ADDRESS, 0, 0, 0)
    host: Any = _Host()
    return Filler(calibration, target, {"s1": host}, loop, BufferLoad(0, 8, PAUSE_NS))


def test_it_pauses_although_poll_returns_for_time_stamps(asked: list[socket.socket]) -> None:
    loop = Loop(virtual_time=False)
    filler = _filler(loop)
    filler.pump(now_ns())
    (sender,) = set(asked)
    time.sleep(0.01)
    assert len(asked) == 2, "one datagram, whose time stamp waits in the error queue from now on, and one without room"
    before = len(asked)
    loop.run_until(now_ns() + 10 * PAUSE_NS)
    assert 1 <= len(asked) - before <= 11
    assert set(asked) == {sender}
    assert list(departures(sender)) == [0], "there was none in the error queue, so nothing was tried"


def test_what_is_over_sends_no_more(asked: list[socket.socket]) -> None:
    loop = Loop(virtual_time=False)
    filler = _filler(loop)
    filler.pump(now_ns())
    assert filler.finish().sent_frames == 1
    before = len(asked)
    loop.run_until(now_ns() + 3 * PAUSE_NS)
    assert len(asked) == before


def test_the_interface_has_something_to_send_until_the_pause_ends() -> None:
    """The kernel doubles a send buffer and charges a frame of 1514 bytes with less than twice its size."""
    for rate in (25_000_000, 1_000_000_000, 40_000_000_000):
        load = buffer.divide_load(1_000_000, 1514, rate // 4, rate, 1)
        assert load is not None
        leaves_meanwhile_bytes = load.pause_ns * rate / 8e9
        assert leaves_meanwhile_bytes < 0.5 * SEND_BUFFER_BYTES
