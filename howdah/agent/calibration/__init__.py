# SPDX-License-Identifier: Apache-2.0
"""Measures the emulated path before and after the flows, from addresses of its own. Later stages judge the results."""

from __future__ import annotations

from typing import Any

from howdah.agent.calibration.buffer import BufferResult, measure_buffer
from howdah.agent.calibration.delay import measure_delays
from howdah.agent.calibration.policer import measure_policer, wait_until_full
from howdah.agent.calibration.train import TrainResult, measure_rate
from howdah.agent.loop import Loop, wait_for_silence
from howdah.linux.clock import MS, now_ns
from howdah.linux.namespace import Namespace
from howdah.plan.jitter import Jitter
from howdah.plan.plan import Plan
from howdah.record.calibration import CALIBRATION_FORMAT, CalibrationRecord, DrawnDelays, ProbesLost

_POLL_NS = 20 * MS


def calibrate(plan: Plan, namespaces: dict[str, Namespace], loop: Loop, epoch_ns: int) -> CalibrationRecord:
    """Return the content of calibration-*.json, with times relative to the epoch, once the network is silent again."""
    calibration = plan.calibration
    targets = calibration.targets
    start = now_ns()
    delays, described = measure_delays(plan.path, targets, namespaces, loop, start, early=bool(calibration.early_us))
    wait_until_full(plan.path.policer, loop)
    train = measure_rate(calibration, targets[0], namespaces, loop)
    bases = [measurement.base_forward_ns for measurement in delays]
    phase_end = start + calibration.phase_us * 1000
    depth = measure_buffer(plan, bases, train.rate_bits_per_second, namespaces, loop, phase_end)
    policer = measure_policer(plan, namespaces, loop)
    draws = None if plan.path.jitter is None else _jitter(plan, plan.path.jitter, namespaces, loop)
    longest_us = max(target.forward_delay_us + target.reverse_delay_us for target in targets)
    deadline = start + (calibration.phase_us + calibration.settle_us) * 1000
    silent = wait_for_silence(namespaces, loop, longest_us * 1000 + _POLL_NS, deadline)
    return calibration_record(
        start - epoch_ns,
        now_ns() - epoch_ns,
        train,
        depth,
        silent=silent,
        policer=policer,
        jitter=draws,
        targets=described,
        loss=ProbesLost(
            train.sent + sum(measurement.sent for measurement in delays),
            train.received + sum(measurement.received for measurement in delays),
        ),
    )


def _jitter(plan: Plan, jitter: Jitter, namespaces: dict[str, Namespace], loop: Loop) -> list[DrawnDelays]:
    from howdah.agent.calibration.jitter import measure_jitter  # few runs need it

    return measure_jitter(plan, jitter, namespaces, loop)


def calibration_record(
    start_ns: int, end_ns: int, train: TrainResult, depth: BufferResult, **others: Any
) -> CalibrationRecord:
    """Return a record with what every calibration measures: its times (from the epoch), its train and the bottleneck's
    buffer. ``others`` are the record's other fields."""
    return CalibrationRecord(
        format=CALIBRATION_FORMAT,
        start_ns=start_ns,
        end_ns=end_ns,
        rate_bits_per_second=train.rate_bits_per_second,
        rate_train_packets=train.sent,
        rate_train_received=train.received,
        buffer_bytes=depth.bytes,
        buffer_why=depth.why,
        buffer_offered_bytes=depth.offered_bytes,
        buffer_delivered_packets=depth.delivered_packets,
        buffer_dropped_packets=depth.dropped_packets,
        **others,
    )
