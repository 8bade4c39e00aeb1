# SPDX-License-Identifier: Apache-2.0
"""The choice of what a figure is drawn from."""

from __future__ import annotations

from dataclasses import dataclass

from howdah.errors import HowdahError, UsageError
from howdah.profile.sweep import slug_of
from howdah.record.result import Experiment, Run, without_controls


@dataclass(frozen=True)
class Choice:
    """What to draw. Defaults: all algorithms and points, the first flow, the first repetition, the start-up, and the
    first main measure."""

    algorithms: tuple[str, ...] = ()
    point: str | None = None
    flow: str | None = None
    repetition: int | None = None
    whole: bool = False
    measure: str | None = None


def check_choice(experiments: list[Experiment], choice: Choice) -> None:
    """Raise UsageError if no run fits the choice, whatever the figure."""
    runs = [run for experiment in without_controls(experiments) for run in experiment.runs if run.plan]
    if not runs:
        return
    for asked in choice.algorithms:
        known = [run.algorithm for run in runs]
        if asked not in known:
            raise UsageError.unknown(f"no run has the algorithm {asked!r}", asked, known, "they have")
    numbers = {run.repetition for run in runs}
    if choice.repetition is not None and choice.repetition not in numbers:
        what = f"no run is repetition {choice.repetition}"
        raise UsageError(what, hint=f"they are counted from 0, and the last is {max(numbers)}")
    if choice.point is not None:
        at_point(runs, choice.point)
    flows = [flow for run in runs if run.plan for flow in run.plan.flows]
    if choice.flow is not None and not any(choice.flow in (flow.name, str(flow.id)) for flow in flows):
        names = [flow.name for flow in flows]
        raise UsageError.unknown(f"no run has the flow {choice.flow!r}", choice.flow, names, "their flows are")


def chosen_runs(experiments: list[Experiment], choice: Choice, *, with_data: bool) -> list[Run]:
    """The chosen runs that have something to draw: tables if ``with_data``, else at least measures. Raises HowdahError
    if there are none."""
    every = [run for experiment in experiments for run in experiment.runs if run.plan]
    runs = [run for run in every if run.data_kept or not with_data]
    if choice.algorithms:
        runs = [run for run in runs if run.algorithm in choice.algorithms]
    if choice.point is not None:
        runs = at_point(runs, choice.point)
    if not runs:
        raise HowdahError("no run is left to draw", hint="'howdah list runs' shows what there is.")
    return runs


def at_point(runs: list[Run], text: str) -> list[Run]:
    """The runs at the points with that value, as profiles or run names spell it, else those whose point contains the
    text.

    Raises UsageError if there are none.
    """
    words = f"-{slug_of({'': text})}-"
    found = [run for run in runs if words in f"-{slug_of({'': run.point})}-"] if words != "-none-" else []
    found = found or [run for run in runs if text in run.point]
    if not found:
        points = filter(None, (run.point for run in runs))
        raise UsageError.unknown(f"no run is at the point {text!r}", text, points, "their points are")
    return found
