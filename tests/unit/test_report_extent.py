# SPDX-License-Identifier: Apache-2.0
"""How much of a run figures show: their time axes fit what flows did, not what the plan allows for."""

from __future__ import annotations

from dataclasses import replace
from types import SimpleNamespace
from typing import Any, cast

import pyarrow as pa
import pytest

from howdah.record.result import Run
from howdah.report.source import shown_us
from tests.unit.recorded_run import recorded_plan

S = 1_000_000
PLAN = recorded_plan()
FLOW = PLAN.flows[0]


def run_of(rows: list[tuple[float | None, bool]], duration_s: float, flows: int = 0) -> Run:
    """A run with these ends of its flows, in seconds, and whether they completed."""
    count = flows or len(rows)
    plan = replace(
        PLAN,
        duration_us=int(duration_s * S),
        flows=[replace(FLOW, id=number, rtt_us=100_000) for number in range(1, count + 1)],
    )
    table = [
        {"flow": number, "end_ns": None if end is None else int(end * 1e9), "complete": complete}
        for number, (end, complete) in enumerate(rows, 1)
    ]
    found: dict[str, Any] = {"plan": plan, "table": lambda _name: pa.Table.from_pylist(table) if table else None}
    return cast(Run, SimpleNamespace(**found))


@pytest.mark.parametrize(
    ("ends", "duration_s", "shown_s"),
    [
        ([(1.0, True)], 20, 1.4),  # four round trips behind it
        ([(1.0, True), (40.0, True)], 100, 42.0),  # a twentieth
        ([(1.0, True), (20.0, False)], 20, 20),  # one ran until the plan's end
        ([(1.0, True), (None, False)], 20, 20),
        ([(15.8, True)], 20, 20),  # so near the end that the plan's end says more
    ],
)
def test_the_axis_ends_behind_the_last_flow(ends: list[Any], duration_s: float, shown_s: float) -> None:
    assert shown_us(run_of(ends, duration_s)) == pytest.approx(shown_s * S)


def test_a_flow_without_a_row_and_a_run_without_the_table_are_shown_whole() -> None:
    assert shown_us(run_of([(1.0, True)], 20, flows=2)) == 20 * S
    assert shown_us(run_of([], 20, flows=1)) == 20 * S
