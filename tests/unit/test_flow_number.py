# SPDX-License-Identifier: Apache-2.0
"""A flow has one number, from 1, wherever it is typed or shown: what is asked of flow 2 is told of flow 2."""

from __future__ import annotations

import dataclasses
import json
import re
from pathlib import Path

import pytest

from howdah.claim.sample import select
from howdah.errors import ProfileError
from howdah.nightly.sheet import repetition_of
from howdah.plan.compile import compile_plan
from howdah.plan.plan import Plan
from howdah.plan.text import render
from howdah.profile import load
from howdah.profile.claim import SelectorSection
from howdah.publish.openmetrics import families, openmetrics
from howdah.record import table as store
from howdah.record.directory import RunDirectory, read_json, write_json
from howdah.record.provenance import first_record, sha256_text
from howdah.record.result import load_experiment
from howdah.record.run import write_record
from howdah.record.verdict import Verdict
from howdah.report.plot.sample import flow_of
from howdah.work.stage import refresh
from tests.unit.recorded_run import make_recorded_run, recorded_plan

HEAD = "howdah: 1\nname: recorded\npath: {rate: 10 Mbit/s, rtt: 40 ms, buffer: 1 bdp}\nduration: 5 s\n"
FLOWS = "flows: [{}, {name: second}]\nbackground: [{}]\n"


def _plan(directory: Path, *overrides: str) -> Plan:
    file = directory / "recorded.yaml"
    file.write_text(HEAD + FLOWS, encoding="utf-8")
    return compile_plan(next(iter(load(file, overrides).cells())))


@pytest.mark.parametrize("written", ["flows.2.start=1 s", "flows.second.start=1 s"])
def test_what_is_set_of_flow_2_is_planned_of_flow_2(tmp_path: Path, written: str) -> None:
    plan = _plan(tmp_path, written)
    assert [(flow.id, flow.title) for flow in plan.flows if flow.start_us == 1_000_000] == [(2, "flow 2 (second)")]
    assert [flow.title for flow in plan.flows] == ["flow 1", "flow 2 (second)", "flow 3 (background1)"]
    assert re.search(r" 1\.000000 s +start flow 2\n", render(plan))
    assert "flow 0" not in render(plan)


@pytest.mark.parametrize(
    ("written", "said"),
    [
        ("flows.2.start=9 s", "flows.2.start: the flow starts at or after the end"),
        ("flows.second.start=[1 s, oops]", "flows.2.start: expected a duration"),
        ("flows.2.strat=1 s", "there is no field 'strat' in flows.2"),
        ("flows.0.start=1 s", "expected a number from 1 to 3 (the last adds one), or a name (second), not '0'"),
        ("flows.third.start=1 s", "or a name (second), not 'third'"),
    ],
)
def test_errors_count_as_people_do(tmp_path: Path, written: str, said: str) -> None:
    with pytest.raises(ProfileError) as refused:
        _plan(tmp_path, written)
    assert said in refused.value.what


@pytest.fixture(scope="module")
def recorded(tmp_path_factory: pytest.TempPathFactory) -> RunDirectory:
    """A run of two flows of which only the second sent: tables, measures and checks are made of it."""
    path = tmp_path_factory.mktemp("two") / "recorded"
    path.mkdir()
    plan = recorded_plan()
    sent = dataclasses.replace(plan.flows[0], id=2, name="second")
    silent = dataclasses.replace(plan.flows[0], id=1, name="flow1", source_port=9, destination_port=9)
    run = make_recorded_run(path, dataclasses.replace(plan, flows=[silent, sent]))
    agent = read_json(run.raw / "agent.json")
    agent["flows"][0]["id"] = 2
    write_json(run.raw / "agent.json", agent)
    text = run.plan.read_text()
    write_record(run, first_record(text, "a" * 64).replaced(status="finished"))
    refresh(run)
    cell = {"axes": plan.axes, "algorithm": plan.algorithm, "repetition": plan.repetition}
    cell |= {"run": run.name, "status": "finished", "verdict": read_json(run.verdict)["verdict"]}
    profile = HEAD + FLOWS
    (path / "profile.yaml").write_text(profile)
    source = {"file": "recorded.yaml", "sha256": sha256_text(profile)}
    write_json(path / "experiment.json", {"format": 1, "name": "recorded", "profile": source, "cells": [cell]})
    return run


def test_tables_and_measures_have_that_number(recorded: RunDirectory) -> None:
    for table in ("tcp_probe", "tcp_info"):
        assert set(store.read(recorded, table)["flow"].to_pylist()) - {-1, None} == {2}, table
    assert store.read(recorded, "flow")["flow"].to_pylist() == [1, 2]
    windows = {
        row["flow"]: row["value"] for row in read_json(recorded.metrics)["rows"] if row["metric"] == "exit_cwnd_packets"
    }
    assert windows == {1: None, 2: 67}


def test_checks_and_their_messages_have_that_number(recorded: RunDirectory) -> None:
    checks = {check["name"]: check for check in read_json(recorded.verdict)["checks"]}
    assert checks["flow 1"]["message"] == "flow 1 never started"
    assert checks["minimum RTT flow 1"]["message"].startswith("flow 1 has no RTT")
    assert "flow 2 (second) saw" in checks["minimum RTT flow 2"]["message"]
    of_flows = {name for name in checks if re.search(r"\bflow \d", name)}
    assert {re.sub(r".*flow ", "", name) for name in of_flows} == {"1", "2"}


def test_series_and_summaries_have_that_label(recorded: RunDirectory) -> None:
    (run,) = load_experiment(recorded.path.parent).runs
    text = "\n".join(openmetrics(families([run])))
    assert re.search(r'^howdah_flow_cwnd_packets\{.*="2"', text, re.MULTILINE)
    assert re.search(r'^howdah_exit_cwnd_packets\{.*="2".*\} 67', text, re.MULTILINE)
    assert set(re.findall(r'number="(\d+)"', text)) == {"2"}, "flow 1 never started"


def test_claims_figures_and_nights_ask_for_that_number(recorded: RunDirectory) -> None:
    (run,) = load_experiment(recorded.path.parent).runs
    assert run.plan is not None
    for asked in (2, "second"):
        assert select(run, SelectorSection(metric="exit_cwnd_packets", flow=asked))[0] == 67
        assert flow_of(run.plan, asked) == 2
    assert select(run, SelectorSection(metric="exit_cwnd_packets", flow=1))[0] is None
    counted = dataclasses.replace(run, verdict=Verdict(verdict="pass"))
    assert repetition_of(counted, {}).metrics["exit_cwnd_packets@2"] == 67


def test_nothing_counts_from_0(recorded: RunDirectory) -> None:
    for file in sorted(recorded.path.parent.rglob("*.json")):
        text = json.dumps(read_json(file))
        assert not re.search(r'\bflow 0\b|"flow": 0\b|flow=\\?"0', text), file
