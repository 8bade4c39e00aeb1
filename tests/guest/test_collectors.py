# SPDX-License-Identifier: Apache-2.0
"""Looking changes nothing: whichever collector is on, every ACK meets the same cwnd and ssthresh."""

from __future__ import annotations

import dataclasses
from pathlib import Path
from typing import Any

import pyarrow as pa
import pytest

from howdah.engine.uml.build import Built
from howdah.ingest.run import ingest
from howdah.plan.plan import Plan
from howdah.record import table as store
from howdah.record.directory import RunDirectory
from tests.guest.agent_kit import quick_plan, report, run_agent
from tests.guest.guest_kit import build_or_skip
from tests.unit.plan_factory import collecting

pytestmark = pytest.mark.guest

ALONE: dict[str, Any] = {
    "slow_start": False,
    "tcp_info_us": None,
    "qdisc_us": None,
    "interface_us": None,
    "counters_us": None,
    "ss": False,
    "pcap": [],
}
SWITCHED_ON: dict[str, dict[str, Any]] = {
    "tcp_info": {"tcp_info_us": 20_000},
    "qdisc": {"qdisc_us": 10_000},
    "interface": {"interface_us": 50_000},
    "counters": {"counters_us": 500_000},
    "ss": {"ss": True},
    "pcap": {"pcap": ["right:right-eth0"]},
}


@pytest.fixture(scope="module")
def built() -> Built:
    return build_or_skip()


def records(built: Built, directory: Path, plan: Plan, **collect: Any) -> pa.Table:
    """The tcp_probe table of a run that collects only this beside it."""
    changed = dataclasses.replace(plan, collect=collecting(plan.collect, **{**ALONE, **collect}))
    ending = run_agent(built, directory, changed)
    assert ending.exit_status == 0, report(directory)["error"]
    run = RunDirectory(directory)
    run.plan.write_text(changed.to_json())
    ingest(run)
    return store.read(run, "tcp_probe")


@pytest.fixture(scope="module")
def reference(built: Built, tmp_path_factory: pytest.TempPathFactory) -> pa.Table:
    return records(built, tmp_path_factory.mktemp("alone"), quick_plan("cubic"))


def test_the_reference_shows_a_slow_start_and_its_end(reference: pa.Table) -> None:
    """Two equal but empty traces would prove nothing."""
    assert reference.num_rows > 2000
    assert max(reference["cwnd_packets"].to_pylist()) > 60
    thresholds = reference["ssthresh_packets"]
    assert 0 < thresholds.null_count < len(thresholds)


def test_switching_events_on_changes_no_cwnd_of_a_module_that_tells(built: Built, tmp_path: Path) -> None:
    plan = quick_plan("hystart-plus-plus")
    alone = records(built, tmp_path / "alone", plan)
    seen = records(built, tmp_path / "run", plan, slow_start=True)
    assert alone.num_rows > 1000
    assert store.read(RunDirectory(tmp_path / "alone"), "slow_start").num_rows == 0
    assert store.read(RunDirectory(tmp_path / "run"), "slow_start").num_rows > 0
    for column in ("flow", "time_ns", "snd_una_bytes", "cwnd_packets", "ssthresh_packets"):
        assert seen[column].equals(alone[column]), column


@pytest.mark.parametrize("collector", list(SWITCHED_ON))
def test_switching_a_collector_on_changes_no_cwnd(
    built: Built, reference: pa.Table, tmp_path: Path, collector: str
) -> None:
    seen = records(built, tmp_path / "run", quick_plan("cubic"), **SWITCHED_ON[collector])
    for column in ("flow", "snd_una_bytes", "cwnd_packets", "ssthresh_packets"):
        assert seen[column].equals(reference[column]), column


def test_no_trace_record_is_lost_when_the_buffer_holds_a_fraction_of_the_run(
    built: Built, reference: pa.Table, tmp_path: Path
) -> None:
    plan = quick_plan("cubic")
    small = dataclasses.replace(plan, collect=dataclasses.replace(plan.collect, trace_buffer_bytes=1 << 17))
    seen = records(built, tmp_path / "run", small)
    assert seen["cwnd_packets"].equals(reference["cwnd_packets"])
