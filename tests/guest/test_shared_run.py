# SPDX-License-Identifier: Apache-2.0
"""Tests that share a run get one that is whole, whoever made it; no guest is booted here."""

from __future__ import annotations

import os
import time
from pathlib import Path
from typing import Any

import pytest

from howdah.build.cache import Cache
from howdah.engine.uml.engine import UmlEngine
from howdah.plan.plan import Plan
from howdah.record.directory import RunDirectory, write_json
from tests.guest import recording
from tests.guest import shared_run as module
from tests.guest.guest_run import plan_of
from tests.guest.shared_run import share_runs_in, shared_run


@pytest.fixture
def made(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> list[str]:
    """Algorithms whose runs were made, in order; runs are shared in a directory of this test's own."""
    found: list[str] = []

    def read(directory: RunDirectory, plan: Plan) -> dict[str, Any]:
        whole = (directory.raw / "recorded").read_text() == plan.algorithm
        checks = [{"stage": "engine", "ok": whole and plan.algorithm != "bbr"}, {"stage": "during", "ok": False}]
        write_json(directory.verdict, {"verdict": "pass", "run": plan.run, "checks": checks})
        return {"checks": checks}

    def run(_engine: UmlEngine, plan: Plan, path: Path) -> tuple[RunDirectory, dict[str, Any]]:
        found.append(plan.algorithm)
        directory = RunDirectory(path)
        directory.raw.mkdir(parents=True)
        (directory.raw / "recorded").write_text(plan.algorithm)
        return directory, read(directory, plan)

    monkeypatch.setenv("HOWDAH_CACHE", str(tmp_path / "cache"))
    monkeypatch.setattr(UmlEngine, "prepare", lambda *_: {"kernel": "6.12"})
    monkeypatch.setattr(module, "run", run)
    monkeypatch.setattr(module, "read", read)
    monkeypatch.setattr(module, "_places", [])
    share_runs_in(tmp_path / "shared")
    return found


def test_a_plan_is_run_once_and_another_plan_again(made: list[str]) -> None:
    engine, cubic, reno = UmlEngine(), plan_of("algorithm=cubic"), plan_of("algorithm=reno")
    first, verdict = shared_run(engine, cubic)
    assert shared_run(engine, cubic) == (first, verdict)
    assert shared_run(engine, reno)[0] != first
    assert made == ["cubic", "reno"]
    assert verdict["run"] == cubic.run


def test_another_way_of_building_the_network_is_another_run(made: list[str]) -> None:
    plan = plan_of("algorithm=cubic")
    one, other = (shared_run(UmlEngine(wiring=wiring), plan)[0] for wiring in ("netlink", "mininet"))
    assert one != other
    assert len(made) == 2


def test_what_is_left_of_a_run_that_failed_is_not_shared(made: list[str], monkeypatch: pytest.MonkeyPatch) -> None:
    plan = plan_of("algorithm=cubic")

    def fails(_engine: UmlEngine, _plan: Plan, path: Path) -> tuple[RunDirectory, dict[str, Any]]:
        path.mkdir()
        write_json(path / "verdict.json", {"verdict": "fail"})
        raise RuntimeError("in the middle")

    with monkeypatch.context() as patch:
        patch.setattr(module, "run", fails)
        with pytest.raises(RuntimeError):
            shared_run(UmlEngine(), plan)
    assert shared_run(UmlEngine(), plan)[1]["verdict"] == "pass"
    assert made == ["cubic"]


def _later_session(place: Path, plan: Plan) -> dict[str, Any]:
    share_runs_in(place)
    return shared_run(UmlEngine(), plan)[1]


def test_a_later_session_reads_what_was_recorded(made: list[str], tmp_path: Path) -> None:
    plan = plan_of("algorithm=cubic")
    _, verdict = shared_run(UmlEngine(), plan)
    assert _later_session(tmp_path / "later", plan) == verdict
    assert made == ["cubic"]


@pytest.mark.parametrize("changed", ["kernel", "engine"])
def test_what_another_kernel_or_engine_records_is_recorded(
    made: list[str], tmp_path: Path, monkeypatch: pytest.MonkeyPatch, changed: str
) -> None:
    plan = plan_of("algorithm=cubic")
    shared_run(UmlEngine(), plan)
    if changed == "kernel":
        monkeypatch.setattr(UmlEngine, "prepare", lambda *_: {"kernel": "6.13"})
    else:
        monkeypatch.setattr(recording, "_engine_sha256", lambda: "another")
    _later_session(tmp_path / "later", plan)
    assert made == ["cubic", "cubic"]


def test_a_fault_of_the_engine_is_not_kept_for_later_sessions(made: list[str], tmp_path: Path) -> None:
    plan = plan_of("algorithm=bbr")
    shared_run(UmlEngine(), plan)
    _later_session(tmp_path / "later", plan)
    assert made == ["bbr", "bbr"]


def test_what_no_session_used_for_two_weeks_is_removed(made: list[str], tmp_path: Path) -> None:
    shared_run(UmlEngine(), plan_of("algorithm=cubic"))
    [old] = Cache().entries(recording.KIND)
    long_ago = time.time() - 2 * recording.UNUSED_S
    os.utime(old, (long_ago, long_ago))
    shared_run(UmlEngine(), plan_of("algorithm=reno"))
    assert old not in Cache().entries(recording.KIND)
    _later_session(tmp_path / "later", plan_of("algorithm=cubic"))
    assert made == ["cubic", "reno", "cubic"]
