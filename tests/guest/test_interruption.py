# SPDX-License-Identifier: Apache-2.0
"""Killed at any moment, howdah leaves no process, no mount and nothing half-written that looks whole."""

from __future__ import annotations

import json
import os
import random
import signal
import subprocess
import sys
import time
import uuid
from pathlib import Path

import pytest

pytestmark = pytest.mark.guest

MOMENTS = 12


def _processes_with(tag: str) -> list[int]:
    found = []
    for entry in Path("/proc").iterdir():
        if not entry.name.isdigit():
            continue
        try:
            environment = (entry / "environ").read_bytes()
            state = (entry / "stat").read_text().rsplit(")", 1)[1].split()[0]
        except OSError:
            continue
        if tag.encode() in environment and state != "Z":
            found.append(int(entry.name))
    return found


def _start(runs: Path, tag: str) -> subprocess.Popen[bytes]:
    return subprocess.Popen(
        [sys.executable, "-m", "howdah.command.main", "run", "quick", "--runs", str(runs), "--no-report"],
        env={**os.environ, "HOWDAH_TEST_TAG": tag},
        stdin=subprocess.DEVNULL,
        stdout=subprocess.DEVNULL,
        stderr=subprocess.DEVNULL,
    )


def _mounts() -> list[str]:
    """Those of this machine, but for the network namespaces that other tests make at the same time."""
    lines = Path("/proc/self/mounts").read_text().splitlines()
    return [line for line in lines if not line.split()[1].startswith("/run/netns")]


def _assert_nothing_left(runs: Path, tag: str, mounts: list[str]) -> None:
    deadline = time.monotonic() + 20
    while left := _processes_with(tag):
        assert time.monotonic() < deadline, f"processes outlived the command: {left}"
        time.sleep(0.05)
    assert _mounts() == mounts
    for plan in runs.glob("quick/*/plan.json"):
        run = plan.parent
        if run.name.startswith(".partial-"):
            continue
        record = json.loads((run / "run.json").read_text())
        assert record["status"] == "finished"
        assert json.loads((run / "verdict.json").read_text())["verdict"] == "pass"


@pytest.mark.parametrize("how", [signal.SIGKILL, signal.SIGINT])
def test_killed_at_random_moments(tmp_path: Path, how: signal.Signals) -> None:
    chance = random.Random(int(how))
    mounts = _mounts()
    runs = tmp_path / "runs"
    for _ in range(MOMENTS):
        tag = uuid.uuid4().hex
        process = _start(runs, tag)
        time.sleep(chance.uniform(0.0, 4.0))
        process.send_signal(how)
        status = process.wait(timeout=60)
        if how is signal.SIGINT:
            # Before Python has set its handlers up, or after the work was done, there is nothing to interrupt.
            assert status in (0, 130, -signal.SIGINT, 1)
            assert not list(runs.glob("*/.partial-*"))
        _assert_nothing_left(runs, tag, mounts)
    tag = uuid.uuid4().hex
    assert _start(runs, tag).wait(timeout=300) == 0, "what was interrupted cannot be resumed"
    _assert_nothing_left(runs, tag, mounts)
    assert not list(runs.glob("*/.partial-*"))
