# SPDX-License-Identifier: Apache-2.0
"""Packet headers on request, by tcpdump."""

from __future__ import annotations

import signal
import subprocess

from collectors.collector import Collector, CollectorError, Surroundings

SNAPSHOT_BYTES = 128
_BUFFER_KIBIBYTES = 65536


class PcapCollector(Collector):
    """Runs one tcpdump per ``node:interface`` of the plan, from before the flows until the network is silent.

    Writes ``pcap/NODE-INTERFACE.pcap``: the first 128 bytes of every IPv4 packet, nanosecond time stamps.
    """

    def __init__(self, surroundings: Surroundings, places: list[str]) -> None:
        super().__init__(surroundings)
        self._places = [place.partition(":")[::2] for place in places]
        self._running: list[tuple[str, subprocess.Popen[bytes]]] = []

    def check(self) -> None:
        for node, interface in self._places:
            if node not in self.surroundings.namespaces:
                raise CollectorError(f"pcap {node}:{interface}: there is no node {node}")

    def start(self, _now_ns: int) -> None:
        directory = self.surroundings.output.directory("pcap")
        for node, interface in self._places:
            command = ["tcpdump", "-i", interface, "-n", "-s", str(SNAPSHOT_BYTES), "-B", str(_BUFFER_KIBIBYTES)]
            command += ["--time-stamp-precision", "nano", "-Z", "root"]
            command += ["-w", str(directory / f"{node}-{interface}.pcap"), "ip"]
            log = (directory / f"{node}-{interface}.log").open("wb")
            try:
                with log, self.surroundings.namespaces[node].entered():
                    process = subprocess.Popen(command, stdin=subprocess.DEVNULL, stdout=log, stderr=log)
            except FileNotFoundError as error:
                raise CollectorError("tcpdump is not installed in the guest") from error
            self._running.append((f"{node}:{interface}", process))

    def stop(self, _now_ns: int) -> None:
        """Raises CollectorError when a tcpdump ended early or lost packets."""
        for place, process in self._running:
            if process.poll() is not None:
                raise CollectorError(f"pcap {place}: tcpdump ended early with status {process.returncode}")
            process.send_signal(signal.SIGINT)
            process.wait()
