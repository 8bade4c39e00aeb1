# SPDX-License-Identifier: Apache-2.0
"""Measures on an axis: their names, the unit they are shown in, and printed numbers read in that unit."""

from __future__ import annotations

import math
from dataclasses import dataclass
from typing import Any

from howdah.errors import HowdahError
from howdah.metric import Metric, known_metrics
from howdah.quantity import QuantityError

_RATES = (("Gbit/s", 1e-9), ("Mbit/s", 1e-6), ("kbit/s", 1e-3), ("bit/s", 1.0))
_SIZES = (("GB", 1e-9), ("MB", 1e-6), ("kB", 1e-3), ("B", 1.0))


@dataclass(frozen=True)
class Measure:
    """``factor`` turns a value of metrics.json into one of ``unit``; ``base`` is the unit there."""

    name: str
    words: str
    unit: str
    factor: float
    base: str
    least: float = -math.inf  # what no number of it is below, in the unit of metrics.json

    @property
    def label(self) -> str:
        return f"{self.words} ({self.unit})" if self.unit else self.words


def measure_of(name: str, base: str, numbers: list[float]) -> Measure:
    """A measure as the result table calls it, in a unit that suits its numbers (in the unit of metrics.json)."""
    known = known_metrics().get(name)
    words = known.label if known else name.replace("_", " ")
    unit, factor = (known.shown, known.factor) if known else (base, 1.0)
    most = max((abs(number) for number in numbers), default=0.0)
    if base == "bit/s" and most:
        unit, factor = next(((unit, each) for unit, each in _RATES if most * each >= 1), _RATES[-1])
    if base == "bytes" and most:
        unit, factor = next(((unit, each) for unit, each in _SIZES if most * each >= 1), _SIZES[-1])
    return Measure(name, words, unit, factor, base, known.least if known else -math.inf)


def printed_number(value: Any, name: str) -> float:
    """A number as a paper prints it, in the unit that metrics.json has for the measure: ``95.6 %`` is 0.956.

    Raises HowdahError for one in a unit that is not the measure's.
    """
    try:
        return known_metrics().get(name, Metric(name)).read(str(value))
    except QuantityError as error:
        raise HowdahError(f"a printed number of {name} cannot be read: {error}") from None
