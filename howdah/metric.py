# SPDX-License-Identifier: Apache-2.0
"""The table of metrics (``reports/measures.yaml``), their units, and how to read quantities in those units."""

from __future__ import annotations

import json
import math
import re
from dataclasses import dataclass
from functools import cache
from typing import Any, Literal, get_args

from ruamel.yaml import YAML

from howdah.errors import HowdahError
from howdah.extension import Extension, extensions
from howdah.place import REPORTS
from howdah.quantity import DURATION_UNITS, RATE_UNITS, SIZE_UNITS, QuantityError

TABLE = REPORTS / "measures.yaml"
TEXT = "text"  # unit of a metric whose value is a word; metrics.json has no unit for it
BY_CAUSE = "by cause"  # unit of a metric whose rows have the unit of an exit's cause
Worse = Literal["more", "less", "either"]
Place = Literal["main", "more", "notable", "hidden", "instead"]

_NUMBER = re.compile(r"\s*([+-]?(?:\d+(?:\.\d*)?|\.\d+)(?:[eE][+-]?\d+)?)\s*(.*?)\s*", re.ASCII | re.DOTALL)
_LONGEST = 64
_DURATIONS = {name: float(factor) for name, factor in DURATION_UNITS.items()} | {"µs": 1.0, "min": 60e6}
_PLAIN = {"": 1.0, "%": 0.01, "points": 0.01, "point": 0.01, "BDP": 1.0, "bdp": 1.0, "rounds": 1.0, "round": 1.0}
_COUNTS = {"events": 1.0, "connections": 1.0, "flows": 1.0, "rtt": 1.0, "rtts": 1.0, "round trips": 1.0, "times": 1.0}


@dataclass(frozen=True)
class Unit:
    """A unit of metrics.json that has a dimension.

    The names of its metrics end in ``suffix``. ``written`` maps each unit that a person may use for a quantity to its
    factor. Prometheus uses ``base_suffix``; ``base_factor`` converts a value of metrics.json to that base unit.
    """

    name: str
    suffix: str
    written: dict[str, float]
    base_suffix: str
    base_factor: float = 1.0


UNITS = (
    Unit("bit/s", "_bits_per_second", {k: float(v) for k, v in RATE_UNITS.items()}, "_bytes_per_second", 1 / 8),
    Unit("bytes", "_bytes", {"bytes": 1.0, **{name: float(factor) for name, factor in SIZE_UNITS.items()}}, "_bytes"),
    Unit("packets", "_packets", {"": 1.0, "packets": 1.0, "packet": 1.0, "segments": 1.0}, "_packets"),
    Unit("ns", "_ns", {name: factor * 1e3 for name, factor in _DURATIONS.items()}, "_seconds", 1e-9),
    Unit("us", "_us", _DURATIONS, "_seconds", 1e-6),
    Unit("ms", "_ms", {name: factor * 1e-3 for name, factor in _DURATIONS.items()}, "_seconds", 1e-3),
    Unit("s", "_s", {name: factor * 1e-6 for name, factor in _DURATIONS.items()}, "_seconds"),
)


def unit_by_suffix(name: str) -> Unit | None:
    """Return the unit at the end of a metric's name; None for ratios and counts."""
    return next((unit for unit in UNITS if name.endswith(unit.suffix)), None)


@dataclass(frozen=True)
class Metric:
    """A row of the table; ``reports/measures.yaml`` explains its fields.

    ``factor`` converts a value of metrics.json to ``shown``, the unit that a reader sees. A metric missing from the
    table (from a file of an older version) has only a name.
    """

    name: str
    unit: str = ""
    header: str = ""
    label: str = ""
    shown: str = ""
    factor: float = 1.0
    table: Place = "more"
    worse: Worse = "either"
    better_absent: bool = False
    signed: bool = True
    modules: tuple[str, ...] = ()
    meaning: str = ""

    @property
    def words(self) -> str:
        """Its name for readers."""
        return self.label or self.header or self.name.replace("_", " ")

    @property
    def title(self) -> str:
        """The title of an axis: its words with the unit."""
        return f"{self.words} ({self.shown})" if self.shown else self.words

    @property
    def least(self) -> float:
        """Its lower bound: 0 for a quantity that cannot be negative, otherwise minus infinity."""
        return -math.inf if self.signed else 0.0

    @property
    def is_text(self) -> bool:
        return self.unit == TEXT

    @property
    def is_by_cause(self) -> bool:
        """Whether each row has its own unit, so that rows cannot be averaged."""
        return self.unit == BY_CAUSE

    @property
    def dimension(self) -> str:
        """The unit in which claims state its quantities: that of metrics.json; empty for a ratio or a count."""
        unit = unit_by_suffix(self.name)
        return unit.name if unit else ""

    def read(self, text: str) -> float:
        """Convert a written quantity to the unit of metrics.json. Raises QuantityError."""
        unit = unit_by_suffix(self.name)
        return _read(text, unit.written if unit else {**_PLAIN, **_COUNTS})

    def read_tolerance(self, text: str, expected: float) -> float:
        """Return how far a value may deviate: a quantity, or a percentage of ``expected``. Raises QuantityError."""
        if re.fullmatch(r".*%\s*", text, re.DOTALL):
            return abs(_read(text, {"%": 0.01}) * expected)
        value = self.read(text)
        if value < 0:
            raise QuantityError(f"the tolerance {text!r} is negative")
        return value


def read_share(text: str) -> float:
    """Read a share between 0 and 1, written as a number or a percentage. Raises QuantityError."""
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
    """Return every metric by name, in the order of the table. Raises HowdahError for a wrong row."""
    found: dict[str, Metric] = {}
    for number, line in enumerate(TABLE.read_text(encoding="utf-8").splitlines(), start=1):
        if line.startswith("#") or not line:
            continue
        try:
            metric = _metric(json.loads(line.removeprefix("- ")))
        except ValueError as error:
            raise HowdahError(f"{TABLE}:{number}: this row is not JSON: {error}") from None
        if metric.name in found:
            raise HowdahError(f"{TABLE}: {metric.name} has two rows")
        found[metric.name] = metric
    return found | {name: _metric_of_package(each) for name, each in extensions("measures", found).items()}


def _metric_of_package(extension: Extension) -> Metric:
    """Return the metric of a package's measure. Raises HowdahError if its name is not that of its entry point."""
    metric: Metric = extension.guarded(lambda: extension.load().metric)
    if metric.name != extension.name:
        raise HowdahError(
            f"the package {extension.package} calls a metric {metric.name!r} and its entry point {extension.name!r}",
            hint=f"Install a version that calls both alike, or remove it: pip uninstall {extension.package}",
        )
    return metric


def metric_of(name: str) -> Metric:
    """Return a metric of the table. Raises HowdahError if the table lacks it."""
    metric = known_metrics().get(name)
    if metric is None:
        raise HowdahError(f"the metric {name!r} is not in {TABLE}: give it a row there")
    return metric


def _metric(row: dict[str, Any]) -> Metric:
    try:
        name, unit, modules = str(row.pop("metric")), str(row.pop("unit")), row.pop("module")
        header, meaning = str(row.pop("header")), str(row.pop("meaning"))
    except KeyError as error:
        raise HowdahError(f"{TABLE}: a row lacks {error}: {row}") from None
    absent, factor, signed = row.pop("absent", ""), row.pop("factor", 1), row.pop("signed", False)
    metric = Metric(
        name,
        unit,
        header,
        label=str(row.pop("label", header.rstrip("."))),
        shown=str(row.pop("shown", "" if unit in (TEXT, BY_CAUSE) else unit)),
        factor=float(factor) if isinstance(factor, int | float) else math.nan,
        table=row.pop("table", "more"),
        worse=row.pop("worse", "either"),
        better_absent=absent == "better",
        signed=signed is True,
        modules=tuple(f"howdah.measure.{each}" for each in ([modules] if isinstance(modules, str) else modules)),
        meaning=meaning,
    )
    wrong = [f"{field}: {value}" for field, value in row.items()]
    for field, value, fits in (
        ("table", metric.table, metric.table in get_args(Place)),
        ("worse", metric.worse, metric.worse in get_args(Worse)),
        ("absent", absent, absent in ("", "better")),
        ("signed", signed, isinstance(signed, bool)),
        ("factor", factor, math.isfinite(metric.factor)),
    ):
        if not fits:
            wrong.append(f"{field}: {value}")
    if wrong:
        raise HowdahError(f"{TABLE}: the row of {name} has what no row can have: {', '.join(wrong)}")
    return metric


@cache
def known_entries() -> frozenset[str]:
    """Return the ids of the atlas' entries."""
    return frozenset(YAML(typ="safe").load((REPORTS / "atlas" / "kinds.yaml").read_text(encoding="utf-8")))
