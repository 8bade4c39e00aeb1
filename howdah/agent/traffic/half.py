# SPDX-License-Identifier: Apache-2.0
"""A flow whose other end is on another machine. howdah/engine/machines/merge.py joins the records of both."""

from __future__ import annotations

import socket
from dataclasses import replace

from howdah.agent.error import AgentError
from howdah.agent.loop import Loop
from howdah.agent.traffic.connection import NEEDS_BOTH_ENDS, ConnectedFlow, make_endpoint
from howdah.agent.traffic.iperf3 import Iperf3Flow
from howdah.linux.namespace import Namespace
from howdah.linux.netlink.diag import Endpoint as DiagEndpoint
from howdah.linux.netlink.diag import SocketState
from howdah.linux.output import Output
from howdah.plan.plan import Flow
from howdah.record.agent import FlowRecord

# TCP states (include/net/tcp_states.h) of a socket whose FIN, and therefore all its data, was acknowledged.
_ACKNOWLEDGED = (5, 6, 7)  # FIN_WAIT2, TIME_WAIT, CLOSE
_UNSUPPORTED = ("program", "http", "exchange", "datagram_bytes", "group")


def make_half(
    description: Flow, namespaces: dict[str, Namespace], loop: Loop, output: Output
) -> HalfFlow | HalfIperf3Flow:
    """Return the driver of a flow's end on this machine. Raises AgentError for traffic whose ends cannot be on two
    machines."""
    if description.traffic == "iperf3":
        return HalfIperf3Flow(description, namespaces, loop, output)
    wrong = [name for name in _UNSUPPORTED if getattr(description, name) is not None]
    if wrong or not description.kind.single:
        what = wrong[0] if wrong else description.traffic
        raise AgentError(f"flow {description.id}", f"{what}: this traffic cannot have its ends on two machines")
    return HalfFlow(description, namespaces, loop, output)


class HalfFlow(ConnectedFlow):
    """One end of a connected flow: the opener connects when the flow starts, the other end listens from before the
    epoch."""

    def __init__(self, description: Flow, namespaces: dict[str, Namespace], loop: Loop, output: Output) -> None:
        super().__init__(description, namespaces, loop, output)
        self._sends = description.sender in namespaces
        self._fin_acknowledged = False

    def _make_ends(self) -> None:
        flow = self.description
        if self._sends:
            self._source = make_endpoint(flow.traffic, "source", flow.size_bytes or 0)
        else:
            self._sink = make_endpoint(flow.sink, "sink", flow.size_bytes or 0)

    def _open_both(self) -> None:
        flow = self.description
        side = "source" if self._sends else "destination"
        try:
            own = self._open(flow.host(side), *flow.at(side))
            if self._sends == self._by_sender:
                self._opening = own
            else:
                self._listener = own
                own.listen(1)
                self._loop.when_readable(own.fileno(), self._accept)
        except OSError as error:
            raise AgentError(self.label, f"cannot open its socket: {error.strerror}") from error
        if self._sends or flow.kernel_algorithm in NEEDS_BOTH_ENDS:
            self._choose_algorithm(own)

    def start(self, now: int) -> None:
        if self._opening is not None:
            super().start(now)
        else:
            self._start_ns = now

    def _established(self, connection: socket.socket, now: int, *, sends: bool) -> None:
        super()._established(connection, now, sends=sends)
        self._connected_ns = now

    def finished(self) -> bool:
        """At the sender, whether the FIN was acknowledged; at the receiver, whether it was read."""
        if self._start_ns is None or self._error:
            return True
        source, sink = self._states()
        if not self._sends:
            return sink.done or bool(sink.error)
        if source.error and not self._stopped:
            return True
        return (source.done or self._stopped) and self._is_acknowledged()

    def _is_acknowledged(self) -> bool:
        if self._sender is not None and self._sender.fileno() >= 0:
            state = self._sender.getsockopt(socket.IPPROTO_TCP, socket.TCP_INFO, 1)
            self._fin_acknowledged = state[0] in _ACKNOWLEDGED
        return self._fin_acknowledged

    def _is_complete(self) -> bool:
        return self._is_acknowledged() if self._sends else super()._is_complete()

    def record(self, epoch_ns: int) -> FlowRecord:
        """The entry of a flow, with the fields that this end knows; ``end`` names the end."""
        _source, sink = self._states()
        record = super().record(epoch_ns)
        if self._sends:
            whole = self._fin_acknowledged and record.error is None
            return replace(record, end="sender", complete=whole, end_ns=None)
        return replace(record, end="receiver", complete=sink.done and record.error is None)


class HalfIperf3Flow(Iperf3Flow):
    """One end of an iperf3 flow: the client at the sender, which reports both ends, or the server at the receiver."""

    def __init__(self, description: Flow, namespaces: dict[str, Namespace], loop: Loop, output: Output) -> None:
        super().__init__(description, namespaces, loop, output)
        self._sends = description.sender in namespaces

    def prepare(self) -> None:
        if not self._sends:
            super().prepare()

    def start(self, now: int) -> None:
        if self._sends:
            super().start(now)
        else:
            self._start_ns = now

    def _socket(self, host: str, endpoint: DiagEndpoint) -> SocketState | None:
        return super()._socket(host, endpoint) if host in self._namespaces else None

    def record(self, epoch_ns: int) -> FlowRecord:
        record = super().record(epoch_ns)
        return (
            replace(record, end="sender") if self._sends else replace(record, end="receiver", error=None, complete=True)
        )
