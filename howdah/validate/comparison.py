# SPDX-License-Identifier: Apache-2.0
"""What two engines say of one plan, measure by measure, and how far apart they may be."""

from __future__ import annotations

import math
from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field

from howdah.record.metrics import MetricRow

Value = float | str | None


@dataclass(frozen=True)
class MetricTolerance:
    """``metric`` may differ by the larger of ``absolute`` and ``share`` of the first engine's value."""

    metric: str
    label: str
    share: float
    absolute: float = 0.0

    def agrees(self, first: Value, second: Value) -> bool:
        """Values of both engines. Where one has none the other must have none; words must be the same."""
        if first is None or second is None or isinstance(first, str) or isinstance(second, str):
            return first == second
        return abs(second - first) <= max(self.absolute, self.share * abs(first))

    @property
    def text(self) -> str:
        if not self.share and not self.absolute:
            return "equal"
        within = f"{self.share:.0%}"
        return f"within the larger of {self.absolute:g} and {within}" if self.absolute else f"within {within}"


TOLERANCES = (
    MetricTolerance("exit_cause", "exit cause", 0.0),
    MetricTolerance("exit_cwnd_packets", "exit cwnd, packets", 0.01),
    MetricTolerance("retransmitted_packets", "retransmissions", 0.02, 2.0),
    MetricTolerance("goodput_bits_per_second", "goodput, bit/s", 0.01),
)


@dataclass(frozen=True)
class Pair:
    """One measure of one flow on both engines; ``difference`` is the second less the first over the first."""

    metric: str
    flow: str
    first: Value
    second: Value
    agrees: bool

    @property
    def difference(self) -> float | None:
        if not isinstance(self.first, float | int) or not isinstance(self.second, float | int):
            return None
        if self.first == self.second:
            return 0.0
        return (self.second - self.first) / self.first if self.first else math.inf


@dataclass(frozen=True)
class Side:
    """One engine's run: ``verdict`` is ``failed`` where there are no results at all. ``measures``: flow, metric.

    ``kernel`` is its version (``6.12.117``), empty where it is not known.
    """

    engine: str
    verdict: str
    kernel: str
    wall_s: float
    measures: Mapping[tuple[str, str], Value] = field(default_factory=dict)
    problem: str | None = None


@dataclass(frozen=True)
class ComparedPoint:
    """One run of the profile on both engines. ``problems`` is what makes a comparison meaningless."""

    name: str
    algorithm: str
    path: str
    sides: tuple[Side, Side]
    pairs: tuple[Pair, ...]
    problems: tuple[str, ...]

    @property
    def agrees(self) -> bool:
        return not self.problems and bool(self.pairs) and all(pair.agrees for pair in self.pairs)


def measures_of(rows: Iterable[MetricRow]) -> dict[tuple[str, str], Value]:
    """From the rows of metrics.json: what is compared, by flow and metric."""
    wanted = {tolerance.metric for tolerance in TOLERANCES}
    return {(str(row.flow), row.metric): row.value for row in rows if row.metric in wanted and row.flow is not None}


def compare(name: str, algorithm: str, path: str, first: Side, second: Side) -> ComparedPoint:
    """Every measure of every flow. A run that is invalid, or two kernels that differ, is a problem of its own."""
    problems = [f"{side.engine}: {side.problem or side.verdict}" for side in (first, second) if side.verdict != "pass"]
    if first.kernel and second.kernel and first.kernel != second.kernel:
        problems.append(f"{first.engine} ran Linux {first.kernel}, {second.engine} {second.kernel}")
    flows = list(dict.fromkeys(flow for flow, _ in [*first.measures, *second.measures]))
    pairs = []
    for flow in flows:
        for tolerance in TOLERANCES:
            one, other = (side.measures.get((flow, tolerance.metric)) for side in (first, second))
            pairs.append(Pair(tolerance.metric, flow, one, other, tolerance.agrees(one, other)))
    if not pairs and not problems:
        problems.append("there is nothing to compare: neither run has a measured flow")
    return ComparedPoint(name, algorithm, path, (first, second), tuple(pairs), tuple(problems))
