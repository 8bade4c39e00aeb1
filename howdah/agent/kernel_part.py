# SPDX-License-Identifier: Apache-2.0
"""One kernel's part of a run whose hosts are divided among several kernels of one virtual time.

Every kernel builds the whole network; the plan's part (howdah/engine/uml/part.py) has wires to the hosts that live in
other kernels. A kernel runs only the flows, watches only the connections and measures only the paths of its own hosts.
All clocks agree, so the kernels need no messages to begin a phase together.
"""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path

from collectors.collector import Surroundings
from howdah.agent.calibration.divided import record_ends
from howdah.agent.loop import wait_for_silence
from howdah.agent.run import AgentRun
from howdah.agent.wiring import Wiring
from howdah.linux.clock import MS, now_ns
from howdah.linux.namespace import Namespace
from howdah.linux.output import Output
from howdah.plan.plan import Plan
from howdah.record.wire import WIRE_FILE, CarriedFrames, KernelWires

WIRES = Path("/proc/howdah_wire")
_POLL_NS = 20 * MS


class KernelPartRun(AgentRun):
    """Runs one kernel's part of a plan; ``report`` becomes this kernel's agent.json."""

    def __init__(self, plan: Plan, inputs: Path, output: Output, wiring: str) -> None:
        super().__init__(plan, inputs, output, wiring)
        assert plan.part is not None
        self._part = plan.part
        self._set_record(machine=self._part.name, part=self._part.hosts)

    def _local_hosts(self, wiring: Wiring) -> dict[str, Namespace]:
        lives = {*self._part.hosts}
        return {name: namespace for name, namespace in wiring.namespaces.items() if name in lives}

    def _surroundings(self, wiring: Wiring) -> Surroundings:
        return super()._surroundings(wiring).ends_in(frozenset(self._local_hosts(wiring)))

    def _calibrate(self, wiring: Wiring, name: str, start_us: int) -> None:
        start_ns = self._epoch_ns + start_us * 1000
        self._loop.run_until(start_ns)
        result = record_ends(self.plan, self._local_hosts(wiring), self._loop, start_ns)
        calibration, path = self.plan.calibration, self.plan.path
        quiet_ns = path.both_ways_us * 1000 + _POLL_NS
        deadline = start_ns + (calibration.phase_us + calibration.settle_us) * 1000
        silent = wait_for_silence(wiring.namespaces, self._loop, quiet_ns, deadline)
        times = start_ns - self._epoch_ns, now_ns() - self._epoch_ns
        self._output.json(f"ends-{name}.json", replace(result, silent=silent, start_ns=times[0], end_ns=times[1]))

    def _collect_extra(self) -> None:
        self._output.json(WIRE_FILE, KernelWires(1, read_wires(WIRES.read_text(encoding="ascii"))))


def read_wires(text: str) -> list[CarriedFrames]:
    """Parse /proc/howdah_wire: one wire a line, ``NUMBER arrives|leaves`` and its counters."""
    found = []
    for line in text.splitlines():
        number, role, *counts = line.split()
        found.append(CarriedFrames(int(number), role == "arrives", *map(int, counts)))
    return found
