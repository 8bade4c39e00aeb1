# SPDX-License-Identifier: Apache-2.0
"""The same measurements where the hosts are in several kernels of one virtual time: each records its ends of them.

All clocks agree, so every kernel does its part at instants that follow from the plan, and what it saw is put together
afterwards (``evaluate``). What one kernel would decide by what it has just measured is decided then.
"""

from __future__ import annotations

from typing import Any

from howdah.agent.calibration.buffer import Filled, Filler, choose_load, depth_of, too_slow
from howdah.agent.calibration.delay import base_ns, described, send_probes
from howdah.agent.calibration.train import longest_train, passing_ns, rate_of, send_train
from howdah.agent.calibration.udp import SAMPLED_PORT, Arrival, arrivals, open_receiver, open_sender
from howdah.agent.loop import Loop
from howdah.linux.clock import MS, now_ns
from howdah.linux.namespace import Namespace
from howdah.plan.plan import Calibration, CalibrationTarget, Plan

_TRAIN_LEAD_NS = 10 * MS  # no more than this apart are the kernels when their probes are over


def record_ends(plan: Plan, here: dict[str, Namespace], loop: Loop, start_ns: int) -> dict[str, Any]:
    """What the hosts ``here`` saw of one calibration that starts at an instant and lasts its whole phase."""
    calibration = plan.calibration
    targets = calibration.targets
    measured = send_probes(plan.path, targets, here, loop, start_ns, early=bool(calibration.early_us))
    probes = [measurement.record() for measurement in measured]
    train = _train(calibration, targets[0], here, loop)
    load, chosen = choose_load(plan)
    deadline = start_ns + calibration.phase_us * 1000
    filled: list[dict[str, Any]] = []
    if load is not None and not calibration.buffer_unknown:
        fillers = [Filler(calibration, targets[number], here, loop, load) for number in chosen]
        loop.run_until(now_ns() + _TRAIN_LEAD_NS)
        for filler in fillers:
            filler.pump(now_ns())
        loop.run_until(deadline)
        for filler in fillers:
            found = filler.finish()
            filled.append(
                {
                    "sent_frames": found.sent_frames,
                    "delivered_frames": found.delivered_frames,
                    "left_ns": sorted(found.left_ns.items()),
                    "came_ns": found.came_ns,
                }
            )
    loop.run_until(deadline)
    return {"start_ns": start_ns, "probes": probes, "train": train, "filled": filled}


def _train(
    calibration: Calibration, target: CalibrationTarget, here: dict[str, Namespace], loop: Loop
) -> dict[str, Any]:
    count = longest_train(calibration)
    address = target.receiver_address
    receiver = None
    if target.receiver in here:
        receiver = open_receiver(here[target.receiver], address, SAMPLED_PORT)
    begin = now_ns() + _TRAIN_LEAD_NS
    loop.run_until(begin)
    sent = 0
    if target.sender in here:
        sender = open_sender(here[target.sender], target.sender_address)
        sent = send_train(sender, address, count, calibration)
        sender.close()
    loop.run_until(begin + _TRAIN_LEAD_NS + passing_ns(calibration, target, count))
    came = [] if receiver is None else arrivals(receiver)
    if receiver is not None:
        receiver.close()
    return {"sent": sent, "came_ns": [(arrival.number, arrival.time_ns) for arrival in came]}


def evaluate(plan: Plan, records: list[dict[str, Any]]) -> dict[str, Any]:
    """The content of calibration-*.json from what every kernel recorded, times relative to the epoch."""
    calibration = plan.calibration
    targets = calibration.targets
    early = bool(calibration.early_us)
    found, bases = [], []
    for number, target in enumerate(targets):
        forward, reverse = (_delays([record["probes"][number][way] for record in records]) for way in WAYS)
        found.append(described(target, forward, reverse))
        bases.append(base_ns(forward, early=early))
    sent = sum(record["train"]["sent"] for record in records)
    came = [Arrival(*item) for record in records for item in record["train"]["came_ns"]]
    rate = rate_of(calibration, came, sent)
    depth = _depth(plan, records, bases, rate)
    probes_sent = sum(entry["samples"] + entry["lost"] for entry in found)
    return {
        "format": 1,
        "start_ns": min(record["start_ns"] for record in records),
        "end_ns": max(record["end_ns"] for record in records),
        "silent": all(record["silent"] for record in records),
        "targets": found,
        "rate_bits_per_second": rate,
        "rate_train_packets": sent,
        "rate_train_received": len(came),
        **depth,
        "loss": {
            "sent": sent + probes_sent,
            "received": len(came) + sum(entry["samples"] for entry in found),
        },
    }


WAYS = ("forward", "reverse")


def _delays(ends: list[dict[str, Any]]) -> list[int]:
    """Of the probes of one way, which one kernel sent and another received."""
    sent: list[int] = next((end["sent_ns"] for end in ends if end["sent_ns"]), [])
    return [time_ns - sent[number] for end in ends for number, time_ns in end["arrived_ns"] if number < len(sent)]


def _depth(plan: Plan, records: list[dict[str, Any]], bases: list[int | None], rate: float | None) -> dict[str, Any]:
    calibration = plan.calibration
    load, chosen = choose_load(plan)
    why = calibration.buffer_unknown
    if why is None and rate is None:
        why = "the rate could not be measured"
    elif why is None and load is None:
        why = too_slow(plan)
    if why is not None or rate is None:
        return _buffer(None, why, 0, 0, 0)
    if calibration.train_rate_bits_per_second is not None:
        rate = float(calibration.rate_bits_per_second)
    filled = []
    for position in range(len(chosen)):
        parts = [record["filled"][position] for record in records]
        left = {number: time_ns for part in parts for number, time_ns in part["left_ns"]}
        came = [(number, time_ns) for part in parts for number, time_ns in part["came_ns"]]
        sent, delivered = (sum(part[name] for part in parts) for name in ("sent_frames", "delivered_frames"))
        filled.append(Filled(sent, delivered, left, came))
    result = depth_of(filled, [bases[number] for number in chosen], rate, calibration.frame_bytes)
    return _buffer(result.bytes, result.why, result.offered_bytes, result.delivered_packets, result.dropped_packets)


def _buffer(depth: int | None, why: str | None, offered: int, delivered: int, dropped: int) -> dict[str, Any]:
    return {
        "buffer_bytes": depth,
        "buffer_why": why,
        "buffer_offered_bytes": offered,
        "buffer_delivered_packets": delivered,
        "buffer_dropped_packets": dropped,
    }
