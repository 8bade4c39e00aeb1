# SPDX-License-Identifier: Apache-2.0
"""Watching a guest from outside, with ordinary processes in its place."""

from __future__ import annotations

import json
import subprocess
import sys
import time
from collections.abc import Iterator
from pathlib import Path

import pytest

from howdah.agent.traffic.running import RUNNING
from howdah.engine.life import Life, descendants
from howdah.engine.uml.guest import running_programs


@pytest.fixture
def sleeper() -> Iterator[subprocess.Popen[bytes]]:
    with subprocess.Popen(["sleep", "60"]) as process:
        yield process
        process.kill()


def _until_trouble(life: Life, limit_s: float) -> str | None:
    end = time.monotonic() + limit_s
    while time.monotonic() < end:
        trouble = life.trouble()
        if trouble:
            return trouble
        time.sleep(0.05)
    return None


def test_position_is_what_was_last_written(tmp_path: Path, sleeper: subprocess.Popen[bytes]) -> None:
    progress = tmp_path / "progress.json"
    life = Life(sleeper.pid, progress, 60, 60)
    assert life.position() == ("boot", 0, 0)
    progress.write_text(json.dumps({"phase": "flows", "time_us": 5, "of_us": 9}))
    assert life.position() == ("flows", 5, 9)
    progress.write_text('{"phase": "fl')
    assert life.position() == ("flows", 5, 9), "a half-written file changes nothing"


def test_the_wall_clock_limit_names_where_the_guest_was(tmp_path: Path, sleeper: subprocess.Popen[bytes]) -> None:
    progress = tmp_path / "progress.json"
    progress.write_text(json.dumps({"phase": "flows", "time_us": 1_500_000, "of_us": 60_000_000}))
    life = Life(sleeper.pid, progress, 0.2, 60)
    life.position()
    trouble = _until_trouble(life, 20)
    assert trouble is not None
    assert "wall-clock limit of 0.2 s" in trouble
    assert "phase flows, 1.5 of 60.0 simulated seconds" in trouble


def test_a_slow_machine_may_take_longer_than_the_limit(
    tmp_path: Path, sleeper: subprocess.Popen[bytes], monkeypatch: pytest.MonkeyPatch
) -> None:
    now_s = 0.0
    monkeypatch.setattr(time, "monotonic", lambda: now_s)
    progress = tmp_path / "progress.json"
    life = Life(sleeper.pid, progress, 10, 10_000)
    for second in range(5):
        progress.write_text(json.dumps({"phase": "flows", "time_us": second * 1_000_000, "of_us": 60_000_000}))
        assert life.position() == ("flows", second * 1_000_000, 60_000_000)
        now_s += 9
        assert life.trouble() is None
    progress.write_text(json.dumps({"phase": "flows", "time_us": 4_000_000, "of_us": 60_000_000}))
    life.position()  # written again, without its clock moving
    now_s += 2
    trouble = life.trouble()
    assert trouble is not None
    assert "without simulated time passing (phase flows, 4.0 of 60.0 simulated seconds)" in trouble


def test_a_guest_that_uses_no_processor_time_stands_still(tmp_path: Path, sleeper: subprocess.Popen[bytes]) -> None:
    trouble = _until_trouble(Life(sleeper.pid, tmp_path / "progress.json", 60, 1.2), 30)
    assert trouble is not None
    assert "stood still" in trouble


def test_a_busy_child_is_a_sign_of_life(tmp_path: Path) -> None:
    busy = [sys.executable, "-c", "while True: pass"]
    outer = "import subprocess, sys; subprocess.run(sys.argv[1:])"
    with subprocess.Popen([sys.executable, "-c", outer, *busy]) as process:
        try:
            life = Life(process.pid, tmp_path / "progress.json", 60, 1.5)
            assert _until_trouble(life, 4) is None
            children = descendants(process.pid)
            assert len(children) == 2
        finally:
            for pid in reversed(descendants(process.pid)):
                subprocess.run(["kill", "-9", str(pid)], check=False)


def test_a_program_that_polls_is_told_by_its_processor_time(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Only while simulated time stands still, and only where there is such a program."""
    now_s = used_s = 0.0
    monkeypatch.setattr(time, "monotonic", lambda: now_s)
    monkeypatch.setattr("howdah.engine.life.descendants", lambda _pid: [1])
    monkeypatch.setattr("howdah.engine.life._statistics", lambda _pid: ("R", used_s))
    progress = tmp_path / "progress.json"

    def trouble_after(seconds: int, pollers: tuple[str, ...], *, moves: bool) -> str | None:
        nonlocal now_s, used_s
        life = Life(1, progress, 1000, 1000, pollers, 10)
        for second in range(seconds):
            progress.write_text(json.dumps({"phase": "flows", "time_us": second * moves, "of_us": 60_000_000}))
            life.position()
            now_s, used_s = now_s + 1, used_s + 1
            if trouble := life.trouble():
                return trouble
        return None

    assert trouble_after(40, ("the stack mine",), moves=True) is None
    assert trouble_after(40, (), moves=False) is None
    said = trouble_after(40, ("the stack mine", "the stack yours"), moves=False)
    assert said is not None
    assert "while the stack mine or the stack yours uses the processor" in said


def test_programs_that_ran_when_time_stood_still_are_named(tmp_path: Path) -> None:
    assert running_programs(tmp_path) == ""
    (tmp_path / "program").mkdir()
    file = tmp_path / "program" / RUNNING
    file.write_text("{}")
    assert running_programs(tmp_path) == ""
    file.write_text(json.dumps({"12": "flow 1 (flow1, program): its client python3 busy.py"}))
    assert "its client python3 busy.py" in running_programs(tmp_path)
    file.write_text("{")
    assert running_programs(tmp_path) == ""
