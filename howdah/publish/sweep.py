# SPDX-License-Identifier: Apache-2.0
"""The numbers of a cluster's sweep as a file in the runs directory, which each scrape reads.

The command writes it once a second, so it need not listen anywhere, and a scrape never asks scheduler or workers.
"""

from __future__ import annotations

import json
import os
import time
from dataclasses import asdict, dataclass, field
from pathlib import Path

from howdah.publish.metric import Families, MetricSamples, PublishedMetric
from howdah.record.directory import read_json, remove_abandoned, write_whole

_FILE = ".sweep-"
_LEFT_S = 10.0  # a command writes each second; the number of another container's process says nothing here
RUN_STATES = ("made", "failed", "in_progress", "handed", "waiting")
WORKER_STATES = ("ready", "preparing", "refused")
_OWN = ("process",)

RUNS = PublishedMetric(
    "howdah_sweep_runs", "gauge", "Runs of a command that a cluster makes, by state.", (*_OWN, "state")
)
AGAIN = PublishedMetric(
    "howdah_sweep_repeated_runs_total", "counter", "Runs given to a worker once more because one was lost.", _OWN
)
SIMULATED = PublishedMetric(
    "howdah_sweep_simulated_seconds_total", "counter", "Simulated time of the runs that were made.", _OWN
)
SPEED = PublishedMetric(
    "howdah_sweep_speed_ratio", "gauge", "Simulated seconds of the runs made for each second since the start.", _OWN
)
WORKERS = PublishedMetric("howdah_sweep_workers", "gauge", "Workers of the cluster, by state.", (*_OWN, "state"))
LEFT = PublishedMetric("howdah_sweep_left_seconds", "gauge", "Time until all runs are made, as expected now.", _OWN)
SLOTS = PublishedMetric("howdah_sweep_worker_slots", "gauge", "Runs that the ready workers make at once.", _OWN)
RECEIVED = PublishedMetric("howdah_sweep_received_bytes_total", "counter", "Packed runs received from workers.", _OWN)
SENT = PublishedMetric(
    "howdah_sweep_sent_bytes_total", "counter", "Kernels, trees and programs that the command sent to workers.", _OWN
)
SWEEP: tuple[PublishedMetric, ...] = (RUNS, AGAIN, SIMULATED, SPEED, LEFT, WORKERS, SLOTS, RECEIVED, SENT)


@dataclass
class SweepNumbers:
    """The numbers of one command. ``runs`` and ``workers`` count by state; ``began_s`` counts from 1970.

    ``left_s`` is None until it can be estimated.
    """

    began_s: float = field(default_factory=time.time)
    process: int = field(default_factory=os.getpid)
    runs: dict[str, int] = field(default_factory=lambda: dict.fromkeys(RUN_STATES, 0))
    workers: dict[str, int] = field(default_factory=lambda: dict.fromkeys(WORKER_STATES, 0))
    slots: int = 0
    repeated: int = 0
    simulated_s: float = 0.0
    left_s: float | None = None
    received_bytes: int = 0
    sent_bytes: int = 0

    def write(self, runs: Path) -> None:
        """Write the file atomically. Raises OSError."""
        write_whole(_file(runs, self.process), json.dumps(asdict(self)))

    def remove(self, runs: Path) -> None:
        _file(runs, self.process).unlink(missing_ok=True)

    def add_to(self, families: Families, now_s: float) -> None:
        def add(metric: PublishedMetric, value: float, **labels: str) -> None:
            own = {"process": str(self.process), **labels}
            families.setdefault(metric, []).append(MetricSamples(own, [round(now_s * 1000)], [float(value)]))

        for state, count in self.runs.items():
            add(RUNS, count, state=state)
        for state, count in self.workers.items():
            add(WORKERS, count, state=state)
        add(AGAIN, self.repeated)
        add(SIMULATED, self.simulated_s)
        add(SPEED, self.simulated_s / max(now_s - self.began_s, 1e-3))
        if self.left_s is not None:
            add(LEFT, self.left_s)
        add(SLOTS, self.slots)
        add(RECEIVED, self.received_bytes)
        add(SENT, self.sent_bytes)


def sweep_families(runs: Path) -> Families:
    """The metrics of each running command below ``runs``. Removes files of killed commands; skips unreadable files."""
    found: Families = {}
    for file in sorted(runs.glob(f"{_FILE}*")):
        try:
            if time.time() - file.stat().st_mtime > _LEFT_S and remove_abandoned(file):
                continue
            SweepNumbers(**read_json(file)).add_to(found, time.time())
        except (OSError, ValueError, TypeError, AttributeError):
            continue
    return found


def _file(runs: Path, process: int) -> Path:
    return runs / f"{_FILE}{process}"
