# SPDX-License-Identifier: Apache-2.0
"""What grows with the number of runs: names of runs in a column, work for the table of results."""

from __future__ import annotations

from pathlib import Path

import pytest

from howdah.library.axis import TEXT, column
from howdah.record.result import Run, load_experiment
from howdah.report.source import TableSource
from howdah.report.table import table
from howdah.report.variant import Variants
from tests.experiment_factory import Scenario, make_experiment

NAMES = 40_000


def test_a_column_holds_more_names_than_16_bits_tell_apart() -> None:
    names = [f"cubic-{number}-r0" for number in range(NAMES)]
    assert column(names, TEXT).to_pylist() == names


def test_the_table_asks_each_run_for_its_point_as_often_in_a_large_sweep(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    asked = 0
    point = vars(Run)["point"].fget

    def counted(run: Run) -> str:
        nonlocal asked
        asked += 1
        return str(point(run))

    monkeypatch.setattr(Run, "point", property(counted))
    for_each = []
    for points in (2, 6):
        axes = tuple({"path.rate": 10_000_000 + number} for number in range(points))
        scenario = Scenario(name=f"sweep-{points}", axes=axes, repetitions=1, flows=1, duration_s=2.0)
        experiment = load_experiment(make_experiment(tmp_path, scenario))
        summary, variants = TableSource().summary(experiment), Variants([experiment])
        asked = 0
        assert len(table([experiment], [summary], variants).points) == points
        for_each.append(asked / len(experiment.runs))
    assert for_each[0] == for_each[1]
