# SPDX-License-Identifier: Apache-2.0
"""A connection of a group of flows: opened at its start and closed by both ends when done, so that hundreds cost
little."""

from __future__ import annotations

import socket

from howdah.agent.error import AgentError
from howdah.agent.loop import Loop, align_to_tick
from howdah.agent.traffic.connection import NOTHING, ConnectedFlow
from howdah.agent.traffic.endpoint import Transferred
from howdah.agent.traffic.kernel import KernelEndpoint
from howdah.agent.traffic.python import PythonEndpoint
from howdah.linux.clock import TICK_NS
from howdah.linux.namespace import Namespace
from howdah.linux.output import Output
from howdah.plan.plan import Flow


class GeneratedFlow(ConnectedFlow):
    """A flow that closes like a server and its client: a receiver that knows the size closes once it has everything,
    another one once it has read the FIN; the sender closes when it sees the receiver close.

    With ``request_bytes`` the receiver connects and sends a request of that size; the sender begins when it has read
    it.
    """

    def __init__(self, description: Flow, namespaces: dict[str, Namespace], loop: Loop, output: Output) -> None:
        super().__init__(description, namespaces, loop, output)
        self._request_left = description.request_bytes or 0
        self._in_kernel = description.sink == "kernel"
        self._received: Transferred | None = None
        self._sent: Transferred | None = None
        self._closed = False

    def is_active(self) -> bool:
        return self._start_ns is not None and not self._closed

    def is_over(self) -> bool:
        return self._closed

    def prepare(self) -> None:
        """Check that the kernel has the algorithm; sockets are opened at the start. Raises AgentError."""
        self._make_ends()
        with self._namespaces[self.description.sender].socket(socket.SOCK_STREAM) as trial:
            self._choose_algorithm(trial)

    def start(self, now: int) -> None:
        self._open_both()
        super().start(now)

    def _make_ends(self) -> None:
        flow = self.description
        if not flow.size_bytes:
            super()._make_ends()
            return
        kinds: dict[str, type[KernelEndpoint] | type[PythonEndpoint]]
        kinds = {"kernel": KernelEndpoint, "python": PythonEndpoint}
        self._source = kinds[flow.traffic]("source", flow.size_bytes, receiver_closes=True)
        self._sink = kinds[flow.sink]("sink", flow.size_bytes, receiver_closes=True)

    def stop(self, now: int) -> None:
        if not self._closed and (self._sender is None or self._sender.fileno() >= 0):
            super().stop(now)

    def _established(self, connection: socket.socket, now: int, *, sends: bool) -> None:
        if sends and self._request_left and not self._stopped:
            self._sender = connection
            self._loop.when_readable(connection.fileno(), self._read_request)
            return
        super()._established(connection, now, sends=sends)
        if sends:
            self._watch_sender(connection)
            return
        if self._request_left:
            sent = connection.send(bytes(self._request_left))
            if sent != self._request_left:
                raise AgentError(self.label, f"its request of {self._request_left} bytes does not fit into a buffer")
        if self._in_kernel:
            # The sink consumes data without waking anybody; only a FIN or a reset makes the socket readable.
            self._loop.when_readable(connection.fileno(), self._receiver_readable)

    def _watch_sender(self, connection: socket.socket) -> None:
        if self._in_kernel:
            self._loop.when_readable(connection.fileno(), self._sender_readable)

    def _read_request(self, now: int) -> None:
        assert self._sender is not None
        try:
            self._request_left -= len(self._sender.recv(self._request_left))
        except BlockingIOError:
            return
        except OSError as error:
            self._error = f"its request did not arrive: {error.strerror}"
            self._loop.when_readable(self._sender.fileno(), None)
            return
        if not self._request_left:
            self._loop.when_readable(self._sender.fileno(), None)
            super()._established(self._sender, now, sends=True)
            self._watch_sender(self._sender)

    def _receiver_readable(self, now: int) -> None:
        """Handle the receiver's FIN or reset. If the socket has only data that a worker of the module has yet to read,
        look again a tick later.

        The kernel may have made the worker after the start, and the agent takes precedence over it: if the agent looked
        again at once, it would never sleep, and the worker would never run.
        """
        assert self._sink is not None and self._receiver is not None
        state = self._sink.state()
        if state.done or state.error:
            self._received = state
            self._end(self._receiver)
        else:
            self._loop.when_readable(self._receiver.fileno(), None)
            self._loop.at(align_to_tick(now) + TICK_NS, self._look_again)

    def _look_again(self, _now: int) -> None:
        assert self._receiver is not None
        if self._receiver.fileno() >= 0:
            self._loop.when_readable(self._receiver.fileno(), self._receiver_readable)

    def _sender_readable(self, _now: int) -> None:
        """Handle the receiver's FIN or a reset; nothing else arrives at the sender by now."""
        assert self._source is not None and self._sender is not None
        self._sent = self._source.state()
        self._count_segments()
        self._end(self._sender)

    def _end(self, connection: socket.socket) -> None:
        self._loop.when_readable(connection.fileno(), None)
        connection.close()
        if self._received is not None and self._sent is not None:
            self.close()

    def _states(self) -> tuple[Transferred, Transferred]:
        if self._final is not None:  # the module forgets sockets once they are closed
            return self._final
        source = self._sent or (self._source.state() if self._source and self._connected_ns is not None else NOTHING)
        sink = self._received or (self._sink.state() if self._sink and self._receiver is not None else NOTHING)
        return source, sink

    def finished(self) -> bool:
        return self._closed or (super().finished() and not (self._in_kernel and self.is_active()))

    def close(self) -> None:
        if not self._closed:
            super().close()
            self._closed = True
