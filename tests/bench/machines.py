# SPDX-License-Identifier: Apache-2.0
"""``make vm-lab`` in its parts: how long machines take to boot, to be set up, to carry a run, and to end."""

from __future__ import annotations

import os
import time
from collections.abc import Iterator
from pathlib import Path

from howdah.command.main import main
from howdah.engine.cache import Cache
from howdah.engine.uml.tools import build_tools
from howdah.errors import HowdahError
from howdah.lab.fleet import Fleet
from howdah.lab.inventory import directory_of
from howdah.lab.lab import load_lab
from howdah.lab.provision import provision
from tests.bench.figure import Figure
from tests.bench.simulation import ROOT

LAB = ROOT / "playbooks" / "labs" / "virtual.yaml"
PROFILE = "lab-5mbit"


def vm_lab(place: Path) -> Iterator[Figure]:
    """The shipped lab, its image made already if the cache has it. Raises HowdahError when a part of it fails."""
    place.mkdir()
    file = place / "lab.yaml"
    file.write_text(LAB.read_text().replace("name: virtual\n", "name: bench\n"))
    note = f"{len(load_lab(file).hosts)} machines, {len(os.sched_getaffinity(0))} cores"
    labs = ["--labs", str(place)]
    try:
        _require(main(["lab", "up", str(file), *labs]), "up")
        fleet = Fleet.load(file, place)
        assert fleet.state is not None
        how = next(iter(fleet.machines.values())).accelerator
        yield Figure("lab: images", fleet.state.times_s["images"], "s", note="0 when the cache has them")
        yield Figure("lab: boot until SSH answers", fleet.state.times_s["boot"], "s", note=f"{note}, {how}")
        _require(main(["lab", "provision", str(file), *labs]), "provision")
        directory = directory_of(fleet.lab, place)
        again = provision(directory, build_tools(Cache()).launch, lambda *_: None)
        yield Figure("lab: set up again, changing nothing", again.took_s, "s", note=note)
        started = time.monotonic()
        os.environ["HOWDAH_LABS"] = str(place)
        _require(main(["run", PROFILE, "--engine", "lab", "--lab", str(file), "--runs", str(place / "runs")]), "run")
        slower = f"clocks at 1/{fleet.dilation}"
        yield Figure("lab: two runs of 20 s", time.monotonic() - started, "s", "<= 600", f"{PROFILE}, {slower}, {note}")
    finally:
        started = time.monotonic()
        main(["lab", "down", str(file), *labs])
        took_s = time.monotonic() - started
    yield Figure("lab: down", took_s, "s", note=note)


def _require(status: int, what: str) -> None:
    if status != 0:
        raise HowdahError(f"howdah lab {what} ended with status {status}")
