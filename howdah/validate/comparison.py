# SPDX-License-Identifier: Apache-2.0
"""What two engines say of one plan, measure by measure, and how far apart they may be."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field

from howdah.record.metrics import MetricRow
from howdah.record.model import FilePart

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


class ComparedSide(FilePart):
    engine: str
    verdict: str | None
    kernel: str | None
    wall_s: float


class ComparedMeasure(FilePart):
    metric: str
    flow: str
    values: list[Value]
    difference: float | None
    agrees: bool


class ComparedRun(FilePart):
    run: str
    algorithm: str
    path: str
    agrees: bool
    problems: list[str]
    sides: list[ComparedSide]
    measures: list[ComparedMeasure]


def measures_of(rows: Iterable[MetricRow]) -> dict[tuple[str, str], Value]:
    """From the rows of metrics.json: what is compared, by flow and metric."""
    wanted = {tolerance.metric for tolerance in TOLERANCES}
    return {(str(row.flow), row.metric): row.value for row in rows if row.metric in wanted and row.flow is not None}


def compare(name: str, algorithm: str, path: str, first: Side, second: Side) -> ComparedRun:
    """Every measure of every flow. A run that is invalid, or two kernels that differ, is a problem of its own, which
    makes a comparison meaningless."""
    sides = (first, second)
    problems = [f"{side.engine}: {side.problem or side.verdict}" for side in sides if side.verdict != "pass"]
    if first.kernel and second.kernel and first.kernel != second.kernel:
        problems.append(f"{first.engine} ran Linux {first.kernel}, {second.engine} {second.kernel}")
    flows = dict.fromkeys(flow for flow, _ in [*first.measures, *second.measures])
    measures = [_measure(flow, tolerance, sides) for flow in flows for tolerance in TOLERANCES]
    if not measures and not problems:
        problems.append("there is nothing to compare: neither run has a measured flow")
    return ComparedRun(
        run=name,
        algorithm=algorithm,
        path=path,
        agrees=not problems and bool(measures) and all(measure.agrees for measure in measures),
        problems=problems,
        sides=[
            ComparedSide(engine=side.engine, verdict=side.verdict, kernel=side.kernel, wall_s=round(side.wall_s, 1))
            for side in sides
        ],
        measures=measures,
    )


def _measure(flow: str, tolerance: MetricTolerance, sides: tuple[Side, Side]) -> ComparedMeasure:
    first, second = (side.measures.get((flow, tolerance.metric)) for side in sides)
    return ComparedMeasure(
        metric=tolerance.metric,
        flow=flow,
        values=[first, second],
        difference=_difference(first, second),
        agrees=tolerance.agrees(first, second),
    )


def _difference(first: Value, second: Value) -> float | None:
    """The second less the first over the first, where there is such a number."""
    if not isinstance(first, float | int) or not isinstance(second, float | int):
        return None
    if first == second:
        return 0.0
    return (second - first) / first if first else None
