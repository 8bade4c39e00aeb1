# SPDX-License-Identifier: Apache-2.0
"""A flow driven by iperf3 at both ends, with its JSON kept in raw/iperf3/."""

from __future__ import annotations

import json
import signal
import subprocess
from pathlib import Path
from typing import Any

from howdah.agent.loop import Loop
from howdah.agent.traffic.driver import FlowDriver
from howdah.agent.traffic.program_socket import connections_of
from howdah.linux.namespace import Namespace
from howdah.linux.netlink.diag import (
    SOCK_DIAG_BY_FAMILY,
    TCP_SYN_SENT,
    SocketState,
    diag_request,
    open_diag,
    parse_socket,
)
from howdah.linux.netlink.diag import Endpoint as DiagEndpoint
from howdah.linux.netlink.message import NetlinkError
from howdah.linux.output import Output
from howdah.plan.plan import Flow
from howdah.record.agent import FlowRecord

_POLLS_PER_RTT = 10
_SHORTEST_POLL_NS, _LONGEST_POLL_NS = 1_000_000, 10_000_000
_TAIL_CHARACTERS = 300
_COOKIE_BYTES = 37  # each of a client's connections begins with it, so that the server can match them
_LARGEST_BLOCK_BYTES = 131072  # iperf3's default block size
_LEAST_BLOCK_BYTES = 1448


def block_bytes(size_bytes: int) -> int:
    """The largest block size that divides a transfer evenly, because iperf3's server counts whole blocks only.

    If that would be less than a segment, the default is used, and the server does not count the last bytes.
    """
    fewest = -(-size_bytes // _LARGEST_BLOCK_BYTES)
    most = max(size_bytes // _LEAST_BLOCK_BYTES, fewest)
    whole = (size_bytes // blocks for blocks in range(fewest, most + 1) if size_bytes % blocks == 0)
    return next(whole, _LARGEST_BLOCK_BYTES)


def client_command(flow: Flow) -> list[str]:
    """The sender's command. ``--cport`` fixes the data connection's port; the control connection has another.

    A transfer of a size sends a file until the flow's time is over. With ``--bytes``, iperf3 would poll without waiting
    from its last write to its next report, which stops a virtual clock, and would then have the server close the
    connection whatever is still in flight.
    """
    command = ["iperf3", "--client", flow.destination_address, "--port", str(flow.destination_port)]
    command += ["--bind", flow.source_address, "--cport", str(flow.source_port), "--json"]
    command += ["--congestion", flow.kernel_algorithm, "--get-server-output"]
    seconds = max((flow.stop_us - flow.start_us) // 1_000_000, 1)
    command += ["--time", str(seconds)]
    if flow.size_bytes:
        length = block_bytes(flow.size_bytes)
        command += ["--file", str(sent_file(flow)), "--length", str(length), "--interval", "0"]
    return command


def sent_file(flow: Flow) -> Path:
    """The file that a transfer of a size sends: zeros that take no space."""
    return Path(f"/tmp/howdah-iperf3-{flow.id}")


def poll_ns(rtt_us: int) -> int:
    """The interval at which sockets are polled: a small part of a round trip, which bounds the error of a transfer's
    times."""
    return min(max(rtt_us * 1000 // _POLLS_PER_RTT, _SHORTEST_POLL_NS), _LONGEST_POLL_NS)


def server_command(flow: Flow) -> list[str]:
    address, port = flow.destination_address, str(flow.destination_port)
    return ["iperf3", "--server", "--one-off", "--json", "--bind", address, "--port", port]


class Iperf3Flow(FlowDriver):
    """Runs a one-off server from before the epoch, and a client from the flow's start.

    iperf3 first exchanges parameters over a control connection, so the data connection opens, with its cookie as its
    first bytes, four RTTs after ``start_ns``; data follow a round trip later, when the server has answered.
    """

    kind = "iperf3"
    folder = "iperf3"  # in raw/

    def __init__(self, description: Flow, namespaces: dict[str, Namespace], loop: Loop, output: Output) -> None:
        super().__init__(description, namespaces, loop, output)
        self._directory = output.directory(self.folder)
        self._server: subprocess.Popen[bytes] | None = None
        self._client: subprocess.Popen[bytes] | None = None
        self._connected_ns: int | None = None
        self._end_ns: int | None = None
        self._stopped = False
        self._size_bytes: int | None = description.size_bytes if self.kind == "iperf3" else None
        self._received_ns: int | None = None  # when the receiver had the whole transfer
        self._poll_ns = poll_ns(description.rtt_us)

    def prepare(self) -> None:
        flow = self.description
        self._server = self._spawn(flow.receiver, server_command(flow), self._file("server"))

    def _file(self, end: str) -> Path:
        return self._directory / f"{self.description.id}-{end}.json"

    def _client_command(self) -> list[str]:
        return client_command(self.description)

    def start(self, now: int) -> None:
        self._start_ns = now
        if self._size_bytes:
            with sent_file(self.description).open("wb") as file:
                file.truncate(self._size_bytes)
        self._client = self._spawn(self.description.sender, self._client_command(), self._file("client"))
        self._loop.at(now + self._poll_ns, self._poll_connection)
        self._when_ended(self._client, self._on_end)

    def _on_end(self, now: int) -> None:
        self._end_ns = now

    def _poll_connection(self, now: int) -> None:
        if self._end_ns is not None or self._stopped:
            return
        found = self._socket(self.description.sender, self.endpoint)
        if found is None or found.state == TCP_SYN_SENT:
            self._loop.at(now + self._poll_ns, self._poll_connection)
            return
        self._connected_ns = now
        self._sender_cookie = found.cookie
        receiver = self._socket(self.description.receiver, self.endpoint.reversed())
        self._receiver_cookie = None if receiver is None else receiver.cookie
        if self._size_bytes:
            self._poll_last_byte(now)

    def _poll_last_byte(self, now: int) -> None:
        """Poll until the receiver has all bytes, or, if it is on another machine, until it has acknowledged them. The
        client stays connected beyond that."""
        if self._end_ns is not None or self._stopped:
            return
        flow = self.description
        is_local = flow.receiver in self._namespaces
        end = "destination" if is_local else "source"
        connections = connections_of(self._namespaces[flow.host(end)], flow.at(end)[1])
        received = max((one.received_bytes if is_local else one.acknowledged_bytes for one in connections), default=0)
        syn = 0 if is_local else 1  # counts as an acknowledged byte
        if received >= (self._size_bytes or 0) + _COOKIE_BYTES + syn:
            self._received_ns = now
        else:
            self._loop.at(now + self._poll_ns, self._poll_last_byte)

    def _socket(self, host: str, endpoint: DiagEndpoint) -> SocketState | None:
        with self._namespaces[host].entered():
            netlink = open_diag()
        try:
            answers = netlink.request(SOCK_DIAG_BY_FAMILY, diag_request(endpoint))
            return parse_socket(answers[0])
        except NetlinkError:
            return None
        finally:
            netlink.close()

    def stop(self, _now: int) -> None:
        """Do nothing: the client ends by itself after its time."""

    def finished(self) -> bool:
        if self._start_ns is None:
            return True
        return all(process is None or process.poll() is not None for process in (self._client, self._server))

    def close(self) -> None:
        self._stopped = True
        for process in (self._client, self._server):
            if process is not None and process.poll() is None:
                process.send_signal(signal.SIGKILL)
                process.wait()
        if self._size_bytes:
            sent_file(self.description).unlink(missing_ok=True)

    def record(self, epoch_ns: int) -> FlowRecord:
        client = self._result("client")
        end = client.get("end", {})
        error = client.get("error")
        if error is None and self._start_ns is not None and not end:
            error = "iperf3 client wrote no result"
        received = end.get("sum_received", {}).get("bytes", 0)
        if self._size_bytes and self._received_ns is not None:
            received = self._size_bytes
        whole = not self._size_bytes or received == self._size_bytes
        return self._record(
            epoch_ns,
            connected_ns=self._connected_ns,
            end_ns=self._end_ns if self._received_ns is None else self._received_ns,
            bytes_sent=end.get("sum_sent", {}).get("bytes", 0),
            bytes_received=received,
            complete=error is None and self._end_ns is not None and whole,
            error=error,
        )

    def _result(self, end: str) -> dict[str, Any]:
        try:
            text = self._file(end).read_text(encoding="utf-8", errors="replace")
        except FileNotFoundError:
            return {}
        try:
            value = json.loads(text)
        except ValueError:
            return {"error": f"iperf3 {end} said: {text.strip()[-_TAIL_CHARACTERS:]}"} if text.strip() else {}
        return value if isinstance(value, dict) else {}


DRIVER = Iperf3Flow
