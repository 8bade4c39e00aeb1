# SPDX-License-Identifier: Apache-2.0
"""Calibration when the hosts are in several kernels of one virtual time: each kernel records its own ends.

All clocks agree, so every kernel does its part at instants that follow from the plan, and ``evaluate`` joins the
records afterwards. It also makes the decisions that a single kernel would make from results during the measurement.
"""

from __future__ import annotations

from dataclasses import replace

from howdah.agent.calibration import calibration_record
from howdah.agent.calibration.buffer import BufferResult, Filler, FillResult, choose_load, depth_of, too_slow_message
from howdah.agent.calibration.delay import ProbeEnds, TargetEnds, base_ns, send_probes, target_delays
from howdah.agent.calibration.train import TrainResult, longest_train, passing_ns, rate_of, send_train
from howdah.agent.calibration.udp import SAMPLED_PORT, Arrival, arrivals, open_receiver, open_sender
from howdah.agent.loop import Loop
from howdah.codec import planned
from howdah.linux.clock import MS, now_ns
from howdah.linux.namespace import Namespace
from howdah.plan.plan import Calibration, CalibrationTarget, Plan
from howdah.record.calibration import CalibrationRecord, ProbesLost

_FORMAT = 1
_TRAIN_LEAD_NS = 10 * MS  # most by which the kernels' ends of probing differ


@planned
class TrainEnds:
    """The train: the number of frames sent, and number and time of each arrival."""

    sent: int
    came_ns: list[tuple[int, int]]


@planned
class FilledEnds:
    """The frames that fill the buffer: those sent and delivered, and number and time of each sampled frame."""

    sent_frames: int
    delivered_frames: int
    left_ns: list[tuple[int, int]]
    came_ns: list[tuple[int, int]]


@planned
class EndsRecord:
    """ends-*.json: the observations of one kernel's hosts in a calibration. ``probes`` is by target."""

    start_ns: int
    probes: list[TargetEnds]
    train: TrainEnds
    filled: list[FilledEnds]
    end_ns: int = 0
    silent: bool = True


def record_ends(plan: Plan, local: dict[str, Namespace], loop: Loop, start_ns: int) -> EndsRecord:
    """Run a calibration that starts at ``start_ns`` and lasts its whole phase; return what the hosts of this kernel
    observed."""
    calibration = plan.calibration
    targets = calibration.targets
    measured = send_probes(plan.path, targets, local, loop, start_ns, early=bool(calibration.early_us))
    probes = [measurement.record() for measurement in measured]
    train = _train(calibration, targets[0], local, loop)
    load, indices = choose_load(plan)
    deadline = start_ns + calibration.phase_us * 1000
    filled: list[FillResult] = []
    if load is not None and not calibration.buffer_unknown:
        fillers = [Filler(calibration, targets[number], local, loop, load) for number in indices]
        loop.run_until(now_ns() + _TRAIN_LEAD_NS)
        for filler in fillers:
            filler.pump(now_ns())
        loop.run_until(deadline)
        filled = [filler.finish() for filler in fillers]
    loop.run_until(deadline)
    ends = [
        FilledEnds(item.sent_frames, item.delivered_frames, sorted(item.left_ns.items()), item.came_ns)
        for item in filled
    ]
    return EndsRecord(start_ns, probes, train, ends)


def _train(calibration: Calibration, target: CalibrationTarget, local: dict[str, Namespace], loop: Loop) -> TrainEnds:
    count = longest_train(calibration)
    address = target.receiver_address
    receiver = None
    if target.receiver in local:
        receiver = open_receiver(local[target.receiver], address, SAMPLED_PORT)
    begin = now_ns() + _TRAIN_LEAD_NS
    loop.run_until(begin)
    sent = 0
    if target.sender in local:
        sender = open_sender(local[target.sender], target.sender_address)
        sent = send_train(sender, address, count, calibration)
        sender.close()
    loop.run_until(begin + _TRAIN_LEAD_NS + passing_ns(calibration, target, count))
    came = [] if receiver is None else arrivals(receiver)
    if receiver is not None:
        receiver.close()
    return TrainEnds(sent, [(arrival.number, arrival.time_ns) for arrival in came])


def evaluate(plan: Plan, records: list[EndsRecord]) -> CalibrationRecord:
    """Return the content of calibration-*.json from the records of all kernels, with times relative to the epoch."""
    calibration = plan.calibration
    early = bool(calibration.early_us)
    targets, bases = [], []
    for number, target in enumerate(calibration.targets):
        forward = _delays([record.probes[number].forward for record in records])
        reverse = _delays([record.probes[number].reverse for record in records])
        targets.append(target_delays(target, forward, reverse))
        bases.append(base_ns(forward, early=early))
    sent = sum(record.train.sent for record in records)
    came = [Arrival(*item) for record in records for item in record.train.came_ns]
    rate = rate_of(calibration, came, sent)
    measured = calibration_record(
        min(record.start_ns for record in records),
        max(record.end_ns for record in records),
        TrainResult(rate, sent, len(came)),
        _depth(plan, records, bases, rate),
        silent=all(record.silent for record in records),
        targets=targets,
        loss=ProbesLost(
            sent + sum((entry.samples or 0) + (entry.lost or 0) for entry in targets),
            len(came) + sum(entry.samples or 0 for entry in targets),
        ),
    )
    return replace(measured, format=_FORMAT)


def _delays(ends: list[ProbeEnds]) -> list[int]:
    """The delays of one direction's probes, which one kernel sent and another received."""
    sent: list[int] = next((end.sent_ns for end in ends if end.sent_ns), [])
    return [time_ns - sent[number] for end in ends for number, time_ns in end.arrived_ns if number < len(sent)]


def _depth(plan: Plan, records: list[EndsRecord], bases: list[int | None], rate: float | None) -> BufferResult:
    calibration = plan.calibration
    load, indices = choose_load(plan)
    why = calibration.buffer_unknown
    if why is None and rate is None:
        why = "the rate could not be measured"
    elif why is None and load is None:
        why = too_slow_message(plan)
    if why is not None or rate is None:
        return BufferResult(None, 0, 0, 0, why)
    if calibration.train_rate_bits_per_second is not None:
        rate = float(calibration.rate_bits_per_second)
    filled = []
    for position in range(len(indices)):
        parts = [record.filled[position] for record in records]
        left = {number: time_ns for part in parts for number, time_ns in part.left_ns}
        came = [(number, time_ns) for part in parts for number, time_ns in part.came_ns]
        sent, delivered = sum(part.sent_frames for part in parts), sum(part.delivered_frames for part in parts)
        filled.append(FillResult(sent, delivered, left, came))
    return depth_of(filled, [bases[number] for number in indices], rate, calibration.frame_bytes)
