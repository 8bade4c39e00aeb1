# SPDX-License-Identifier: Apache-2.0
"""The numbers of the runs that a cluster makes for a command, written for ``howdah serve`` while they change."""

from __future__ import annotations

import time
from collections.abc import Sequence
from contextlib import suppress
from pathlib import Path

from howdah.cluster.crew import Crew
from howdah.publish.sweep import Sweep
from howdah.work.display import simulated_s
from howdah.work.job import Outcome

_EVERY_S = 1.0


class Tally:
    """Of all batches of a command; ``runs`` is where it is written (None: nowhere)."""

    def __init__(self, runs: Path | None) -> None:
        self.sweep = Sweep()
        self._runs = runs
        self._left = 0  # of this batch
        self._sent_before = 0
        self._due = 0.0

    def open(self, jobs: int) -> None:
        """A batch of so many jobs begins."""
        self._left = jobs

    def add(self, outcomes: Sequence[Outcome]) -> None:
        """These ended."""
        made = [each for each in outcomes if each.error is None]
        self._left -= len(outcomes)
        self.sweep.runs["made"] += len(made)
        self.sweep.runs["failed"] += len(outcomes) - len(made)
        self.sweep.simulated_s += simulated_s(made)

    def show(self, active: int, handed: int, crew: Crew) -> None:
        """Write how it stands, once a second."""
        if self._runs is None or time.monotonic() < self._due:
            return
        self._due = time.monotonic() + _EVERY_S
        members = crew.members
        self.sweep.runs |= {"in_progress": active, "handed": handed, "waiting": max(self._left - active - handed, 0)}
        ready, refused = sum(each.ready for each in members), sum(each.refused is not None for each in members)
        self.sweep.workers = {"ready": ready, "preparing": len(members) - ready - refused, "refused": refused}
        self.sweep.slots = crew.slots
        self.sweep.sent_bytes = self._sent_before + crew.sent_bytes
        with suppress(OSError):  # a full disk is told by what matters more
            self.sweep.write(self._runs)

    def close(self, crew: Crew) -> None:
        """The batch is over."""
        self._sent_before += crew.sent_bytes
        self._due = 0.0
        if self._runs is not None:
            with suppress(OSError):
                self.sweep.remove(self._runs)
