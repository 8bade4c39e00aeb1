# SPDX-License-Identifier: Apache-2.0
"""Room on the disk of an experiment."""

from __future__ import annotations

import shutil

from howdah.errors import HowdahError
from howdah.work.experiment import ExperimentDirectory

LEAST_FREE_BYTES = 64_000_000  # with less no further run is begun after one has failed


def free_bytes(experiment: ExperimentDirectory) -> int | None:
    """None where the file system does not say."""
    try:
        return shutil.disk_usage(experiment.path).free
    except OSError:
        return None


def tell_of_room(error: HowdahError, experiment: ExperimentDirectory) -> None:
    """A full disk is not always named by what fails on it: not even the log can be written."""
    free = free_bytes(experiment)
    if free is not None and free < LEAST_FREE_BYTES:
        room = f"Only {free / 1e6:.1f} MB are free there. Make room and run the command again: finished runs are kept."
        error.hint = f"{error.hint}\n  {room}" if error.hint else room
