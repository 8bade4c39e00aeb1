# SPDX-License-Identifier: Apache-2.0
"""The axes along which the runs of a page differ: algorithm, kernel, experiment, engine, receiver, and every swept
field."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass

from howdah.record.result import Experiment, Run
from howdah.record.table import axis_text
from howdah.report.plot.swept import field_name
from howdah.report.variant import Colour, Variants, colours

ALGORITHM = "algorithm"
_REPEATED = ("repetition", "repetitions", "algorithms", "flows.algorithm", ALGORITHM)
ABSENT = "—"


@dataclass(frozen=True)
class RunAxis:
    """One property in which runs differ. ``values`` are in the order of the runs; each has a colour.

    ``of_variants``: whether this property distinguishes the rows of the result table.
    """

    name: str
    label: str
    values: list[str]
    colours: list[Colour]
    of_variants: bool
    value_of: Callable[[Run], str]

    def index(self, run: Run) -> int:
        """The index of a run's value."""
        return self.values.index(self.value_of(run))


def axes(experiments: list[Experiment], variants: Variants) -> list[RunAxis]:
    """Every axis on which the runs have several values; those that distinguish table rows come first.

    An axis that groups the runs exactly like an earlier one (a kernel's name and its release) is left out. If the runs
    differ in nothing, the only axis is the algorithm.
    """
    runs = [run for experiment in experiments for run in experiment.runs]
    fields = dict.fromkeys(name for run in runs for name in run.axes if name not in _REPEATED)
    ways: list[tuple[str, bool, Callable[[Run], str]]] = [(ALGORITHM, True, lambda run: run.algorithm)]
    ways += [("kernel", True, lambda run: run.kernel)] if variants.with_kernel else []
    ways += [("experiment", True, lambda run: run.experiment)] if variants.with_experiment else []
    ways += [(name, False, _field(name)) for name in fields]
    ways.append(("engine", False, lambda run: run.plan.engine if run.plan else ABSENT))
    ways.append(("receiver", False, lambda run: run.plan.receiver if run.plan else ABSENT))
    found: list[RunAxis] = []
    seen: list[list[int]] = []
    for name, of_variants, value_of in ways:
        values = list(dict.fromkeys(value_of(run) for run in runs))
        if values == [] or (len(values) == 1 and name != ALGORITHM):
            continue
        parts = [values.index(value_of(run)) for run in runs]
        if parts in seen or any(each.name == name for each in found):
            continue
        seen.append(parts)
        algorithms = values if name == ALGORITHM else [""] * len(values)
        chosen = colours(list(zip(values, algorithms, strict=True)))
        label = name if name in (ALGORITHM, "control") else field_name(name)
        found.append(RunAxis(name, label, values, [chosen[value] for value in values], of_variants, value_of))
    return found


def _field(name: str) -> Callable[[Run], str]:
    """A function that returns a run's value of the field, or, if the run lacks it, the traffic generator of its first
    flow (``traffic``) or ABSENT."""

    def value(run: Run) -> str:
        usual = run.plan.flows[0].traffic if name == "traffic" and run.plan and run.plan.flows else ABSENT
        return axis_text(run.axes.get(name, usual))

    return value
