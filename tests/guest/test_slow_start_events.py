# SPDX-License-Identifier: Apache-2.0
"""What a module tells of an exit reaches tables, measures and verdict, and is what the per-ACK trace shows."""

from __future__ import annotations

import json
from pathlib import Path

import numpy as np
import pyarrow.compute as pc
import pytest

from howdah.engine.uml.engine import UmlEngine
from howdah.record import table as store
from howdah.record.directory import read_json
from tests.guest.guest_run import failures, measures, plan_of, run
from tests.guest.signature import SIGNATURE, SlowStart, slow_start

pytestmark = pytest.mark.guest


@pytest.fixture(scope="module")
def standard(engine: UmlEngine, tmp_path_factory: pytest.TempPathFactory) -> SlowStart:
    return slow_start(engine, tmp_path_factory.mktemp("standard") / "run", "standard")


def test_standard_leaves_by_loss_at_the_ack_and_window_the_trace_shows(standard: SlowStart) -> None:
    (exit_,) = standard.exits
    trace = standard.trace
    first = int(np.flatnonzero(np.isfinite(trace.ssthresh))[0])
    assert exit_["reason"] == "loss"
    assert exit_["time_ns"] == int(trace.time_ns[first - 1])
    assert exit_["cwnd_packets"] == int(trace.cwnd[first - 1])
    assert exit_["ssthresh_packets"] == int(trace.ssthresh[first])
    assert exit_["cwnd_packets"] > 2 * exit_["ssthresh_packets"] - 2
    assert exit_["min_rtt_us"] == 102_000


def test_the_measures_are_the_modules_and_the_sources_agree(standard: SlowStart) -> None:
    (exit_,) = standard.exits
    found = measures(standard.directory)
    assert found["exit_cwnd_packets"] == exit_["cwnd_packets"]
    assert found["exit_time_s"] == pytest.approx((exit_["time_ns"] - standard.trace.start_ns) / 1e9)
    assert (found["exit_cause"], found["exits"], found["exit_quantity"]) == ("loss", 1, exit_["quantity"])
    checks = [item for item in read_json(standard.directory.metrics)["cross_checks"] if "module" in item["sources"]]
    assert {item["metric"] for item in checks} == {"exit_time_s", "exit_cwnd_packets", "exit_cause"}
    assert all(item["agree"] for item in checks), checks


def test_every_event_is_accounted_for(standard: SlowStart) -> None:
    checks = {check.name: check for check in standard.verdict.checks}
    assert checks["lost event records"].ok
    assert checks["event records"].measured == checks["event records"].expected == len(standard.events)
    account = json.loads((standard.directory.raw / "slow_start.json").read_text())
    assert account["entries"] == len(standard.events)


def test_a_phase_and_an_exit_are_told_in_order(engine: UmlEngine, tmp_path: Path) -> None:
    """HyStart++ sees the RTT rise, and the buffer overflows before its conservative rounds are over."""
    found = slow_start(engine, tmp_path / "run", "hystart-plus-plus")
    phase, exit_ = found.events
    assert (phase["event"], phase["reason"], exit_["event"], exit_["reason"]) == ("phase", "delay", "exit", "loss")
    assert phase["quantity"] >= phase["threshold"] > phase["min_rtt_us"]
    assert phase["ssthresh_packets"] is None
    assert phase["cwnd_packets"] < exit_["cwnd_packets"]
    assert tuple(measures(found.directory)[name] for name in ("phases", "resumes")) == (1, 0)


def test_a_kernel_without_the_module_has_no_events_and_nothing_is_missing(engine: UmlEngine, tmp_path: Path) -> None:
    plan = plan_of("algorithm=cubic", profile=SIGNATURE)
    directory, verdict = run(engine, plan, tmp_path / "run")
    assert failures(verdict) == {}
    assert store.read(directory, "slow_start").num_rows == 0
    assert not (directory.raw / "slow_start.json").exists()


def test_events_of_two_flows_belong_to_them(engine: UmlEngine, tmp_path: Path) -> None:
    found = slow_start(engine, tmp_path / "run", "standard", "flows=[{}, {start: 1 s}]")
    table = store.read(found.directory, "slow_start")
    assert set(table["flow"].to_pylist()) == {1, 2}
    first = pc.min(table.filter(pc.equal(table["flow"], 2))["time_ns"]).as_py()
    assert first > 1_000_000_000
