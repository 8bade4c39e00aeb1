# SPDX-License-Identifier: Apache-2.0
"""A hundred thousand short connections in one run: processor time, memory, and whether each was completed."""

from __future__ import annotations

import os
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path

from howdah.errors import HowdahError
from howdah.record.directory import RunDirectory, read_json
from howdah.record.raw import read_raw_json
from tests.bench.figure import Figure

PROFILE = """\
howdah: 1
name: connections
path: {rate: 1 Gbit/s, rtt: 20 ms, buffer: 1 bdp}
duration: 104 s
groups:
- {name: near, connections: 60000, arrivals: poisson, interval: 1700 us, pairs: 10, size: 10 kB}
- name: far
  connections: 40000
  arrivals: poisson
  interval: 2550 us
  pairs: 10
  rtt: 60 ms
  sizes: {listed: [{size: 20 kB}, {size: 30 kB}]}
"""


def connections(place: Path) -> Iterator[Figure]:
    """The whole command, with tables, measures, verdict and page."""
    place.mkdir(parents=True, exist_ok=True)
    profile = place / "connections.yaml"
    profile.write_text(PROFILE, encoding="utf-8")
    command = [sys.executable, "-m", "howdah.command.main", "run", str(profile), "--runs", str(place / "runs")]
    with (place / "said.txt").open("wb") as said:
        process = subprocess.Popen(command, stdout=said, stderr=said)
        _, status, usage = os.wait4(process.pid, 0)
    if status:
        raise HowdahError(f"the run of many connections ended with status {os.waitstatus_to_exitcode(status)}")
    (file,) = (place / "runs" / "connections").glob("*/run.json")
    run = RunDirectory(file.parent)
    record, verdict = read_json(file), read_json(run.verdict)["verdict"]
    flows = read_raw_json(run.raw / "agent.json")["flows"]
    stages = ", ".join(f"{each['stage']} {each['core_s']:.0f} s" for each in record["stages"])
    many = f"{len(flows)} connections in a run"
    yield Figure(f"{many}, processor time", usage.ru_utime + usage.ru_stime, "s", "", stages)
    yield Figure(f"{many}, largest process of this machine", usage.ru_maxrss / 1e3, "MB")
    peak, planned = record["engine"]["guest_memory_peak_bytes"], read_json(run.plan)["guest_memory_bytes"]
    words = f"{planned >> 20} MiB are planned"
    yield Figure(f"{many}, memory that the guest touched", peak / 2**20, "MiB", "", words)
    done = sum(bool(flow["complete"]) for flow in flows)
    yield Figure(f"{many}, completed", done, "connections", "", f"verdict: {verdict}")
