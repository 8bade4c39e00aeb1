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
from collections import Counter
from collections.abc import Callable, Iterator
from concurrent.futures import ThreadPoolExecutor
from contextlib import AbstractContextManager, contextmanager
from dataclasses import dataclass, field
from functools import partial
from pathlib import Path
from typing import Any, TypeVar

from rich.console import Console

from howdah.record.directory import write_json
from howdah.record.provenance import machine, now, software
from tests.faults.blocks import Blocks
from tests.faults.directories import Directories
from tests.faults.disks import namespaces_missing, run_disks
from tests.faults.inputs import Inputs
from tests.faults.kills import Kill, Killer, KillTally
from tests.faults.packs import Packs
from tests.faults.pairs import Pairs
from tests.faults.raw_files import RawFiles
from tests.faults.recordings import Recordings
from tests.faults.records import Records
from tests.faults.sandbox import sandbox
from tests.faults.surroundings import Surroundings
from tests.faults.texts import Texts
from tests.faults.trial import ROOT, Case, Tally, Trials
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
    failed: int = 0


@contextmanager
def _directory() -> Iterator[Path]:
    directory = Path(tempfile.mkdtemp(prefix="howdah-faults-"))
    try:
        yield directory
    finally:
        shutil.rmtree(directory, ignore_errors=True)


@dataclass(frozen=True)
class Class:
    """What is tried of one kind: ``trials`` makes it in a ``place``; ``count`` of ``make faults``."""

    what: str
    count: int
    trials: Callable[[Any, int], Trials]
    place: Callable[[], AbstractContextManager[Any]] = _directory


_forked = partial(sandbox, recorded=True, forks=True)
CLASSES = {
    "inputs": Class("mutated profiles, overrides, suites and machines files", 100_000, Inputs),
    "records": Class("mutated run directories", 5_000, Records),
    "raw": Class("mutated raw files", 0, RawFiles),
    "recordings": Class("mutated recordings that are explained", 0, Recordings),
    "texts": Class("files of YAML and JSON with bombs, and files that are none", 0, Texts),
    "packs": Class("hostile packs", 0, Packs, _forked),
    "directories": Class("hostile run directories", 0, Directories, _forked),
    "blocks": Class("blocks of Prometheus, changed", 0, Blocks, _forked),
    "surroundings": Class("commands with something odd around them", 0, Surroundings, _forked),
    "pairs": Class("two commands or two users at once", 0, Pairs, partial(sandbox, forks=True)),
}


def main() -> int:
    options = _options()
    for number in (signal.SIGTERM, signal.SIGINT):
        signal.signal(number, _end)
    console = Console(highlight=False)
    begin = time.monotonic()
    rows = list(_rows(options, console))
    for row in rows:
        console.print(f"{row.what}: tried {row.count}, failed {row.failed} ({row.details})", markup=False)
    target = ROOT / "var" / "faults" / f"{now().replace(':', '').replace('+', '-')}.json"
    target.parent.mkdir(parents=True, exist_ok=True)
    about = {
        "seed": options.seed,
        "wall_s": round(time.monotonic() - begin, 1),
        "howdah": software().plain(),
        "host": machine().plain(),
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
    for name, known in CLASSES.items():
        said = f"{known.what} (default: {known.count})"
        parser.add_argument(f"--{name}", type=int, default=known.count, metavar="N", help=said)
    parser.add_argument("--kills", type=int, default=1_000, metavar="N", help="killed commands (default: 1000)")
    parser.add_argument("--disks", type=int, default=60, metavar="N", help="disks that give out (default: 60)")
    parser.add_argument("--workers", type=int, default=0, metavar="N", help="faults of a cluster (default: 0)")
    parser.add_argument("--fault", default="", choices=list(FAULTS), help="the only kind of them (default: all kinds)")
    parser.add_argument("--runs", type=int, default=500, metavar="N", help="runs of that cluster's sweep (500)")
    parser.add_argument("--only", nargs="+", metavar="CLASS", help="these alone: inputs, packs, kills …")
    parser.add_argument("--jobs", type=int, default=2, metavar="N", help="so many side by side (default: 2)")
    parser.add_argument("--seed", type=int, default=1, help="another one gives other faults (default: 1)")
    options = parser.parse_args()
    for name in (*CLASSES, "kills", "disks", "workers"):
        if options.only and name not in options.only:
            setattr(options, name, 0)
    return options


def _rows(options: argparse.Namespace, console: Console) -> Iterator[Row]:
    def tell(what: str, number: int, faults: list[str]) -> None:
        for fault in faults:
            console.print(f"{what} {number}: {fault}", style="red", markup=False, soft_wrap=True)

    for name, known in CLASSES.items():
        count = getattr(options, name)
        if count and not _ended.is_set():
            yield _tried(name, known, count, options, tell)
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
        yield Row("workers", len(swept.faults_made), swept.details, swept.found, len(swept.found))
    if options.kills and not _ended.is_set():
        tally = KillTally()
        for part in _side_by_side("kills", options.kills, options.jobs, lambda each: _kills(each, options.seed, tell)):
            tally.add(part)
        ends = ", ".join(f"{count} {name}" for name, count in sorted(tally.count("target").items()))
        found = [f"{_told(kill)} {kill.number}: {fault}"
                 for kill in tally.faults for fault in kill.faults]  # fmt: skip
        details = f"signals to: {ends}; resumed and compared {tally.resumed} times"
        yield Row("kills", len(tally.kills), details, found, len(tally.faults))
    if options.disks and not _ended.is_set():
        if missing := namespaces_missing():
            yield Row("disks", 0, f"skipped: {missing}")
            return
        with sandbox() as place:
            disks = run_disks(place, options.disks, options.seed, lambda disk: tell("disk", disk.number, disk.faults))
        refused = sum(disk.ended != 0 for disk in disks)
        found = [f"disk {disk.number} ({disk.place}, {disk.trouble}, {disk.room}): {fault}"
                 for disk in disks for fault in disk.faults]  # fmt: skip
        details = f"{refused} ended with an error in words, all were resumed"
        yield Row("disks", len(disks), details, found, sum(bool(disk.faults) for disk in disks))


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


def _told(kill: Kill) -> str:
    return f"{kill.command}, {kill.signal} to {kill.target} {kill.moment}, kill"


def _kills(numbers: Iterator[int], seed: int, tell: Tell) -> KillTally:
    with sandbox(forks=True) as place:
        return Killer(place, seed).run(
            numbers,
            lambda kill: tell(
                f"{kill.command}, {kill.signal} to {kill.target} {kill.moment}, kill", kill.number, kill.faults
            ),
        )


def _tried(name: str, known: Class, count: int, options: argparse.Namespace, tell: Tell) -> Row:
    """So many trials of a class, each of those that run side by side in a place of its own."""

    def told(case: Case) -> None:
        if case.fault:
            tell(f"{name}: {case.kind}, {case.base},", case.number, [case.fault])

    def run(numbers: Iterator[int]) -> Tally:
        with known.place() as place:
            return known.trials(place, options.seed).run(numbers, told)

    tally = Tally()
    for part in _side_by_side(name, count, options.jobs, run):
        tally.add(part)
    ends: Counter[str] = Counter()
    for (_, end), number in tally.outcomes.items():
        ends[end] += number
    details = f"{ends['accepted']} accepted, {ends['refused']} refused"
    if tally.processor_s:
        each_ms = tally.processor_s / tally.count * 1000
        details += f"; processor time {each_ms:.0f} ms each, {tally.slowest_s:.1f} s the slowest"
    found = [f"{case.number} {case.kind} {case.base}: {case.fault}" for case in tally.faults]
    return Row(name, tally.count, details, found, len(tally.faults))


if __name__ == "__main__":
    sys.exit(main())
