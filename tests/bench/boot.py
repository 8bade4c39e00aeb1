# SPDX-License-Identifier: Apache-2.0
"""From starting the kernel to the first packet, for eight hosts."""

from __future__ import annotations

from pathlib import Path

from tests.bench.figure import Figure
from tests.bench.simulation import LONG_FAT, simulate, single_plan

FLOWS = "flows=[{name: a, start: 0 s}, {name: b, start: 0 s}, {name: c, start: 0 s}]"


def boot_to_first_packet(place: Path) -> list[Figure]:
    """Three pairs and two routers. The first packets are those of the calibration, which ends the setup."""
    overrides = ["algorithm=cubic", FLOWS, "duration=1 s", "measure.window.stop=1 s"]
    run = simulate(single_plan(LONG_FAT, overrides), place)
    hosts = len(run.plan.hosts)
    later = sum(item["wall_us"] for item in run.agent["phases"] if item["phase"] != "setup") / 1e6
    _, setup = run.phase("setup")
    operations = run.agent["operations_wall_us"] / 1e6
    note = f"{hosts} hosts; upper bound: includes switching the guest off"
    return [
        Figure("boot to first packet", run.wall_s - later, "s", "< 2", note),
        Figure(
            "of it, the agent's setup", setup, "s", "", f"{len(run.plan.operations)} operations in {operations:.3f} s"
        ),
    ]
