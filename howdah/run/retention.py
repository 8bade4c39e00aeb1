# SPDX-License-Identifier: Apache-2.0
"""What of a finished run stays on the disk: all of it, or its results alone.

Raw records and tables of a long run are tens of megabytes; ``howdah rerun`` makes them again, equal to the byte.
"""

from __future__ import annotations

import shutil
from typing import Literal

from howdah.run.directory import RunDirectory, read_json, write_json

Keep = Literal["everything", "first"]
REMOVED = "data_removed"  # in run.json


def keeps_data(keep: Keep, repetition: int) -> bool:
    """Whether raw/ and tables/ of this repetition (from 0) stay. Those of invalid runs do in any case."""
    return keep == "everything" or repetition == 0


def has_data(directory: RunDirectory) -> bool:
    """Whether raw/ and tables/ of a finished run are there."""
    return not read_json(directory.provenance).get(REMOVED, False)


def remove_data(directory: RunDirectory) -> bool:
    """Remove raw/, tables/ and share/ of a run that counts; return whether it was done.

    run.json says so before anything is removed: a run that is killed in between has no tables that look whole.
    """
    record = read_json(directory.provenance)
    verdict = read_json(directory.verdict)["verdict"] if directory.verdict.exists() else "invalid"
    if record["status"] != "finished" or verdict == "invalid":
        return False
    write_json(directory.provenance, {**record, REMOVED: True})
    for folder in (directory.raw, directory.tables, directory.share):
        shutil.rmtree(folder, ignore_errors=True)
    return True
