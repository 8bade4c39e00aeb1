# SPDX-License-Identifier: Apache-2.0
"""What a run costs besides itself on a cluster of this machine: processor time of client, scheduler and worker, and
bytes; and how many runs a second several workers make.

Runs are copies of one that was made (copied_run.py), so that the processors of this machine do not decide it.
"""

from __future__ import annotations

import os
import re
import subprocess
import sys
import time
from collections.abc import Iterator
from contextlib import suppress
from dataclasses import dataclass
from pathlib import Path

from tests.bench.copied_run import PRELOAD, RUN, SECONDS
from tests.bench.figure import Figure
from tests.cluster_processes import Processes

COPIED_S = 1.0  # a copied run waits for so long
_RUNS_OF_A_WORKER = 40
_REAL_RUNS_OF_A_WORKER = 14
_TICKS = os.sysconf("SC_CLK_TCK")
_PAGE = os.sysconf("SC_PAGE_SIZE")
_READY = re.compile(r"is ready after ([0-9.]+) s")
_BYTES = re.compile(r"bytes_(?:sent|received):(\d+)")
_PROFILE = """\
howdah: 1
name: short
path: {{rate: 10 Mbit/s, rtt: 20 ms}}
algorithm: [cubic, reno]
duration: 1 s
repetitions: {repetitions}
"""


@dataclass(frozen=True)
class Cost:
    """Of one run, from the middle of a sweep: processor seconds, bytes that came to the scheduler or left it, and how
    much memory client and scheduler took more with each run. ``speed`` is in runs a second; after ``ready_s`` the first
    worker, whose cache was empty, had all that it needs."""

    workers: int
    runs: int
    speed: float
    ready_s: float
    client_s: float
    scheduler_s: float
    worker_s: float
    scheduler_bytes: float
    client_growth_bytes: float
    scheduler_growth_bytes: float


@dataclass(frozen=True)
class _Seen:
    time_s: float
    runs: int
    processor_s: tuple[float, float, float]  # client, scheduler, workers
    memory_bytes: tuple[float, float]  # client, scheduler
    scheduler_bytes: int


def cluster_cost(place: Path) -> tuple[list[Cost], list[Figure]]:
    """Of copied runs with 1, 2, 4 and 8 workers, and of real ones with 1 and 2; the costs are of the copied ones."""
    source = _one_run(place / "one")
    costs = [measure(place / f"copied-{n}", n, n * _RUNS_OF_A_WORKER, source, COPIED_S) for n in (1, 2, 4, 8)]
    real = [measure(place / f"real-{n}", n, n * _REAL_RUNS_OF_A_WORKER) for n in (1, 2)]
    name, note = "cluster: a worker with an empty cache is ready", "on loopback; 45 MB take 0.4 s more at 1 Gbit/s"
    figures = [
        Figure(name, costs[0].ready_s, "s", "<= 20", note),
        *(_figure(cost, f"copied runs of {COPIED_S:g} s") for cost in costs),
    ]
    return costs, [*figures, *(_figure(cost, "real runs of 1 s at 10 Mbit/s") for cost in real)]


def _figure(cost: Cost, what: str) -> Figure:
    note = (
        f"each: processor time of client {cost.client_s * 1e3:.0f}, scheduler {cost.scheduler_s * 1e3:.1f}, "
        f"worker {cost.worker_s * 1e3:.0f} ms; {cost.scheduler_bytes / 1e3:.0f} kB through the scheduler"
    )
    return Figure(f"cluster: {what}, {cost.workers} workers", cost.speed, "runs/s", "", note)


def _one_run(place: Path) -> Path:
    place.mkdir(parents=True)
    profile = place / "short.yaml"
    profile.write_text(_PROFILE.format(repetitions=1))  # two runs, of which one is taken
    command = [sys.executable, "-m", "howdah.command.main", "run", str(profile), "--no-report"]
    subprocess.run([*command, "--runs", str(place)], check=True, capture_output=True)
    return next(place.glob("short/*/run.json")).parent


def measure(
    place: Path, workers: int, runs: int, source: Path | None = None, seconds: float = 0.0, *arguments: str
) -> Cost:
    """A sweep on a scheduler and workers of its own; of copies of ``source``, if there is one."""
    place.mkdir(parents=True)
    profile = place / "short.yaml"
    profile.write_text(_PROFILE.format(repetitions=runs // 2))
    more = {"HOWDAH_CACHE": str(place / "cache")}  # one for all, as on one machine
    if source is not None:
        more |= {**PRELOAD, RUN: str(source), SECONDS: str(seconds)}
    cluster = Processes(place, more=more)
    try:
        there = [cluster.worker(f"worker-{number}").pid for number in range(workers)]
        command = ["run", str(profile), "--runs", str(place / "runs"), "--no-report", *arguments]
        client = cluster.client(*command, "--confirm-runs", str(runs))
        seen = list(_watch(client, cluster, there, place / "runs" / "short"))
        if client.wait() != 0:
            raise RuntimeError(f"the sweep failed: {(place / 'client.txt').read_text()[-2000:]}")
    finally:
        cluster.end()
    middle = [each for each in seen if 2 * workers <= each.runs <= runs - workers]
    ready_s = min(float(each) for each in _READY.findall((place / "client.txt").read_text()))
    return _cost(workers, ready_s, middle[0], middle[-1])


def _cost(workers: int, ready_s: float, first: _Seen, last: _Seen) -> Cost:
    runs = last.runs - first.runs
    client, scheduler, worker = ((b - a) / runs for a, b in zip(first.processor_s, last.processor_s, strict=True))
    grown = [(b - a) / runs for a, b in zip(first.memory_bytes, last.memory_bytes, strict=True)]
    sent = (last.scheduler_bytes - first.scheduler_bytes) / runs
    speed = runs / (last.time_s - first.time_s)
    return Cost(workers, runs, speed, ready_s, client, scheduler, worker, sent, grown[0], grown[1])


def _watch(
    client: subprocess.Popen[bytes], cluster: Processes, workers: list[int], experiment: Path
) -> Iterator[_Seen]:
    port = int(cluster.address.rpartition(":")[2])
    last = -1
    while client.poll() is None:
        time.sleep(0.1)
        runs = _finished(experiment)
        if runs == last:
            continue
        last = runs
        with suppress(FileNotFoundError, ProcessLookupError):  # the client has just ended
            used = (_processor_s(client.pid), _processor_s(cluster.scheduler.pid), sum(map(_processor_s, workers)))
            memory = (_memory_bytes(client.pid), _memory_bytes(cluster.scheduler.pid))
            yield _Seen(time.monotonic(), runs, used, memory, _through(port))


def _finished(experiment: Path) -> int:
    if not experiment.exists():
        return 0
    return sum(each.is_dir() and not each.name.startswith(".") for each in os.scandir(experiment))


def _processor_s(process: int) -> float:
    """Of all its threads, without its children."""
    fields = Path(f"/proc/{process}/stat").read_text().rpartition(")")[2].split()
    return (int(fields[11]) + int(fields[12])) / _TICKS


def _memory_bytes(process: int) -> float:
    return float(int(Path(f"/proc/{process}/statm").read_text().split()[1]) * _PAGE)


def _through(port: int) -> int:
    """Bytes that the scheduler received and sent on the connections that are open."""
    said = subprocess.run(["ss", "-Htni", f"sport = :{port}"], check=True, capture_output=True, text=True).stdout
    return sum(int(each) for each in _BYTES.findall(said))
