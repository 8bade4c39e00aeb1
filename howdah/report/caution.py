# SPDX-License-Identifier: Apache-2.0
"""What a reader must know of a comparison, from its plans and its claims."""

from __future__ import annotations

from howdah.errors import ProfileError
from howdah.measure.presence import unmeasured_claims
from howdah.plan.caution import plan_cautions
from howdah.profile.experiment import sections_of_experiment
from howdah.record.result import Experiment


def cautions(experiments: list[Experiment]) -> list[str]:
    """What the algorithm changed besides, an initial window that nothing obeys, and claims whose metric no run has."""
    found = plan_cautions([run.plan for experiment in experiments for run in experiment.runs if run.plan])
    for experiment in experiments:
        found += _claims(experiment)
    return found


def _claims(experiment: Experiment) -> list[str]:
    try:
        claims = sections_of_experiment(experiment.path).claims
    except ProfileError:
        return []
    return unmeasured_claims(claims, [run.plan for run in experiment.runs if run.plan])
