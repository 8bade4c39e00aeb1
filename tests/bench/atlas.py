# SPDX-License-Identifier: Apache-2.0
"""What the atlas takes: from the record of the commands that made it, and with ``--atlas`` the quick one made anew."""

from __future__ import annotations

import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path

from howdah.atlas.work import read_sittings
from tests.bench.figure import Figure
from tests.bench.simulation import ROOT

_TARGETS = {True: "<= 30 min on two cores", False: "<= 3 h on two cores"}


def quick_atlas(place: Path) -> None:
    """Make the quick atlas in a directory of its own; its exit status tells of claims, not of speed."""
    place.mkdir(parents=True)
    command = [sys.executable, "-m", "howdah.command.main", "atlas", "--quick", "--runs", str(place)]
    subprocess.run(command, cwd=ROOT, check=False)


def atlas_times(runs: Path) -> Iterator[Figure]:
    """Wall time of the quick and of the full atlas, as far as they were made there."""
    record = read_sittings(runs / "atlas.json")
    for quick, name in ((True, "quick atlas"), (False, "full atlas")):
        made = sum(sitting.made for sitting in record.of(quick=quick))
        if not made:
            continue
        note = f"{made} runs; {record.simulated_s(quick=quick) / 3600:.1f} h simulated"
        yield Figure(name, record.wall_s(quick=quick) / 60, "min", _TARGETS[quick], note)
