# SPDX-License-Identifier: Apache-2.0
"""Packet headers on request, by tcpdump."""

from __future__ import annotations

import re
import signal
import subprocess
import time
from pathlib import Path
from typing import Any

from collectors.collector import Collector, CollectorError, Surroundings
from howdah.codec import planned
from howdah.plan.plan import CAPTURE_BUFFER_BYTES

ACCOUNT = "pcap.json"
SNAPSHOT_BYTES = 128
_READY = "listening on "
_LONGEST_START_S = 10.0
_POLL_S = 0.001
# What tcpdump says when it ends, and what the account calls it.
_STATISTICS = {
    "captured": "captured",
    "received by filter": "received",
    "dropped by kernel": "dropped_by_kernel",
    "dropped by interface": "dropped_by_interface",
}
_STATISTIC = re.compile(r"^(\d+) packets? (captured|received by filter|dropped by kernel|dropped by interface)$", re.M)


def parse_closing(text: str) -> dict[str, int | None]:
    """tcpdump's account of itself, from its standard error; what it does not tell is None."""
    found: dict[str, int | None] = dict.fromkeys(_STATISTICS.values())
    for count, what in _STATISTIC.findall(text):
        found[_STATISTICS[what]] = int(count)
    return found


@planned
class _Capture:
    """A tcpdump that runs; ``log`` has what it says."""

    node: str
    interface: str
    log: Path
    process: subprocess.Popen[bytes]

    @property
    def place(self) -> str:
        return f"{self.node}:{self.interface}"

    def said(self) -> str:
        return self.log.read_text(encoding="utf-8", errors="replace")


def clocks() -> dict[str, int]:
    """One instant by the clock of the run and by that of captures: CLOCK_MONOTONIC and CLOCK_REALTIME."""
    before_ns, realtime_ns, after_ns = time.monotonic_ns(), time.time_ns(), time.monotonic_ns()
    return {"monotonic_ns": (before_ns + after_ns) // 2, "realtime_ns": realtime_ns}


class PcapCollector(Collector):
    """Runs one tcpdump per ``node:interface`` of the plan, from before the flows until the network is silent.

    Writes ``pcap/NODE-INTERFACE.pcap``: the first 128 bytes of every IPv4 packet, nanosecond time stamps; what tcpdump
    said in ``pcap/NODE-INTERFACE.log``; and ``pcap.json``, its own count of the packets of each capture, and the
    clocks of run and captures when these began and ended. The judge holds the counts against each other, against the
    file, and against the interface's counters.
    """

    def __init__(self, surroundings: Surroundings, places: list[str]) -> None:
        super().__init__(surroundings)
        self._places = [place.partition(":")[::2] for place in places]
        self._running: list[_Capture] = []
        self._clocks: list[dict[str, int]] = []

    def check(self) -> None:
        for node, interface in self._places:
            if node not in self.surroundings.namespaces:
                raise CollectorError(f"pcap {node}:{interface}: there is no node {node}")

    def start(self, _now_ns: int) -> None:
        directory = self.surroundings.output.directory("pcap")
        for node, interface in self._places:
            log = directory / f"{node}-{interface}.log"
            command = capture_command(interface, directory / f"{node}-{interface}.pcap")
            try:
                with log.open("wb") as file, self.surroundings.namespaces[node].entered():
                    process = subprocess.Popen(command, stdin=subprocess.DEVNULL, stdout=file, stderr=file)
            except FileNotFoundError as error:
                raise CollectorError("tcpdump is not installed in the guest") from error
            self._running.append(_Capture(node, interface, log, process))
        for capture in self._running:
            _wait_until_it_listens(capture)
        self._clocks.append(clocks())

    def stop(self, _now_ns: int) -> None:
        """Raises CollectorError when a tcpdump ended early. Whether one lost packets is the judge's to say."""
        account: list[dict[str, Any]] = []
        self._clocks.append(clocks())
        for capture in self._running:
            if capture.process.poll() is not None:
                raise CollectorError(_early(capture))
            capture.process.send_signal(signal.SIGINT)
            status = capture.process.wait()
            place = {"node": capture.node, "interface": capture.interface}
            account.append({**place, "status": status, **parse_closing(capture.said())})
        self.surroundings.output.json(ACCOUNT, {"format": 1, "clocks": self._clocks, "captures": account})


def capture_command(interface: str, file: Path) -> list[str]:
    """Without immediate mode the kernel hands packets over in blocks, and those of the last one are lost at the end."""
    command = ["tcpdump", "-i", interface, "-n", "-s", str(SNAPSHOT_BYTES), "-B", str(CAPTURE_BUFFER_BYTES >> 10)]
    command += ["--immediate-mode", "--time-stamp-precision", "nano", "-Z", "root"]
    return [*command, "-w", str(file), "ip"]


def _wait_until_it_listens(capture: _Capture) -> None:
    """The packets of the first round trip are captured too: the flows have not begun."""
    deadline = time.monotonic() + _LONGEST_START_S
    while _READY not in capture.said():
        if capture.process.poll() is not None:
            raise CollectorError(_early(capture))
        if time.monotonic() > deadline:
            raise CollectorError(f"pcap {capture.place}: tcpdump does not begin to listen")
        time.sleep(_POLL_S)


def _early(capture: _Capture) -> str:
    said = " / ".join(capture.said().strip().splitlines()[-2:])
    return f"pcap {capture.place}: tcpdump ended early with status {capture.process.returncode}: {said}"
