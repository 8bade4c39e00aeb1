# SPDX-License-Identifier: Apache-2.0
"""The bottleneck's rate, from the dispersion of full frames sent back to back (Jain and Routhier's packet trains)."""

from __future__ import annotations

import math
import socket
import sys
from collections.abc import Sequence
from dataclasses import dataclass

from howdah.agent.calibration.median import median
from howdah.agent.calibration.udp import (
    NUMBER,
    SAMPLED_PORT,
    Arrival,
    arrivals,
    open_receiver,
    open_sender,
    send,
    wall_ns,
)
from howdah.agent.loop import Loop
from howdah.frame import UDP_FRAME_BYTES
from howdah.linux.clock import MS, SECOND, now_ns
from howdah.linux.namespace import Namespace
from howdah.plan.plan import Calibration, CalibrationTarget

LONGEST_TRAIN_PACKETS = 500
# An idle bucket passes two frames at once, so the rate spaces the third, and its distance from the second shows the
# rate. Of three frames the bucket passes two, so a buffer of one frame holds the third.
SHORTEST_TRAIN_PACKETS = 3
_BURST_PACKETS = 2
_BUFFER_SHARE = 0.8
_MARGIN_NS = 50 * MS


@dataclass(frozen=True)
class TrainResult:
    """The measured rate, counting whole frames; None if too few packets arrived."""

    rate_bits_per_second: float | None
    sent: int
    received: int


def train_packets(buffer_bytes: int, frame_bytes: int) -> int:
    """The length of a train that fits into the buffer however fast it arrives, so that the buffer drops none of it."""
    fits = math.floor(_BUFFER_SHARE * buffer_bytes / frame_bytes)
    return max(min(LONGEST_TRAIN_PACKETS, fits), SHORTEST_TRAIN_PACKETS)


def unsteady_packets(sent: int) -> int:
    """The number of frames at the head of a train that do not show the rate, because an idle token bucket passes its
    burst.

    The shortest train needs the burst's last frame, which no timer delayed, unlike the frame after it.
    """
    return max(sent // 4, min(_BURST_PACKETS, sent - 2))


def dispersion(found: list[Arrival], sent: int, frame_bytes: int) -> float | None:
    """The rate in bits per second, from a line fitted to the arrivals. At 10 Gbit/s a timer is late by up to a frame,
    and the first and last arrival alone would be off by as much.

    Numbers are positions in the train, so a packet lost after the bottleneck does not change the rate.
    """
    return _line_rate([arrival for arrival in found if arrival.number >= unsteady_packets(sent)], frame_bytes)


def fitted_rate(found: list[Arrival], frame_bytes: int, burst_frames: int, sent_ns: int) -> float | None:
    """The rate in real time, where timers are late at random: from a line fitted to the arrivals.

    Leaves out the first ``burst_frames``, and arrivals while the train was still being sent (until ``sent_ns``). A
    bucket woken by a packet is on time and one woken by its timer is late, and the change between them would look like
    a rate.
    """
    steady = [arrival for arrival in found if arrival.number >= burst_frames and arrival.time_ns > sent_ns]
    return _line_rate(steady, frame_bytes) if len(steady) > 2 else None


def _line_rate(arrivals: list[Arrival], frame_bytes: int) -> float | None:
    """The rate of the line through the arrivals; None if fewer than two arrived, or all at once."""
    if len(arrivals) < 2:
        return None
    frame_ns = _slope([item.number for item in arrivals], [item.time_ns for item in arrivals])
    return frame_bytes * 8 * SECOND / frame_ns if frame_ns > 0 else None


def _slope(x: Sequence[int], y: Sequence[int]) -> float:
    """The slope of the least-squares line through points of different ``x``; exact until its only division.

    >>> _slope([0, 1, 2, 3], [10, 12, 14, 16])
    2.0
    """
    count, sum_x, sum_y = len(x), sum(x), sum(y)
    products = count * sum(one * other for one, other in zip(x, y, strict=True)) - sum_x * sum_y
    return products / (count * sum(one * one for one in x) - sum_x * sum_x)


def robust_dispersion(found: list[Arrival], sent: int, frame_bytes: int) -> float | None:
    """The rate when some packets overtake: the median over pairs half a train apart, most of which kept their order."""
    first = unsteady_packets(sent)
    times = {arrival.number: arrival.time_ns for arrival in found if arrival.number >= first}
    lag = (sent - first) // 2
    spans_ns = [times[number + lag] - time_ns for number, time_ns in times.items() if number + lag in times]
    median_ns = median(spans_ns) if spans_ns else 0
    return lag * frame_bytes * 8 * SECOND / median_ns if median_ns > 0 else None


def measure_rate(
    calibration: Calibration, target: CalibrationTarget, namespaces: dict[str, Namespace], loop: Loop
) -> TrainResult:
    sender = open_sender(namespaces[target.sender], target.sender_address)
    receiver = open_receiver(namespaces[target.receiver], target.receiver_address, SAMPLED_PORT)
    count = send_train(sender, target.receiver_address, longest_train(calibration), calibration)
    last_sent_ns = wall_ns() if calibration.burst_frames is not None else 0
    loop.run_until(now_ns() + passing_ns(calibration, target, count))
    found = arrivals(receiver)
    sender.close()
    receiver.close()
    return TrainResult(rate_of(calibration, found, count, last_sent_ns), count, len(found))


def longest_train(calibration: Calibration) -> int:
    fits = train_packets(calibration.buffer_bytes, calibration.frame_bytes)
    return min(fits, calibration.train_packets or sys.maxsize)


def send_train(sender: socket.socket, address: str, count: int, calibration: Calibration) -> int:
    """Send ``count`` frames back to back; return how many the socket took."""
    payload = bytearray(calibration.frame_bytes - calibration.overhead_bytes - UDP_FRAME_BYTES)
    for number in range(count):
        NUMBER.pack_into(payload, 0, number)
        if not send(sender, payload, address, SAMPLED_PORT):
            return number
    return count


def passing_ns(calibration: Calibration, target: CalibrationTarget, count: int) -> int:
    """The time after sending a train by which all of it must have arrived."""
    # A sender's interface slower than the bottleneck spaces the train out.
    slowest = calibration.train_rate_bits_per_second or calibration.rate_bits_per_second
    drain_ns: int = count * calibration.frame_bytes * 8 * SECOND // slowest
    delay_ns: int = (target.forward_delay_us + target.variation_us) * 1000
    return 2 * drain_ns + delay_ns + _MARGIN_NS


def rate_of(calibration: Calibration, found: list[Arrival], count: int, last_sent_ns: int = 0) -> float | None:
    """The rate from the arrivals of a train of ``count`` frames whose sending ended at ``last_sent_ns``."""
    frame_bytes = calibration.frame_bytes
    if calibration.early_us:
        return robust_dispersion(found, count, frame_bytes)
    if calibration.burst_frames is not None:
        return fitted_rate(found, frame_bytes, calibration.burst_frames, last_sent_ns)
    return dispersion(found, count, frame_bytes)
