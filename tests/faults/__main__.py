# SPDX-License-Identifier: Apache-2.0
"""``make faults``: mutated inputs and run directories, random kills, disks that give out; what of it went wrong.

Prints a table, keeps it with every fault in var/faults/, and ends with 1 where there is one.
SIGTERM and Ctrl-C end it after the case that runs: what was tried until then is told and kept. A second one ends it at
once.
"""

from __future__ import annotations

import argparse
import dataclasses
import itertools
import shutil
import signal
import sys
import tempfile
import threading
import time
from collections.abc import Callable, Iterator
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any, TypeVar

from rich.console import Console
from rich.table import Table

from howdah.record.directory import write_json
from howdah.record.provenance import machine, now, software
from tests.faults.directories import Directories
from tests.faults.disks import namespaces_missing, run_disks
from tests.faults.inputs import ROOT, Case, Inputs, Tally
from tests.faults.kills import Killer, KillTally
from tests.faults.packs import Packs
from tests.faults.raw_files import RawFiles
from tests.faults.records import Records
from tests.faults.sandbox import sandbox
from tests.faults.workers import FAULTS, run_workers, workers_missing

T = TypeVar("T")
Tell = Callable[[str, int, list[str]], None]

_ended = threading.Event()


@dataclass
class Row:
    """One line of the table. ``found`` are the faults, in words, with what makes them again."""

    what: str
    count: int
    details: str
    found: list[str] = field(default_factory=list)


def main() -> int:
    options = _options()
    for number in (signal.SIGTERM, signal.SIGINT):
        signal.signal(number, _end)
    console = Console(highlight=False)
    begin = time.monotonic()
    rows = list(_rows(options, console))
    table = Table("what", "count", "faults", "how they ended")
    for row in rows:
        table.add_row(row.what, str(row.count), str(len(row.found)), row.details)
    console.print(table)
    target = ROOT / "var" / "faults" / f"{now().replace(':', '').replace('+', '-')}.json"
    target.parent.mkdir(parents=True, exist_ok=True)
    about = {
        "seed": options.seed,
        "wall_s": round(time.monotonic() - begin, 1),
        "howdah": software(),
        "host": machine(),
    }
    about["interrupted"] = _ended.is_set()
    write_json(target, {"format": 1, "time": now(), **about, "rows": [dataclasses.asdict(row) for row in rows]})
    console.print(f"{'interrupted; ' if _ended.is_set() else ''}kept in {target.relative_to(ROOT)}", markup=False)
    return 1 if _ended.is_set() or any(row.found for row in rows) else 0


def _end(number: int, _frame: object) -> None:
    """The first signal ends it after the case that runs, the second at once (so that the sandbox goes, too)."""
    if _ended.is_set():
        sys.exit(128 + number)
    _ended.set()


def _options() -> argparse.Namespace:
    parser = argparse.ArgumentParser(prog="python -m tests.faults")
    parser.add_argument("--inputs", type=int, default=100_000, metavar="N", help="mutated inputs (default: 100000)")
    parser.add_argument("--records", type=int, default=5_000, metavar="N", help="mutated run directories (5000)")
    parser.add_argument("--packs", type=int, default=0, metavar="N", help="hostile packs (default: 0)")
    parser.add_argument("--directories", type=int, default=0, metavar="N", help="hostile run directories (0)")
    parser.add_argument("--raw", type=int, default=0, metavar="N", help="mutated raw files (default: 0)")
    parser.add_argument("--kills", type=int, default=1_000, metavar="N", help="killed commands (default: 1000)")
    parser.add_argument("--disks", type=int, default=60, metavar="N", help="disks that give out (default: 60)")
    parser.add_argument("--workers", type=int, default=0, metavar="N", help="faults of a cluster (default: 0)")
    parser.add_argument("--fault", default="", choices=list(FAULTS), help="the only kind of them (default: all kinds)")
    parser.add_argument("--runs", type=int, default=500, metavar="N", help="runs of that cluster's sweep (500)")
    parser.add_argument("--jobs", type=int, default=2, metavar="N", help="so many side by side (default: 2)")
    parser.add_argument("--seed", type=int, default=1, help="another one gives other faults (default: 1)")
    return parser.parse_args()


def _rows(options: argparse.Namespace, console: Console) -> Any:
    def tell(what: str, number: int, faults: list[str]) -> None:
        for fault in faults:
            console.print(f"{what} {number}: {fault}", style="red", markup=False, soft_wrap=True)

    if options.inputs:
        yield _mutated("inputs", Inputs, options.inputs, options, tell)
    if options.records:
        yield _mutated("run directories", Records, options.records, options, tell)
    if options.raw:
        yield _mutated("raw files", RawFiles, options.raw, options, tell)
    if options.packs and not _ended.is_set():
        yield _hostile("hostile packs", Packs, options.packs, options, tell)
    if options.directories and not _ended.is_set():
        yield _hostile("hostile directories", Directories, options.directories, options, tell)
    if _ended.is_set():
        return
    if options.workers and (missing := workers_missing()):
        yield Row("workers", 0, f"skipped: {missing}")
    elif options.workers:
        swept = run_workers(
            options.runs,
            options.workers,
            options.seed,
            lambda text: console.print(text, markup=False),
            kind=options.fault,
        )
        yield Row("workers", len(swept.faults_made), swept.details, swept.found)
    if options.kills and not _ended.is_set():
        tally = KillTally()
        for part in _side_by_side("kills", options.kills, options.jobs, lambda each: _kills(each, options.seed, tell)):
            tally.add(part)
        ends = ", ".join(f"{count} {name}" for name, count in sorted(tally.count("target").items()))
        found = [f"kill {kill.number} ({kill.command}, {kill.signal} to {kill.target}): {fault}"
                 for kill in tally.faults for fault in kill.faults]  # fmt: skip
        yield Row("kills", len(tally.kills), f"signals to: {ends}; resumed and compared {tally.resumed} times", found)
    if options.disks and not _ended.is_set():
        if missing := namespaces_missing():
            yield Row("disks", 0, f"skipped: {missing}")
            return
        with sandbox() as place:
            disks = run_disks(place, options.disks, options.seed, lambda disk: tell("disk", disk.number, disk.faults))
        refused = sum(disk.ended != 0 for disk in disks)
        found = [f"disk {disk.number} ({disk.place}, {disk.trouble}, {disk.room}): {fault}"
                 for disk in disks for fault in disk.faults]  # fmt: skip
        yield Row("disks", len(disks), f"{refused} ended with an error in words, all were resumed", found)


def _side_by_side(what: str, count: int, jobs: int, run: Callable[[Iterator[int]], T]) -> list[T]:
    """The numbers below ``count`` dealt out to so many threads: what each gives. A signal ends all of them.

    How far they are is told on standard error after each twentieth.
    """
    failed = threading.Event()
    tried = itertools.count(1)
    step = max(count // 20, 1)
    errors = Console(stderr=True, highlight=False)

    def until_ended(first: int) -> Iterator[int]:
        for number in range(first, count, jobs):
            if failed.is_set() or _ended.is_set():
                return
            yield number
            if (so_many := next(tried)) % step == 0:
                errors.print(f"{what}: {so_many} of {count}")

    with ThreadPoolExecutor(jobs) as threads:
        try:
            return list(threads.map(run, [until_ended(first) for first in range(min(jobs, count))]))
        finally:
            failed.set()


def _kills(numbers: Iterator[int], seed: int, tell: Tell) -> KillTally:
    with sandbox() as place:
        return Killer(place, seed).run(
            numbers,
            lambda kill: tell(f"{kill.command}, {kill.signal} to {kill.target}, kill", kill.number, kill.faults),
        )


def _hostile(
    what: str, kind: type[Packs] | type[Directories], count: int, options: argparse.Namespace, tell: Tell
) -> Row:
    """Whole commands, in a sandbox for each of them that run side by side."""

    def told(case: Case) -> None:
        if case.fault:
            tell(f"{what}: {case.kind}, {case.base},", case.number, [case.fault])

    def run(numbers: Iterator[int]) -> Tally:
        with sandbox(recorded=True) as place:
            return kind(place, options.seed).run(numbers, told)

    tally = Tally()
    for part in _side_by_side(what, count, options.jobs, run):
        tally.add(part)
    refused = sum(number for (_, end), number in tally.outcomes.items() if end == "refused")
    found = [f"{case.number} {case.kind}, {case.base}: {case.fault}" for case in tally.faults]
    return Row(what, tally.count, f"{refused} refused", found)


def _mutated(
    what: str, kind: type[Inputs] | type[Records] | type[RawFiles], count: int, options: argparse.Namespace, tell: Tell
) -> Row:
    def told(case: Case) -> None:
        if case.fault:
            tell(f"{what}: {case.kind} {case.base} {case.request.get('overrides') or ''}", case.number, [case.fault])

    def run(numbers: Iterator[int]) -> Tally:
        directory = Path(tempfile.mkdtemp(prefix="howdah-faults-"))
        try:
            return kind(directory, options.seed).run(numbers, told)
        finally:
            shutil.rmtree(directory, ignore_errors=True)

    tally = Tally()
    for part in _side_by_side(what, count, options.jobs, run):
        tally.add(part)
    ends = sum(number for (_, end), number in tally.outcomes.items() if end == "accepted")
    details = (
        f"{ends} accepted, {tally.count - ends - len(tally.faults)} refused; processor time "
        f"{tally.processor_s / max(tally.count, 1) * 1000:.0f} ms each, {tally.slowest_s:.1f} s the slowest"
    )
    return Row(
        what, tally.count, details, [f"{case.number} {case.kind} {case.base}: {case.fault}" for case in tally.faults]
    )


if __name__ == "__main__":
    sys.exit(main())
