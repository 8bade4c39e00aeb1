# SPDX-License-Identifier: Apache-2.0
"""When the emulated network is silent: between a calibration and the flows, and after the flows."""

from __future__ import annotations

from collectors.accounting import traffic_marks
from howdah.agent.loop import Loop
from howdah.linux.clock import now_ns
from howdah.linux.namespace import Namespace


def wait_for_silence(namespaces: dict[str, Namespace], loop: Loop, quiet_ns: int, deadline_ns: int) -> bool:
    """Return True once nothing was sent or queued anywhere for ``quiet_ns``, False at the deadline."""
    marks = traffic_marks(namespaces)
    now = now_ns()
    while now < deadline_ns:
        now = loop.run_until(min(now + quiet_ns, deadline_ns))
        previous, marks = marks, traffic_marks(namespaces)
        if marks == previous and not marks.queued:
            return True
    return False
