# SPDX-License-Identifier: Apache-2.0
"""Measures on an axis: their names, the unit they are shown in, and printed numbers read in that unit."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

from howdah.errors import HowdahError
from howdah.quantity import QuantityError, parse_duration, parse_rate, parse_size
from howdah.report.assets import data

_RATES = (("Gbit/s", 1e-9), ("Mbit/s", 1e-6), ("kbit/s", 1e-3), ("bit/s", 1.0))
_SIZES = (("GB", 1e-9), ("MB", 1e-6), ("kB", 1e-3), ("B", 1.0))
_OF_THE_UNIT = {"us": ("ms", 1e-3)}
_COUNTS = ("packets", "packet", "events", "rounds", "round trips", "segments")


@dataclass(frozen=True)
class Measure:
    """``factor`` turns a number of metrics.json into one of ``unit``; ``base`` is the unit there."""

    name: str
    words: str
    unit: str
    factor: float
    base: str

    @property
    def label(self) -> str:
        return f"{self.words} ({self.unit})" if self.unit else self.words


def measure_of(name: str, base: str, numbers: list[float]) -> Measure:
    """A measure as the result table calls it, in a unit that suits its numbers (in the unit of metrics.json)."""
    entry = next((each for each in data("measures.yaml") if each["measure"] == name), None)
    words = str(entry["header"]).rstrip(".") if entry else name.replace("_", " ")
    unit, factor = base, 1.0
    if entry:
        unit, factor = str(entry["unit"]), float(entry.get("factor", 1.0))
    elif base in _OF_THE_UNIT:
        unit, factor = _OF_THE_UNIT[base]
    most = max((abs(number) for number in numbers), default=0.0)
    if base == "bit/s" and most:
        unit, factor = next(((unit, each) for unit, each in _RATES if most * each >= 1), _RATES[-1])
    if base == "bytes" and most:
        unit, factor = next(((unit, each) for unit, each in _SIZES if most * each >= 1), _SIZES[-1])
    return Measure(name, words, unit, factor, base)


def printed_number(value: Any, base: str) -> float:
    """A number as a paper prints it, in the unit of metrics.json: ``95.6 %`` of a ratio is 0.956.

    A number without a unit is in that of metrics.json. Raises HowdahError for one in another unit.
    """
    if isinstance(value, int | float):
        return float(value)
    text = str(value).strip()
    try:
        return float(text)
    except ValueError:
        pass
    try:
        return _with_unit(text, base)
    except (QuantityError, ValueError):
        unit = base or "no unit"
        raise HowdahError(f"the printed number {text!r} cannot be read; the measure is in {unit}") from None


def _with_unit(text: str, base: str) -> float:
    if base == "s":
        return parse_duration(text) / 1e6
    if base == "us":
        return float(parse_duration(text))
    if base == "bytes":
        return float(parse_size(text))
    if base == "bit/s":
        return float(parse_rate(text))
    number, _, unit = text.partition(" ")
    if base == "ratio" and text.endswith("%"):
        return float(text[:-1]) / 100
    if base == "ratio" and unit.lower() == "bdp":
        return float(number)
    if unit == base or (unit in _COUNTS and base in _COUNTS):
        return float(number)
    raise ValueError(text)
