# SPDX-License-Identifier: Apache-2.0
"""The metrics that claims can name, their units, and quantities read in them. ``reports/measures.yaml`` is the list."""

from __future__ import annotations

import math
import re
from dataclasses import dataclass
from functools import cache
from pathlib import Path
from typing import Any

from ruamel.yaml import YAML

from howdah.quantity import DURATION_UNITS, RATE_UNITS, SIZE_UNITS, QuantityError

REPORTS = Path(__file__).resolve().parents[2] / "reports"
TEXTS = frozenset({"exit_cause"})

_NUMBER = re.compile(r"\s*([+-]?(?:\d+(?:\.\d*)?|\.\d+)(?:[eE][+-]?\d+)?)\s*(.*?)\s*", re.ASCII | re.DOTALL)
_LONGEST = 64
# Suffix of a metric's name, its unit in metrics.json, and the units in which it may be written with their factors.
_DURATIONS = {name: float(factor) for name, factor in DURATION_UNITS.items()} | {"µs": 1.0, "min": 60e6}
_FAMILIES: tuple[tuple[str, str, dict[str, float]], ...] = (
    ("_bits_per_second", "bit/s", {name: float(factor) for name, factor in RATE_UNITS.items()}),
    ("_bytes", "bytes", {"bytes": 1.0, **{name: float(factor) for name, factor in SIZE_UNITS.items()}}),
    ("_packets", "packets", {"": 1.0, "packets": 1.0, "packet": 1.0, "segments": 1.0}),
    ("_ns", "ns", {name: factor * 1e3 for name, factor in _DURATIONS.items()}),
    ("_us", "us", _DURATIONS),
    ("_ms", "ms", {name: factor * 1e-3 for name, factor in _DURATIONS.items()}),
    ("_s", "s", {name: factor * 1e-6 for name, factor in _DURATIONS.items()}),
)
_PLAIN = {"": 1.0, "%": 0.01, "points": 0.01, "point": 0.01, "BDP": 1.0, "bdp": 1.0, "rounds": 1.0, "round": 1.0}
_COUNTS = {"events": 1.0, "connections": 1.0, "flows": 1.0, "rtt": 1.0, "rtts": 1.0, "round trips": 1.0, "times": 1.0}


@dataclass(frozen=True)
class Metric:
    """A measure of metrics.json. ``factor`` turns its value into ``shown``, the unit a reader sees."""

    name: str
    shown: str = ""
    factor: float = 1.0
    meaning: str = ""

    @property
    def is_text(self) -> bool:
        return self.name in TEXTS

    @property
    def unit(self) -> str:
        """Its unit in metrics.json where the name tells it, else nothing (a ratio or a count)."""
        return next((unit for suffix, unit, _ in _FAMILIES if self.name.endswith(suffix)), "")

    def read(self, text: str) -> float:
        """A written quantity in the unit of metrics.json. Raises QuantityError."""
        units = next((units for suffix, _, units in _FAMILIES if self.name.endswith(suffix)), {**_PLAIN, **_COUNTS})
        return _read(text, units)

    def read_tolerance(self, text: str, expected: float) -> float:
        """How far off a value may be: a quantity, or a percentage of what is expected. Raises QuantityError."""
        if re.fullmatch(r".*%\s*", text, re.DOTALL):
            return abs(_read(text, {"%": 0.01}) * expected)
        value = self.read(text)
        if value < 0:
            raise QuantityError(f"the tolerance {text!r} is negative")
        return value


def read_share(text: str) -> float:
    """A share between 0 and 1, as a number or a percentage. Raises QuantityError."""
    value = _read(text, {"": 1.0, "%": 0.01})
    if not 0 <= value <= 1:
        raise QuantityError(f"expected a share between 0 and 100 %, not {text!r}")
    return value


RATIO = Metric("ratio")


def _read(text: str, units: dict[str, float]) -> float:
    match = _NUMBER.fullmatch(text) if len(text) <= _LONGEST else None
    known = ", ".join(unit for unit in units if unit) or "no unit"
    if match is None:
        raise QuantityError(f"expected a number with its unit ({known}), not {text!r}")
    number, unit = float(match[1]), " ".join(match[2].split())
    if unit not in units and not (number == 0 and not unit):
        missing = " (the unit is missing)" if not unit else ""
        raise QuantityError(f"expected a number with its unit ({known}), not {text!r}{missing}")
    value = number * units.get(unit, 1.0)
    if not math.isfinite(value):
        raise QuantityError(f"{text!r} is not a finite number")
    return value


@cache
def known_metrics() -> dict[str, Metric]:
    """Every metric by its name."""
    found = {}
    for entry in _yaml(REPORTS / "measures.yaml"):
        name = str(entry["measure"])
        found[name] = Metric(name, str(entry["unit"]), float(entry.get("factor", 1)), str(entry["meaning"]))
    return found


@cache
def known_entries() -> frozenset[str]:
    """The ids of the atlas' entries."""
    return frozenset(_yaml(REPORTS / "atlas" / "kinds.yaml"))


def _yaml(path: Path) -> Any:
    return YAML(typ="safe", pure=True).load(path.read_text(encoding="utf-8"))
