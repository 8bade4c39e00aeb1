# SPDX-License-Identifier: Apache-2.0
"""Every row and cross-check of metrics.json of recorded runs."""

from __future__ import annotations

import dataclasses
import json
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from howdah.ingest.run import ingest
from howdah.plan.plan import Plan
from howdah.record.directory import RunDirectory
from tests.unit.recorded_lines import compare, line_of_cross_check, line_of_row
from tests.unit.recorded_run import make_recorded_run
from tests.unit.simulated_run import make_simulated_run, simulated_plan
from tests.unit.test_measure_run import metrics_of, plan_of_recording

COMMON = ("run", "engine", "kernel", "algorithm", "receiver", "repetition", "axes")


def lines(run: RunDirectory, plan: Plan) -> list[str]:
    ingest(run)
    result = metrics_of(run, plan)
    first = result["rows"][0]
    said = [f"{name}: {first[name]}" for name in COMMON]
    said += [line_of_row(row, COMMON) for row in result["rows"]]
    return said + [line_of_cross_check(found) for found in result["cross_checks"]]


def _whole(plan: Plan) -> Plan:
    return plan


def _sized(plan: Plan) -> Plan:
    """It completes: the agent says so."""
    return dataclasses.replace(plan, flows=[dataclasses.replace(plan.flows[0], size_bytes=600_000)])


def _two(plan: Plan) -> Plan:
    """The second never comes."""
    ghost = dataclasses.replace(plan.flows[0], id=2, source_port=9, algorithm="reno", size_bytes=1000)
    return dataclasses.replace(plan, flows=[plan.flows[0], ghost])


def _marking(plan: Plan) -> Plan:
    path = dataclasses.replace(plan.path, ecn=True)
    return dataclasses.replace(plan, path=path, measure_window_us=(200_000, 400_000))


@pytest.mark.parametrize("change", [_whole, _sized, _two, _marking], ids=lambda change: change.__name__[1:])
def test_a_recorded_flow_is_measured_as_before(change: Callable[[Plan], Plan], tmp_path: Path) -> None:
    plan = change(plan_of_recording())
    run = make_recorded_run(tmp_path, plan)
    agent: dict[str, Any] = json.loads((run.raw / "agent.json").read_text())
    # The connection was made at 60.868 ms after the epoch of the recording.
    agent["flows"][0] |= {"start_ns": 60_000_000, "connected_ns": 100_868_000, "end_ns": 700_000_000}
    (run.raw / "agent.json").write_text(json.dumps(agent))
    compare(f"metrics/{change.__name__[1:]}.txt", lines(run, plan))


def test_a_simulated_flow_is_measured_as_before(tmp_path: Path) -> None:
    compare("metrics/simulated.txt", lines(make_simulated_run(tmp_path / "run"), simulated_plan()))
