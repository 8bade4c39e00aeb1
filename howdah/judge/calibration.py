# SPDX-License-Identifier: Apache-2.0
"""Compare what the agent measured before and after the flows with the plan."""

from __future__ import annotations

import math

from howdah.agent.calibration.train import SHORTEST_TRAIN_PACKETS, train_packets, unsteady_packets
from howdah.judge.check import Tolerance, within
from howdah.judge.loss import allowed_losses
from howdah.plan.plan import Calibration, CalibrationTarget, Plan
from howdah.record.calibration import CalibrationRecord, TargetDelays
from howdah.record.verdict import Check

_TRAIN_STEPS_US = 2 * 0.256  # error of a train's span: a step of the virtual clock at each end
_LATE_US = 1.0  # lateness of a frame that a timer sends


def calibration_checks(plan: Plan, stage: str, found: CalibrationRecord | None, tolerance: Tolerance) -> list[Check]:
    """Return the checks of calibration-before.json or -after.json; ``found`` is None if it is missing or unreadable."""
    if not plan.calibration.enabled:
        return [Check("calibration", stage, None, "the plan asks for no calibration")]
    if found is None:
        return [Check("calibration", stage, False, f"calibration-{stage}.json is missing: the path was not measured")]
    expected = plan.calibration
    slower = expected.train_rate_bits_per_second
    configured = slower or expected.rate_bits_per_second
    what = "the rate of the sender's interface, which is slower than the bottleneck," if slower else ""
    checks = [
        within(
            "rate",
            stage,
            found.rate_bits_per_second,
            configured,
            _allowed_bits_per_second(plan, configured, tolerance),
            "bit/s",
            what or "the rate of the bottleneck",
            "too little of the packet train arrived",
        )
    ]
    measured = {(item.sender, item.receiver): item for item in found.targets}
    for target in expected.targets:
        item = measured.get((target.sender, target.receiver))
        checks += _delays(target, stage, item, tolerance, expected.early_us)
    checks.append(_buffer(plan, stage, found, tolerance))
    checks.append(_loss(plan, stage, found, tolerance))
    if not found.silent:
        message = "the network did not fall silent after the measurement: its packets may reach the flows"
        checks.append(Check("silence", stage, False, message))
    return checks


def _allowed_bits_per_second(plan: Plan, rate_bits_per_second: int, tolerance: Tolerance) -> float:
    """Return the allowed error of a packet train's rate: a share of the rate, plus the error of the clock over the
    train's steady part.

    With 500 frames a clock step is 0.005 % at 400 Mbit/s and 0.11 % at 10 Gbit/s. In the shortest trains a timer sends
    one frame, and its lateness is added.
    """
    calibration = plan.calibration
    fits = train_packets(calibration.buffer_bytes, calibration.frame_bytes)
    sent = min(fits, calibration.train_packets or fits)
    frames = sent * 3 // 4 if sent // 4 == unsteady_packets(sent) else sent - unsteady_packets(sent) - 1
    off_us = _TRAIN_STEPS_US + (_LATE_US if sent <= SHORTEST_TRAIN_PACKETS else 0)
    span_us = max(frames, 1) * calibration.frame_bytes * 8e6 / rate_bits_per_second
    return rate_bits_per_second * (tolerance.rate_share + off_us / span_us)


def _delays(
    target: CalibrationTarget, stage: str, item: TargetDelays | None, tolerance: Tolerance, early_us: int
) -> list[Check]:
    """Check the one-way delay of each direction: minimum and median may exceed the base only by the configured
    variation.

    Where the plan lets packets overtake, some forward probes arrive ``early_us`` early, but at least half do not.
    """
    checks = []
    for direction, delay_us, variation_us, early, ends in (
        ("forward", target.forward_delay_us, target.variation_us, early_us, (target.sender, target.receiver)),
        ("reverse", target.reverse_delay_us, target.variation_reverse_us, 0, (target.receiver, target.sender)),
    ):
        name = f"{direction} delay {target.sender}-{target.receiver}"
        what = f"the {direction} delay from {ends[0]} to {ends[1]}"
        values = item.delays_ns(direction) if item is not None else None
        allowed = tolerance.delay(delay_us)
        if not values:
            checks.append(
                Check(name, stage, False, f"{what} could not be measured: no probe arrived", delay_us, unit="us")
            )
            continue
        least, median = values[0] / 1000, values[1] / 1000
        low = least < delay_us - early - allowed or median < delay_us - allowed
        high = least > delay_us + variation_us + allowed or median > delay_us + variation_us + allowed
        worst = least if low and least < delay_us - early - allowed else median
        relation = "is too short" if low else "is too long" if high else "is as configured"
        more = f" + up to {variation_us} of variation" if variation_us else ""
        more += f", some {early} early" if early else ""
        message = f"{what} {relation}: {worst:.10g} us, expected {delay_us}{more} ± {allowed:.4g}"
        checks.append(Check(name, stage, not (low or high), message, delay_us, worst, allowed + variation_us, "us"))
    return checks


def whole_nanoseconds(rate_bits_per_second: int, frame_bytes: int) -> float:
    """Return the rate in bits per second at which htb sends full frames: it charges each in whole nanoseconds, rounded
    down (psched_l2t_ns).

    At 10 Gbit/s a frame of 1514 bytes takes 1211 ns instead of 1211.2, so a full buffer drains 0.017 % faster.
    """
    return frame_bytes * 8e9 / max(frame_bytes * 8_000_000_000 // rate_bits_per_second, 1)


def _buffer(plan: Plan, stage: str, found: CalibrationRecord, tolerance: Tolerance) -> Check:
    """Check the depth of the bottleneck's buffer, to half a frame (a byte limit cannot be filled more closely), in real
    time to a frame.

    The agent converts the longest wait into bytes with the rate that it measured. If that rate is right within its
    measurement error, the error is removed: a packet train lasts milliseconds, a full buffer hundreds of them.
    """
    expected = plan.calibration
    if expected.part_bytes is not None and not expected.buffer_unknown:
        return _part_of_buffer(expected.part_bytes, stage, found, expected)
    configured, half = expected.rate_bits_per_second, expected.frame_bytes / 2
    filled = expected.buffer_bytes // expected.frame_bytes * expected.frame_bytes  # whole frames only
    depth, rate = found.buffer_bytes, found.rate_bits_per_second
    if depth is not None and found.format == 1:  # that format added a whole frame to the wait
        depth -= half
    if depth is not None and rate and abs(rate - configured) <= _allowed_bits_per_second(plan, configured, tolerance):
        drained = whole_nanoseconds(configured, expected.frame_bytes)
        depth = round((depth - half) * drained / rate + half)
    delivered = found.buffer_delivered_packets
    if depth is None and found.buffer_offered_bytes and delivered is not None:
        # Everything that arrived had waited or passed before the buffer filled up; the last frames found no room.
        arrived = delivered * expected.frame_bytes
        if arrived < filled:
            message = f"the buffer of the bottleneck is too low: {arrived} bytes came of all that filled it"
            return Check("buffer", stage, False, f"{message}, expected {filled}", filled, arrived, None, "bytes")
    step = math.ceil(tolerance.clock_step_us * configured / 8e6)
    return within(
        "buffer",
        stage,
        depth,
        filled,
        tolerance.buffer_frames * expected.frame_bytes + step,
        "bytes",
        "the buffer of the bottleneck",
        found.buffer_why or "",
    )


def _part_of_buffer(part_bytes: int, stage: str, found: CalibrationRecord, expected: Calibration) -> Check:
    """Check that a buffer that takes too long to fill holds at least the part that was filled. Its full depth is known
    only from the queue's own report, which the check of the queues compares (howdah/judge/settings.py)."""
    depth, dropped = found.buffer_bytes, found.buffer_dropped_packets or 0
    what = f"the buffer of the bottleneck, {part_bytes} of its {expected.buffer_bytes} bytes filled,"
    if depth is None and not dropped:
        return Check("buffer", stage, None, f"{what} could not be measured: {found.buffer_why}", part_bytes)
    ok = not dropped and depth is not None and depth >= part_bytes
    message = f"{what} held {depth or 'fewer'} bytes and dropped {dropped} packets"
    message += "; the rest is what its queue says of itself" if ok else ": it is too low"
    return Check("buffer", stage, ok, message, part_bytes, depth, 0, "bytes")


def _loss(plan: Plan, stage: str, found: CalibrationRecord, tolerance: Tolerance) -> Check:
    """Check the packets lost on a path whose buffer does not overflow: a binomial count of the configured ratio, or
    none."""
    sent, received = (found.loss.sent, found.loss.received) if found.loss is not None else (None, None)
    ahead, back = plan.path.losses(ahead=True), plan.path.losses(ahead=False)
    if not sent or received is None:
        return Check("loss", stage, False, "the loss of the path was not measured", ahead.ratio, None, None, "ratio")
    lost = sent - received
    # Equal numbers of probes go in both directions. The train goes forward; with several machines it passes no delay
    # line.
    probes_back = 0
    if back.ratio:
        probes_back = (sent - (0 if plan.traits.several_machines else found.rate_train_packets or 0)) // 2
    means = (ahead.ratio * (sent - probes_back), back.ratio * probes_back)
    mean = sum(means)
    allowed = math.hypot(
        allowed_losses(lost - means[1], sent - probes_back, ahead.ratio, ahead.burst_packets, tolerance.deviations),
        allowed_losses(lost - means[0], probes_back, back.ratio, back.burst_packets, tolerance.deviations),
    )
    ok = abs(lost - mean) <= allowed
    message = f"{lost} of {sent} probes were lost, expected {mean:.4g} ± {allowed:.3g}"
    return Check("loss", stage, ok, message, mean, lost, allowed, "packets")
