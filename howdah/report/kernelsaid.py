# SPDX-License-Identifier: Apache-2.0
"""What the kernels of the runs said beside what each kernel says: lines that modules print, and alarms."""

from __future__ import annotations

import json
from dataclasses import dataclass

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
            ingested = json.loads(run.directory.ingested.read_text(encoding="utf-8"))
            counts = ingested["sources"][SOURCE]["counts"]
        except (OSError, ValueError, KeyError):
            continue
        lines = [
            (
                f"{each['time_us'] / 1e6:.2f}",
                f"{each['machine']}: {each['text']}" if "machine" in each else each["text"],
            )
            for each in counts["said"]
        ]
        if lines:
            found.append(SaidRun(run.name, variant, lines, counts["said_total"] - len(lines)))
    return found[:_MOST_RUNS]
