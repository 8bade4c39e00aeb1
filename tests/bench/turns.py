# SPDX-License-Identifier: Apache-2.0
"""Two trees of howdah in turns: the processor time of ``howdah run`` of finished runs and of ``howdah rerun``.

A pair is measured at once, so what else the machine does is in both. Each tree has its bytecode, as what is installed
has: without it a command spends a second on compiling, which tells how long the source is. As a program it runs a
command, waits for all that this leaves, and prints the processor seconds of all of it.
"""

from __future__ import annotations

import ctypes
import io
import os
import resource
import statistics
import subprocess
import sys
import tarfile
from collections.abc import Iterator
from contextlib import suppress
from pathlib import Path

from tests.bench.figure import Figure
from tests.bench.simulation import ROOT

_SET_CHILD_SUBREAPER = 36  # prctl(2)
_LEAST_TURNS = 7
_MOST = "<= 1.05"
_NAME = "turns"
PROFILE = f"""\
# SPDX-License-Identifier: Apache-2.0
howdah: 1
name: {_NAME}
path: {{rate: 10 Mbit/s, rtt: 40 ms, buffer: 1 bdp}}
algorithm: [cubic, reno]
duration: 3 s
repetitions: 2
"""


def turns(place: Path, commit: str, count: int) -> Iterator[Figure]:
    """What is committed here against an older commit. Raises RuntimeError where one of them does not do its work."""
    place.mkdir(parents=True)
    profile = place / f"{_NAME}.yaml"
    profile.write_text(PROFILE, encoding="utf-8")
    trees = {"before": _tree(place / "before", commit), "now": _tree(place / "now", "HEAD")}
    commands: dict[str, dict[str, list[str]]] = {}
    for name, tree in trees.items():
        runs = place / f"runs-{name}"
        again = ["run", str(profile), "--runs", str(runs)]
        _processor_s(tree, again)
        first = min(each.parent.name for each in (runs / _NAME).glob("*/plan.json"))
        commands[name] = {
            "run of finished runs": again,
            "rerun": ["rerun", f"{_NAME}/{first}", "--runs", str(runs)],
        }
    for what in commands["now"]:
        spent: dict[str, list[float]] = {name: [] for name in trees}
        for turn in range(max(count, _LEAST_TURNS) + 1):
            for name in trees if turn % 2 else reversed(trees):
                spent[name].append(_processor_s(trees[name], commands[name][what]))
        for one in spent.values():
            del one[0]  # what is compiled and remembered the first time
        yield from _figures(what, spent, commit)


def _tree(place: Path, commit: str) -> Path:
    content = subprocess.run(["git", "archive", commit], cwd=ROOT, check=True, capture_output=True).stdout
    with tarfile.open(fileobj=io.BytesIO(content)) as archive:
        archive.extractall(place, filter="data")
    return place


def _figures(what: str, spent: dict[str, list[float]], commit: str) -> Iterator[Figure]:
    ratios = sorted(now / before for now, before in zip(spent["now"], spent["before"], strict=True))
    low, middle, high = statistics.quantiles(ratios, n=4)
    for name, seconds in spent.items():
        shown = " ".join(f"{each:.2f}" for each in seconds)
        yield Figure(f"processor time of {what}, {name}", statistics.median(seconds), "s", "", shown)
    note = f"median of {len(ratios)} pairs with {commit[:12]}; half of them from {low:.3f} to {high:.3f}"
    yield Figure(f"{what}: now / before", middle, "", _MOST, note)


def _processor_s(tree: Path, arguments: list[str]) -> float:
    command = [sys.executable, "-m", "howdah.command.main", *arguments]
    environment = {**os.environ, "PYTHONPATH": str(tree), "PYTHONPYCACHEPREFIX": str(tree / "bytecode")}
    environment.pop("PYTHONDONTWRITEBYTECODE", None)
    done = subprocess.run(
        [sys.executable, __file__, *command], cwd=tree, env=environment, capture_output=True, text=True
    )
    if done.returncode:
        raise RuntimeError(f"{' '.join(command)} in {tree}: {done.stderr[-2000:]}")
    return float(done.stdout.split()[-1])


def main(command: list[str]) -> int:
    """Orphans come to this process, so that theirs counts too."""
    ctypes.CDLL(None).prctl(_SET_CHILD_SUBREAPER, 1, 0, 0, 0)
    done = subprocess.run(command, stdout=subprocess.DEVNULL)
    with suppress(ChildProcessError):
        while True:
            os.wait()
    used = resource.getrusage(resource.RUSAGE_CHILDREN)
    sys.stdout.write(f"{used.ru_utime + used.ru_stime:.4f}\n")
    return done.returncode


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
