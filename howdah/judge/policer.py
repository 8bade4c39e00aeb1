# SPDX-License-Identifier: Apache-2.0
"""Check the policer: burst and rate by a train of frames before and after the flows, and its bucket while they run."""

from __future__ import annotations

import numpy as np

from howdah.judge.check import Tolerance, within
from howdah.measure.measured import Measured
from howdah.measure.sampled import Samples
from howdah.measure.trace import SECOND_NS
from howdah.plan.plan import Plan
from howdah.plan.policer import Policer
from howdah.record.calibration import CalibrationRecord, PolicerTrain
from howdah.record.verdict import DURING, Check


def train_checks(plan: Plan, stage: str, found: CalibrationRecord | None, tolerance: Tolerance) -> list[Check]:
    """Return the checks of calibration-*.json. Return none if the file is missing, which another check reports.

    Frames arrive every ``spacing``, faster than the bucket fills. The first dropped frame, with number m at time t,
    found less than a frame in the bucket; the one before found at least that. So the burst is within part of a frame of
    (m + 1/2) frames - rate x (t - spacing / 2). From then on frames pass at the rate, which is known to one frame of
    all.
    """
    policer = plan.path.policer
    if policer is None or not plan.calibration.enabled or found is None:
        return []
    if policer.unmeasured:
        what = f"the policer was not measured by a train: {policer.unmeasured}"
        return [Check("policer", stage, None, what)]
    frame, rate = plan.path.frame_bytes, policer.rate_bits_per_second
    item = found.policer or PolicerTrain()
    if item.first_dropped is None or item.first_dropped_ns is None:
        message = f"the policer dropped none of {item.sent} frames, which exceed its burst and its rate: it is missing"
        return [Check("policer burst", stage, False, message, policer.burst_bytes, None, frame, "bytes")]
    middle_ns = item.first_dropped_ns - policer.spacing_ns / 2
    burst = (item.first_dropped + 0.5) * frame - rate * middle_ns / 8 / SECOND_NS
    margin = tolerance.buffer_frames * frame
    span, steady, after = item.passed_after_ns, None, item.passed_after
    if span is not None and span[1] > span[0]:
        steady = (after - 1) * frame * 8 * SECOND_NS / (span[1] - span[0])
    return [
        within("policer burst", stage, round(burst), policer.burst_bytes, margin, "bytes", "the policer's burst"),
        within(
            *("policer rate", stage, steady, rate),
            rate * (tolerance.rate_share + 1 / max(after - 1, 1)),
            *("bit/s", "the policer's rate", "nothing passed it once its bucket was empty"),
        ),
    ]


def bucket_check(data: Measured, tolerance: Tolerance) -> list[Check]:
    """Check what passed while the flows ran against a token bucket that is recomputed from reading to reading.

    ``most`` and ``least`` bound the bucket's content: the most if packets came before it filled up, the least if after.
    No more than ``most`` may pass, and nothing may be dropped where ``least`` never fell below a frame; both to one
    frame and the tolerance of a rate.
    """
    policer = data.plan.path.policer
    if policer is None:
        return []
    hook = data.policer
    queue = data.bottleneck
    if hook is None or not (hook.has("drops_packets") and queue.has("sent_bytes") and queue.has("backlog_bytes")):
        return [Check("policer", DURING, None, "the policer's counters were not read", unit="packets")]
    dropped = int(hook["drops_packets"][-1] - hook["drops_packets"][0])
    wrong = _replay(policer, hook, queue, data.plan.path.frame_bytes, tolerance.rate_share)
    message = f"the policer dropped {dropped} packets, and let pass what its bucket held in {len(hook) - 1} intervals"
    if wrong is not None:
        message = f"the policer is not the planned one: {wrong}"
    return [Check("policer", DURING, wrong is None, message, None, dropped, None, "packets")]


def _replay(policer: Policer, hook: Samples, queue: Samples, frame: int, share: float) -> str | None:
    """Return what contradicts the bucket at the first such reading, or None."""
    _, hook_index, queue_index = np.intersect1d(hook.time_ns, queue.time_ns, return_indices=True)
    time_ns = hook.time_ns[hook_index]
    drops = np.diff(hook["drops_packets"][hook_index]).tolist()
    passed = np.diff((queue["sent_bytes"] + queue["backlog_bytes"])[queue_index]).tolist()
    refused = np.diff(queue["drops_packets"][queue_index]).tolist()  # they passed the policer; their sizes are unknown
    burst = float(policer.burst_bytes)
    most = least = burst  # full when the flows start
    for number, span_ns in enumerate(np.diff(time_ns).tolist()):
        filled = policer.rate_bits_per_second * span_ns / 8 / SECOND_NS
        at_s = time_ns[number] / SECOND_NS
        margin = frame + share * filled
        more = passed[number] - most - filled
        if more > margin:
            return f"after {at_s:.3f} s {more:.0f} bytes more passed than its bucket could hold"
        lowest = least - passed[number] - refused[number] * frame
        if drops[number] and lowest > margin + frame:
            return (
                f"after {at_s:.3f} s it dropped {drops[number]} packets with at least {lowest:.0f} bytes in its bucket"
            )
        most = min(burst, max(most + filled - passed[number], 0.0))
        least = max(0.0, min(burst, least + (1 - share) * filled) - passed[number] - refused[number] * frame)
    return None
