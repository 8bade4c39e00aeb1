# SPDX-License-Identifier: Apache-2.0
"""A flow over a connection that the agent opens itself, without blocking, so that flows start at exact instants."""

from __future__ import annotations

import errno
import os
import socket
import struct

from howdah.agent.error import AgentError
from howdah.agent.loop import Loop
from howdah.agent.traffic.driver import FlowDriver
from howdah.agent.traffic.endpoint import TrafficEndpoint, Transferred
from howdah.agent.traffic.kernel import KernelEndpoint, cookie_of
from howdah.agent.traffic.python import PythonEndpoint
from howdah.agent.traffic.segments import Segments, segments_of
from howdah.linux.namespace import Namespace
from howdah.linux.output import Output
from howdah.plan.plan import Flow
from howdah.record.agent import FlowRecord

_TCP_CONGESTION = 13
NEEDS_BOTH_ENDS = ("dctcp",)  # negotiates its ECN only if the peer uses it too; else it falls back to dctcp-reno
_ALGORITHMS = "/proc/sys/net/ipv4/tcp_available_congestion_control"
_NAME_BYTES = 16  # TCP_CA_NAME_MAX
NOTHING = Transferred(0, None, None, done=False)


def make_endpoint(driver: str, role: str, limit_bytes: int = 0) -> TrafficEndpoint:
    """Return an end of a flow of ``limit_bytes``, or of a flow without a size if that is 0."""
    if driver == "kernel":
        return KernelEndpoint(role, limit_bytes)
    if driver == "python":
        return PythonEndpoint(role, limit_bytes)
    raise AgentError(f"{role} {driver}", "not one of kernel, python")


def _algorithm_of(connection: socket.socket) -> str:
    """The kernel's name of the congestion control that a socket uses."""
    name = connection.getsockopt(socket.IPPROTO_TCP, _TCP_CONGESTION, _NAME_BYTES)
    return name.partition(b"\0")[0].decode("ascii", "replace")


class ConnectedFlow(FlowDriver):
    """A flow with the agent's sockets at both ends; times are CLOCK_MONOTONIC until ``record`` subtracts the epoch."""

    def __init__(self, description: Flow, namespaces: dict[str, Namespace], loop: Loop, output: Output) -> None:
        super().__init__(description, namespaces, loop, output)
        self._by_sender = description.opener == "sender"
        self._listener: socket.socket | None = None
        self._opening: socket.socket | None = None
        self._sender: socket.socket | None = None
        self._receiver: socket.socket | None = None
        self._source: TrafficEndpoint | None = None
        self._sink: TrafficEndpoint | None = None
        self._connected_ns: int | None = None
        self._error: str | None = None
        self._stopped = False
        self._final: tuple[Transferred, Transferred] | None = None
        self._segments: Segments | None = None
        self._algorithm_used: str | None = None

    def prepare(self) -> None:
        """Open the listener and the socket that will connect, before the epoch. Raises AgentError."""
        self._make_ends()
        self._open_both()

    def _make_ends(self) -> None:
        flow = self.description
        self._source = make_endpoint(flow.traffic, "source", flow.size_bytes or 0)
        self._sink = make_endpoint(flow.sink, "sink", flow.size_bytes or 0)

    def _open_both(self) -> None:
        flow = self.description
        try:
            source = self._open(flow.sender, *flow.at("source"))
            destination = self._open(flow.receiver, *flow.at("destination"))
            self._opening, self._listener = (source, destination) if self._by_sender else (destination, source)
            self._listener.listen(1)
        except OSError as error:
            raise AgentError(self.label, f"cannot open its sockets: {error.strerror}") from error
        self._choose_algorithm(source)  # accepted connections inherit it from the listener
        if flow.kernel_algorithm in NEEDS_BOTH_ENDS:
            self._choose_algorithm(destination)
        self._loop.when_readable(self._listener.fileno(), self._accept)

    def _choose_algorithm(self, source: socket.socket) -> None:
        name = self.description.kernel_algorithm
        try:
            source.setsockopt(socket.IPPROTO_TCP, _TCP_CONGESTION, name.encode())
        except OSError as error:
            with open(_ALGORITHMS, encoding="ascii") as file:  # noqa: PTH123
                available = file.read().strip()
            raise AgentError(
                self.label, f"congestion control {name}: {error.strerror}; the kernel offers {available}"
            ) from error

    def _open(self, host: str, address: str, port: int) -> socket.socket:
        opened = self._namespaces[host].socket(socket.SOCK_STREAM)
        opened.setblocking(False)
        opened.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
        opened.bind((address, port))
        return opened

    def start(self, now: int) -> None:
        assert self._opening is not None
        self._start_ns = now
        flow = self.description
        to = "destination" if self._by_sender else "source"
        number = self._opening.connect_ex(flow.at(to))
        if number not in (0, errno.EINPROGRESS):
            raise AgentError(self.label, f"connect: {os.strerror(number)}")
        self._keep_cookie(self._opening, sends=self._by_sender)
        self._loop.when_writable(self._opening.fileno(), self._connected)

    def _connected(self, now: int) -> None:
        assert self._opening is not None
        self._loop.when_writable(self._opening.fileno(), None)
        number = self._opening.getsockopt(socket.SOL_SOCKET, socket.SO_ERROR)
        if number:
            self._error = f"connect: {os.strerror(number)}"
        else:
            self._established(self._opening, now, sends=self._by_sender)

    def _keep_cookie(self, connection: socket.socket, *, sends: bool) -> None:
        if sends:
            self._sender_cookie = cookie_of(connection)
        else:
            self._receiver_cookie = cookie_of(connection)

    def _accept(self, now: int) -> None:
        assert self._listener is not None
        accepted, _peer = self._listener.accept()
        accepted.setblocking(False)
        self._loop.when_readable(self._listener.fileno(), None)
        self._listener.close()
        self._established(accepted, now, sends=not self._by_sender)

    def _established(self, connection: socket.socket, now: int, *, sends: bool) -> None:
        self._keep_cookie(connection, sends=sends)
        if not sends:
            assert self._sink is not None
            self._receiver = connection
            self._sink.attach(connection)
            return
        self._sender = connection
        self._connected_ns = now
        if not self._stopped:
            assert self._source is not None
            self._source.attach(connection)

    def stop(self, _now: int) -> None:
        """End a bulk flow: write no more data; the socket still sends what it holds, then a FIN."""
        self._stopped = True
        if self._sender is not None and self._connected_ns is not None:
            try:
                self._sender.shutdown(socket.SHUT_WR)
            except OSError as error:
                if error.errno != errno.ENOTCONN:
                    raise

    def _states(self) -> tuple[Transferred, Transferred]:
        if self._final is not None:
            return self._final
        source = self._source.state() if self._source and self._connected_ns is not None else NOTHING
        sink = self._sink.state() if self._sink and self._receiver is not None else NOTHING
        return source, sink

    def finished(self) -> bool:
        """Whether nothing more will happen: the sink has read the FIN, or an end failed."""
        if self._start_ns is None or self._error:
            return True
        source, sink = self._states()
        return sink.done or bool(sink.error) or (bool(source.error) and not self._stopped)

    def close(self) -> None:
        """Keep the final state, then reset what is still open, so that the network falls silent."""
        self._final = self._states()
        complete = self._is_complete()
        self._count_segments()
        for end in (self._source, self._sink):
            if end is not None:
                end.close()
        for opened in (self._opening, self._sender, self._receiver, self._listener):
            if opened is None or opened.fileno() < 0:
                continue
            self._loop.when_readable(opened.fileno(), None)
            self._loop.when_writable(opened.fileno(), None)
            if not complete:
                opened.setsockopt(socket.SOL_SOCKET, socket.SO_LINGER, struct.pack("ii", 1, 0))
            opened.close()

    def _is_complete(self) -> bool:
        """Whether the receiver has everything, so that the sockets need no reset."""
        return self._states()[1].done

    def _count_segments(self) -> None:
        """Read the sending socket's segment counters and algorithm before it is closed."""
        if self._sender is not None and self._sender.fileno() >= 0:
            self._segments = segments_of(self._sender)
            self._algorithm_used = _algorithm_of(self._sender)

    def record(self, epoch_ns: int) -> FlowRecord:
        """The flow's entry in agent.json. ``end_ns`` is when the receiver got the last byte."""
        source, sink = self._states()
        error = self._error or sink.error or (source.error if not self._stopped else None)
        if error is None and self._start_ns is not None and self._connected_ns is None:
            error = "not connected before the end of the run"
        return self._record(
            epoch_ns,
            connected_ns=self._connected_ns,
            end_ns=sink.last_ns,
            bytes_sent=source.bytes,
            bytes_received=sink.bytes,
            segments=(self._segments.sent, self._segments.retransmitted) if self._segments else (None, None),
            complete=sink.done and error is None and sink.bytes == (self.description.size_bytes or source.bytes),
            error=error,
            kernel_algorithm=self._algorithm_used,
        )
