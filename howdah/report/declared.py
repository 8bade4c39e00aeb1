# SPDX-License-Identifier: Apache-2.0
"""The figures that the profiles of some experiments declare, for their report."""

from __future__ import annotations

from dataclasses import dataclass

from markupsafe import Markup, escape

from howdah.errors import HowdahError
from howdah.profile.experiment import sections_of_experiment
from howdah.record.result import Experiment
from howdah.report.plot import draw


@dataclass(frozen=True)
class DeclaredFigures:
    """Figures of one experiment, in the order of its profile."""

    experiment: str
    figures: list[Markup]


def declared_figures(experiments: list[Experiment]) -> list[DeclaredFigures]:
    """Of every experiment that declares some; a profile that cannot be read is said in their place."""
    found = []
    for experiment in experiments:
        try:
            sections = sections_of_experiment(experiment.path)
            figures = [Markup(draw(figure, experiment)) for figure in sections.figures]
        except HowdahError as error:
            figures = [
                Markup('<p class="missing" role="status">The figures of the profile: {}</p>').format(escape(error))
            ]
        if figures:
            found.append(DeclaredFigures(experiment.name, figures))
    return found


def without_data(experiments: list[Experiment]) -> int:
    """Runs of which only the results were kept, so that they have no curves."""
    return sum(not run.data_kept for experiment in experiments for run in experiment.runs)
