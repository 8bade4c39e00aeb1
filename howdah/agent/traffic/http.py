# SPDX-License-Identifier: Apache-2.0
"""HTTP transactions between real programs: nginx on the sender's host, curl on the receiver's."""

from __future__ import annotations

import signal
import struct
import subprocess
from dataclasses import dataclass, replace

from howdah.agent.error import AgentError
from howdah.agent.loop import Loop
from howdah.agent.traffic.algorithm import choose_algorithm
from howdah.agent.traffic.driver import FlowDriver
from howdah.agent.traffic.http_client import client_command, complaints, parse_transactions
from howdah.agent.traffic.http_server import HttpServer
from howdah.agent.traffic.segments import Segments, segments_in
from howdah.linux.clock import MS, SECOND, now_ns
from howdah.linux.namespace import Namespace
from howdah.linux.netlink.diag import (
    INET_DIAG_CONG,
    INET_DIAG_INFO,
    INET_DIAG_MSG_BYTES,
    SOCK_DIAG_BY_FAMILY,
    diag_request,
    open_diag,
    parse_socket,
)
from howdah.linux.netlink.diag import Endpoint as DiagEndpoint
from howdah.linux.netlink.message import Message, NetlinkError, parse_attributes
from howdah.linux.output import Output
from howdah.plan.plan import Flow
from howdah.record.agent import FlowRecord, TransactionRecord

_POLL_NS = 10 * MS
_LISTENS_WITHIN_NS = 1 * SECOND
_EXTENSIONS = 1 << (INET_DIAG_INFO - 1) | 1 << (INET_DIAG_CONG - 1)
_ACKNOWLEDGED_AT = 120  # offset of tcpi_bytes_acked in struct tcp_info


@dataclass(frozen=True)
class SocketCounters:
    """The counters of the server's socket: segments, acknowledged bytes (including the answers' headers), and its
    algorithm."""

    segments: Segments | None
    acknowledged_bytes: int
    algorithm: str | None


class HttpFlow(FlowDriver):
    """One connection with all its requests. The server listens before the epoch; the client starts with the flow,
    connects, makes its requests, and ends, which closes the connection from the receiver's side.

    The server's socket belongs to nginx, so its counters are read through inet_diag when the client has ended. Until
    the client's FIN arrives, the socket still exists.
    """

    kind = "HTTP"

    def __init__(self, description: Flow, namespaces: dict[str, Namespace], loop: Loop, output: Output) -> None:
        super().__init__(description, namespaces, loop, output)
        assert description.http is not None
        self._http = description.http
        self._raw = output.directory("http")
        self._server = HttpServer(self.label, namespaces[description.sender], self._raw, description.id)
        self._client: subprocess.Popen[bytes] | None = None
        self._end_ns: int | None = None
        self._stopped = False
        self._counters = SocketCounters(None, 0, None)
        self._connected_ns: int | None = None

    def is_active(self) -> bool:
        return self._start_ns is not None and self._end_ns is None

    def is_over(self) -> bool:
        return self._end_ns is not None

    def prepare(self) -> None:
        """Start the server and wait until it listens. Raises AgentError."""
        flow = self.description
        choose_algorithm(self.label, self._namespaces[flow.sender], flow.kernel_algorithm)
        self._server.start(flow.source_address, flow.source_port, self._http.object_bytes)
        limit = now_ns() + _LISTENS_WITHIN_NS
        while not self._server.is_listening(flow.source_port):
            now = self._loop.run_until(now_ns() + _POLL_NS)
            if now > limit:
                raise AgentError(self.label, f"nginx does not listen: {self._server.complaints()}")

    def start(self, now: int) -> None:
        self._start_ns = now
        flow = self.description
        self._client = self._spawn(flow.receiver, client_command(flow), self._raw / f"{flow.id}-client.txt")
        self._when_ended(self._client, self._on_end)
        self._loop.at(now + _POLL_NS + self.description.rtt_us * 1000, self._poll_connection)

    def _on_end(self, now: int) -> None:
        self._end_ns = now
        self._read_sockets(now)

    def _poll_connection(self, now: int) -> None:
        if self.is_active() and not self._read_sockets(now):
            self._loop.at(now + self.description.rtt_us * 1000 + _POLL_NS, self._poll_connection)

    def _read_sockets(self, now: int) -> bool:
        """Read both sockets; return whether the server's exists."""
        flow = self.description
        client = self._request_socket(flow.receiver, self.endpoint.reversed())
        if client is not None:
            self._receiver_cookie = parse_socket(client).cookie
        server = self._request_socket(flow.sender, self.endpoint)
        if server is None:
            return False
        self._sender_cookie = parse_socket(server).cookie
        self._counters = parse_counters(server)
        if self._connected_ns is None:
            self._connected_ns = now
        return True

    def _request_socket(self, host: str, endpoint: DiagEndpoint) -> Message | None:
        with self._namespaces[host].entered():
            netlink = open_diag()
        try:
            return netlink.request(SOCK_DIAG_BY_FAMILY, diag_request(endpoint, _EXTENSIONS))[0]
        except NetlinkError:
            return None
        finally:
            netlink.close()

    def stop(self, now: int) -> None:
        """End the flow's time: stop the client as a person would; the server's next write fails."""
        self._stopped = True
        if self._client is not None and self._client.poll() is None:
            self._read_sockets(now)
            self._client.send_signal(signal.SIGTERM)

    def finished(self) -> bool:
        return self._start_ns is None or (self._client is not None and self._client.poll() is not None)

    def close(self) -> None:
        if self._client is not None and self._client.poll() is None:
            self._client.send_signal(signal.SIGKILL)
            self._client.wait()
        self._server.close()

    def record(self, epoch_ns: int) -> FlowRecord:
        """The flow's entry in agent.json: bytes are those of the objects (if one was cut off, all acknowledged bytes);
        times in ``transactions`` count from the epoch."""
        flow = self.description
        path = self._raw / f"{flow.id}-client.txt"
        report = path.read_text(errors="replace") if path.exists() else ""
        transactions = parse_transactions(report, self._http.every_us)
        start_ns = None if self._start_ns is None else self._start_ns - epoch_ns
        received = sum(item.body_bytes or 0 for item in transactions)
        error = self._error(transactions, report)
        complete = error is None and received == flow.size_bytes and len(transactions) == self._http.requests
        segments = self._counters.segments
        made_ns = (
            (transactions[0].connected_ns, transactions[-1].end_ns) if transactions and start_ns is not None else None
        )
        first_ns, last_ns = made_ns or (None, None)
        request_ns = self._start_ns or 0
        record = self._record(
            epoch_ns,
            connected_ns=self._connected_ns if first_ns is None else first_ns + request_ns,
            end_ns=None if last_ns is None else last_ns + request_ns,
            bytes_sent=self._server.sent_bytes(),
            bytes_received=received if complete or not self._stopped else self._counters.acknowledged_bytes,
            segments=(segments.sent, segments.retransmitted) if segments else (None, None),
            complete=complete,
            error=error,
            kernel_algorithm=self._counters.algorithm,
        )
        return replace(
            record, transactions=[] if start_ns is None else [_shifted(item, start_ns) for item in transactions]
        )

    def _error(self, transactions: list[TransactionRecord], report: str) -> str | None:
        """What went wrong, if anything; the end of the flow's time does not count."""
        if self._start_ns is None or self._client is None:
            return None
        wanted = self.description.kernel_algorithm
        if self._counters.algorithm not in (None, wanted):
            return f"the server's socket used {self._counters.algorithm} instead of {wanted}"
        if sum(item.connects or 0 for item in transactions) > 1:
            return "the connection was not kept: curl made another one"
        if self._client.returncode and not self._stopped:
            return f"curl ended with status {self._client.returncode}: {complaints(report)}"
        return None


def _shifted(item: TransactionRecord, start_ns: int) -> TransactionRecord:
    times = {name: value + start_ns for name, value in vars(item).items() if name.endswith("_ns")}
    return replace(item, **times)


def parse_counters(answer: Message) -> SocketCounters:
    """Parse an answer of inet_diag about a socket."""
    found = parse_attributes(answer.payload[INET_DIAG_MSG_BYTES:])
    info, name = found.get(INET_DIAG_INFO, b""), found.get(INET_DIAG_CONG)
    acknowledged = struct.unpack_from("=Q", info, _ACKNOWLEDGED_AT)[0] if len(info) >= _ACKNOWLEDGED_AT + 8 else 0
    algorithm = name.rstrip(b"\0").decode("ascii", "replace") if name else None
    return SocketCounters(segments_in(info), acknowledged, algorithm)


DRIVER = HttpFlow
