# SPDX-License-Identifier: Apache-2.0
"""What the kernels of the runs said beside what each kernel says: lines that modules print, and alarms."""

from __future__ import annotations

from dataclasses import dataclass

from howdah.record.directory import read_json
from howdah.record.kernel_log import SOURCE
from howdah.record.result import Run

_MOST_RUNS = 20


@dataclass(frozen=True)
class SaidRun:
    """``lines`` are times of the kernel's clock, in seconds, and texts; ``left_out`` counts those beyond the first."""

    run: str
    variant: str
    lines: list[tuple[str, str]]
    left_out: int


def said_runs(runs: list[tuple[Run, str]]) -> list[SaidRun]:
    """The first runs, with the name of their variant, whose kernel said something."""
    found = []
    for run, variant in runs:
        try:
            counts = read_json(run.directory.ingested)["sources"][SOURCE]["counts"]
            lines = [
                (
                    f"{each['time_us'] / 1e6:.2f}",
                    f"{each['machine']}: {each['text']}" if "machine" in each else str(each["text"]),
                )
                for each in counts["said"]
            ]
            left_out = int(counts["said_total"]) - len(lines)
        except (OSError, ValueError, LookupError, TypeError):
            continue
        if lines:
            found.append(SaidRun(run.name, variant, lines, left_out))
    return found[:_MOST_RUNS]
