# SPDX-License-Identifier: Apache-2.0
"""What ties a profile taken outside the guest to the guest: host clock against virtual time, and modules' symbols."""

from __future__ import annotations

from pathlib import Path
from typing import Any

from collectors.collector import Collector
from howdah.agent.clock import SECOND, now_ns

_KALLSYMS = Path("/proc/kallsyms")


class CpuCollector(Collector):
    """Writes ``cpu-clock.json``: ``modules``, [[address, name, module], ...] of every function of a loaded module, and
    ``stamps``, [[time_ns, host_us], ...]: CLOCK_MONOTONIC of the guest and CLOCK_REALTIME of the host, at the start,
    each second of virtual time, and at the end. The profile itself is the engine's (howdah/engine/uml/profiler.py).
    """

    interval_ns = SECOND

    def start(self, _now_ns: int) -> None:
        self._stamps: list[tuple[int, int]] = []
        self._modules = module_symbols(_KALLSYMS.read_text(encoding="ascii"))
        self.sample(now_ns())

    def sample(self, now_ns: int) -> None:
        self._stamps.append((now_ns, self.surroundings.output.host_clock_us()))

    def stop(self, now_ns: int) -> None:
        self.sample(now_ns)
        record: dict[str, Any] = {"format": 1, "modules": self._modules, "stamps": self._stamps}
        self.surroundings.output.json("cpu-clock.json", record)


def module_symbols(text: str) -> list[tuple[int, str, str]]:
    """Address, name and module of the functions that kallsyms says are a module's (``ADDRESS t NAME [MODULE]``)."""
    found = []
    for line in text.splitlines():
        fields = line.split()
        if len(fields) == 4 and fields[1] in "tTwW":
            found.append((int(fields[0], 16), fields[2], fields[3].strip("[]")))
    return sorted(found)
