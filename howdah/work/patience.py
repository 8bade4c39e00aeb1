# SPDX-License-Identifier: Apache-2.0
"""Ends a run whose simulated time stands still, after less of a processor than an engine allows every run."""

from __future__ import annotations

import os
import time
from collections.abc import Callable

from howdah.engine.engine import RunProgress
from howdah.engine.life import processor_s
from howdah.errors import RunFailedError

LOOKS_AFTER_S = 1.0  # of wall time: until then it does not look what was used


class Patience:
    """Progress of a run that this process makes, passed on to ``progress``.

    A call raises RunFailedError where ``limit_s`` of processor time has passed since simulated time last did.
    ``in_use`` says in words whose code may do it.
    """

    def __init__(self, progress: RunProgress, limit_s: float, in_use: Callable[[], str]) -> None:
        self._progress, self._limit_s, self._in_use = progress, limit_s, in_use
        self._position = ("", 0, 0)
        self._moved, self._moved_at_core_s = time.monotonic(), 0.0

    def __call__(self, phase: str, done_us: int, of_us: int) -> None:
        self._progress(phase, done_us, of_us)
        now = time.monotonic()
        if self._position != (phase, done_us, of_us):
            self._position = phase, done_us, of_us
            self._moved, self._moved_at_core_s = now, processor_s(os.getpid())
        elif now - self._moved > LOOKS_AFTER_S:
            self._check(processor_s(os.getpid()) - self._moved_at_core_s)

    def _check(self, spent_s: float) -> None:
        if spent_s > self._limit_s:
            phase, done_us, of_us = self._position
            raise RunFailedError(
                f"the run hangs, and was ended: {spent_s:.1f} s of a processor passed without simulated time "
                f"(phase {phase}, {done_us / 1e6:.1f} of {of_us / 1e6:.1f} simulated seconds){self._in_use()}"
            )
