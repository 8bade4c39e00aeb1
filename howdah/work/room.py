# SPDX-License-Identifier: Apache-2.0
"""Free space on the disk of an experiment."""

from __future__ import annotations

import shutil

from howdah.errors import HowdahError
from howdah.work.experiment import ExperimentDirectory

LEAST_FREE_BYTES = 64_000_000  # with less no further run is begun after one has failed


def free_bytes(experiment: ExperimentDirectory) -> int | None:
    """Free bytes, or None if the file system does not report them."""
    try:
        return shutil.disk_usage(experiment.path).free
    except OSError:
        return None


def tell_of_room(error: HowdahError, experiment: ExperimentDirectory) -> None:
    """Report a full disk: what fails on it often gives another reason, and even the log cannot be written."""
    free = free_bytes(experiment)
    if free is not None and free < LEAST_FREE_BYTES:
        room = f"Only {free / 1e6:.1f} MB are free there. Make room and run the command again: finished runs are kept."
        error.hint = f"{error.hint}\n  {room}" if error.hint else room
