# SPDX-License-Identifier: Apache-2.0
"""Connections of a group with completion times of one's own, in the runs of an experiment that was made up."""

from __future__ import annotations

import json
from dataclasses import replace
from pathlib import Path

from howdah.record.connections import Connections, RowsOfConnections, write_connections
from howdah.record.directory import RunDirectory
from howdah.record.reading import read_plan_file
from tests.experiment_factory import rewrite_plan


def add_connections(experiment: Path, completion_s: list[float | None], group: str = "short") -> Path:
    """Each run gets as many connections; None is one that was not completed. Returns the experiment."""
    for file in experiment.glob("*/metrics.json"):
        algorithm = json.loads(file.read_text())["rows"][0]["algorithm"]
        words = {"group": group, "metric": "completion_time_s", "unit": "s", "algorithm": algorithm, "receiver": None}
        found = RowsOfConnections()
        for number, value in enumerate(completion_s):
            found.add(10 + number, value, why="the run ended" if value is None else None, **words)
        plan_connections(file.parent, group, [10 + number for number in range(len(completion_s))])
        write_connections(RunDirectory(file.parent), Connections(found.table()))
    return experiment


def plan_connections(run: Path, group: str, ids: list[int]) -> None:
    """Have the run's plan make connections of a group, which are flows with these ids."""
    flows = read_plan_file(RunDirectory(run).plan).flows
    more = [replace(flows[0], id=id_, name=f"{group}-{number}", group=group) for number, id_ in enumerate(ids, 1)]
    rewrite_plan(run, flows=[*flows, *more])
