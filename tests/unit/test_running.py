# SPDX-License-Identifier: Apache-2.0
"""Who still runs: what a process left is swept when it has ended, though nobody has waited for it."""

from __future__ import annotations

import os
import subprocess
import tempfile
import time
from collections.abc import Iterator
from pathlib import Path

import pytest

from howdah.engine.uml.guest import sweep
from howdah.machines.state import start_ticks
from howdah.record.directory import remove_abandoned
from howdah.running import is_running, stat_fields
from howdah.scratch import sweep_scratch


@pytest.fixture
def zombie() -> Iterator[int]:
    process = subprocess.Popen(["true"])
    while (fields := stat_fields(process.pid)) is not None and fields[0] != "Z":
        time.sleep(0.001)
    yield process.pid
    process.wait()


def test_a_process_runs_until_it_has_ended(zombie: int) -> None:
    assert is_running(os.getpid())
    assert is_running("1")
    assert Path(f"/proc/{zombie}").exists()
    assert not is_running(zombie)
    assert start_ticks(zombie) is None
    assert not is_running(2**22 + 1), "more than there can be"


def test_what_a_zombie_left_is_swept(zombie: int, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(tempfile, "tempdir", str(tmp_path))
    hexadecimal = "0123456789abcdef"
    names = [f"howdah-guest-{pid}-x" for pid in (zombie, 1)] + [f"howdah-{hexadecimal}-{pid}" for pid in (zombie, 1)]
    places = [tmp_path / name for name in names]
    for place in places:
        place.mkdir()
    left_guest, guest, left, used = places
    for pid in (zombie, 1):
        (tmp_path / f".partial-a-{pid}").mkdir()
    assert remove_abandoned(tmp_path / f".partial-a-{zombie}")
    assert not remove_abandoned(tmp_path / ".partial-a-1")
    assert sweep(tmp_path) == [left_guest]
    assert sweep_scratch() == [left]
    assert guest.is_dir()
    assert used.is_dir()
