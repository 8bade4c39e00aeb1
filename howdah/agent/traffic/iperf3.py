# SPDX-License-Identifier: Apache-2.0
"""A flow driven by iperf3 at both ends, with its JSON kept in raw/iperf3/."""

from __future__ import annotations

import json
import os
import signal
import subprocess
from pathlib import Path
from typing import Any

from howdah.agent.error import AgentError
from howdah.agent.loop import Loop
from howdah.agent.namespace import Namespace
from howdah.agent.netlink.diag import SOCK_DIAG_BY_FAMILY, diag_request, open_diag, parse_socket
from howdah.agent.netlink.diag import Endpoint as DiagEndpoint
from howdah.agent.netlink.message import NetlinkError
from howdah.agent.output import Output

_COOKIE_POLL_NS = 10_000_000
_TAIL_CHARACTERS = 300


def client_command(flow: dict[str, Any]) -> list[str]:
    """Parameters of the sender. ``--cport`` fixes the data connection's port; the control connection has another."""
    command = ["iperf3", "--client", flow["destination_address"], "--port", str(flow["destination_port"])]
    command += ["--bind", flow["source_address"], "--cport", str(flow["source_port"]), "--json"]
    command += ["--congestion", flow["kernel_algorithm"], "--get-server-output"]
    if flow["size_bytes"]:
        return [*command, "--bytes", str(flow["size_bytes"])]
    seconds = max((flow["stop_us"] - flow["start_us"]) // 1_000_000, 1)
    return [*command, "--time", str(seconds)]


def server_command(flow: dict[str, Any]) -> list[str]:
    address, port = flow["destination_address"], str(flow["destination_port"])
    return ["iperf3", "--server", "--one-off", "--json", "--bind", address, "--port", port]


class Iperf3Flow:
    """Runs a one-off server from before the epoch, and a client from the flow's start.

    iperf3 exchanges parameters over a control connection first, so data flow three to four RTTs after ``start_ns``.
    """

    folder = "iperf3"  # of raw/

    def __init__(
        self,
        description: dict[str, Any],
        namespaces: dict[str, Namespace],
        loop: Loop,
        output: Output,
    ) -> None:
        self.description = description
        self._namespaces = namespaces
        self._loop = loop
        self._directory = output.directory(self.folder)
        self._server: subprocess.Popen[bytes] | None = None
        self._client: subprocess.Popen[bytes] | None = None
        self._start_ns: int | None = None
        self._connected_ns: int | None = None
        self._end_ns: int | None = None
        self._cookies: dict[str, int | None] = {"sender": None, "receiver": None}
        self._stopped = False

    @property
    def label(self) -> str:
        return f"flow {self.description['id']} ({self.description['name']}, iperf3)"

    @property
    def endpoint(self) -> DiagEndpoint:
        flow = self.description
        return DiagEndpoint(
            flow["source_address"], flow["source_port"], flow["destination_address"], flow["destination_port"]
        )

    def is_active(self) -> bool:
        return True

    def prepare(self) -> None:
        flow = self.description
        self._server = self._spawn(flow["receiver"], server_command(flow), self._file("server"))

    def _file(self, end: str) -> Path:
        return self._directory / f"{self.description['id']}-{end}.json"

    def _spawn(self, host: str, command: list[str], output: Path) -> subprocess.Popen[bytes]:
        """The child inherits the namespace of the thread that starts it; its input is /dev/null, its output a file."""
        with output.open("wb") as file, self._namespaces[host].entered():
            try:
                return subprocess.Popen(command, stdin=subprocess.DEVNULL, stdout=file, stderr=subprocess.STDOUT)
            except FileNotFoundError as error:
                raise AgentError(self.label, f"{command[0]} is not installed in the guest") from error

    def _client_command(self) -> list[str]:
        return client_command(self.description)

    def start(self, now: int) -> None:
        self._start_ns = now
        self._client = self._spawn(self.description["sender"], self._client_command(), self._file("client"))
        self._loop.at(now + _COOKIE_POLL_NS, self._look_for_connection)
        self._watch_client(now)

    def _watch_client(self, _now: int) -> None:
        """A pidfd becomes readable when its process ends."""
        assert self._client is not None
        descriptor = os.pidfd_open(self._client.pid)

        def ended(now: int) -> None:
            self._end_ns = now
            self._loop.when_readable(descriptor, None)
            os.close(descriptor)

        self._loop.when_readable(descriptor, ended)

    def _look_for_connection(self, now: int) -> None:
        if self._end_ns is not None or self._stopped:
            return
        found = self._cookie(self.description["sender"], self.endpoint)
        if found is None:
            self._loop.at(now + _COOKIE_POLL_NS, self._look_for_connection)
            return
        self._connected_ns = now
        self._cookies["sender"] = found
        self._cookies["receiver"] = self._cookie(self.description["receiver"], self.endpoint.reversed())

    def _cookie(self, host: str, endpoint: DiagEndpoint) -> int | None:
        with self._namespaces[host].entered():
            netlink = open_diag()
        try:
            answers = netlink.request(SOCK_DIAG_BY_FAMILY, diag_request(endpoint))
            return parse_socket(answers[0]).cookie
        except NetlinkError:
            return None
        finally:
            netlink.close()

    def stop(self, _now: int) -> None:
        """The client ends by itself after its time; the timeline's stop changes nothing."""

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

    def record(self, epoch_ns: int) -> dict[str, Any]:
        client = self._result("client")
        end = client.get("end", {})
        error = client.get("error")
        if error is None and self._start_ns is not None and not end:
            error = "iperf3 client wrote no result"

        def relative(time_ns: int | None) -> int | None:
            return None if time_ns is None else time_ns - epoch_ns

        return {
            "id": self.description["id"],
            "sender_cookie": self._cookies["sender"],
            "receiver_cookie": self._cookies["receiver"],
            "source_port": self.description["source_port"],
            "start_ns": relative(self._start_ns),
            "connected_ns": relative(self._connected_ns),
            "end_ns": relative(self._end_ns),
            "bytes_sent": end.get("sum_sent", {}).get("bytes", 0),
            "bytes_received": end.get("sum_received", {}).get("bytes", 0),
            "complete": error is None and self._end_ns is not None,
            "error": error,
        }

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
