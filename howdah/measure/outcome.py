# SPDX-License-Identifier: Apache-2.0
"""Whether a flow left its start-up, where no exit is seen: only what the data carry is said.

A finite ssthresh ends a slow start. Where it stays infinite, the flow is in slow start only if its control is one that
leaves by it, or if its window still grows. A control that never sets it (one that keeps to a rate or to a window) may
have ended its start-up long ago.
"""

from __future__ import annotations

import numpy as np

from howdah.algorithm import THRESHOLD_TELLS
from howdah.measure.control import gains_of, name_of
from howdah.measure.event import is_plug_in
from howdah.measure.growth import STILL_GROWS
from howdah.measure.limit import limit_before
from howdah.measure.rounds import rounds
from howdah.measure.sampled import Samples
from howdah.measure.trace import FlowTrace
from howdah.plan.plan import Plan

STAYED = "the flow did not leave slow start"
STAYED_PACED = "the flow did not leave its start-up"
UNKNOWN_END = "end of start-up unknown: ssthresh stayed infinite"
_GROWING_ROUNDS = 2  # Vegas grows every other round


def without_exit(plan: Plan, trace: FlowTrace, info: Samples, *, paced: bool) -> tuple[bool | None, str]:
    """Whether a flow without an exit left its start-up (False: it did not; None: nobody can tell), and why no exit.

    ``paced``: its control is like BBR. Then the last reading of its gain tells. Else the flow is in slow start by its
    infinite threshold if its control is a slow-start plug-in or one of the kernel's own that leave by it; any other by
    its window if that grew by a quarter in the last two rounds.
    """
    limit = limit_before(trace, info, trace.stop_ns)
    held = "" if limit is None else f"; it was held back by the {limit.replace('-', ' ')}"
    if paced:
        gains = gains_of(info)
        stays = gains.left is not None and gains.left == gains.gain.size
        return (False, STAYED_PACED + held) if stays else (None, UNKNOWN_END + held)
    if _leaves_by_threshold(plan, trace) or _grows(trace):
        return False, STAYED + held
    return None, UNKNOWN_END + held


def _leaves_by_threshold(plan: Plan, trace: FlowTrace) -> bool:
    flow = trace.flow
    if plan.traits.model or is_plug_in(plan, flow):
        return True
    of_kernel = flow.is_tcp and flow.kernel_algorithm not in plan.own_algorithms
    return name_of(flow) in THRESHOLD_TELLS and (of_kernel or flow.like is not None)


def _grows(trace: FlowTrace) -> bool:
    starts = rounds(trace)
    window = trace.cwnd[starts[-1 - _GROWING_ROUNDS] if starts.size > _GROWING_ROUNDS else 0 :]
    return bool(window[-1] >= STILL_GROWS * window[0] and (np.diff(window) >= 0).all())
