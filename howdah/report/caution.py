# SPDX-License-Identifier: Apache-2.0
"""What a reader must know of a comparison, from its plans and its claims."""

from __future__ import annotations

from collections.abc import Iterator

from howdah.errors import ProfileError
from howdah.plan.caution import plan_cautions
from howdah.profile.experiment import sections_of_experiment
from howdah.record.result import Experiment
from howdah.report.many import is_many


def cautions(experiments: list[Experiment]) -> list[str]:
    """What the algorithm changed besides, an initial window that nothing obeys, and claims whose metric no run has."""
    found = plan_cautions([run.plan for experiment in experiments for run in experiment.runs if run.plan])
    if not is_many(experiments):  # of many only some measures are read
        found += [sentence for experiment in experiments for sentence in _claims(experiment)]
    return found


def _claims(experiment: Experiment) -> Iterator[str]:
    try:
        claims = sections_of_experiment(experiment.path).claims
    except ProfileError:
        return
    runs = [run for run in experiment.runs if run.counts]
    measured = {row.metric for run in runs for row in run.metrics} if claims else set()
    measured |= {name for run in runs for name in run.connections().metrics} if claims else set()
    for claim in claims if runs else []:
        if claim.value is not None and claim.value.metric not in measured:
            yield f"The claim {claim.id} cannot be judged: no run has {claim.value.metric}."
