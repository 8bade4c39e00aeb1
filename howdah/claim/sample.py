# SPDX-License-Identifier: Apache-2.0
"""The numbers that a claim is about: one per repetition at one point of the sweep, from the runs' metrics.json."""

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
_OWN_AXES = (CONTROL_AXIS, UNKNOWN_AXIS, TRAFFIC_AXIS)  # axes of runs outside the ordinary sweep


class SelectionError(Exception):
    """A selector does not name exactly one number of a run."""


@dataclass(frozen=True)
class ClaimRun:
    """A run of the experiment's list; ``run`` is None if it has not been made."""

    name: str
    axes: dict[str, Scalar]
    algorithm: str
    repetition: int
    run: Run | None


@dataclass(frozen=True)
class ClaimRuns:
    """All runs of an experiment; its profile, for fields that are not swept; its controls and unknowns; and its axes
    with all their values, including those left out."""

    runs: list[ClaimRun]
    document: Document
    controls: dict[str, ControlSection]
    axes: dict[str, list[str]]
    unknowns: UnknownsSection | None = None

    def at(self, point: Mapping[str, Scalar]) -> list[ClaimRun]:
        """The runs with these axis values; other axes may have any value."""
        return [made for made in self.runs if self._is_at(made, point)]

    def values(self, axis: str, control: str | None, unknown: str | None = None) -> list[str]:
        """The values of an axis, in order, in the ordinary runs, or in those of a control or grid point."""
        own = (control, unknown)
        here = [made.axes for made in self.runs if (made.axes.get(CONTROL_AXIS), made.axes.get(UNKNOWN_AXIS)) == own]
        return list(dict.fromkeys(str(axes[axis]) for axes in here if axis in axes))

    def _is_at(self, made: ClaimRun, point: Mapping[str, Scalar]) -> bool:
        if any(axis in made.axes and axis not in point for axis in _OWN_AXES):
            return False
        return all(self._has(made, axis, wanted) for axis, wanted in point.items())

    def _has(self, made: ClaimRun, axis: str, wanted: Any) -> bool:
        if axis in made.axes:
            return axis_key(made.axes[axis]) == axis_key(wanted)
        if axis in _OWN_AXES:
            return False
        control = made.axes.get(CONTROL_AXIS)
        changed = self.controls[str(control)].set if control in self.controls else ()
        if axis in {canonical(self.document.data, name) for name in changed}:
            return True  # the control's value replaces all values of the axis
        written = made.algorithm if axis == ALGORITHM else field_value(self.document.data, axis)
        return axis_key(written) == axis_key(wanted)


@dataclass
class Sample:
    """One number, or text, per repetition. ``missing`` gives the reason for each valid run without a value;
    ``unsupported`` are those of them that this machine cannot measure. ``left_out`` are runs that do not count, with
    the reason; ``runs`` are all runs that were asked for."""

    unit: str = ""
    values: dict[int, float | str] = field(default_factory=dict)
    missing: dict[int, str] = field(default_factory=dict)
    unsupported: set[int] = field(default_factory=set)
    left_out: dict[str, str] = field(default_factory=dict)
    runs: list[str] = field(default_factory=list)

    @property
    def enough(self) -> bool:
        """Whether at least one run, and at least half of the runs, count."""
        counted = len(self.runs) - len(self.left_out)
        return counted > 0 and 2 * counted >= len(self.runs)

    def numbers(self) -> list[float]:
        return [float(self.values[repetition]) for repetition in sorted(self.values)]


def sample(runs: Iterable[ClaimRun], selector: SelectorSection) -> Sample:
    """The value that ``selector`` names, for each of the runs. Raises SelectionError."""
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
    """The value, its unit, and the reason if it is missing. Raises SelectionError if the selector is ambiguous."""
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
    """The row meant if no flow is named: the run's own, else that of the only group, else that of the only flow."""
    whole = [row for row in rows if row.flow is None and row.group is None]
    groups = [row for row in rows if row.flow is None and row.group is not None]
    flows = [row for row in rows if row.flow is not None]
    for found in (whole, groups, flows):
        if len(found) == 1:
            return found
        if found:
            raise SelectionError(f"{metric} is measured of {len(found)} flows; say which with flow")
    return []
