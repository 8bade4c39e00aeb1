# SPDX-License-Identifier: Apache-2.0
"""Events of slow-start modules: raw sub-buffers to the table slow_start."""

from __future__ import annotations

import dataclasses
import json
import re
from pathlib import Path

import pytest

from howdah.ingest.run import ingest
from howdah.judge.collection import collection_checks
from howdah.record import table as store
from howdah.record.account import TraceAccount
from howdah.record.directory import RunDirectory
from howdah.record.model import checked
from howdah.record.schema import EVENTS, REASONS, name_of
from tests.unit.event_factory import add_events, record
from tests.unit.recorded_run import make_recorded_run, recorded_plan


@pytest.fixture
def run(tmp_path: Path) -> RunDirectory:
    return make_recorded_run(tmp_path)


def account(run: RunDirectory) -> TraceAccount:
    path = run.raw / "slow_start.json"
    return checked(TraceAccount, json.loads(path.read_text()), path)


def test_without_a_module_the_table_is_empty_and_nothing_is_missing(run: RunDirectory) -> None:
    report = ingest(run)
    assert store.read(run, "slow_start").num_rows == 0
    assert report.all_problems == []
    names = {check.name for check in collection_checks(recorded_plan(), report, None)}
    assert not any("event" in name for name in names)


def test_a_record_becomes_a_row_with_names_and_times_from_the_epoch(run: RunDirectory) -> None:
    phase = record(event=1, reason=2, ssthresh=0x7FFFFFFF, quantity=44_500, threshold=44_000, min_rtt_us=0xFFFFFFFF)
    add_events(run, [(1_000, phase), (2_048_000, record(cwnd=3_000_000_000))])
    report = ingest(run)
    assert report.all_problems == []
    first, second = store.read(run, "slow_start").to_pylist()
    assert first == {
        "flow": 1,
        "time_ns": 1_000,
        "event": "phase",
        "reason": "delay",
        "cwnd_packets": 40,
        "ssthresh_packets": None,
        "quantity": 44_500,
        "threshold": 44_000,
        "round": 4,
        "min_rtt_us": None,
    }
    assert (second["time_ns"], second["event"], second["reason"]) == (2_048_000, "exit", "loss")
    assert (second["cwnd_packets"], second["ssthresh_packets"], second["min_rtt_us"]) == (3_000_000_000, 20, 40_000)


def test_numbers_without_a_name_are_kept_and_reported(run: RunDirectory) -> None:
    add_events(run, [(0, record(event=90)), (5, record(reason=91))])
    report = ingest(run)
    rows = store.read(run, "slow_start").to_pylist()
    assert [(row["event"], row["reason"]) for row in rows] == [("unknown-90", "loss"), ("exit", "unknown-91")]
    checks = {check.name: check for check in collection_checks(recorded_plan(), report, None, account(run))}
    assert checks["event names"].ok is None
    assert "unknown-90" in checks["event names"].message
    assert "unknown-91" in checks["event names"].message


def test_events_of_two_flows_are_told_apart_by_address_and_port(tmp_path: Path) -> None:
    plan = recorded_plan()
    second = dataclasses.replace(plan.flows[0], id=2, sender="s", source_address="10.0.9.1")
    run = make_recorded_run(tmp_path, dataclasses.replace(plan, flows=[plan.flows[0], second]))
    add_events(
        run, [(0, record(saddr="10.0.9.1")), (1, record()), (2, record(sport=5201, dport=40000)), (3, record(sport=9))]
    )
    counts = ingest(run).sources["slow_start"].counts
    assert [row["flow"] for row in store.read(run, "slow_start").to_pylist()] == [2, 1]
    assert counts["other_rows"] == 1  # the receiver's own socket
    assert counts["unknown_rows"] == 1
    assert counts["unknown_sockets"] == [{"source_port": 9, "destination_port": 5201, "records": 1}]


def test_records_of_flow_sockets_add_up(run: RunDirectory) -> None:
    add_events(run, [(0, record()), (1, record(sport=5201, dport=40000)), (2, record(event=1))])
    checks = collection_checks(recorded_plan(), ingest(run), None, account(run))
    (whole,) = [check for check in checks if check.name == "event records"]
    assert (whole.ok, whole.expected, whole.measured) == (True, 3, 3)


@pytest.mark.parametrize("lost", ["overrun", "dropped_events", "commit_overrun", "unread"])
def test_a_lost_event_makes_the_run_invalid(run: RunDirectory, lost: str) -> None:
    add_events(run, [(0, record())], **{lost: 2})
    checks = collection_checks(recorded_plan(), ingest(run), None, account(run))
    (check,) = [check for check in checks if check.name == "lost event records"]
    assert check.ok is False
    assert "2 slow-start events were lost" in check.message


def test_a_cut_file_is_a_problem(run: RunDirectory) -> None:
    add_events(run, [(0, record())])
    path = run.raw / "slow_start.bin"
    path.write_bytes(path.read_bytes()[:-100])
    assert any("slow_start.bin" in problem for problem in ingest(run).all_problems)


def test_a_loaded_module_without_its_account_is_a_problem(run: RunDirectory) -> None:
    agent = json.loads((run.raw / "agent.json").read_text())
    agent["modules"] = {"howdah_slow_start": {"srcversion": None, "parameters": {}}}
    (run.raw / "agent.json").write_text(json.dumps(agent))
    report = ingest(run)
    assert any("slow_start.json" in problem for problem in report.all_problems)
    checks = collection_checks(recorded_plan(), report, None)
    assert [check.ok for check in checks if check.name == "lost event records"] == [False]


def test_switched_off_nothing_is_read(tmp_path: Path) -> None:
    plan = recorded_plan()
    run = make_recorded_run(
        tmp_path, dataclasses.replace(plan, collect=dataclasses.replace(plan.collect, slow_start=False))
    )
    add_events(run, [(0, record())])
    assert ingest(run).sources["slow_start"].rows == 0


# The names of events and reasons are those of the modules' header, number for number

HEADER = Path(__file__).parents[2] / "modules" / "include" / "slow_start_event.h"


def enumeration(name: str) -> dict[int, str]:
    """Numbers and kebab-case names of an enum of the header."""
    (body,) = re.findall(rf"^enum {name} \{{$(.*?)^\}};$", HEADER.read_text(), re.DOTALL | re.MULTILINE)
    found = re.findall(r"^\tSLOW_START_(\w+) = (\d+),$", body, re.MULTILINE)
    assert len(found) == len(body.strip().splitlines()), "a line of the enum was not understood"
    return {int(number): text.lower().replace("_", "-") for text, number in found}


@pytest.mark.parametrize(
    ("enum", "names"), [("slow_start_event", EVENTS), ("slow_start_reason", REASONS)], ids=["events", "reasons"]
)
def test_names_are_those_of_the_header(enum: str, names: tuple[str, ...]) -> None:
    assert enumeration(enum) == dict(enumerate(names))


def test_a_number_without_a_name_is_kept() -> None:
    assert name_of(len(EVENTS), EVENTS) == f"unknown-{len(EVENTS)}"
    assert name_of(2, REASONS) == "delay"
