# SPDX-License-Identifier: Apache-2.0
"""Axes: names and units of measures, conversion of values to pixels, and positions of ticks."""

from __future__ import annotations

import math
from dataclasses import dataclass
from typing import Any

from howdah.errors import HowdahError
from howdah.metric import Metric, known_metrics
from howdah.number import significant
from howdah.quantity import QuantityError

_RATES = (("Gbit/s", 1e-9), ("Mbit/s", 1e-6), ("kbit/s", 1e-3), ("bit/s", 1.0))
_SIZES = (("GB", 1e-9), ("MB", 1e-6), ("kB", 1e-3), ("B", 1.0))


@dataclass(frozen=True)
class Measure:
    """A measure in the unit shown. ``factor`` converts from ``base``, its unit in metrics.json, to ``unit``."""

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
    """A measure named as in the result table, in a unit that suits its numbers (given in the unit of metrics.json)."""
    known = known_metrics().get(name)
    words = (known or Metric(name)).words
    unit, factor = (known.shown, known.factor) if known else (base, 1.0)
    most = max((abs(number) for number in numbers), default=0.0)
    if base == "bit/s" and most:
        unit, factor = next(((unit, each) for unit, each in _RATES if most * each >= 1), _RATES[-1])
    if base == "bytes" and most:
        unit, factor = next(((unit, each) for unit, each in _SIZES if most * each >= 1), _SIZES[-1])
    return Measure(name, words, unit, factor, base, known.least if known else -math.inf)


def printed_number(value: Any, name: str) -> float:
    """A number as a paper prints it, converted to the measure's unit in metrics.json: ``95.6 %`` is 0.956.

    Raises HowdahError if its unit does not fit the measure.
    """
    try:
        return known_metrics().get(name, Metric(name)).read(str(value))
    except QuantityError as error:
        raise HowdahError(f"a printed number of {name} cannot be read: {error}") from None


_NICE = (1.0, 2.0, 2.5, 5.0, 10.0)


@dataclass(frozen=True)
class Tick:
    """A value with its text; ``strong`` ticks have a line across the plot."""

    value: float
    text: str
    strong: bool = True


@dataclass(frozen=True)
class Scale:
    """Maps ``least`` to ``most`` to the pixels ``first`` to ``last`` (which may run downwards)."""

    least: float
    most: float
    first: float
    last: float
    logarithmic: bool = False

    def at(self, value: float) -> float:
        """The pixel of a value; values beyond the scale are drawn at its edge."""
        value = min(max(value, self.least), self.most)
        if self.logarithmic:
            share = math.log(value / self.least) / math.log(self.most / self.least)
        else:
            share = (value - self.least) / (self.most - self.least)
        return self.first + (self.last - self.first) * share

    def value(self, pixel: float) -> float:
        """The value at a pixel."""
        share = (pixel - self.first) / (self.last - self.first)
        if self.logarithmic:
            return float(self.least * (self.most / self.least) ** share)
        return self.least + (self.most - self.least) * share


def bounds(values: list[float], *, logarithmic: bool, zero: bool) -> tuple[float, float]:
    """The ends of a scale that holds the values with a little room; ``zero``: it begins (or ends) at 0 if that is near.

    A logarithmic scale ignores values that are not above 0. Without values: 0 to 1, or 1 to 10.
    """
    if logarithmic:
        positive = [value for value in values if value > 0]
        if not positive:
            return 1.0, 10.0
        least, most = min(positive), max(positive)
        return (least / 1.15, most * 1.15) if most > least else (least / 2, most * 2)
    if not values:
        return 0.0, 1.0
    least, most = min(values), max(values)
    if zero and least >= 0 and least < 0.6 * most:
        return 0.0, most * 1.05
    if zero and most <= 0 and most > 0.6 * least:
        return least * 1.05, 0.0
    room = 0.08 * (most - least) or 0.1 * abs(most) or 1.0
    low = least - room
    return (max(low, 0.0) if least >= 0 else low), most + room


def ticks(scale: Scale, wanted: int) -> list[Tick]:
    """About ``wanted`` round values within the scale."""
    return _logarithmic(scale, wanted) if scale.logarithmic else _linear(scale, wanted)


def _linear(scale: Scale, wanted: int) -> list[Tick]:
    raw = (scale.most - scale.least) / max(wanted, 1)
    power = 10.0 ** math.floor(math.log10(raw))
    step = power * next(nice for nice in _NICE if nice * power >= raw * (1 - 1e-9))
    first = math.ceil(scale.least / step - 1e-9)
    last = math.floor(scale.most / step + 1e-9)
    return [Tick(number * step, _text(number * step, step)) for number in range(first, last + 1)]


def _text(value: float, step: float) -> str:
    """The value with the digits that the step needs, so that 10 and 12.5 do not become 10 and 12."""
    digits = 4 if value == 0 else max(2, math.floor(math.log10(abs(value))) - math.floor(math.log10(step)) + 2)
    return significant(value, min(digits, 9))


def _logarithmic(scale: Scale, wanted: int) -> list[Tick]:
    low, high = math.floor(math.log10(scale.least)), math.ceil(math.log10(scale.most))
    decades = high - low
    every = max(1, math.ceil(decades / max(wanted, 1)))
    named = (1, 2, 5) if math.log10(scale.most / scale.least) < 2.2 else (1,)
    found = []
    for exponent in range(low, high + 1):
        for factor in range(1, 10):
            value = factor * 10.0**exponent
            if scale.least <= value <= scale.most:
                shown = factor in named and exponent % every == 0
                found.append(Tick(value, significant(value) if shown else "", strong=shown))
    if sum(bool(tick.text) for tick in found) < 2:  # less than a decade between the ends
        plain = Scale(scale.least, scale.most, scale.first, scale.last)
        return [tick for tick in _linear(plain, wanted) if tick.value > 0]
    return found


LETTER_PIXELS = 6.6  # of a tick's text, on average


def label_at(mark: Tick, scale: Scale, width: float) -> float:
    """The middle of a tick's text: at the tick, or as near to it as the text fits into the drawing."""
    half = len(mark.text) * LETTER_PIXELS / 2
    return max(half, min(scale.at(mark.value), width - half))


def thinned(marks: list[Tick], scale: Scale, width: float) -> list[Tick]:
    """The ticks without the texts that would overlap the previous text; the last text stays.

    ``width`` is the drawing's, in pixels.
    """
    kept: list[Tick] = []
    edge = -math.inf
    half = [len(mark.text) * LETTER_PIXELS / 2 + 4 for mark in marks]
    final = label_at(marks[-1], scale, width) - half[-1] if marks else 0.0
    for number, mark in enumerate(marks):
        middle = label_at(mark, scale, width)
        last = number == len(marks) - 1
        fits = middle - half[number] >= edge and (last or middle + half[number] <= final)
        if mark.text and (fits or (last and not kept)):
            edge = middle + half[number]
            kept.append(mark)
        else:
            kept.append(Tick(mark.value, "", mark.strong and last))
    return kept
