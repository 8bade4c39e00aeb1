# SPDX-License-Identifier: Apache-2.0
"""A flow between two programs: a server that listens before the epoch, and a client that starts with the flow."""

from __future__ import annotations

import functools
import re
import time
from dataclasses import replace

from howdah.agent.error import AgentError
from howdah.agent.loop import Loop
from howdah.agent.traffic.algorithm import choose_algorithm
from howdah.agent.traffic.driver import FlowDriver
from howdah.agent.traffic.program_process import ProgramProcess
from howdah.agent.traffic.program_socket import (
    InterfaceTotals,
    ProgramSocket,
    connections_of,
    interface_totals,
    is_listening,
)
from howdah.agent.traffic.segments import Segments
from howdah.frame import UDP_FRAME_BYTES
from howdah.linux.clock import MS, SECOND, now_ns
from howdah.linux.namespace import Namespace
from howdah.linux.netlink.diag import Endpoint
from howdah.linux.output import Output
from howdah.plan.plan import Flow
from howdah.record.agent import FlowRecord

_POLL_NS = 10 * MS
_LISTENS_WITHIN_NS = 1 * SECOND
_LONGEST_REST_NS = 5 * SECOND  # after the client's end
_PLACEHOLDER = re.compile(r"\{([a-z_]+)\}")


def substituted(text: str, values: dict[str, str]) -> str:
    """Replace placeholders by their values; braces around anything else stay."""
    return _PLACEHOLDER.sub(lambda found: values.get(found[1], found[0]), text)


class ProgramFlow(FlowDriver):
    """A flow between two programs; the plan's ``program`` says which they are, which one sends, and what ends the flow.

    A TCP connection is found by the server's port. If the client's port is not the plan's, the flow is the connection
    at the server's port that moved the most bytes; agent.json has its ports.
    """

    kind = "program"

    def __init__(self, description: Flow, namespaces: dict[str, Namespace], loop: Loop, output: Output) -> None:
        super().__init__(description, namespaces, loop, output)
        program = description.program
        assert program is not None
        self._program = program
        self._is_tcp = program.protocol == "tcp"
        from_server = program.sends == "server"
        sides = ("source", "destination") if from_server else ("destination", "source")
        self._server_host, self._client_host = map(description.host, sides)
        (self._server_address, self._port), (self._client_address, self._client_port) = map(description.at, sides)
        self._from_server = from_server
        raw = output.directory("program")
        self._ends = {
            end: ProgramProcess(self.label, end, program.end(end), raw, description.id) for end in ("client", "server")
        }
        self._server, self._client = self._ends["server"], self._ends["client"]
        self._planned_client_port = self._client_port
        self._poll_pause_ns = _POLL_NS
        self._stopped = False
        self._is_at_rest = False
        self._end_ns: int | None = None
        self._connected_ns: int | None = None
        self._before: tuple[InterfaceTotals, InterfaceTotals] | None = None
        self._moved: tuple[InterfaceTotals, InterfaceTotals] | None = None
        self._received_bytes = 0
        self._moved_bytes = 0
        self._segments: Segments | None = None
        self._algorithm: str | None = None

    @property
    def endpoint(self) -> Endpoint:
        ends = Endpoint(self._server_address, self._port, self._client_address, self._client_port)
        return ends if self._from_server else ends.reversed()

    def is_active(self) -> bool:
        return self._is_tcp and self._connected_ns is not None and self._server.is_running

    def _values(self, end: ProgramProcess) -> dict[str, str]:
        flow = self.description
        seconds = max((flow.stop_us - flow.start_us) // 1_000_000, 1)
        return {
            "server_address": self._server_address,
            "client_address": self._client_address,
            "port": str(self._port),
            "client_port": str(self._client_port),
            "bytes": str(flow.size_bytes or ""),
            "duration": str(seconds),
            "directory": str(end.directory),
            "output": str(end.output),
            "algorithm": flow.kernel_algorithm,
            "flow": str(flow.id),
        }

    def _substitute(self, end: ProgramProcess, text: str) -> str:
        return substituted(text, self._values(end))

    def prepare(self) -> None:
        """Start the server and wait until it listens. Raises AgentError."""
        for end in self._ends.values():
            end.make_directory(functools.partial(self._substitute, end))
        if self._is_tcp:
            self._choose_algorithm()
        self._launch(self._server, self._server_host)
        limit = now_ns() + _LISTENS_WITHIN_NS
        namespace = self._namespaces[self._server_host]
        while not is_listening(namespace, self._program.protocol, self._port):
            if not self._server.is_running:
                raise AgentError(self.label, f"{self._server.describe_end()} before it listened at port {self._port}")
            if self._loop.run_until(now_ns() + _POLL_NS) > limit:
                seconds = _LISTENS_WITHIN_NS // SECOND
                what = f"its server {self._server.name} does not listen at {self._program.protocol} port {self._port}"
                raise AgentError(self.label, f"{what} after {seconds} s{self._server.last_output()}")

    def _choose_algorithm(self) -> None:
        choose_algorithm(self.label, self._namespaces[self.description.sender], self.description.kernel_algorithm)

    def _launch(self, end: ProgramProcess, host: str) -> None:
        end.start(self._namespaces[host])
        assert end.process is not None
        self._when_ended(end.process, functools.partial(self._on_end, end))

    def start(self, now: int) -> None:
        self._start_ns = now
        self._before = self._read_totals()
        if self._is_tcp:
            self._choose_algorithm()
        self._launch(self._client, self._client_host)
        if self._is_tcp:
            self._loop.at(now + _POLL_NS, self._poll_connection)
        else:
            self._connected_ns = now
        if self._program.wire_bytes:
            self._loop.at(now + _POLL_NS, self._poll_wire)

    def _read_totals(self) -> tuple[InterfaceTotals, InterfaceTotals]:
        """Read the interface counters of the sender's and the receiver's host."""
        flow = self.description
        return interface_totals(self._namespaces[flow.sender]), interface_totals(self._namespaces[flow.receiver])

    def _on_end(self, end: ProgramProcess, now: int) -> None:
        end.reap()
        if end is self._client:
            self._end_ns = now
            self._wait_for_rest(now)

    def _poll_connection(self, now: int) -> None:
        """Poll until the client's planned port appears; with another port continue, since another connection may move
        more."""
        if self._end_ns is not None:
            return
        if self._read_sockets(now):
            if self._client_port == self._planned_client_port:
                return
            self._poll_pause_ns = min(2 * self._poll_pause_ns, SECOND)
        self._loop.at(now + self._poll_pause_ns, self._poll_connection)

    def _read_sockets(self, now: int) -> bool:
        """Look for the connection on both hosts; return whether the server's host has it."""
        found = connections_of(self._namespaces[self._server_host], self._port)
        servers = [item for item in found if item.segments is not None]  # sockets in TIME_WAIT have none
        if not servers:
            return False
        server = next((item for item in servers if item.endpoint.remote_port == self._planned_client_port), servers[0])
        if server.moved_bytes < self._moved_bytes and self._client_port != server.endpoint.remote_port:
            return True  # the connection that moved more has already ended
        self._moved_bytes = max(self._moved_bytes, server.moved_bytes)
        if self._connected_ns is None or self._client_port != server.endpoint.remote_port:
            self._connected_ns = now
        self._client_port = server.endpoint.remote_port
        at_client = connections_of(self._namespaces[self._client_host], self._client_port)
        client = next((item for item in at_client if item.endpoint.remote_port == self._port), None)
        sender, receiver = (server, client) if self._from_server else (client, server)
        self._keep_counters(sender, receiver)
        return True

    def _keep_counters(self, sender: ProgramSocket | None, receiver: ProgramSocket | None) -> None:
        if sender is not None:
            self._sender_cookie = sender.cookie or self._sender_cookie
            self._received_bytes = max(self._received_bytes, sender.acknowledged_bytes)
            self._segments = sender.segments or self._segments
            self._algorithm = sender.algorithm or self._algorithm
        if receiver is not None:
            self._receiver_cookie = receiver.cookie or self._receiver_cookie
            self._received_bytes = max(self._received_bytes, receiver.received_bytes)

    def _wait_for_rest(self, now: int) -> None:
        """After the client's end, wait until the data in its kernel have arrived; then ask the server to end.

        A socket that the server closes waits a round trip for the ACK of its FIN: two looks in a round trip see it.
        """
        pause_ns = max(self.description.rtt_us * 500, _POLL_NS)
        waited_ns = now - (self._end_ns or 0)
        if self._is_tcp and self._read_sockets(now) and waited_ns < _LONGEST_REST_NS and self._has_connection():
            self._loop.at(now + pause_ns, self._wait_for_rest)
        elif not self._is_tcp and waited_ns < 2 * pause_ns:
            self._loop.at(now + 2 * pause_ns, self._wait_for_rest)
        else:
            self._is_at_rest = True
            self._server.request_end()

    def _has_connection(self) -> bool:
        """Whether an end still holds the connection; a socket in TIME_WAIT does not count."""
        server = self._namespaces[self._server_host]
        client = self._namespaces[self._client_host]
        held = [*connections_of(server, self._port), *connections_of(client, self._client_port)]
        return any(item.segments is not None for item in held)

    def _poll_wire(self, now: int) -> None:
        if self._end_ns is not None or self._stopped or self._before is None:
            return
        sent = interface_totals(self._namespaces[self.description.sender]).since(self._before[0]).sent_bytes
        if sent >= (self._program.wire_bytes or 0):
            self.stop(now)
        else:
            self._loop.at(now + _POLL_NS, self._poll_wire)

    def stop(self, now: int) -> None:
        """End the flow's time, also when its bytes are on the wire: ask the program that the plan names to end."""
        if self._stopped or not self._client.is_running:
            return
        self._stopped = True
        if self._is_tcp:
            self._read_sockets(now)
        self._ends[self._program.stopped_by].request_end()

    def finished(self) -> bool:
        if self._start_ns is None:
            return True
        return self._is_at_rest and not self._server.is_running

    def close(self) -> None:
        if self._before is not None:
            now = self._read_totals()
            self._moved = now[0].since(self._before[0]), now[1].since(self._before[1])
        for end in (self._client, self._server):
            end.kill()

    def record(self, epoch_ns: int) -> FlowRecord:
        """The flow's entry in agent.json; bytes of UDP are payload, from the counters of the hosts' interfaces."""
        sent, received = self._bytes()
        error = self._error()
        size = self.description.size_bytes
        ports = (self._port, self._client_port) if self._from_server else (self._client_port, self._port)
        record = self._record(
            epoch_ns,
            connected_ns=self._connected_ns,
            end_ns=self._end_ns,
            bytes_sent=sent,
            bytes_received=received,
            segments=(self._segments.sent, self._segments.retransmitted) if self._segments else (None, None),
            complete=error is None and self._end_ns is not None and (size is None or received >= size),
            error=error,
            kernel_algorithm=self._algorithm if self._is_tcp else None,
        )
        return replace(
            record,
            programs={end: process.record() for end, process in self._ends.items()},
            realtime_offset_ns=time.clock_gettime_ns(time.CLOCK_REALTIME) - now_ns(),
            source_port=ports[0],
            destination_port=ports[1],
        )

    def _bytes(self) -> tuple[int, int]:
        if self._is_tcp:
            size = self.description.size_bytes
            most = (
                self._received_bytes if size is None else min(self._received_bytes, size)
            )  # FIN and SYN count as bytes
            return most, most
        if self._moved is None:
            return 0, 0
        sender, receiver = self._moved
        sent = sender.sent_bytes - UDP_FRAME_BYTES * sender.sent_packets
        received = receiver.received_bytes - UDP_FRAME_BYTES * receiver.received_packets
        size = self.description.size_bytes
        return sent, received if size is None else min(received, size)  # it includes protocol headers

    def _error(self) -> str | None:
        """What went wrong, if anything; the end of the flow's time does not count."""
        if self._start_ns is None:
            return None
        wanted = self.description.kernel_algorithm
        if self._is_tcp and self._connected_ns is None:
            state = self._client.describe_end() if self._end_ns is not None else f"its client {self._client.name} ran"
            return f"nothing connected to port {self._port} of {self._server_host}; {state}"
        if self._is_tcp and self._algorithm not in (None, wanted):
            return f"the sending socket used {self._algorithm} instead of {wanted}"
        if self._client.failed and not self._stopped:
            return self._client.describe_end()
        if self._end_ns is None and not self._stopped:
            return f"its client {self._client.name} had not ended when the run did"
        if self._server.failed:
            return self._server.describe_end()
        return None


DRIVER = ProgramFlow
