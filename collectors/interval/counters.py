# SPDX-License-Identifier: Apache-2.0
"""The kernel's own counters: SNMP and TCP extension MIBs, softnet, sockets, memory."""

from __future__ import annotations

import json
import os
from collections.abc import Callable

from collectors.collector import IntervalCollector, Surroundings
from howdah.linux.kernelfile import parse_meminfo, parse_snmp, parse_sockstat, parse_softnet, read_raw

_PER_NODE: dict[str, tuple[str, Callable[[str], dict[str, int]]]] = {
    "snmp": ("/proc/net/snmp", parse_snmp),
    "netstat": ("/proc/net/netstat", parse_snmp),
    "sockstat": ("/proc/net/sockstat", parse_sockstat),
}
_GLOBAL: dict[str, tuple[str, Callable[[str], dict[str, int]]]] = {
    "softnet": ("/proc/net/softnet_stat", parse_softnet),
    "meminfo": ("/proc/meminfo", parse_meminfo),
}


class CountersCollector(IntervalCollector):
    """Reads text files below /proc through descriptors opened once in each namespace.

    Writes ``counters.jsonl``, one object for each sample, node and source: ``time_ns``, ``node`` (null: the whole
    kernel), ``source`` (``snmp``, ``netstat``, ``sockstat`` of each node; ``softnet``, ``meminfo`` of the kernel),
    ``values`` ({name: integer}; MIB names as nstat prints them, memory in bytes, softnet summed over processors). There
    is always a sample at the start and one at the end. Becomes the table ``counter``.
    """

    says = "SNMP, netstat, softnet and memory counters"
    default = "1 s"

    def __init__(self, surroundings: Surroundings, interval_us: int | None) -> None:
        super().__init__(surroundings, interval_us)
        self.least_available_bytes: int | None = None
        self._sources: list[tuple[str | None, str, int, Callable[[str], dict[str, int]]]] = []
        self._readings: list[tuple[int, list[bytes]]] = []

    def start(self, now_ns: int) -> None:
        for node, namespace in self.surroundings.namespaces.items():
            for source, (path, parse) in _PER_NODE.items():
                self._sources.append((node, source, namespace.open_file(path), parse))
        for source, (path, parse) in _GLOBAL.items():
            self._sources.append((None, source, os.open(path, os.O_RDONLY | os.O_CLOEXEC), parse))
        self.sample(now_ns)

    def sample(self, now_ns: int) -> None:
        """Only read; the texts are parsed when the flows are over."""
        self._readings.append((now_ns, [read_raw(descriptor) for _node, _source, descriptor, _parse in self._sources]))

    def stop(self, now_ns: int) -> None:
        self.sample(now_ns)
        with (self.surroundings.output.path / "counters.jsonl").open("w", encoding="utf-8") as file:
            for time_ns, texts in self._readings:
                for (node, source, _descriptor, parse), text in zip(self._sources, texts, strict=True):
                    values = parse(text.decode("ascii", "replace"))
                    record = {"time_ns": time_ns, "node": node, "source": source, "values": values}
                    file.write(json.dumps(record, separators=(",", ":")) + "\n")
                    available = values.get("MemAvailable_bytes")
                    if available is not None:
                        self.least_available_bytes = min(available, self.least_available_bytes or available)
        for _node, _source, descriptor, _parse in self._sources:
            os.close(descriptor)


COLLECTOR = CountersCollector
