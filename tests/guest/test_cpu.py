# SPDX-License-Identifier: Apache-2.0
"""A guest that is looked at: the profile names the kernel's functions, and nothing in the run is another."""

from __future__ import annotations

import dataclasses
import json
from pathlib import Path

import pyarrow as pa
import pyarrow.compute as pc
import pytest

from howdah.engine.uml import profiler
from howdah.engine.uml.engine import UmlEngine
from howdah.record import table as store
from howdah.record.directory import RunDirectory
from howdah.record.schema import MACHINE_TABLES, TABLES
from tests.guest.guest_run import ignore, plan_of, require_engine, run

pytestmark = pytest.mark.guest


@pytest.fixture(scope="module")
def engine() -> UmlEngine:
    return require_engine()


def _told(name: str, directory: RunDirectory) -> pa.Table:
    """A table, but for the guest's free memory: the agent's notes of wall time take a page more or less."""
    table = store.read(directory, name)
    return table.filter(pc.not_equal(table["source"], "meminfo")) if name == "counter" else table


def test_looking_changes_nothing_and_sees_the_functions_of_tcp(engine: UmlEngine, tmp_path: Path) -> None:
    if problem := profiler.trial():
        pytest.skip(f"perf cannot look here: {problem}")
    asked = plan_of("algorithm=cubic-no-hystart", "path.rate=200 Mbit/s", "path.rtt=100 ms", "collect.cpu=true")
    plain = dataclasses.replace(asked, collect=dataclasses.replace(asked.collect, cpu=False))
    engine.prepare([asked], ignore)
    with_profile, _verdict = run(engine, asked, tmp_path / "with")
    without, _verdict = run(engine, plain, tmp_path / "without")
    alike = [name for name in TABLES if name not in MACHINE_TABLES and without.table(name).exists()]
    assert {"tcp_probe", "tcp_info", "qdisc"} <= {*alike}
    for name in alike:
        assert store.first_difference(name, *(_told(name, each) for each in (with_profile, without))) is None
    account = json.loads((with_profile.raw / "cpu-profile.json").read_text())
    assert (account["why"], account["inlined_why"]) == (None, None)
    assert account["samples"] > 200
    rows = store.read(with_profile, "cpu").to_pylist()
    # In which functions of the traffic module its few samples fall is chance; that they have names is not.
    of_modules = {row["symbol"] for row in rows if row["domain"] == "module"}
    assert any(symbol.startswith(("sink_", "source_", "traffic_")) for symbol in of_modules), of_modules
    inlined = {name for row in rows for name in row["inlined"].split("<")}
    assert "tcp_clean_rtx_queue" in inlined, "it has no symbol of its own"
    values = {row["metric"]: row for row in json.loads(with_profile.metrics.read_text())["rows"] if row["flow"] is None}
    assert 0 < values["cpu_seconds_per_simulated_second"]["value"] < 5
    share = values["cpu_share_tcp_clean_rtx_queue"]["value"]
    assert 0 < share < values["cpu_sender_share_tcp_clean_rtx_queue"]["value"] < 1
    assert (
        values["cpu_peak_seconds_per_simulated_second"]["value"] >= values["cpu_seconds_per_simulated_second"]["value"]
    )
    assert not without.table("cpu").exists()


def test_a_guest_that_must_not_be_looked_at_runs_all_the_same(
    engine: UmlEngine, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """As where perf is not installed, or forbidden: the run is whole, and its measures say why they are null."""
    monkeypatch.setattr(profiler, "EVENT", "no-such-event")
    plan = plan_of("algorithm=cubic", "duration=1 s", "collect.cpu=true")
    directory, verdict = run(engine, plan, tmp_path / "run")
    assert verdict.verdict == "pass"
    rows = [row for row in json.loads(directory.metrics.read_text())["rows"] if row["metric"].startswith("cpu_")]
    assert len(rows) > 10
    assert {row["value"] for row in rows} == {None}
    assert all(row["why"] for row in rows)
