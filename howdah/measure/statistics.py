# SPDX-License-Identifier: Apache-2.0
"""What repetitions of a measure say together: mean, median and a 95 % confidence interval."""

from __future__ import annotations

import json
import math
from collections import Counter
from dataclasses import dataclass
from typing import Any

# Two-sided 95 % quantiles of Student's t distribution for 1, 2, 3 … degrees of freedom.
_STUDENT = (
    *(12.706, 4.303, 3.182, 2.776, 2.571, 2.447, 2.365, 2.306, 2.262, 2.228),
    *(2.201, 2.179, 2.160, 2.145, 2.131, 2.120, 2.110, 2.101, 2.093, 2.086),
    *(2.080, 2.074, 2.069, 2.064, 2.060, 2.056, 2.052, 2.048, 2.045, 2.042),
)
_NORMAL = 1.959964
_SAME = 1e-12


def student_quantile(degrees: int) -> float:
    """Two-sided 95 % quantile; beyond 30 degrees Fisher's expansion around the normal one, good to 0.001."""
    if degrees < 1:
        raise ValueError("an interval needs at least two values")
    if degrees <= len(_STUDENT):
        return _STUDENT[degrees - 1]
    return _NORMAL + (_NORMAL**3 + _NORMAL) / (4 * degrees)


@dataclass(frozen=True)
class Statistic:
    """Repetitions of one number. ``half_width`` is half the 95 % interval of the mean; None for one value or equal
    values.

    Equal values of several repetitions are *deterministic*: they have no spread to estimate from, which is not ±0.
    """

    count: int
    mean: float
    median: float
    half_width: float | None

    @property
    def deterministic(self) -> bool:
        return self.count > 1 and self.half_width is None

    @property
    def interval(self) -> tuple[float, float] | None:
        return None if self.half_width is None else (self.mean - self.half_width, self.mean + self.half_width)

    def text(self, digits: int = 4) -> str:
        """``2358, n=1``; ``2358, deterministic, n=3``; ``2361 ± 12, n=3`` (significant digits)."""
        if self.count == 1:
            return f"{_significant(self.mean, digits)}, n=1"
        if self.half_width is None:
            return f"{_significant(self.mean, digits)}, deterministic, n={self.count}"
        return f"{_significant(self.mean, digits)} ± {_significant(self.half_width, 2)}, n={self.count}"


def _significant(value: float, digits: int) -> str:
    if value == 0 or not math.isfinite(value):
        return f"{value:g}"
    places = digits - 1 - math.floor(math.log10(abs(value)))
    return f"{round(value, places):.{max(places, 0)}f}"


def statistic(values: list[float]) -> Statistic:
    """Of at least one value; the interval is mean ± t(n-1) s / sqrt(n) with the sample's standard deviation s."""
    count = len(values)
    if not count:
        raise ValueError("no values")
    mean = math.fsum(values) / count
    ordered = sorted(values)
    middle = count // 2
    median = ordered[middle] if count % 2 else (ordered[middle - 1] + ordered[middle]) / 2
    spread = ordered[-1] - ordered[0]
    if count == 1 or spread <= _SAME * max(abs(ordered[0]), abs(ordered[-1])):
        return Statistic(count, mean, median, None)
    deviation = math.sqrt(math.fsum((value - mean) ** 2 for value in values) / (count - 1))
    return Statistic(count, mean, median, student_quantile(count - 1) * deviation / math.sqrt(count))


@dataclass(frozen=True)
class Group:
    """What repetitions are taken together over; ``axes`` is the sweep point as JSON with sorted names,
    ``flow`` the id of a flow or the name of a group of connections, None for the whole run."""

    engine: str
    kernel: str
    algorithm: str
    receiver: str
    flow: int | str | None
    axes: str


@dataclass(frozen=True)
class Summary:
    """One measure over the repetitions of a group.

    ``number`` is None for texts and for measures that exist in no repetition; ``texts`` counts the values of a text
    measure (``exit_cause``); ``missing`` counts the repetitions in which the measure does not exist, with a reason.
    """

    group: Group
    metric: str
    unit: str
    number: Statistic | None
    texts: dict[str, int]
    missing: int
    why: str | None

    def text(self) -> str:
        """For a table: ``1.234 ± 0.01, n=3``, ``ack-train``, ``ack-train 2, loss 1`` or ``– (the reason)``."""
        if self.number is not None:
            return self.number.text() + (f", {self.missing} without" if self.missing else "")
        if len(self.texts) == 1 and not self.missing:
            return next(iter(self.texts))
        if self.texts:
            return ", ".join(f"{text} {count}" for text, count in self.texts.items())
        return f"– ({self.why})"


def summarise(rows: list[dict[str, Any]]) -> list[Summary]:
    """Rows of the metrics.json of every valid run of an experiment, taken together over their repetitions.

    In the order in which group and measure first appear. Which runs are valid is the caller's to know.
    """
    collected: dict[tuple[Group, str], list[dict[str, Any]]] = {}
    for row in rows:
        axes = {name: value for name, value in row["axes"].items() if name not in ("algorithm", "repetition")}
        group = Group(
            row["engine"],
            row["kernel"],
            row["algorithm"],
            row["receiver"],
            row.get("group") if row["flow"] is None else row["flow"],
            json.dumps(axes, sort_keys=True),
        )
        collected.setdefault((group, row["metric"]), []).append(row)
    return [_summary(group, metric, members) for (group, metric), members in collected.items()]


def _summary(group: Group, metric: str, members: list[dict[str, Any]]) -> Summary:
    present = [row["value"] for row in members if row["value"] is not None]
    numbers = [float(value) for value in present if not isinstance(value, str)]
    texts = Counter(value for value in present if isinstance(value, str))
    reasons = [row.get("why") for row in members if row["value"] is None]
    return Summary(
        group,
        metric,
        members[0]["unit"],
        statistic(numbers) if numbers else None,
        dict(texts.most_common()),
        len(reasons),
        reasons[0] if reasons else None,
    )
