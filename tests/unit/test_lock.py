# SPDX-License-Identifier: Apache-2.0
"""Turns at a machine: one at a time, told once to who waits, given on by a process that is killed."""

from __future__ import annotations

import subprocess
import sys
import threading
from pathlib import Path

import pytest

from howdah.build.cache import locked
from howdah.engine import host, share
from howdah.engine.registry import engine
from howdah.plan.plan import Plan
from howdah.record.directory import RunDirectory
from tests.unit.plan_factory import make_plan

HOLDER = """\
import sys
from pathlib import Path
from howdah.build.cache import locked
with locked(Path(sys.argv[1]), lambda: None):
    print("mine", flush=True)
    sys.stdin.read()
"""


def test_the_second_waits_for_the_first(tmp_path: Path) -> None:
    lock = tmp_path / "lock"
    order: list[str] = []
    waits = threading.Event()

    def second() -> None:
        with locked(lock, waits.set):
            order.append("second")

    with locked(lock, lambda: order.append("the first waited")):
        thread = threading.Thread(target=second)
        thread.start()
        assert waits.wait(30)
        order.append("first")
    thread.join(30)
    assert order == ["first", "second"]


def test_nobody_waits_for_a_killed_process(tmp_path: Path) -> None:
    lock = tmp_path / "lock"
    with subprocess.Popen(
        [sys.executable, "-c", HOLDER, str(lock)], stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True
    ) as holder:
        assert holder.stdout is not None
        assert holder.stdout.readline() == "mine\n"
        told: list[str] = []
        killer = threading.Timer(0.2, holder.kill)
        killer.start()
        with locked(lock, lambda: told.append("waits")):
            assert told == ["waits"]
            assert holder.wait(30) != 0
    with locked(lock, lambda: told.append("waits again")):
        assert told == ["waits"]


def test_a_run_of_the_host_engine_has_the_machine_alone(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    lock = tmp_path / "lock"
    directory = RunDirectory(tmp_path / "run")
    told: list[str] = []
    begun, go_on, waits = threading.Event(), threading.Event(), threading.Event()

    def agent(*_: object) -> int:
        begun.set()
        assert go_on.wait(30)
        return 0

    def progress(phase: str, _done_us: int, _of_us: int) -> None:
        told.append(phase)
        waits.set()

    def one_run(plan: Plan) -> None:
        engine("host").run(directory, plan, progress)

    monkeypatch.setattr(host, "_TURN", lock)
    monkeypatch.setattr(host, "_run_agent", agent)
    monkeypatch.setattr(host, "_check", lambda *_: None)
    for name in ("copy_agent", "stage"):
        monkeypatch.setattr(share, name, lambda *_: None)
    runs = [threading.Thread(target=one_run, args=(make_plan(),)) for _ in range(2)]
    runs[0].start()
    assert begun.wait(30)
    begun.clear()
    runs[1].start()
    assert waits.wait(30)
    assert not begun.is_set(), "the second one's agent waits"
    go_on.set()
    for run in runs:
        run.join(30)
    assert begun.is_set()
    assert told == ["wait for another howdah's run"]
