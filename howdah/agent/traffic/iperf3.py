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
from howdah.linux.namespace import Namespace
from howdah.linux.netlink.diag import SOCK_DIAG_BY_FAMILY, diag_request, open_diag, parse_socket
from howdah.linux.netlink.diag import Endpoint as DiagEndpoint
from howdah.linux.netlink.message import NetlinkError
from howdah.linux.output import Output

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


class Iperf3Flow(FlowDriver):
    """Runs a one-off server from before the epoch, and a client from the flow's start.

    iperf3 exchanges parameters over a control connection first, so data flow three to four RTTs after ``start_ns``.
    """

    kind = "iperf3"
    folder = "iperf3"  # of raw/

    def __init__(
        self, description: dict[str, Any], namespaces: dict[str, Namespace], loop: Loop, output: Output
    ) -> None:
        super().__init__(description, namespaces, loop, output)
        self._directory = output.directory(self.folder)
        self._server: subprocess.Popen[bytes] | None = None
        self._client: subprocess.Popen[bytes] | None = None
        self._connected_ns: int | None = None
        self._end_ns: int | None = None
        self._stopped = False

    def prepare(self) -> None:
        flow = self.description
        self._server = self._spawn(flow["receiver"], server_command(flow), self._file("server"))

    def _file(self, end: str) -> Path:
        return self._directory / f"{self.description['id']}-{end}.json"

    def _client_command(self) -> list[str]:
        return client_command(self.description)

    def start(self, now: int) -> None:
        self._start_ns = now
        self._client = self._spawn(self.description["sender"], self._client_command(), self._file("client"))
        self._loop.at(now + _COOKIE_POLL_NS, self._look_for_connection)
        self._when_ended(self._client, self._ended)

    def _ended(self, now: int) -> None:
        self._end_ns = now

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
        return self._record(
            epoch_ns,
            connected_ns=self._connected_ns,
            end_ns=self._end_ns,
            bytes_sent=end.get("sum_sent", {}).get("bytes", 0),
            bytes_received=end.get("sum_received", {}).get("bytes", 0),
            complete=error is None and self._end_ns is not None,
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
