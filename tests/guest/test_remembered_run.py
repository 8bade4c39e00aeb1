# SPDX-License-Identifier: Apache-2.0
"""A run is remembered for as long as nothing that decides it is another; no guest is booted here."""

from __future__ import annotations

import os
from collections.abc import Iterable
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest

from howdah.build.cache import Cache
from howdah.engine.uml.engine import UmlEngine
from howdah.engine.vm.engine import VmEngine
from howdah.place import PACKAGE
from howdah.plan.plan import Plan
from howdah.record import provenance
from howdah.record.closure import closure
from howdah.record.directory import RunDirectory
from howdah.record.run import EngineReport, KernelOrigin, RunRecord
from howdah.record.verdict import ENGINE, Check, write_verdict
from howdah.trait import traits
from howdah.work import stage
from tests.guest import remembered_run as module
from tests.guest.guest_run import plan_of
from tests.guest.remembered_run import (
    KIND,
    forget,
    key_of,
    may_be_remembered,
    recall,
    remember,
    unchecked,
    was_equal,
)
from tests.guest.remembering import begin

IDENTITY = {"engine": "uml", "kernel debian-6.12": "0123", "module ss_limited debian-6.12": "4567", "tools": "89ab"}


@pytest.fixture(autouse=True)
def _own_cache(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("HOWDAH_CACHE", str(tmp_path / "cache"))


def _key(monkeypatch: pytest.MonkeyPatch, *overrides: str, wiring: str = "netlink", **identity: str) -> str:
    engine = UmlEngine(wiring=wiring)
    monkeypatch.setattr(engine, "prepare", lambda _plans, _progress: {**IDENTITY, **identity})
    return key_of(engine, plan_of(*overrides))


def test_whatever_decides_a_run_is_in_its_key(monkeypatch: pytest.MonkeyPatch) -> None:
    keys = {
        "as it is": _key(monkeypatch),
        "plan": _key(monkeypatch, "path.rate=11 Mbit/s"),
        "wiring": _key(monkeypatch, wiring="mininet"),
        **{f"another {part}": _key(monkeypatch, **{part: "another"}) for part in IDENTITY},
    }
    for name, change in (("agent", (provenance, "agent_sha256")), ("launcher", (module, "launcher_sha256"))):
        with monkeypatch.context() as patch:
            patch.setattr(*change, lambda *_: "another")
            keys[name] = _key(monkeypatch)
    assert len(set(keys.values())) == len(keys) == 5 + len(IDENTITY)
    assert _key(monkeypatch) == keys["as it is"]


def test_modules_of_a_test_are_known_by_what_is_in_them(monkeypatch: pytest.MonkeyPatch) -> None:
    engine = UmlEngine()

    def key(file: str, content: str) -> str:
        monkeypatch.setattr(engine, "prepare", lambda _plans, _progress: {**IDENTITY, "module mine": content})
        return key_of(engine, replace(plan_of(), modules=[file]))

    assert key("/one/mine.c", "01") == key("/other/mine.c", "01")
    assert len({key("/one/mine.c", "01"), key("/one/mine.c", "02"), key("/one/others.c", "01")}) == 3


@pytest.mark.parametrize(
    ("ok", "shared", "boots"),
    [(True, False, 1), (False, False, 2), (True, True, 2)],
    ids=["valid", "invalid", "remembered by a test"],
)
def test_the_guest_of_a_command_leaves_what_it_left(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, ok: bool, shared: bool, boots: int
) -> None:
    """And its engine's report; one whose run is invalid, or of which there is no report, is booted again."""
    monkeypatch.setattr(UmlEngine, "prepare", lambda *_: IDENTITY)
    if shared:
        remember(key_of(UmlEngine(), plan_of()), _finished(tmp_path / "shared"))
    monkeypatch.setattr(stage, "analyse", lambda run, *_: write_verdict(run, [Check("ended", ENGINE, ok, "", "")]))
    booted: list[str] = []

    def boot(_engine: UmlEngine, run: RunDirectory, _plan: Plan, _progress: object) -> EngineReport:
        booted.append(run.path.name)
        (run.raw / "agent.json").write_text("{}", encoding="utf-8")
        return EngineReport(kernel=KernelOrigin(release="6.12.1"))

    monkeypatch.setattr(UmlEngine, "run", boot)
    monkeypatch.setattr(VmEngine, "run", VmEngine.run)  # put back afterwards
    begin()
    for name in ("first", "second"):
        run = RunDirectory(tmp_path / name)
        run.raw.mkdir(parents=True)
        run.plan.write_text(plan_of().to_json(), encoding="utf-8")
        report = UmlEngine().run(run, plan_of(), lambda *_: None)
        assert report.plain() == {"kernel": {"release": "6.12.1"}}
        stage.analyse(run, plan_of(), RunRecord(status="running"), lambda *_: None)
        assert sorted(_content(run.path)) == ["plan.json", "raw/agent.json", "verdict.json"]
    assert len(booted) == boots


@pytest.mark.parametrize(
    ("overrides", "engine", "may"),
    [
        ([], "uml", True),
        (["collect.cpu=true"], "uml", False),
        (["collect.cpu=true"], "vm", True),
        ([], "machines", False),
    ],
)
def test_what_is_of_one_moment_is_not_remembered(overrides: list[str], engine: str, may: bool) -> None:
    plan = plan_of(*overrides)
    assert may_be_remembered(replace(plan, engine=engine, traits=traits(engine))) is may


def test_what_starts_guests_is_known_by_all_its_files(monkeypatch: pytest.MonkeyPatch) -> None:
    asked: list[Path] = []

    def hash_of(entries: Iterable[str], *, data: Iterable[Path]) -> str:
        asked.extend(data)
        assert {"howdah.engine.uml.guest", "howdah.engine.share", "howdah.build.tools"} <= closure(entries).keys()
        return "hash"

    monkeypatch.setattr(module, "remembered_sha256", hash_of)
    module.launcher_sha256()
    names = {str(path.relative_to(PACKAGE)) for path in asked}
    assert {"build/shim.c", "build/launch.c", "build/kernel.config", "build/preload.h", "engine/uml/guest.py"} <= names
    assert not [name for name in names if name.endswith(".pyc")]


def _finished(path: Path, **files: str) -> RunDirectory:
    directory = RunDirectory(path)
    (directory.raw / "pcap").mkdir(parents=True)
    directory.plan.write_text(plan_of().to_json(), encoding="utf-8")
    for name, content in files.items():
        (directory.raw / "pcap" / name).write_text(content, encoding="utf-8")
    return directory


def _content(path: Path) -> dict[str, Any]:
    return {str(file.relative_to(path)): file.read_bytes() for file in path.rglob("*") if file.is_file()}


def test_its_plan_and_raw_files_come_back_as_they_were(tmp_path: Path) -> None:
    made = _finished(tmp_path / "made", first="a" * 100_000, second="b")
    assert not recall("key", tmp_path / "again")
    remember("key", made)
    (made.path / "verdict.json").write_text("{}", encoding="utf-8")  # of this session
    assert recall("key", tmp_path / "again")
    expected = _content(made.path)
    del expected["verdict.json"]
    assert _content(tmp_path / "again") == expected


@pytest.mark.parametrize("damage", [b"", b"no archive", None])
def test_a_damaged_one_is_none(tmp_path: Path, damage: bytes | None) -> None:
    remember("key", _finished(tmp_path / "made", first=os.urandom(100_000).hex()))
    (archive,) = (Cache().path(KIND, "key")).iterdir()
    archive.write_bytes(archive.read_bytes()[:-1000] if damage is None else damage)
    assert not recall("key", tmp_path / "again")
    assert not (tmp_path / "again").exists()
    remember("key", _finished(tmp_path / "new", first="whole"))
    assert recall("key", tmp_path / "again")


def test_what_nobody_asked_for_goes_first(tmp_path: Path) -> None:
    for number, key in enumerate(("old", "middle", "new")):
        remember(key, _finished(tmp_path / key, first=os.urandom(5000).hex()))
        os.utime(Cache().path(KIND, key), (number, number))
    assert recall("old", tmp_path / "asked")
    sizes = [archive.stat().st_size for archive in Cache().root.glob(f"{KIND}/*/*.zst")]
    forget(2 * max(sizes))
    assert [entry.name for entry in Cache().entries(KIND)] == ["new", "old"]
    forget(0)
    assert Cache().entries(KIND) == []


def test_those_that_were_not_compared_for_the_longest_time_come_first(tmp_path: Path) -> None:
    for key in ("one", "two", "three"):
        remember(key, _finished(tmp_path / key, first=key))
    for key in ("two", "one", "three"):
        was_equal(key)
        os.utime(Cache().path(KIND, key) / "compared", (len(key), len(key) + (key == "one")))
    remember("new", _finished(tmp_path / "new", first="new"))
    (tmp_path / "script" / "raw").mkdir(parents=True)
    remember("script", RunDirectory(tmp_path / "script"))
    other = _finished(tmp_path / "other")
    other.plan.write_text('{"format": 2, "traits": {}, "collect": {}}', encoding="utf-8")  # of other code
    remember("other", other)
    assert [key for key, _ in unchecked()] == ["new", "two", "one", "three"]
    assert [plan for _, plan in unchecked()] == [plan_of()] * 4
