# SPDX-License-Identifier: Apache-2.0
"""Writes the numbers of a cluster's runs while a command goes on, for ``howdah serve``."""

from __future__ import annotations

import time
from collections.abc import Sequence
from contextlib import suppress
from pathlib import Path

from howdah.cluster.workers import Workers
from howdah.publish.sweep import Sweep
from howdah.work.display import simulated_s, time_left
from howdah.work.job import Outcome, Rest, Work

_EVERY_S = 1.0


class Tally:
    """Counts all batches of a command. ``runs`` is the directory for the file; None writes nothing."""

    def __init__(self, runs: Path | None) -> None:
        self.sweep = Sweep()
        self._runs = runs
        self._sent_before = 0
        self._due = 0.0

    def add(self, outcomes: Sequence[Outcome]) -> None:
        """Count outcomes that ended."""
        made = [each for each in outcomes if each.error is None]
        self.sweep.runs["made"] += len(made)
        self.sweep.runs["failed"] += len(outcomes) - len(made)
        self.sweep.simulated_s += simulated_s(made)

    def show(self, active: list[Work], handed: int, workers: Workers, outcomes: Sequence[Outcome], rest: Rest) -> None:
        """Write the numbers once a second; ``outcomes`` and ``rest`` are those that a batch reports."""
        if self._runs is None or time.monotonic() < self._due:
            return
        self._due = time.monotonic() + _EVERY_S
        members = workers.members
        waiting = rest.total - rest.past.count - len(outcomes) - len(active) - handed
        self.sweep.runs |= {"in_progress": len(active), "handed": handed, "waiting": waiting}
        self.sweep.left_s = time_left(active, list(outcomes), rest)
        ready, refused = sum(each.ready for each in members), sum(each.refused is not None for each in members)
        self.sweep.workers = {"ready": ready, "preparing": len(members) - ready - refused, "refused": refused}
        self.sweep.slots = workers.slots
        self.sweep.sent_bytes = self._sent_before + workers.sent_bytes
        with suppress(OSError):  # a full disk is told by what matters more
            self.sweep.write(self._runs)

    def close(self, workers: Workers) -> None:
        """Remove the file at the end of a batch."""
        self._sent_before += workers.sent_bytes
        self._due = 0.0
        if self._runs is not None:
            with suppress(OSError):
                self.sweep.remove(self._runs)
