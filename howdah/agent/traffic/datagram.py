# SPDX-License-Identifier: Apache-2.0
"""UDP bursts at a constant rate, sent and counted inside the kernel."""

from __future__ import annotations

import socket

from howdah.agent.error import AgentError
from howdah.agent.loop import Loop
from howdah.agent.traffic.driver import FlowDriver
from howdah.agent.traffic.kernel import CONTROL, cookie_of, send_command, status_of
from howdah.linux.kernelfile import read_file
from howdah.linux.namespace import Namespace
from howdah.linux.output import Output
from howdah.plan.plan import Flow
from howdah.record.agent import FlowRecord

_RECEIVE_BUFFER_BYTES = 1 << 20


class DatagramFlow(FlowDriver):
    """Two connected sockets, open from the start of the run; the sending one is attached to the kernel source during a
    burst."""

    kind = "UDP"

    def __init__(self, description: Flow, namespaces: dict[str, Namespace], loop: Loop, output: Output) -> None:
        super().__init__(description, namespaces, loop, output)
        self._sender: socket.socket | None = None
        self._receiver: socket.socket | None = None
        self._sending = False
        self._sent_bytes = 0
        self._received: tuple[int, int | None] = (0, None)

    def is_active(self) -> bool:
        """Return False: there is no TCP socket to observe."""
        return False

    def is_over(self) -> bool:
        return True

    def prepare(self) -> None:
        if not CONTROL.exists():
            raise AgentError(self.label, f"{CONTROL} is missing: the module howdah_traffic is not loaded")
        flow = self.description
        source, destination = flow.at("source"), flow.at("destination")
        try:
            self._sender = self._open(flow.sender, source, destination)
            self._receiver = self._open(flow.receiver, destination, source)
        except OSError as error:
            raise AgentError(self.label, f"cannot open its sockets: {error.strerror}") from error
        self._sender_cookie, self._receiver_cookie = cookie_of(self._sender), cookie_of(self._receiver)
        send_command(f"sink {self._receiver.fileno()}")

    def _open(self, host: str, own: tuple[str, int], peer: tuple[str, int]) -> socket.socket:
        opened = self._namespaces[host].socket(socket.SOCK_DGRAM)
        opened.setblocking(False)
        opened.setsockopt(socket.SOL_SOCKET, socket.SO_RCVBUF, _RECEIVE_BUFFER_BYTES)
        opened.bind(own)
        opened.connect(peer)
        return opened

    def start(self, now: int) -> None:
        self._start_ns = now
        start_us = self.description.start_us
        for begin_us, end_us in self.description.bursts:
            if begin_us == start_us:
                self._switch_on(now)
            else:
                self._loop.at(now + (begin_us - start_us) * 1000, self._switch_on)
            self._loop.at(now + (end_us - start_us) * 1000, self._switch_off)

    def _switch_on(self, _now: int) -> None:
        if self._sender is None or self._sending:
            return
        flow = self.description
        send_command(f"datagrams {self._sender.fileno()} {flow.datagram_interval_ns} {flow.datagram_bytes}")
        self._sending = True

    def _switch_off(self, _now: int) -> None:
        if self._sender is None or not self._sending:
            return
        self._sent_bytes += self._count(self._sender_cookie, "source")[0]
        send_command(f"detach {self._sender.fileno()}")
        self._sending = False

    def _count(self, cookie: int | None, role: str) -> tuple[int, int | None]:
        state = status_of(read_file(str(CONTROL)), cookie or 0, role)
        return (state.bytes, state.last_ns) if state else (0, None)

    def stop(self, now: int) -> None:
        self._switch_off(now)

    def finished(self) -> bool:
        """Whether everything sent has arrived. Datagrams dropped by a queue never do; then a deadline ends the wait."""
        if self._start_ns is None or self._sender is None:
            return True
        return not self._sending and self._count(self._receiver_cookie, "sink")[0] == self._sent_bytes

    def close(self) -> None:
        if self._sender is None or self._receiver is None:
            return
        self._switch_off(0)
        self._received = self._count(self._receiver_cookie, "sink")
        self._sender.close()
        self._receiver.close()
        self._sender = self._receiver = None

    def record(self, epoch_ns: int) -> FlowRecord:
        """The flow's entry in agent.json; ``complete`` if no datagram was lost."""
        received, last_ns = self._received
        return self._record(
            epoch_ns,
            connected_ns=self._start_ns,
            end_ns=last_ns,
            bytes_sent=self._sent_bytes,
            bytes_received=received,
            complete=received == self._sent_bytes,
            error=None,
        )
