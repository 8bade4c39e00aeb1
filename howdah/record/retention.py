# SPDX-License-Identifier: Apache-2.0
"""What of a finished run stays on the disk: all of it, or its results alone.

What is large in raw/ is compressed when the run is finished (``howdah/record/raw.py``).

Raw records and tables of a long run are megabytes; ``howdah rerun`` makes them again, equal to the byte.
"""

from __future__ import annotations

import shutil
from typing import Literal

from howdah.record.digest import only
from howdah.record.directory import RunDirectory
from howdah.record.run import RunRecord, read_record, write_record
from howdah.record.verdict import read_verdict

Keep = Literal["everything", "first"]
_DATA = ("raw/", "tables/", "share/")


def keeps_data(keep: Keep, repetition: int) -> bool:
    """Whether raw/ and tables/ of this repetition (from 0) stay. Those of invalid runs do in any case."""
    return keep == "everything" or repetition == 0


def can_be_analysed(record: RunRecord) -> bool:
    """Whether a run still has all that its tables are made from."""
    return not record.data_removed and not record.raw_left_out


def has_data(directory: RunDirectory) -> bool:
    """Whether raw/ and tables/ of a finished run are there."""
    return not read_record(directory).data_removed


def may_go(record: RunRecord, verdict: str) -> bool:
    """Whether the data of a run may be removed: those of one that failed or is invalid show why, and stay."""
    return record.status == "finished" and verdict != "invalid"


def stays(name: str) -> bool:
    """Whether a file of a run, by its path there, outlives its data."""
    return not name.startswith(_DATA)


def remove_data(directory: RunDirectory) -> bool:
    """Remove raw/, tables/ and share/ of a run that counts; return whether it was done.

    run.json says so before anything is removed: a run that is killed in between has no tables that look whole. The
    digests of what stays remain.
    """
    record = read_record(directory)
    verdict = read_verdict(directory).verdict if directory.verdict.exists() else "invalid"
    if not may_go(record, verdict):
        return False
    write_record(directory, only(record, stays).but(data_removed=True))
    for folder in (directory.raw, directory.tables, directory.share):
        shutil.rmtree(folder, ignore_errors=True)
    return True
