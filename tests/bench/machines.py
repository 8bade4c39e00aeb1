# SPDX-License-Identifier: Apache-2.0
"""``make machines`` in its parts: how long machines take to boot, to be set up, to carry a run, and to end."""

from __future__ import annotations

import os
import time
from collections.abc import Iterator
from pathlib import Path

from howdah.build.cache import Cache
from howdah.build.tools import build_tools
from howdah.command.main import main
from howdah.errors import HowdahError
from howdah.machines.fleet import Fleet
from howdah.machines.inventory import directory_of
from howdah.machines.machine_set import load_machine_set
from howdah.machines.provision import provision
from tests.bench.figure import Figure
from tests.bench.simulation import ROOT

MACHINES = ROOT / "playbooks" / "machines" / "virtual.yaml"
PROFILE = "machines-5mbit"


def several_machines(place: Path) -> Iterator[Figure]:
    """The shipped virtual machines, their image from the cache if it is there. Raises HowdahError when a part fails."""
    place.mkdir()
    file = place / "machines.yaml"
    file.write_text(MACHINES.read_text().replace("name: virtual\n", "name: bench\n"))
    note = f"{len(load_machine_set(file).hosts)} machines, {len(os.sched_getaffinity(0))} cores"
    machine_sets = ["--machine-sets", str(place)]
    try:
        _require(main(["machines", "up", str(file), *machine_sets]), "up")
        fleet = Fleet.load(file, place)
        assert fleet.state is not None
        how = next(iter(fleet.machines.values())).accelerator
        yield Figure("machines: images", fleet.state.times_s["images"], "s", note="0 when the cache has them")
        yield Figure("machines: boot until SSH answers", fleet.state.times_s["boot"], "s", note=f"{note}, {how}")
        _require(main(["machines", "provision", str(file), *machine_sets]), "provision")
        directory = directory_of(fleet.machine_set, place)
        again = provision(directory, build_tools(Cache()).launch, lambda *_: None)
        yield Figure("machines: set up again, changing nothing", again.took_s, "s", note=note)
        started = time.monotonic()
        os.environ["HOWDAH_MACHINE_SETS"] = str(place)
        _require(
            main(["run", PROFILE, "--engine", "machines", "--machines", str(file), "--runs", str(place / "runs")]),
            "run",
        )
        slower = f"clocks at 1/{fleet.dilation}"
        yield Figure(
            "machines: two runs of 20 s", time.monotonic() - started, "s", "<= 600", f"{PROFILE}, {slower}, {note}"
        )
    finally:
        started = time.monotonic()
        main(["machines", "down", str(file), *machine_sets])
        took_s = time.monotonic() - started
    yield Figure("machines: down", took_s, "s", note=note)


def _require(status: int, what: str) -> None:
    if status != 0:
        raise HowdahError(f"howdah machines {what} ended with status {status}")
