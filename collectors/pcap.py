# SPDX-License-Identifier: Apache-2.0
"""Captures of packet headers by tcpdump."""

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
# Names of tcpdump's final counts, and their names in the account.
_STATISTICS = {
    "captured": "captured",
    "received by filter": "received",
    "dropped by kernel": "dropped_by_kernel",
    "dropped by interface": "dropped_by_interface",
}
_STATISTIC = re.compile(r"^(\d+) packets? (captured|received by filter|dropped by kernel|dropped by interface)$", re.M)


def parse_closing(text: str) -> dict[str, int | None]:
    """Parse tcpdump's counts from its standard error; a count that it does not print is None."""
    found: dict[str, int | None] = dict.fromkeys(_STATISTICS.values())
    for count, what in _STATISTIC.findall(text):
        found[_STATISTICS[what]] = int(count)
    return found


@planned
class _Capture:
    """A running tcpdump; ``log`` has its messages."""

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
    """Read the run's clock, CLOCK_MONOTONIC, and the captures' clock, CLOCK_REALTIME, at one instant."""
    before_ns, realtime_ns, after_ns = time.monotonic_ns(), time.time_ns(), time.monotonic_ns()
    return {"monotonic_ns": (before_ns + after_ns) // 2, "realtime_ns": realtime_ns}


class PcapCollector(Collector):
    """Runs one tcpdump per ``node:interface`` of the plan, from before the flows until the network is silent.

    Writes ``pcap/NODE-INTERFACE.pcap``: the first 128 bytes of every IPv4 packet, nanosecond time stamps;
    ``pcap/NODE-INTERFACE.log``: tcpdump's messages; and ``pcap.json``: tcpdump's packet counts of each capture, and the
    clocks of run and captures at their beginning and end. The judge compares the counts with each other, with the file,
    and with the interface's counters.
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
        """Stop the captures. Raises CollectorError if a tcpdump ended early; the judge checks for lost packets."""
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
    """The command. Without immediate mode the kernel delivers packets in blocks, and those of the last one are lost."""
    command = ["tcpdump", "-i", interface, "-n", "-s", str(SNAPSHOT_BYTES), "-B", str(CAPTURE_BUFFER_BYTES >> 10)]
    command += ["--immediate-mode", "--time-stamp-precision", "nano", "-Z", "root"]
    return [*command, "-w", str(file), "ip"]


def _wait_until_it_listens(capture: _Capture) -> None:
    """Wait before the flows begin, so that the first round trip is captured too."""
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
