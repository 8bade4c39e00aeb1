# SPDX-License-Identifier: Apache-2.0
"""``howdah.load`` and the report of thousands of runs: one short run, copied with other values of an axis."""

from __future__ import annotations

import json
import os
import subprocess
import sys
import time
from collections.abc import Iterator
from pathlib import Path
from typing import Any

from playwright.sync_api import sync_playwright

from howdah.record.digest import file_sha256
from howdah.record.directory import STEP_NS, RunDirectory, read_json, write_json
from howdah.work.sweep_memory import database_of
from tests.bench.figure import Figure
from tests.bench.simulation import ROOT
from tests.browser.conftest import ARGUMENTS, browser_program

RUNS = 10_000
_PROFILE = """\
howdah: 1
name: short
path: {rate: 10 Mbit/s, rtt: 40 ms, buffer: 1 bdp}
algorithm: [standard]
duration: 3 s
"""
# Alone in its process: prints processor seconds and the largest memory in MB.
_READ = """\
import resource, sys, howdah
e = howdah.load(sys.argv[1])
rows = [len(e.runs), len(e.metrics), len(e.exits), len(e.checks)]
used = resource.getrusage(resource.RUSAGE_SELF)
print(used.ru_utime + used.ru_stime, used.ru_maxrss / 1000, *rows)
"""
# What a sweep does for the first reading, for each run that ended, of as many runs.
_SWEPT = """\
import resource, sys
from pathlib import Path
from howdah.library.growing import IndexingListener
from howdah.record.reading import read_plan_file
from howdah.work.batch import Job, Outcome, Rest
from howdah.work.experiment import ExperimentDirectory, PlannedRun
from howdah.work.job import Past
experiment = ExperimentDirectory(Path(sys.argv[1]))
names = sorted(file.parent.name for file in experiment.path.glob("*/run.json"))
plan = read_plan_file(experiment.path / names[0] / "plan.json")
class Named(PlannedRun):
    directory_name = property(lambda self: self.key)
begun = resource.getrusage(resource.RUSAGE_SELF)
with IndexingListener(lambda *_: None) as listen:
    for number, name in enumerate(names):
        outcome = Outcome(Job(experiment, Named(plan, name)), verdict="pass")
        listen([], [outcome], Rest(len(names), past=Past(count=number)))
used = resource.getrusage(resource.RUSAGE_SELF)
print(used.ru_utime + used.ru_stime - begun.ru_utime - begun.ru_stime, used.ru_maxrss / 1000)
"""
# The same as _READ of making the report; prints its size in MB too.
_REPORT = """\
import resource, sys
from pathlib import Path
from howdah.report.build import report
page = report(Path(sys.argv[1]))
used = resource.getrusage(resource.RUSAGE_SELF)
print(used.ru_utime + used.ru_stime, used.ru_maxrss / 1000, page.stat().st_size / 1e6)
"""


def many_runs(place: Path, runs: int = RUNS) -> Iterator[Figure]:
    """Four tables of all runs: read from what a sweep left, from the index that this reading left, and from files."""
    place.mkdir(parents=True)
    (place / "short.yaml").write_text(_PROFILE, encoding="utf-8")
    command = [sys.executable, "-m", "howdah.command.main", "run", str(place / "short.yaml"), "--runs", str(place)]
    subprocess.run([*command, "--no-report"], cwd=ROOT, check=True, stdout=subprocess.DEVNULL)
    many = multiplied(next((place / "short").glob("standard-*")), place / "many", runs)
    subprocess.run(["sleep", str(STEP_NS / 1e9 + 1)], check=True)  # else the last runs are too young for the index
    seconds, megabytes = _answer(_SWEPT, many)
    name = "rows of a run that a sweep keeps for howdah.load, processor time"
    yield Figure(name, seconds / runs * 1e3, "ms", note=f"{runs} runs; {megabytes:.0f} MB of memory")
    for what in ("after a sweep", "from the index", "from the runs' files"):
        if what == "from the runs' files":
            database_of(many).unlink()
        seconds, megabytes, *rows = _answer(_READ, many)
        note = f"{runs} runs; rows of runs, metrics, exits, checks: {', '.join(str(int(each)) for each in rows)}"
        yield Figure(f"howdah.load {what}, processor time", seconds, "s", "<= 5", note)
        yield Figure(f"howdah.load {what}, memory", megabytes, "MB")
    seconds, megabytes, size = _answer(_REPORT, many)
    yield Figure("its report, processor time", seconds, "s", note=f"{runs} runs; the page has {size:.1f} MB")
    yield Figure("its report, memory", megabytes, "MB")
    if (opened := _opened(many / "report.html")) is not None:
        yield Figure(
            "its report, from the address to the last figure and row", opened, "s", "<= 3", "Chromium, from disk"
        )


def multiplied(run: Path, target: Path, runs: int) -> Path:
    """An experiment of ``runs`` copies of a finished run, each with another rate as its axis. Large files are links."""
    target.mkdir()
    plan, record = read_json(run / "plan.json"), read_json(run / "run.json")
    cells: list[dict[str, Any]] = []
    for number in range(runs):
        axes = {"algorithm": plan["algorithm"], "path.rate": 10_000_000 + number}
        name = f"{plan['algorithm']}-{number}-r0"
        copy = RunDirectory(target / name)
        copy.tables.mkdir(parents=True)
        for file in (run / "metrics.json", run / "verdict.json", *(run / "tables").iterdir()):
            os.link(file, copy.path / file.relative_to(run))
        copy.plan.write_text(json.dumps({**plan, "axes": axes, "run": name}), encoding="utf-8")
        digests = {**record["digests"], "plan.json": file_sha256(copy.plan)}
        copy.provenance.write_text(json.dumps({**record, "digests": digests}), encoding="utf-8")
        cells.append({"run": name, "axes": axes, "algorithm": plan["algorithm"], "repetition": 0})
    write_json(target / "experiment.json", {"format": 1, "name": target.name, "cells": cells})
    return target


def _answer(program: str, experiment: Path) -> list[float]:
    command = [sys.executable, "-c", program, str(experiment)]
    answer = subprocess.run(command, cwd=ROOT, check=True, capture_output=True, text=True)
    return [float(word) for word in answer.stdout.split()]


def _opened(page: Path) -> float | None:
    """Seconds until a page is drawn and answers, the least of three times; None without a browser."""
    program = browser_program()
    if program is None:
        return None
    found = []
    with sync_playwright() as playwright:
        browser = playwright.chromium.launch(executable_path=program, args=ARGUMENTS, headless=True)
        for _ in range(3):
            opened = browser.new_page()
            start = time.monotonic()
            opened.goto(page.as_uri())
            opened.wait_for_selector("html[data-ready=true]")
            found.append(time.monotonic() - start)
            opened.close()
        browser.close()
    return min(found)
