# SPDX-License-Identifier: Apache-2.0
"""Where the runs of a batch are made: processes of this machine (local.py), or workers elsewhere (howdah/cluster)."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Protocol

from howdah.work.job import Job, Outcome, Rest, Work


class Executor(Protocol):
    """Takes jobs in the order in which they are given. One batch after the other may use it, each with its ``open``."""

    @property
    def active(self) -> Sequence[Work]:
        """Runs in progress."""
        ...

    @property
    def handed(self) -> Sequence[Job]:
        """Jobs that were given and have not begun."""
        ...

    def open(self, jobs: Sequence[Job], *, total: int | None = None) -> None:
        """Get ready what these jobs need. They are all that will be given, unless ``total`` says how many there are.

        Raises HowdahError where they cannot be made there.
        """
        ...

    def has_room(self) -> bool:
        """Whether another job can be given now."""
        ...

    def give(self, job: Job) -> None:
        """Begin a job, or have it begin as soon as it can. Raises HowdahError where that is not possible."""
        ...

    def wait(self, timeout_s: float) -> list[Outcome]:
        """Those that have ended; returns after ``timeout_s`` at the latest. Finished runs have their final names."""
        ...

    def show(self, outcomes: Sequence[Outcome], rest: Rest) -> None:
        """How far the batch is, for those who look at it from elsewhere."""
        ...

    def kill(self) -> None:
        """End every run that was given, and remove what it left."""
        ...

    def close(self) -> None:
        """The batch is over: give back what no further batch needs."""
        ...
