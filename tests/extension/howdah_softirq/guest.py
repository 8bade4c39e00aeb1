# SPDX-License-Identifier: Apache-2.0
"""The guest's side: reads /proc/softirqs. It runs in the guest, so it imports the standard library and collectors."""

from __future__ import annotations

import json
import os

from collectors.collector import IntervalCollector, Surroundings
from howdah.linux.kernelfile import read_raw


class SoftirqCollector(IntervalCollector):
    """Writes ``softirq.jsonl``, an object a reading: ``time_ns``, and ``counts`` of each kind over all processors."""

    says = "software interrupts of the kernel, by kind"

    def __init__(self, surroundings: Surroundings, interval_us: int | None) -> None:
        super().__init__(surroundings, interval_us)
        self._file = -1
        self._readings: list[tuple[int, bytes]] = []

    def start(self, now_ns: int) -> None:
        self._file = os.open("/proc/softirqs", os.O_RDONLY | os.O_CLOEXEC)
        self.sample(now_ns)

    def sample(self, now_ns: int) -> None:
        self._readings.append((now_ns, read_raw(self._file)))

    def stop(self, now_ns: int) -> None:
        self.sample(now_ns)
        os.close(self._file)
        with (self.surroundings.output.path / "softirq.jsonl").open("w", encoding="utf-8") as file:
            for time_ns, text in self._readings:
                file.write(json.dumps({"time_ns": time_ns, "counts": parse(text.decode())}) + "\n")


def parse(text: str) -> dict[str, int]:
    """``NET_RX: 5 7`` is 12; the first line names the processors."""
    rows = (line.partition(":") for line in text.splitlines()[1:])
    return {name.strip(): sum(map(int, counts.split())) for name, _, counts in rows}


COLLECTOR = SoftirqCollector
