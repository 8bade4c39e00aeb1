# SPDX-License-Identifier: Apache-2.0
"""``make breaks``: the smallest path on which each start-up leaves too early, overshoots, or takes far too long.

The paths are tried in the order of their size: first how much sets them apart from a plain path (a buffer of one BDP, a
delay that does not vary), then their BDP. So the first path on which a start-up breaks is the smallest of them. Each
path is a try for all start-ups that have not broken in all three ways. An interrupted command goes on. Prints the table
for docs/search.md. ``--write DIR`` writes an experiment of the atlas for each path that is kept: three repetitions with
all checks, and a claim for each number. ``--proven RUNS``, after they were run, leaves out what they do not show, and
remembers it: a claim that was left out is in no later run of them.
"""

from __future__ import annotations

import argparse
import sys
from collections.abc import Collection, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from howdah.algorithm import ALGORITHMS, BASES
from howdah.claim.finding import PASS
from howdah.command.common import cores
from howdah.counterexample.trial import Trials
from howdah.record.directory import read_json, write_json
from howdah.unloaded import collect_rarely, leave_pandas_out
from tests.bench.breaks_path import (
    EARLY,
    GRANTED,
    LEAST_BDP,
    MOST_BDP,
    MOST_TIMES,
    OVER,
    SLOW,
    TIME,
    Break,
    Place,
    places,
)
from tests.bench.breaks_written import ALL_OVERSHOOT, main_claim, profile_name, profile_text
from tests.sought import core_s, trials_of

BY_LOSS = ("loss", "timeout")


def start_ups() -> list[str]:
    """The kernel's controls, and this project's start-ups over Reno."""
    some = [name for name in ALGORITHMS if not (name.endswith(BASES["cubic"]) and name.removesuffix("-cubic"))]
    return sorted(f"{name}{GRANTED}" if name.startswith("quick-start") else name for name in some)


# What others are compared with runs on every path.
ALWAYS = frozenset({"cubic", "jump-start", f"quick-start{GRANTED}", "rapid-start", "standard"})
BASE = """\
howdah: 1
name: breaks
description: One flow on an empty path
path: {rate: 10 Mbit/s, rtt: 40 ms, buffer: 1 bdp}
algorithm: standard
duration: 2 s
repetitions: 1
search:
  space: {path.rtt: [40 ms, 60 ms]}
  minimise: {metric: utilisation}
"""


@dataclass
class Breaks:
    """What was found so far."""

    found: dict[tuple[str, str], Break] = field(default_factory=dict)
    dropped: dict[tuple[str, str], Break] = field(default_factory=dict)  # what repetitions do not show
    tried: dict[str, int] = field(default_factory=dict)  # paths of each start-up with a value

    def open(self, names: Sequence[str]) -> list[str]:
        """Those that have to run on the next path."""
        return [
            each
            for each in names
            if each in ALWAYS or any((each, way) not in self.found for way in (EARLY, OVER, SLOW))
        ]

    def add(self, place: Place, measured: Mapping[str, Mapping[str, Any]]) -> None:
        """``measured`` has the metrics of each start-up."""
        times = {name: float(row[TIME]) for name, row in measured.items() if row.get(TIME) is not None}
        best = min(times, key=lambda name: times[name], default="")
        for name, row in measured.items():
            self.tried[name] = self.tried.get(name, 0) + 1
            early = left_at(row)
            if early is not None and early < LEAST_BDP and row.get("exit_cause") not in BY_LOSS:
                self._note(name, EARLY, place, early, str(row.get("exit_cause") or ""))
            peak = row.get("peak_cwnd_packets")
            if peak is not None and peak > MOST_BDP * place.bdp_packets:
                self._note(name, OVER, place, peak / place.bdp_packets, str(row.get("exit_cause") or ""))
            if name in times and times[name] > MOST_TIMES * times[best]:
                self._note(name, SLOW, place, times[name] / times[best], str(row.get("held_back_by") or ""), best)

    def _note(self, name: str, way: str, place: Place, value: float, why: str, best: str = "") -> None:
        self.found.setdefault((name, way), Break(name, way, place, value, why, best))

    def by_place(self) -> dict[Place, list[Break]]:
        """What each path that is kept shows."""
        found: dict[Place, list[Break]] = {}
        for _, each in sorted(self.found.items()):
            found.setdefault(each.place, []).append(each)
        return found

    def drop(self, failed: Mapping[str, Collection[str]]) -> None:
        """Leave out what the claims that ``failed``, by profile, do not show."""
        for key, one in list(self.found.items()):
            ids = failed.get(profile_name(one.place), ())
            if main_claim(one) in ids or (one.way == OVER and ALL_OVERSHOOT in ids):
                del self.found[key]
                self.dropped[key] = one

    def rows(self, names: Sequence[str]) -> Iterator[str]:
        """The table in Markdown."""
        yield "| start-up | leaves below 0.2 BDP | overshoots beyond 3 BDP | takes three times the time of the best |"
        yield "|---|---|---|---|"
        for name in names:
            yield f"| `{name}` | {' | '.join(self._cell(name, way) for way in (EARLY, OVER, SLOW))} |"

    def _cell(self, name: str, way: str) -> str:
        one = self.found.get((name, way))
        if (name, way) in self.dropped:
            return f"not proven ({self.dropped[name, way].place.words})"
        if one is None:
            return f"on none of {self.tried.get(name, 0)}"
        shown = f"{one.value:.2g} BDP" if way != SLOW else f"{one.value:.2g} times that of `{one.best}`"
        return f"{one.place.words}: {shown} ({one.why})"


def left_at(row: Mapping[str, Any]) -> float | None:
    """Where start-up ends, as a share of the BDP; None where it does not end."""
    value = row.get("exit_cwnd_bdp")
    return None if value is None else float(value)


def measured_of(experiment: Path) -> dict[str, dict[str, Any]]:
    """The metrics of each start-up's run that is valid."""
    found = {}
    for file in experiment.glob("*/metrics.json"):
        if read_json(file.with_name("verdict.json"))["verdict"] == "pass":
            rows = read_json(file)["rows"]
            name = file.parent.name.rpartition("-r0-")[0]
            found[name] = {row["metric"]: row["value"] for row in rows if row["flow"] in (1, None)}
    return found


def search(trials: Trials, names: Sequence[str], some: Sequence[Place]) -> Breaks:
    """Run each path with the start-ups that may still break on it for the first time."""
    found = Breaks()
    for number, place in enumerate(some, 1):
        tried = trials.screen([{}], place.document(found.open(names)))[0]
        if tried.directory:
            found.add(place, measured_of(trials.directory / tried.directory))
        said = f"; {tried.score.text}" if not tried.directory else ""
        sys.stderr.write(f"{number} of {len(some)} paths: {place.words}; {len(found.found)} breaks{said}\n")
    return found


CLAIMS = "breaks-*/claims.json"  # of the experiments that --write makes, below their runs


def refuted_in(runs: Path, remembered: Path) -> dict[str, set[str]]:
    """The claims that fail in the experiments that ``--write`` makes, by profile, and those that failed before.

    ``remembered`` is the file that has them. A claim that is in no experiment any more stays as it was.
    """
    found = {name: set(ids) for name, ids in (read_json(remembered) if remembered.exists() else {}).items()}
    for file in runs.glob(CLAIMS):
        before = found.setdefault(file.parent.name, set())
        for each in read_json(file)["claims"]:
            (before.discard if each["verdict"] == PASS else before.add)(each["id"])
    write_json(remembered, {name: sorted(ids) for name, ids in sorted(found.items())})
    return found


def main() -> int:
    parser = argparse.ArgumentParser(prog="python -m tests.bench.breaks", description=__doc__)
    parser.add_argument("--paths", type=int, default=None, help="only the smallest so many (default: all)")
    parser.add_argument("--write", type=Path, default=None, metavar="DIR", help="write profiles with claims there")
    parser.add_argument("--proven", type=Path, default=None, metavar="RUNS", help="leave out what its claims refute")
    parser.add_argument("--jobs", type=int, default=cores())
    parser.add_argument("--runs", type=Path, default=Path("var/breaks"))
    options = parser.parse_args()
    collect_rarely()
    leave_pandas_out()
    if options.proven and not list(options.proven.glob(CLAIMS)):
        parser.error(f"{options.proven} has no {CLAIMS}: run what --write made, with --runs {options.proven}")
    for place in (options.runs, options.write):
        if place is not None:
            place.mkdir(parents=True, exist_ok=True)
    file = options.runs / "breaks.yaml"
    file.write_text(BASE, encoding="utf-8")
    trials = trials_of(file, [], options.runs, options.jobs)
    names = start_ups()
    found = search(trials, names, places()[: options.paths])
    used_s = core_s()
    failed = refuted_in(options.proven, options.runs / "refuted.json") if options.proven else {}
    found.drop(failed)
    for place, some in found.by_place().items() if options.write else ():
        name = profile_name(place)
        refuted = [each for each in found.dropped.values() if each.place == place]
        text = profile_text(place, [*some, *refuted], failed.get(name, ()))
        (options.write / f"{name}.yaml").write_text(text, encoding="utf-8")
    sys.stdout.write("\n".join(found.rows(names)) + f"\n\n{used_s:.0f} s of a processor\n")
    return 0


if __name__ == "__main__":
    sys.exit(main())
