# SPDX-License-Identifier: Apache-2.0
"""Which commands draw the figures of a pack: the same runs give its reader the sender's bytes."""

from __future__ import annotations

from howdah.pack.content import Kind
from howdah.record.result import Experiment
from howdah.report.paper import Choice, available, needs_records


def figure_commands(experiment: Experiment, kind: Kind) -> list[str]:
    """A command for each figure that can be drawn from what the pack of that kind has, to be run beside the
    experiment."""
    return [
        f"howdah figure --runs . {experiment.path.name} --figure {name}"
        for name, problem in available([experiment], Choice()).items()
        if problem is None and not (kind == "results" and needs_records(name, [experiment]))
    ]
