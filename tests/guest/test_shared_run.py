# SPDX-License-Identifier: Apache-2.0
"""Tests that share a run get one that is whole, whoever made it, in this session or before; no guest is booted here."""

from __future__ import annotations

from pathlib import Path

import pytest

from howdah.build.cache import content_key
from howdah.engine.uml.engine import UmlEngine
from howdah.plan.plan import Plan
from howdah.record.directory import RunDirectory, read_json, write_json
from howdah.record.verdict import ENGINE, Check, Verdict, write_verdict
from tests.guest import shared_run as module
from tests.guest.guest_run import plan_of
from tests.guest.shared_run import share_runs_in, shared_run

Made = tuple[RunDirectory, Verdict]


@pytest.fixture
def made(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> list[str]:
    """Algorithms whose runs were made, in order; runs are shared and remembered in directories of this test's own."""
    found: list[str] = []

    def analysed(directory: RunDirectory, plan: Plan) -> Verdict:
        ok = read_json(directory.raw / "agent.json")["says"] == "pass"
        return write_verdict(directory, [Check("of the plan", ENGINE, ok, plan.run)])

    def run(_engine: UmlEngine, plan: Plan, path: Path, _carried_out: Plan | None) -> Made:
        found.append(plan.algorithm)
        directory = RunDirectory(path)
        directory.raw.mkdir(parents=True)
        directory.plan.write_text(plan.to_json(), encoding="utf-8")
        write_json(directory.raw / "agent.json", {"says": "invalid" if plan.algorithm == "bbr" else "pass"})
        return directory, analysed(directory, plan)

    monkeypatch.setenv("HOWDAH_CACHE", str(tmp_path / "cache"))
    monkeypatch.setattr(module, "key_of", lambda engine, plan: content_key(engine.wiring, plan.to_json()))
    monkeypatch.setattr(module, "run", run)
    monkeypatch.setattr(module, "analysed", analysed)
    monkeypatch.setattr(module, "_places", [])
    share_runs_in(tmp_path / "shared")
    return found


def test_a_plan_is_run_once_and_another_plan_again(made: list[str]) -> None:
    engine, cubic, reno = UmlEngine(), plan_of("algorithm=cubic"), plan_of("algorithm=reno")
    first, verdict = shared_run(engine, cubic)
    assert shared_run(engine, cubic) == (first, verdict)
    assert shared_run(engine, reno)[0] != first
    assert made == ["cubic", "reno"]
    assert verdict.checks[0].message == cubic.run


def test_another_way_of_building_the_network_is_another_run(made: list[str]) -> None:
    plan = plan_of("algorithm=cubic")
    one, other = (shared_run(UmlEngine(wiring=wiring), plan)[0] for wiring in ("netlink", "mininet"))
    assert one != other
    assert len(made) == 2


def test_what_is_left_of_a_run_that_failed_is_not_shared(made: list[str], monkeypatch: pytest.MonkeyPatch) -> None:
    plan = plan_of("algorithm=cubic")

    def fails(_engine: UmlEngine, _plan: Plan, path: Path, _carried_out: Plan | None) -> Made:
        path.mkdir()
        write_json(path / "verdict.json", {"verdict": "fail"})
        raise RuntimeError("in the middle")

    with monkeypatch.context() as patch:
        patch.setattr(module, "run", fails)
        with pytest.raises(RuntimeError):
            shared_run(UmlEngine(), plan)
    assert shared_run(UmlEngine(), plan)[1].verdict == "pass"
    assert made == ["cubic"]


def test_another_session_runs_no_guest_and_analyses_its_files(made: list[str], tmp_path: Path) -> None:
    plan = plan_of("algorithm=cubic")
    first, verdict = shared_run(UmlEngine(), plan)
    share_runs_in(tmp_path / "next")
    again, said = shared_run(UmlEngine(), plan)
    assert made == ["cubic"]
    assert again.path.parent == tmp_path / "next"
    assert said == verdict
    assert again.plan.read_bytes() == first.plan.read_bytes()
    assert [path.name for path in again.raw.iterdir()] == ["agent.json"]


@pytest.mark.parametrize("override", ["algorithm=bbr", "collect.cpu=true"])
def test_another_session_runs_an_invalid_or_a_timed_one_again(made: list[str], tmp_path: Path, override: str) -> None:
    plan = plan_of(override)
    for session in ("shared", "next"):
        share_runs_in(tmp_path / session)
        shared_run(UmlEngine(), plan)
    assert len(made) == 2


def test_a_plan_that_is_believed_of_another_run_is_judged_by_itself(made: list[str], tmp_path: Path) -> None:
    cubic, reno = plan_of("algorithm=cubic"), plan_of("algorithm=reno")
    for session in ("shared", "next"):
        share_runs_in(tmp_path / session)
        assert shared_run(UmlEngine(), cubic, reno)[1].checks[0].message == cubic.run
        assert shared_run(UmlEngine(), reno)[1].checks[0].message == reno.run
    assert len(made) == 1, "the guest's files are the same"
