# SPDX-License-Identifier: Apache-2.0
"""What a machine's processor had to do while something was late.

A program is late on a machine of declared, finite speed either because it was not run, for the processor was busy
without a pause, which is what such a run is there to show; or because the machine waited, and its clock is not to be
trusted. The counter outside the machine tells them apart: it knows how long the processor was idle.
"""

from __future__ import annotations

from collections.abc import Callable

import numpy as np

from howdah.measure.processor import course_of
from howdah.plan.plan import Plan
from howdah.record import table as store
from howdah.record.directory import RunDirectory, read_json

_PAUSE = 0.05  # of the time for which something was late; the rest of it, no less than 95 %, the processor was busy
WHY = ", because the processor was busy without a pause"
Idle = Callable[[int, int], int]  # ns from the epoch: from, to; idle ns between them, or more


def idle_of(directory: RunDirectory, plan: Plan) -> Idle | None:
    """None where no exact account of the processor was kept: then nothing that is late is excused.

    Intervals count as a whole, so the answer is an upper bound.
    """
    if not (plan.traits.finite_processor and plan.collect.cpu):
        return None
    try:
        ingested = read_json(directory.ingested)
        source = ingested["sources"]["cpu"]["counts"].get("source")
    except (OSError, ValueError, KeyError):
        return None
    if source != "counter":
        return None
    course = course_of(store.read(directory, "cpu"))
    idle_ns = np.maximum(course.duration_ns - course.busy_ns, 0)

    def idle(begin_ns: int, end_ns: int) -> int:
        if not course.begin_ns.size or begin_ns < course.begin_ns[0] or end_ns > course.end_ns[-1]:
            return end_ns - begin_ns  # not seen
        within = (course.end_ns > begin_ns) & (course.begin_ns < end_ns)
        return int(min(idle_ns[within].sum(), end_ns - begin_ns))

    return idle


def excused(idle: Idle | None, due_ns: int, at_ns: int) -> bool:
    """Whether what was due at one instant and came at another was late because the processor had no time for it."""
    return idle is not None and at_ns > due_ns and idle(due_ns, at_ns) <= _PAUSE * (at_ns - due_ns)
