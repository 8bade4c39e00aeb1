# SPDX-License-Identifier: Apache-2.0
"""Nights written by hand: sheets of experiments whose measures a function gives. No kernel."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path
from typing import Any

from howdah.nightly.change import CellResult
from howdah.nightly.comparison import compare_sheets
from howdah.nightly.night import Night
from howdah.nightly.sheet import CellSheet, NightSheet, Origin, Repetition, Value
from howdah.nightly.significance import Measures
from howdah.nightly.suite import Suite, read_suite

Values = Callable[[str, int], dict[str, Value]]  # of a cell's slug and a repetition
UNITS = {
    "exit_time_s": "s",
    "exit_cwnd_packets": "packets",
    "retransmitted_packets": "packets",
    "utilisation": "ratio",
    "exit_cause": "",
    "exit_round": "rounds",
}

PROFILE = """\
howdah: 1
name: made
path: {rate: 10 Mbit/s, rtt: 40 ms, buffer: 1 bdp}
algorithm: [cubic, reno]
duration: 10 s
"""

SUITE = """\
suite: test
description: Two cells on each of two kernels
cells:
  - profile: made.yaml
    kernels: [debian-6.12, debian-6.1]
    repetitions: 10
"""


def write_suite(directory: Path, suite: str = SUITE, profile: str = PROFILE) -> Path:
    """A suite and its profile in a directory."""
    directory.mkdir(parents=True, exist_ok=True)
    (directory / "made.yaml").write_text(profile, encoding="utf-8")
    file = directory / "suite.yaml"
    file.write_text(suite, encoding="utf-8")
    return file


def origin(guest: str = "", *, virtual: bool = True, agent: str = "agent", analysis: str = "analysis") -> Origin:
    """Of a kernel by this name; of an unknown one by default, which may differ from any other."""
    return Origin("uml", virtual, guest, agent, analysis)


def sheet(
    experiment: str,
    values: Values,
    *,
    kernel: str = "debian-6.12",
    repetitions: int = 10,
    made_by: Origin | None = None,
    plan: str = "plan",
) -> NightSheet:
    """An experiment of the cells cubic and reno with these measures. Runs made of the same have the same key."""
    made_by = made_by or origin()
    found = NightSheet(experiment, "made", kernel, "2026-11-22T00:00:00+00:00", {}, units=dict(UNITS))
    for slug in ("cubic", "reno"):
        cell = CellSheet({"algorithm": slug}, slug, "linux", made_by)
        for number in range(repetitions):
            key = f"{plan} {slug} {number} {made_by.guest} {made_by.agent}" if made_by.guest else ""
            run = Repetition("pass", 1, values(slug, number), key=key, plan=f"{plan} {slug} {number}", wall_s=1.5)
            cell.repetitions[number] = run
        found.cells[slug] = cell
    return found


def as_stored(found: NightSheet) -> NightSheet:
    """Without what a baseline does not keep."""
    for cell in found.cells.values():
        for each in cell.repetitions.values():
            each.wall_s = 0.0
    return found


def usual(slug: str, number: int) -> dict[str, Value]:
    """Measures that differ a little from one repetition to the next, as a perturbed path makes them."""
    shift = 0.01 * ((number * 7) % 10)
    return {
        "exit_time_s@1": 1.0 + shift,
        "exit_cwnd_packets@1": 100.0 + number % 3,
        "retransmitted_packets@1": 0.0,
        "utilisation": 0.9 + 0.001 * number,
        "exit_cause@1": "delay" if slug == "cubic" else "loss",
        "exit_round@1": 7.0,
    }


def changed(slug: str, number: int, **values: Value) -> dict[str, Value]:
    """The usual measures with some of cubic's replaced; names with __ for @."""
    new: dict[str, Value] = {name.replace("__", "@"): value for name, value in values.items()}
    return {**usual(slug, number), **(new if slug == "cubic" else {})}


def night(directory: Path, before: NightSheet | None, after: NightSheet, **fields: Any) -> Night:
    """A night of one experiment, settled; ``measures`` are the primary ones."""
    suite: Suite = fields.pop("suite", None) or read_suite(write_suite(directory))
    measures: Measures | None = fields.pop("measures", None)
    cells: list[CellResult] = compare_sheets(before, after, ["cubic", "reno"], measures)
    made = Night(suite, "2026-11-22T01:00:00+00:00", "2026-11-22T02:00:00+00:00", 3600.0, cells=cells, **fields)
    made.baseline, made.runs = directory / "baseline", directory / "runs"
    made.settle()
    return made
