# SPDX-License-Identifier: Apache-2.0
"""The numbers a claim is about: one of each repetition at one point of the sweep, from metrics.json of its run."""

from __future__ import annotations

import math
from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass, field
from typing import Any

from howdah.plan.plan import BACKGROUND
from howdah.profile.claim import SelectorSection
from howdah.profile.claim_check import ALGORITHM, TRAFFIC_AXIS
from howdah.profile.control import CONTROL_AXIS, UNKNOWN_AXIS, ControlSection, UnknownsSection, axis_key
from howdah.profile.override import canonical, field_value
from howdah.profile.source import Document, Scalar
from howdah.record.metrics import MetricRow
from howdah.record.result import Run

_TAKE: dict[str, Callable[[list[float]], float]] = {
    "sum": math.fsum,
    "min": min,
    "max": max,
    "mean": lambda values: math.fsum(values) / len(values),
}
_OWN_AXES = (CONTROL_AXIS, UNKNOWN_AXIS, TRAFFIC_AXIS)  # a run that has one of these is no point of the sweep


class SelectionError(Exception):
    """A selector does not name one number of a run."""


@dataclass(frozen=True)
class Made:
    """A run that the experiment asks for; ``run`` is None while it has not been made."""

    name: str
    axes: dict[str, Scalar]
    algorithm: str
    repetition: int
    run: Run | None


@dataclass(frozen=True)
class Field:
    """All runs of an experiment, what its profile says in fields of one value, its controls, its axes with all
    their values, also those that were left out, and what its source leaves open."""

    runs: list[Made]
    document: Document
    controls: dict[str, ControlSection]
    axes: dict[str, list[str]]
    unknowns: UnknownsSection | None = None

    def at(self, point: Mapping[str, Scalar]) -> list[Made]:
        """The runs at a point: its axes with their values; an axis that is not named is not looked at."""
        return [made for made in self.runs if self._is_at(made, point)]

    def values(self, axis: str, control: str | None, unknown: str | None = None) -> list[str]:
        """The values of an axis in the ordinary runs, or in those of a control or of a point of the grid, in order."""
        own = (control, unknown)
        here = [made.axes for made in self.runs if (made.axes.get(CONTROL_AXIS), made.axes.get(UNKNOWN_AXIS)) == own]
        return list(dict.fromkeys(str(axes[axis]) for axes in here if axis in axes))

    def _is_at(self, made: Made, point: Mapping[str, Scalar]) -> bool:
        if any(axis in made.axes and axis not in point for axis in _OWN_AXES):
            return False
        return all(self._has(made, axis, wanted) for axis, wanted in point.items())

    def _has(self, made: Made, axis: str, wanted: Any) -> bool:
        if axis in made.axes:
            return axis_key(made.axes[axis]) == axis_key(wanted)
        if axis in _OWN_AXES:
            return False
        control = made.axes.get(CONTROL_AXIS)
        changed = self.controls[str(control)].set if control in self.controls else ()
        if axis in {canonical(self.document.data, name) for name in changed}:
            return True  # the control's value stands for all of the axis'
        written = made.algorithm if axis == ALGORITHM else field_value(self.document.data, axis)
        return axis_key(written) == axis_key(wanted)


@dataclass
class Sample:
    """One number, or text, a repetition. ``missing`` are reasons of valid runs without one, ``unsupported`` those of
    them whose row says that this machine cannot measure it; ``left_out`` the names of runs that do not count, with why;
    ``runs`` all that were asked for."""

    unit: str = ""
    values: dict[int, float | str] = field(default_factory=dict)
    missing: dict[int, str] = field(default_factory=dict)
    unsupported: set[int] = field(default_factory=set)
    left_out: dict[str, str] = field(default_factory=dict)
    runs: list[str] = field(default_factory=list)

    @property
    def enough(self) -> bool:
        """Whether at least half of its runs count, and one does."""
        counted = len(self.runs) - len(self.left_out)
        return counted > 0 and 2 * counted >= len(self.runs)

    def numbers(self) -> list[float]:
        return [float(self.values[repetition]) for repetition in sorted(self.values)]


def sample(runs: Iterable[Made], selector: SelectorSection) -> Sample:
    """The value that ``selector`` names in each of these runs. Raises SelectionError."""
    found = Sample()
    for made in runs:
        found.runs.append(made.name)
        if made.run is None or not made.run.counts:
            found.left_out[made.name] = made.run.verdict_name if made.run else "not made"
            continue
        value, unit, why = select(made.run, selector)
        found.unit = found.unit or unit
        if value is None:
            found.missing[made.repetition] = why
            if any(row.metric == selector.metric and row.unsupported for row in made.run.metrics):
                found.unsupported.add(made.repetition)
        else:
            found.values[made.repetition] = value
    return found


def select(run: Run, selector: SelectorSection) -> tuple[float | str | None, str, str]:
    """The value, its unit, and why it is missing. Raises SelectionError where it is not clear which is meant."""
    rows = [row for row in run.metrics if row.metric == selector.metric]
    rows += run.connections().of(selector.metric).rows()
    chosen = _rows(run, rows, selector)
    if not chosen:
        return None, "", f"no {selector.metric} was measured"
    unit = str(chosen[0].unit)
    for row in chosen:
        if row.value is None:
            return None, unit, row.why or "it does not exist"
    values = [row.value for row in chosen if row.value is not None]
    if selector.take is None:
        return (values[0] if isinstance(values[0], str) else float(values[0])), unit, ""
    numbers = [float(value) for value in values if not isinstance(value, str)]
    if len(numbers) < len(values):
        raise SelectionError(f"{selector.metric} is text, and has no {selector.take}")
    return _TAKE[selector.take](numbers), unit, ""


def _rows(run: Run, rows: list[MetricRow], selector: SelectorSection) -> list[MetricRow]:
    flow = selector.flow
    if flow == "all":
        return [row for row in rows if row.flow is not None and row.role != BACKGROUND]
    if flow is None:
        return _only(rows, selector.metric)
    if isinstance(flow, int):
        return [row for row in rows if row.flow == flow]
    flows = {each.name: each.id for each in run.plan.flows} if run.plan else {}
    if flow in flows:
        return [row for row in rows if row.flow == flows[flow]]
    of_group = [row for row in rows if row.group == flow]
    connections = [row for row in of_group if row.flow is not None]
    whole = [row for row in of_group if row.flow is None]
    if selector.take is not None or (not whole and len(connections) == 1):
        return connections
    if not whole and connections:
        what = f"{selector.metric} is measured of each of the {len(connections)} connections of {flow}"
        raise SelectionError(f"{what}; say with take which is meant")
    return whole


def _only(rows: list[MetricRow], metric: str) -> list[MetricRow]:
    """The row that is meant where no flow is named: that of the run, else of the only group, else of the only flow."""
    whole = [row for row in rows if row.flow is None and row.group is None]
    groups = [row for row in rows if row.flow is None and row.group is not None]
    flows = [row for row in rows if row.flow is not None]
    for found in (whole, groups, flows):
        if len(found) == 1:
            return found
        if found:
            raise SelectionError(f"{metric} is measured of {len(found)} flows; say which with flow")
    return []
