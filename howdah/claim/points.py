# SPDX-License-Identifier: Apache-2.0
"""Points of a sweep taken together, and the order of an axis' values."""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence
from typing import Any

from howdah.claim.sample import Sample
from howdah.quantity import BufferSize, QuantityError, parse_duration, parse_rate, parse_ratio, parse_size


def pooled(samples: Sequence[Sample]) -> Sample:
    """The mean over the points within each repetition; a repetition that a point lacks is in none."""
    found = Sample(samples[0].unit)
    for each in samples:
        found.runs += each.runs
        found.left_out |= each.left_out
        found.missing |= each.missing
    common = set.intersection(*(set(each.values) for each in samples))
    for repetition in sorted(common):
        found.values[repetition] = math.fsum(float(each.values[repetition]) for each in samples) / len(samples)
    return found


def axis_order(values: Sequence[Any]) -> Callable[[Any], float]:
    """What puts an axis' values in order: their size where all are quantities of one kind, else as they are written."""
    for read in (_number, parse_duration, parse_rate, parse_size, _bdp, _packets, parse_ratio):
        try:
            sizes = {str(value): float(read(value)) for value in values}
        except (QuantityError, ValueError):
            continue
        return lambda value: sizes[str(value)]
    places = {str(value): float(index) for index, value in enumerate(values)}
    return lambda value: places[str(value)]


def _number(value: object) -> float:
    return float(str(value))


def _bdp(value: object) -> float:
    return _buffer(value, "bdp")


def _packets(value: object) -> float:
    return _buffer(value, "packets")


def _buffer(value: object, unit: str) -> float:
    size = BufferSize.parse(value)
    if size.unit != unit:
        raise QuantityError(f"{value!r} is not in {unit}")
    return float(size.amount)
