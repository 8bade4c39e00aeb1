# SPDX-License-Identifier: Apache-2.0
"""How long all tests took, as the last ``make test`` recorded it: they are too many to be run for a benchmark."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

from tests.bench.figure import Figure
from tests.durations import RECORD, read_record


def suite_time(file: Path = RECORD) -> Iterator[Figure]:
    """Nothing where no ``make test`` has ended yet."""
    record = read_record(file)
    if record is None:
        return
    note = f"{len(record.files_s)} files, {record.total_s:.0f} s of tests with {record.workers} workers"
    yield Figure("make test, its tests", record.wall_s, "s", "<= 900 with 2 quiet cores", note)
