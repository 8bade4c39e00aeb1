# SPDX-License-Identifier: Apache-2.0
"""Parameters and kernel options of random early detection and its descendants."""

from __future__ import annotations

import struct
from dataclasses import dataclass
from typing import TYPE_CHECKING

from howdah.codec import planned
from howdah.linux.netlink.discipline.discipline import AskedSize, Parameters, Room, UnfitError, Words, asked

if TYPE_CHECKING:
    from fractions import Fraction  # slow to import in a guest, which does not need it

_PROBABILITY_ONE = 2**32
_PARAMETERS = struct.Struct("=IIIBBBB")  # struct tc_red_qopt, and tc_choke_qopt of the same layout


@planned
class EarlyParameters(Parameters):
    """The parameters that random early detection and its descendants share."""

    least: AskedSize | None = asked(
        None, "mean queue from which packets are dropped; a third of most by default", "buffer"
    )
    most: AskedSize | None = asked(
        None, "mean queue from which every packet is dropped; a quarter of the buffer by default", "buffer"
    )
    probability: Fraction = asked("2 %", "of a drop when the mean queue reaches most", "share")
    burst: int | None = asked(
        None,
        "packets that may arrive at once; by default (2 least + most) / (3 frames), or what the kernel can hold",
        least=1,
        most=1_000_000,
    )

    def wrong(self) -> tuple[str, str] | None:
        if not 0 < self.probability < 1:
            return "probability", "expected a probability between 0 and 100 %, without either"
        return None


@dataclass(frozen=True)
class Early:
    """Limit and thresholds, in the unit that is counted, and the kernel's numbers (red_numbers.py)."""

    limit: int
    least: int
    most: int
    burst_packets: int
    probability: float
    ewma_log: int
    probability_log: int
    idle_log: int
    idle_shifts: list[int]


def early(called: str, kind: str, asked: EarlyParameters, room: Room, unit: str) -> Early:
    """Compute the options for a hop; ``called`` is the name in messages, ``unit`` what is counted: bytes or packets.

    Raises UnfitError.
    """
    from howdah.linux.netlink.discipline.red_numbers import (
        red_numbers,
    )  # not imported in guests, whose plan has the numbers

    step, frame = (room.frame_bytes, room.frame_bytes) if unit == "packets" else (1, room.frame_bytes)
    most = room.of(asked.most) if asked.most else room.buffer_bytes // 4
    least = room.of(asked.least) if asked.least else most // 3
    limit, least, most = -(-room.buffer_bytes // step), least // step * step, most // step * step
    if not frame <= least < most <= limit * step:
        counted = f"{frame // step}, {least // step}, {most // step}, {limit} {unit}"
        what = f"{called}{room.at} needs a frame <= least < most <= buffer, not {counted}"
        raise UnfitError(what, "give least and most of the queue, or a larger buffer")
    probability = float(asked.probability)
    numbers = red_numbers(least, most, frame, asked.burst, probability, room.rate_bits_per_second, step)
    if isinstance(numbers, str):
        raise UnfitError(f"{called}{room.at}: {numbers}", f"another burst of {kind}, or smaller thresholds")
    logs = (numbers.ewma_log, numbers.probability_log, numbers.idle_log, numbers.idle_shifts)
    return Early(limit, least // step, most // step, numbers.burst_packets, probability, *logs)


def parameters(limit: int, least: int, most: int, logs: tuple[int, int, int], flags: int) -> bytes:
    return _PARAMETERS.pack(limit, least, most, *logs, flags)


def probability_of_32_bits(probability: float) -> int:
    return int(probability * _PROBABILITY_ONE)


def chance(burst_packets: int, probability: float) -> Words:
    return ["burst", burst_packets, "probability", f"{probability:.10g}"]
