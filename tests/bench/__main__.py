# SPDX-License-Identifier: Apache-2.0
"""``python -m tests.bench``: prints speed and size figures and keeps them in var/bench/. Asserts nothing."""

from __future__ import annotations

import argparse
import dataclasses
import os
import platform
import shutil
import sys
import time
from collections.abc import Iterator
from pathlib import Path

from rich.console import Console
from rich.table import Table

from howdah.errors import HowdahError
from howdah.record.directory import write_json
from howdah.record.provenance import now
from tests.bench import boot, lab, machines, offline, speed
from tests.bench.ack_cost import ack_costs
from tests.bench.atlas import atlas_times, quick_atlas
from tests.bench.connections import connections
from tests.bench.figure import Figure
from tests.bench.kernel_tree import kernel_tree
from tests.bench.link import link
from tests.bench.many_runs import many_runs
from tests.bench.scale import scale
from tests.bench.simulation import ROOT
from tests.bench.split import split
from tests.bench.suite import suite_time
from tests.bench.turns import turns
from tests.bench.wide_sweep import wide_sweep


def main() -> int:
    options = _options()
    console = Console(highlight=False)
    place = ROOT / "var" / "bench" / f"work-{os.getpid()}"
    place.mkdir(parents=True)
    figures: list[Figure] = []
    load_before = os.getloadavg()[0]
    start = time.monotonic()
    try:
        for figure in _figures(options, place):
            figures.append(figure)
            console.print(f"{figure.name}: {figure.value:.3g} {figure.unit}", style="dim")
    except HowdahError as error:
        console.print(str(error), style="red", markup=False)
        return error.exit_code
    finally:
        shutil.rmtree(place, ignore_errors=True)
    console.print(_table(figures))
    target = ROOT / "var" / "bench" / f"{now().replace(':', '').replace('+', '-')}.json"
    host = {"machine": platform.machine(), "system": platform.release(), "processor": _processor()}
    load = {"load_before": load_before, "wall_s": round(time.monotonic() - start, 1)}
    rows = [dataclasses.asdict(figure) for figure in figures]
    write_json(target, {"format": 1, "time": now(), "host": host, **load, "figures": rows})
    console.print(f"kept in {target.relative_to(ROOT)}; load average before: {load_before:.2f}", markup=False)
    return 0


def _options() -> argparse.Namespace:
    parser = argparse.ArgumentParser(prog="python -m tests.bench")
    parser.add_argument("--seconds", type=int, default=60, help="simulated seconds of the long run (default: 60)")
    parser.add_argument("--lab", action="store_true", help="also time 'make lab' with an empty cache: minutes")
    parser.add_argument("--atlas", action="store_true", help="also make the quick atlas anew: half an hour")
    parser.add_argument("--kernel-tree", action="store_true", help="a kernel tree that is edited, and nothing else")
    parser.add_argument("--scale", action="store_true", help="a cluster's own cost and the model, and nothing else")
    parser.add_argument("--split", action="store_true", help="one kernel and two, and nothing else: minutes")
    parser.add_argument("--link", action="store_true", help="a link that follows a trace, and nothing else: minutes")
    parser.add_argument("--connections", action="store_true", help="100 000 connections, and nothing else: minutes")
    parser.add_argument("--machines", action="store_true", help="virtual machines, and nothing else: minutes")
    parser.add_argument("--before", metavar="COMMIT", help="this tree and that of a commit in turns, and nothing else")
    parser.add_argument("--turns", type=int, default=7, help="pairs that are measured with --before (default: 7)")
    return parser.parse_args()


def _figures(options: argparse.Namespace, place: Path) -> Iterator[Figure]:
    if options.before:
        yield from turns(place / "turns", options.before, options.turns)
        return
    if options.machines:
        yield from machines.several_machines(place / "machines")
        return
    if options.kernel_tree:
        yield from kernel_tree(place / "kernel-tree")
        return
    if options.scale:
        yield from scale(place / "scale")
        return
    if options.split:
        yield from split(place / "split")
        return
    if options.link:
        yield from link(place / "link")
        return
    if options.connections:
        yield from connections(place / "connections")
        return
    run, figures = speed.kernel_traffic(place / "kernel", options.seconds)
    yield from figures
    yield from offline.planning()
    yield from wide_sweep(place / "wide")
    yield from scale(place / "scale")
    yield from offline.ingest_rate(run)
    yield from offline.digest_time(run)
    yield from speed.iperf3(place / "iperf3", max(options.seconds // 6, 5))
    yield from link(place / "link")
    yield from connections(place / "connections")
    yield from ack_costs(place / "ack-cost", run)
    yield from boot.boot_to_first_packet(place / "boot")
    yield from offline.report_time(place / "runs")
    yield from many_runs(place / "many-runs")
    yield from suite_time()
    if options.atlas:
        quick_atlas(place / "atlas")
    yield from atlas_times(place / "atlas" if options.atlas else ROOT / "runs")
    if options.lab:
        yield from lab.lab(place)


def _table(figures: list[Figure]) -> Table:
    table = Table("figure", "value", "target", "what was run")
    for figure in figures:
        table.add_row(figure.name, f"{figure.value:.3g} {figure.unit}".strip(), figure.target, figure.note)
    return table


def _processor() -> str:
    lines = Path("/proc/cpuinfo").read_text().splitlines()
    return next((line.partition(":")[2].strip() for line in lines if line.startswith("model name")), "")


if __name__ == "__main__":
    sys.exit(main())
