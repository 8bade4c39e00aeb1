# SPDX-License-Identifier: Apache-2.0
"""Selection of the runs that a figure is drawn from, and of the numbers it takes from them."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any

from howdah.claim.sample import SelectionError
from howdah.claim.sample import select as select_value
from howdah.errors import HowdahError
from howdah.measure.statistics import Statistic, statistic
from howdah.metric import known_metrics
from howdah.plan.plan import Plan
from howdah.profile.claim import SelectorSection
from howdah.profile.figure import FigureSection, Take
from howdah.profile.figure_check import NO_CONTROL
from howdah.record.result import Experiment, Run
from howdah.record.table import axis_text
from howdah.report.plot.stored import Mean, StoredExperiment, StoredPoint

AnyRun = Run | StoredPoint
AnyExperiment = Experiment | StoredExperiment

# Axes that only some runs have: controls, the grid of what is unknown, and the run that checks the traffic. They show
# where a figure names them.
_OCCASIONAL = ("control", "unknown", "traffic")


class NothingToDrawError(HowdahError):
    """The figure cannot be drawn. The text says why, and is shown in place of the figure."""


class NoNumberError(NothingToDrawError):
    """Runs that count have no number to draw and say why. This is a result, not missing data."""


def axis_value(run: AnyRun, axis: str) -> str | None:
    """A run's value on an axis, as the profile writes it; None if the run lacks the axis."""
    if axis == "algorithm":
        return run.algorithm
    if axis in _OCCASIONAL:
        return str(run.axes.get(axis, NO_CONTROL))
    return None if axis not in run.axes else axis_text(run.axes[axis])


def wanted(at: Mapping[str, Any]) -> dict[str, list[str]]:
    """``at`` of a figure, with each value as a list of texts."""
    return {
        axis: [axis_text(item) for item in value] if isinstance(value, list) else [axis_text(value)]
        for axis, value in at.items()
    }


def every_value(experiment: AnyExperiment, axis: str) -> list[str]:
    """All values of an axis in an experiment, also those that a figure leaves out, so that a line keeps its colour."""
    return Selection(list(experiment.runs), 0).values(axis)


@dataclass
class Selection:
    """The runs of a figure. ``unmade`` counts runs that do not exist yet, whose points are unknown."""

    runs: list[AnyRun]
    unmade: int

    @property
    def made(self) -> list[Run]:
        return [run for run in self.runs if isinstance(run, Run)]

    def values(self, axis: str) -> list[str]:
        """The distinct values of an axis, in the order of the profile."""
        found = (axis_value(run, axis) for run in self.runs)
        return list(dict.fromkeys(value for value in found if value is not None))

    def where(self, at: Mapping[str, Any]) -> Selection:
        """The runs at the given values of axes."""
        texts = wanted(at)
        kept = [run for run in self.runs if all(axis_value(run, axis) in texts[axis] for axis in texts)]
        return Selection(kept, self.unmade)


def select(figure: FigureSection, experiment: AnyExperiment, *axes: str) -> Selection:
    """Select the runs at the figure's ``at``. Every axis that is neither there nor in ``axes`` has one value among
    them.

    Raises NothingToDrawError, whose text says what is missing.
    """
    named = {*axes, *figure.at, *figure.relative_to}
    whole = Selection(list(experiment.runs), len(experiment.pending))
    if not whole.runs:
        raise NothingToDrawError("no run of this experiment has been made yet")
    for axis, values in wanted(figure.at).items():
        there = whole.values(axis)
        absent = [value for value in values if value not in there]
        if not there:
            raise NothingToDrawError(f"no run has the axis {axis}")
        if len(absent) == len(values):
            raise NothingToDrawError(f"no run has {axis} = {' or '.join(absent)}; the runs have {', '.join(there)}")
    found = whole.where(figure.at)
    for axis in _OCCASIONAL:
        if axis not in named:
            found = found.where({axis: NO_CONTROL})
    if not found.runs:
        raise NothingToDrawError(f"no run has {', '.join(f'{axis} = {value}' for axis, value in figure.at.items())}")
    for axis in axes:
        if axis not in _OCCASIONAL and not found.values(axis):
            raise NothingToDrawError(f"no run has the axis {axis}; in these runs it has one value")
    for axis in dict.fromkeys(name for run in found.runs for name in run.axes):
        if axis not in (*axes, "algorithm") and len(found.values(axis)) > 1:
            many = ", ".join(found.values(axis))
            raise NothingToDrawError(f"{axis} has several values ({many}); say which with at, lines or panels")
    if "algorithm" not in axes and len(found.values("algorithm")) > 1:
        raise NothingToDrawError("there are several algorithms; say which with at, lines or panels")
    return found


def left_out(figure: FigureSection, experiment: AnyExperiment) -> list[str]:
    """Values that the figure names but no run has, such as those that a quick run leaves out."""
    whole = Selection(list(experiment.runs), 0)
    return [
        f"{axis} = {value}: no run"
        for axis, values in wanted(figure.at).items()
        for value in values
        if value not in whole.values(axis)
    ]


def flow_of(plan: Plan, choice: int | str) -> int | str | None:
    """``flow`` of a figure as in metrics.json: the id of a flow or the name of a group; None if there is neither.

    Numbers count the measured flows from 1.
    """
    single = [flow for flow in plan.flows if flow.group is None]
    if isinstance(choice, int):
        measured = [flow for flow in single if flow.role == "measured"]
        return measured[choice - 1].id if 0 < choice <= len(measured) else None
    for flow in single:
        if flow.name == choice:
            return flow.id
    return choice if any(flow.group == choice for flow in plan.flows) else None


def run_value(run: Run, selector: SelectorSection) -> tuple[float | str | None, str]:
    """The number (or text) of one run, selected as in a claim, and the reason if it is missing.

    Raises NothingToDrawError if the figure does not say which of several flows is meant.
    """
    try:
        value, _, why = select_value(run, selector)
    except SelectionError as error:
        raise NothingToDrawError(str(error)) from error
    return value, why


def base_unit(runs: Sequence[AnyRun], metric: str) -> str:
    """The measure's unit in metrics.json. Raises NothingToDrawError if no run has the measure."""
    for run in runs:
        if isinstance(run, StoredPoint):
            if metric in run.units:
                return run.units[metric]
            continue
        for row in run.metrics:
            if row.metric == metric:
                return row.unit or ""
        if (unit := run.connections().of(metric).unit) is not None:
            return unit
    made = [run for run in runs if not isinstance(run, StoredPoint)]
    if not made:
        return known_metrics()[metric].unit if metric in known_metrics() else ""
    if not any(run.counts for run in made):
        raise NothingToDrawError("; ".join(dict.fromkeys(_fate(run) for run in made)))
    raise NothingToDrawError(f"no run has the measure {metric}")


def _fate(run: Run) -> str:
    return f"{run.name} is {run.verdict_name}"


@dataclass
class PlotSample:
    """One measure at one place over its repetitions: numbers by repetition, and the reasons for missing ones."""

    numbers: dict[int, float] = field(default_factory=dict)
    texts: list[str] = field(default_factory=list)
    missing: list[str] = field(default_factory=list)
    runs: int = 0
    stored: Mean | None = None  # of runs that are not here
    absent: str = "not run"  # where there are no runs

    @property
    def statistic(self) -> Statistic | Mean | None:
        if self.stored is not None:
            return self.stored
        return statistic(list(self.numbers.values())) if self.numbers else None

    @property
    def why(self) -> str:
        """Why there is no number, in words."""
        reasons = dict.fromkeys(self.missing)
        return "; ".join(f"{self.missing.count(reason)} x {reason}" for reason in reasons) or "no run was made"


def stored_sample(
    runs: Sequence[StoredPoint], metric: str, flow: int | str | None, take: Take | None, to: str = ""
) -> PlotSample:
    """The published sample of the only point among ``runs``."""
    absent = "it has no published number"
    if len(runs) != 1:
        return PlotSample(absent=absent)
    key = runs[0].key(metric, flow, take, to)
    number, missing = runs[0].numbers.get(key), list(runs[0].missing.get(key, ()))
    found = PlotSample(missing=missing, runs=len(missing), absent=absent)
    if isinstance(number, Mean):
        found.stored = number
        found.runs += number.count
    elif number is not None:
        found.texts = [text for text, count in number.items() for _ in range(count)]
        found.runs += len(found.texts)
    return found


def sample(runs: Sequence[AnyRun], metric: str, flow: int | str | None, take: Take | None) -> PlotSample:
    """The sample over the repetitions that count."""
    stored = [run for run in runs if isinstance(run, StoredPoint)]
    if stored:
        return stored_sample(stored, metric, flow, take)
    return _sample([run for run in runs if not isinstance(run, StoredPoint)], metric, flow, take)


def _sample(runs: list[Run], metric: str, flow: int | str | None, take: Take | None) -> PlotSample:
    selector = SelectorSection(metric=metric, flow=flow, take=take)
    found = PlotSample(runs=len(runs))
    for run in runs:
        if not run.counts:
            found.missing.append(run.verdict_name)
            continue
        value, why = run_value(run, selector)
        if value is None:
            found.missing.append(why)
        elif isinstance(value, str):
            found.texts.append(value)
        else:
            found.numbers[run.repetition] = value
    return found


def relative(of: PlotSample, to: PlotSample) -> PlotSample:
    """Per cent more (or less, below 0) than ``to``, for each repetition that both have: equal repetitions share a
    perturbation."""
    both = {number: of.numbers[number] for number in of.numbers if to.numbers.get(number)}
    shares = {number: 100 * (value / to.numbers[number] - 1) for number, value in both.items()}
    missing = of.missing if not of.numbers else [*of.missing, *["what it is compared with is missing"][: not shares]]
    return PlotSample(shares, [], list(missing), of.runs)
