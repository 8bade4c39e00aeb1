# SPDX-License-Identifier: Apache-2.0
"""What a sheet keeps of how its runs were made: whatever makes a key another one, makes the origin another one."""

from __future__ import annotations

import copy
import math
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest

from howdah.nightly import sheet as module
from howdah.nightly.sheet import CellSheet, Origin, read_experiment
from howdah.nightly.suite import SuiteExperiment, read_suite
from howdah.plan.compile import compile_plan
from howdah.plan.plan import RealTime
from howdah.record.directory import RunDirectory
from howdah.record.index import ProfileSource
from howdah.record.metrics import MetricRow
from howdah.record.result import Experiment, Run
from howdah.record.run import RunRecord
from howdah.record.verdict import Verdict
from tests.nightly_factory import write_suite
from tests.unit.plan_factory import on_engine

RECORD: dict[str, Any] = {
    "key": "a key",
    "plan_sha256": "a plan",
    "analysis_sha256": "an analysis",
    "wall_s": 2.5,
    "engine": {"name": "uml", "guest_wall_s": 1.0, "tools": "tools"},
    "kernel": {"release": "6.12.117", "image_sha256": "image"},
    "guest_tree": {"sha256": "tree"},
    "modules": {"tcp_mine": {"srcversion": "source", "parameters": {"gain": "2"}}},
}


@pytest.fixture
def series(tmp_path: Path) -> SuiteExperiment:
    return read_suite(
        write_suite(tmp_path, "suite: test\ncells:\n- {profile: made.yaml, algorithms: [cubic]}\n")
    ).series[0]


def _read(
    series: SuiteExperiment,
    monkeypatch: pytest.MonkeyPatch,
    record: dict[str, Any],
    rows: list[MetricRow],
    **plan: Any,
) -> CellSheet:
    compiled = compile_plan(series.profile.cells()[0], engine="uml", kernel=series.kernel)
    made = on_engine(compiled, plan.pop("engine", "uml"), **plan)
    said = RunRecord.model_validate({"status": "finished", **record})
    run = Run(
        RunDirectory(Path("run")), "test", "cubic", 0, {}, "finished", made, rows, [], Verdict(verdict="pass"), said
    )
    found = Experiment(Path(), "test", "", ProfileSource(), "", [run])
    monkeypatch.setattr(module, "read_results", lambda _path: found)
    (cell,) = read_experiment(series, Path()).cells.values()
    return cell


def _origin(series: SuiteExperiment, monkeypatch: pytest.MonkeyPatch, record: dict[str, Any], **plan: Any) -> Origin:
    cell = _read(series, monkeypatch, record, [], **plan)
    each = cell.repetitions[0]
    assert (each.key, each.plan, each.wall_s) == ("a key", "a plan", 2.5)
    return cell.origin


def _changed(*path: str, value: Any = "another") -> dict[str, Any]:
    record = copy.deepcopy(RECORD)
    inner = record
    for name in path[:-1]:
        inner = inner[name]
    inner[path[-1]] = value
    return record


@pytest.mark.parametrize(
    "path",
    [
        ("kernel", "image_sha256"),
        ("guest_tree", "sha256"),
        ("engine", "tools"),
        ("engine", "qemu"),
        ("modules", "tcp_mine", "srcversion"),
        ("modules", "tcp_mine", "sha256"),
        ("modules", "tcp_other"),
    ],
    ids="/".join,
)
def test_another_guest_is_another(
    series: SuiteExperiment, monkeypatch: pytest.MonkeyPatch, path: tuple[str, ...]
) -> None:
    value = {"srcversion": "other"} if path[-1] == "tcp_other" else "another"
    first = _origin(series, monkeypatch, RECORD)
    second = _origin(series, monkeypatch, _changed(*path, value=value))
    assert first.guest != second.guest
    assert replace(first, guest="") == replace(second, guest="")


def test_what_took_how_long_is_no_part_of_it(series: SuiteExperiment, monkeypatch: pytest.MonkeyPatch) -> None:
    assert _origin(series, monkeypatch, RECORD) == _origin(
        series, monkeypatch, _changed("engine", "guest_wall_s", value=9)
    )


def test_the_analysis_and_the_agent_are_told_apart(series: SuiteExperiment, monkeypatch: pytest.MonkeyPatch) -> None:
    first = _origin(series, monkeypatch, RECORD)
    assert first.analysis == "an analysis"
    assert _origin(series, monkeypatch, _changed("analysis_sha256")) == replace(first, analysis="another")
    monkeypatch.setattr(module, "agent_sha256", lambda: "another agent")
    assert _origin(series, monkeypatch, RECORD) == replace(first, agent="another agent")


@pytest.mark.parametrize("path", [("kernel", "image_sha256"), ("modules", "tcp_mine", "srcversion")])
def test_a_guest_of_which_something_is_not_known_is_not_known(
    series: SuiteExperiment, monkeypatch: pytest.MonkeyPatch, path: tuple[str, ...]
) -> None:
    assert _origin(series, monkeypatch, _changed(*path, value=None)).guest == ""


def test_whether_time_is_virtual_is_the_engines_trait(series: SuiteExperiment, monkeypatch: pytest.MonkeyPatch) -> None:
    assert _origin(series, monkeypatch, RECORD).virtual_clock
    assert _origin(series, monkeypatch, RECORD, engine="vm").virtual_clock
    assert not _origin(series, monkeypatch, RECORD, engine="vm", real_time=RealTime("kvm")).virtual_clock
    assert not _origin(series, monkeypatch, RECORD, engine="host").virtual_clock


def test_a_value_that_is_no_number_is_missing(series: SuiteExperiment, monkeypatch: pytest.MonkeyPatch) -> None:
    """It would pass every comparison: nothing is smaller than it, or larger, or equal."""
    values: dict[str, Any] = {"nan": math.nan, "infinite": math.inf, "whole": 3, "text": "loss", "none": None}
    rows = [MetricRow(None, name, value, "") for name, value in values.items()]
    cell = _read(series, monkeypatch, RECORD, rows)
    assert cell.repetitions[0].metrics == {"nan": None, "infinite": None, "whole": 3.0, "text": "loss", "none": None}
