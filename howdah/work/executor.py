# SPDX-License-Identifier: Apache-2.0
"""The interface of what makes the runs of a batch: processes of this machine (local.py) or a cluster's workers."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Protocol

from howdah.work.job import Job, Outcome, Rest, Work


class Executor(Protocol):
    """Makes runs in the order of the jobs it is given. Several batches may use it in turn, each with its ``open``."""

    @property
    def active(self) -> Sequence[Work]:
        """Runs in progress."""
        ...

    @property
    def handed(self) -> Sequence[Job]:
        """Jobs that were handed out and have not begun."""
        ...

    def open(self, jobs: Sequence[Job], *, total: int | None = None) -> None:
        """Prepare what these jobs need. No other jobs follow, unless ``total`` says how many there are.

        Raises HowdahError where they cannot be made there.
        """
        ...

    def has_room(self) -> bool:
        """Whether another job can be given now."""
        ...

    def give(self, job: Job) -> None:
        """Start a job now or as soon as possible. Raises HowdahError if that fails."""
        ...

    def wait(self, timeout_s: float) -> list[Outcome]:
        """Outcomes of jobs that have ended, after ``timeout_s`` at the latest. Finished runs have their final names."""
        ...

    def show(self, outcomes: Sequence[Outcome], rest: Rest) -> None:
        """Publish how far the batch is, for ``howdah serve``."""
        ...

    def kill(self) -> None:
        """End every run that was given, and remove what it left."""
        ...

    def close(self) -> None:
        """Release at the end of a batch what no further batch needs."""
        ...
