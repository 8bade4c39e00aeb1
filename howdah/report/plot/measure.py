# SPDX-License-Identifier: Apache-2.0
"""Measures on an axis: their names, the unit they are shown in, and printed numbers read in that unit."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

from howdah.errors import HowdahError
from howdah.profile.metric import Metric, known_metrics
from howdah.quantity import QuantityError
from howdah.report.assets import data

_RATES = (("Gbit/s", 1e-9), ("Mbit/s", 1e-6), ("kbit/s", 1e-3), ("bit/s", 1.0))
_SIZES = (("GB", 1e-9), ("MB", 1e-6), ("kB", 1e-3), ("B", 1.0))
_OF_THE_UNIT = {"us": ("ms", 1e-3)}
# Where the heading of a column is too short to stand alone.
_WORDS = {
    "exit_time_s": "time of the exit",
    "exit_cwnd_packets": "window at the exit",
    "exit_cwnd_bdp": "window at the exit",
    "exit_round": "exit",
    "retransmitted_packets": "retransmissions",
    "retransmission_ratio": "retransmissions",
    "first_loss_retransmitted_packets": "retransmissions of the first loss",
    "dropped_packets": "drops of the first loss",
    "time_to_90_percent_s": "time to 90 %",
    "completion_time_s": "completion time",
    "completion_time_median_s": "median completion time",
    "jain_index": "Jain’s index",
    "queue_peak_bytes": "peak of the queue",
}


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
    words = _WORDS.get(name) or (str(entry["header"]).rstrip(".") if entry else name.replace("_", " "))
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


def printed_number(value: Any, name: str) -> float:
    """A number as a paper prints it, in the unit that metrics.json has for the measure: ``95.6 %`` is 0.956.

    Raises HowdahError for one in a unit that is not the measure's.
    """
    try:
        return known_metrics().get(name, Metric(name)).read(str(value))
    except QuantityError as error:
        raise HowdahError(f"a printed number of {name} cannot be read: {error}") from None
