# SPDX-License-Identifier: Apache-2.0
"""Instructions and time for each packet that is passed in a search of a retransmission queue that is a list.

``python -m tests.bench.list_search``; needs cc, and valgrind for the instructions. docs/processor.md has the figures.
"""

from __future__ import annotations

import re
import shutil
import subprocess
import sys
import tempfile
from pathlib import Path

from rich.console import Console

NODES = (100, 1000, 8000, 30_000)  # the BDP of 400 Mbit/s and 240 ms is 7926 packets; without HyStart four times that
PASSED = 20_000_000
CLOCK_HZ = 2.8e9  # of the HyStart paper's machines


def _built(directory: Path) -> str:
    program = str(directory / "walk")
    subprocess.run(["cc", "-O2", str(Path(__file__).parent / "walk.c"), "-o", program], check=True)
    return program


def instructions_each(program: str, directory: Path) -> float | None:
    """Of one more packet, by what a program with more rounds executes; None without valgrind."""
    valgrind = shutil.which("valgrind")
    if valgrind is None:
        return None
    nodes, counts = 1000, []
    for rounds in (1, 11):
        command = [valgrind, "--tool=callgrind", f"--callgrind-out-file={directory / 'out'}", program]
        answer = subprocess.run([*command, str(nodes), str(rounds)], capture_output=True, text=True, check=True)
        found = re.search(r"Collected : (\d+)", answer.stderr)
        if found is None:
            return None
        counts.append(int(found.group(1)))
    return (counts[1] - counts[0]) / (10 * nodes)


def main() -> int:
    console = Console(highlight=False)
    with tempfile.TemporaryDirectory() as place:
        program = _built(Path(place))
        each = instructions_each(program, Path(place))
        if each is None:
            console.print("instructions: not counted, valgrind is missing")
        else:
            console.print(
                f"instructions: {each:.1f} a packet, {each / CLOCK_HZ * 1e9:.1f} ns at 2.8 GHz and one a cycle"
            )
        for nodes in NODES:
            command = [program, str(nodes), str(PASSED // nodes)]
            in_order = subprocess.run(command, capture_output=True, text=True, check=True).stdout.strip()
            apart = subprocess.run([*command, "scattered"], capture_output=True, text=True, check=True).stdout.strip()
            console.print(
                f"{nodes:>6} packets: {in_order} ns each one behind the other, {apart} ns scattered in memory"
            )
    return 0


if __name__ == "__main__":
    sys.exit(main())
