# SPDX-License-Identifier: Apache-2.0
"""The result table has a column of what held a flow back only where that is worth telling."""

from __future__ import annotations

import pytest

from howdah.measure.statistics import statistic
from howdah.report.source import Group, Summary
from howdah.report.table import columns


@pytest.mark.parametrize(
    ("metric", "values", "shown"),
    [
        ("held_pacing_share", [0.04], False),
        ("held_pacing_share", [0.06], True),
        ("held_pacing_share", [0.04, 0.06], True),  # in one row is enough
        ("held_bandwidth_share", [0.9], False),
        ("held_congestion_window_share", [0.9], False),
        ("idle_restarts", [0], False),
        ("idle_restarts", [3], True),
        ("utilisation", [0.01], True),
    ],
)
def test_a_column_is_there_if_a_row_is_notable(metric: str, values: list[float], shown: bool) -> None:
    summary = Summary()
    for number, value in enumerate(values):
        summary.statistics[Group("e", "k", "", "cubic", str(number + 1)), metric] = statistic([value])
    assert [column.name for column in columns([summary])] == [metric] * shown
