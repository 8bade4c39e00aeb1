# SPDX-License-Identifier: Apache-2.0
"""RED's parameters in the kernel's form (include/net/red.h): binary logarithms, and a table for idle times.

The kernel keeps the mean queue as an integer in 32 bits, shifted left by the weight's logarithm, so thresholds of
megabytes leave little room for that logarithm. ``tc`` computes these numbers in the same way, and both agree. It counts
idle time in ticks of 64 ns and the kernel in microseconds, so an idle mean falls 15.6 times slower than the rate says,
here as with ``tc``.
"""

from __future__ import annotations

import itertools
import math
from dataclasses import dataclass

TICK_NS = 64  # tc's unit of transmission times
_TABLE_ENTRIES = 256
_LARGEST_SHIFT = 31
_LARGEST_IDLE_UNITS = 512
_MEAN_BITS = 31


@dataclass(frozen=True)
class RedNumbers:
    """The kernel's numbers. The weight is 2^-ewma_log; ``idle_shifts[k]`` is how far the mean is shifted right after an
    idle time of k x 2^idle_log."""

    burst_packets: int
    ewma_log: int
    probability_log: int
    idle_log: int
    idle_shifts: list[int]


def red_numbers(
    least_bytes: int,
    most_bytes: int,
    packet_bytes: int,
    burst_packets: int | None,
    probability: float,
    rate: int,
    step_bytes: int = 1,
) -> RedNumbers | str:
    """Return the kernel's numbers, or a text that says why they do not exist. Without ``burst_packets``, take the usual
    burst, or the largest that fits. ``step_bytes`` is the unit that the kernel counts: a byte, or with CHOKe a packet.

    The weight is the smallest for which the mean stays below ``least_bytes`` while a burst arrives at an empty queue
    (Floyd and Jacobson 1993, section 4).
    """
    room = _MEAN_BITS - (most_bytes // step_bytes).bit_length()
    usual = (2 * least_bytes + most_bytes) // (3 * packet_bytes) + 1
    asked = burst_packets or usual
    log = _weight_log(least_bytes / packet_bytes, asked)
    if log is None:
        return f"a burst of {asked} packets is smaller than least, which is {least_bytes // packet_bytes} packets"
    if log > room and burst_packets is None:
        # The weight grows as the burst shrinks: find the largest burst that fits.
        low, high = math.ceil(least_bytes / packet_bytes), asked
        while low + 1 < high:
            middle = (low + high) // 2
            found = _weight_log(least_bytes / packet_bytes, middle)
            low, high = (middle, high) if found is not None and found <= room else (low, middle)
        asked, log = low, _weight_log(least_bytes / packet_bytes, low)
    if log is None or log > room:
        return f"the kernel's 32 bits cannot hold a mean over {asked} packets with a threshold of {most_bytes} bytes"
    log_of_probability = probability_log(least_bytes, most_bytes, probability)
    if log_of_probability > _LARGEST_SHIFT:
        return f"the kernel cannot hold a probability of {probability} over {most_bytes - least_bytes} bytes"
    idle_log, shifts = _idle(log, packet_bytes, rate)
    return RedNumbers(asked, log, log_of_probability, idle_log, shifts)


def probability_log(least_bytes: int, most_bytes: int, probability: float) -> int:
    return max(math.floor(math.log2((most_bytes - least_bytes) / probability)) + 1, 0)


def burst_of(least_packets: float, weight_log: int) -> int | None:
    """The smallest burst whose weight is 2^-weight_log; None if no burst has exactly this weight."""
    for burst in itertools.count(math.ceil(least_packets)):
        log = _weight_log(least_packets, burst)
        if log is not None and log >= weight_log:
            return burst if log == weight_log else None
    raise AssertionError("the weight of a burst falls as it grows")


def _weight_log(least_packets: float, burst: int) -> int | None:
    """The smallest w with burst + 1 - least <= (1 - (1 - 2^-w)^burst) 2^w, in packets; None without one."""
    over = burst + 1 - least_packets
    if over < 1:
        return None
    for log in range(1, 32):
        weight = 2.0**-log
        if over <= (1 - (1 - weight) ** burst) / weight:
            return log
    return None


def _idle(ewma_log: int, packet_bytes: int, rate_bits_per_second: int) -> tuple[int, list[int]]:
    """Compute the idle table: while no packet arrives, the mean falls as if packets of ``packet_bytes`` left at the
    rate."""
    packet_ticks = math.ceil(packet_bytes * 8e9 / rate_bits_per_second / TICK_NS)
    decay = -math.log(1 - 2.0**-ewma_log) / max(packet_ticks, 1)
    idle_log = 0
    while _LARGEST_SHIFT / decay / 2**idle_log >= _LARGEST_IDLE_UNITS and idle_log < 31:
        idle_log += 1
    shifts = [min(int((k << idle_log) * decay), _LARGEST_SHIFT) for k in range(_TABLE_ENTRIES - 1)]
    return idle_log, [*shifts, _LARGEST_SHIFT]
