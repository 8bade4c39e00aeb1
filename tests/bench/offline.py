# SPDX-License-Identifier: Apache-2.0
"""What happens after the guest: parsing its trace, measuring, reporting."""

from __future__ import annotations

import subprocess
import sys
import time
from pathlib import Path

import pyarrow.parquet as pq

from howdah.ingest.run import ingest
from howdah.measure.run import measure
from howdah.plan.compile import compile_plan
from howdah.profile import load
from howdah.record.digest import covered_files, digests, forget_digests
from howdah.report.build import report
from tests.bench.figure import Figure
from tests.bench.simulation import ROOT, Simulation

REPEATS = 3
PLANNED = ROOT / "profiles" / "atlas" / "hystart-fig16-delay.yaml"  # some 600 connections a run


def ingest_rate(run: Simulation) -> list[Figure]:
    """All tables of the run; the rate counts per-ACK rows alone, which are nearly everything. Best of three."""
    best = min(_timed_ingest(run) for _ in range(REPEATS))
    rows = pq.read_metadata(run.directory.table("tcp_probe")).num_rows
    start = time.monotonic()
    measure(run.directory, run.plan)
    measured = time.monotonic() - start
    return [
        Figure("ACK rows ingested", rows / best / 1e6, "M/s", ">= 0.5", f"{rows} rows in {best:.2f} s"),
        Figure("measures of one run", measured, "s"),
    ]


def digest_time(run: Simulation) -> list[Figure]:
    """Digests of all files of a run, which each run has at its end. Best of three, nothing remembered."""
    best = min(_timed_digests(run) for _ in range(REPEATS))
    megabytes = sum((run.directory.path / name).stat().st_size for name in covered_files(run.directory)) / 1e6
    return [Figure("digests of a run, processor time", best, "s", "", f"{megabytes:.0f} MB")]


def _timed_digests(run: Simulation) -> float:
    forget_digests()
    start = time.process_time()
    digests(run.directory)
    return time.process_time() - start


def planning() -> list[Figure]:
    """Plans of an experiment with much background, compiled and written: every command does it for each run."""
    cells = list(load(PLANNED).cells())
    start = time.process_time()
    bytes_written = sum(len(compile_plan(cell).to_json()) for cell in cells)
    took_s = time.process_time() - start
    note = f"{len(cells)} plans of {PLANNED.stem}, {bytes_written / 1e6:.0f} MB"
    return [Figure("a plan compiled and written, processor time", 1e3 * took_s / len(cells), "ms", "", note)]


def _timed_ingest(run: Simulation) -> float:
    start = time.monotonic()
    ingest(run.directory)
    return time.monotonic() - start


def report_time(place: Path) -> list[Figure]:
    """The report of the quick profile's two runs."""
    command = [sys.executable, "-m", "howdah.command.main", "run", "quick", "--runs", str(place), "--no-report"]
    start = time.monotonic()
    subprocess.run(command, cwd=ROOT, check=True, stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL)
    whole = time.monotonic() - start
    start = time.monotonic()
    report(place / "quick")
    return [
        Figure("quick profile, all stages but the report", whole, "s", "", "two runs; builds nothing when warm"),
        Figure("report", time.monotonic() - start, "s", "", "of the two runs of the quick profile"),
    ]
