# SPDX-License-Identifier: Apache-2.0
"""Comparison of two engines on one plan, measure by measure, within tolerances: as text, Markdown and JSON."""

from __future__ import annotations

import math
import re
from collections.abc import Iterable, Mapping, Sequence
from contextlib import ExitStack
from dataclasses import dataclass, field
from pathlib import Path

from howdah.errors import HowdahError
from howdah.number import counted
from howdah.plan.plan import Plan
from howdah.profile import Profile
from howdah.record.metrics import MetricRow
from howdah.record.model import FilePart
from howdah.record.result import Run
from howdah.record.run import KernelOrigin
from howdah.work.batch import Outcome
from howdah.work.compiled import Plans, compile_plans
from howdah.work.display import Display
from howdah.work.job import Executor
from howdah.work.prepared import hold, make, prepare
from howdah.work.results import read_results

Value = float | str | None


@dataclass(frozen=True)
class MetricTolerance:
    """``metric`` may differ by the larger of ``absolute`` and ``share`` of the first engine's value."""

    metric: str
    label: str
    share: float
    absolute: float = 0.0

    def agrees(self, first: Value, second: Value) -> bool:
        """Whether both engines' values agree. If one has no value, the other must have none; texts must be equal."""
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
    """One engine's run. ``verdict`` is ``failed`` if there are no results at all; ``measures`` are by flow and metric.

    ``kernel`` is its version (``6.12.117``), empty if unknown.
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
    """One measure of one flow on both engines; ``difference`` is (second - first) / first."""

    metric: str
    flow: str
    values: list[Value]
    difference: float | None
    agrees: bool


class ComparedRun(FilePart):
    """One run of the profile on both engines. ``problems`` lists what makes a comparison meaningless."""

    run: str
    algorithm: str
    path: str
    agrees: bool
    problems: list[str]
    sides: list[ComparedSide]
    measures: list[ComparedMeasure]


def measures_of(rows: Iterable[MetricRow]) -> dict[tuple[str, str], Value]:
    """The compared measures from the rows of metrics.json, by flow and metric."""
    wanted = {tolerance.metric for tolerance in TOLERANCES}
    return {(str(row.flow), row.metric): row.value for row in rows if row.metric in wanted and row.flow is not None}


def compare(name: str, algorithm: str, path: str, first: Side, second: Side) -> ComparedRun:
    """Compare every measure of every flow. A run that did not pass, and two different kernels, count as problems."""
    problems = [f"{side.engine}: {side.problem or side.verdict}" for side in (first, second) if side.verdict != "pass"]
    if first.kernel and second.kernel and first.kernel != second.kernel:
        problems.append(f"{first.engine} ran Linux {first.kernel}, {second.engine} {second.kernel}")
    flows = list(dict.fromkeys(flow for flow, _ in [*first.measures, *second.measures]))
    measures = []
    for flow in flows:
        for tolerance in TOLERANCES:
            values = [side.measures.get((flow, tolerance.metric)) for side in (first, second)]
            change = _change(values)
            measures.append(
                ComparedMeasure(
                    metric=tolerance.metric,
                    flow=flow,
                    values=values,
                    difference=None if change == math.inf else change,
                    agrees=tolerance.agrees(*values),
                )
            )
    if not measures and not problems:
        problems.append("there is nothing to compare: neither run has a measured flow")
    return ComparedRun(
        run=name,
        algorithm=algorithm,
        path=path,
        agrees=not problems and bool(measures) and all(each.agrees for each in measures),
        problems=problems,
        sides=[ComparedSide.made_of(side, wall_s=round(side.wall_s, 1)) for side in (first, second)],
        measures=measures,
    )


def _change(values: Sequence[Value]) -> float | None:
    first, second = values
    if not isinstance(first, float | int) or not isinstance(second, float | int):
        return None
    if first == second:
        return 0.0
    return (second - first) / first if first else math.inf


FORMAT = 1
_LABELS = {tolerance.metric: tolerance.label for tolerance in TOLERANCES}
_HEAD = ("path", "algorithm", "flow", "measure", "{first}", "{second}", "difference", "")


class Allowed(FilePart):
    share: float
    absolute: float


class Validation(FilePart):
    """The table of the validation (docs/validate.md). ``agrees`` is the overall result."""

    profile: str
    engines: list[str]
    planted: list[str]
    format: int
    agrees: bool
    tolerances: dict[str, Allowed]
    points: list[ComparedRun]


def validation(
    profile: str, engines: Sequence[str], planted: Sequence[str], points: Sequence[ComparedRun]
) -> Validation:
    return Validation(
        profile=profile,
        engines=list(engines),
        planted=list(planted),
        format=FORMAT,
        agrees=agree(points),
        tolerances={item.metric: Allowed.made_of(item) for item in TOLERANCES},
        points=list(points),
    )


def agree(points: Sequence[ComparedRun]) -> bool:
    return bool(points) and all(point.agrees for point in points)


def rows(points: Sequence[ComparedRun]) -> list[tuple[str, ...]]:
    """A head and a row for each measure; values that repeat from one row to the next are left out."""
    first, second = (side.engine for side in points[0].sides)
    table = [tuple(title.format(first=first, second=second) for title in _HEAD)]
    shown: tuple[str, ...] = ()
    for point in points:
        for pair in point.measures:
            place = (point.path, point.algorithm, pair.flow)
            same = [old == new for old, new in zip(shown, place, strict=False)]
            left = ["" if all(same[: number + 1]) and shown else word for number, word in enumerate(place)]
            table.append((*left, *_row(pair)))
            shown = place
    return table


def _row(pair: ComparedMeasure) -> tuple[str, ...]:
    remark = "" if pair.agrees else "differs"
    return (_LABELS[pair.metric], *map(_text, pair.values), _difference(pair), remark)


def _text(value: Value) -> str:
    if value is None:
        return "–"
    return value if isinstance(value, str) else f"{value:,.0f}".replace(",", " ")


def _difference(pair: ComparedMeasure) -> str:
    change = _change(pair.values)
    if change is None:
        return "" if pair.agrees else "≠"
    return "0" if change == 0 else f"{change:+.2%}"


def times(points: Sequence[ComparedRun]) -> list[str]:
    """A line for each run: verdicts, kernel and wall time of both sides."""
    lines = []
    for point in points:
        sides = ", ".join(f"{side.engine} {side.verdict} in {side.wall_s:.1f} s" for side in point.sides)
        lines.append(f"{point.run}: Linux {point.sides[0].kernel or '?'}; {sides}")
        lines += [f"  ! {problem}" for problem in point.problems]
    return lines


def markdown(points: Sequence[ComparedRun]) -> str:
    head, *body = rows(points)
    lines = [_line(head), _line(["---"] * len(head)), *map(_line, body), ""]
    lines += [f"- {line.strip()}" for line in times(points)]
    tolerances = ", ".join(f"{item.label} {item.text}" for item in TOLERANCES)
    return "\n".join([*lines, "", f"Agreement asks for: {tolerances}.", ""])


def _line(cells: Sequence[str]) -> str:
    return f"| {' | '.join(cells)} |"


_VERSION = re.compile(r"\b\d+\.\d+\.\d+")
FAILED = "failed"


@dataclass(frozen=True)
class Candidate:
    """One side of a validation: an engine, and the profile for that side."""

    engine: str
    profile: Profile


def validate(
    candidates: tuple[Candidate, Candidate],
    runs: Path,
    display: Display,
    *,
    kernel: str | None = None,
    jobs: int,
    again: bool = False,
    executor: Executor | None = None,
) -> list[ComparedRun]:
    """Make the missing runs of both sides and compare each run of one with that of the other.

    A run that fails is a problem of its point and stops no other. Raises HowdahError if nothing can be run, or if the
    two profiles do not have the same points.
    """
    plans = [compile_plans(each.profile, engine=each.engine, kernel=kernel) for each in candidates]
    if [_place(plan) for plan in plans[0]] != [_place(plan) for plan in plans[1]]:
        raise HowdahError("the two sides have different points, so there is nothing to compare")
    made = [_make(each, own, runs, display, jobs, again, executor) for each, own in zip(candidates, plans, strict=True)]
    points = []
    for number, plan in enumerate(plans[0]):
        first, second = (side[number] for side in made)
        points.append(compare(plan.run, plan.algorithm, _path(plan), first, second))
    return points


def _place(plan: Plan) -> tuple[str, str, int]:
    return plan.run, plan.algorithm, plan.repetition


def _path(plan: Plan) -> str:
    path = plan.path
    return f"{path.rate_bits_per_second / 1e6:g} Mbit/s, {path.rtt_us / 1e3:g} ms, {path.buffer_bytes} bytes"


def _make(
    candidate: Candidate,
    plans: Plans,
    runs: Path,
    display: Display,
    jobs: int,
    again: bool,
    executor: Executor | None,
) -> list[Side]:
    profile = candidate.profile
    with ExitStack() as locks:
        experiment = hold(runs / f"{profile.name}-{candidate.engine}", locks)
        prepared = prepare(experiment, profile, plans, display.build)
        display.say(f"{experiment.path.name}: {counted(len(plans), 'run')}, engine {candidate.engine}")
        workers = jobs if prepared.parallel else 1
        outcomes = make([prepared], workers, again, display.batch, keep_going=True, tell=display.say, executor=executor)
        read = {run.name: run for run in read_results(experiment.path).runs}
        return [_side(candidate.engine, outcome, read.get(outcome.cell.directory_name)) for outcome in outcomes]


def _side(engine: str, outcome: Outcome, run: Run | None) -> Side:
    if outcome.error is not None or run is None or run.verdict is None:
        problem = outcome.error.what if outcome.error is not None else "the run is missing"
        return Side(engine, FAILED, "", outcome.wall_s, problem=problem)
    return Side(
        engine=engine,
        verdict=run.verdict.verdict,
        kernel=_kernel(run.provenance.kernel),
        wall_s=run.provenance.wall_s or 0.0,
        measures=measures_of([*run.metrics, *run.connections().rows()]),
        problem=f"{run.verdict.verdict}: {run.broken[0].message}" if run.broken else None,
    )


def _kernel(kernel: KernelOrigin) -> str:
    """The kernel's version. Debian's release names do not always include it; its package versions do."""
    versions: list[str] = _VERSION.findall(kernel.source or "")
    return versions[-1] if versions else kernel.release or "unknown"
