# SPDX-License-Identifier: Apache-2.0
"""Virtual machines go first while a run is measured, and afterwards as before."""

from __future__ import annotations

import os
import subprocess
from collections.abc import Iterator
from dataclasses import dataclass
from typing import Any

import pytest

from howdah.engine.machines.priority import preferred


@dataclass
class Stub:
    name: str
    role: str
    state: Any


@dataclass
class State:
    process: Any


@dataclass
class Process:
    pid: int


@pytest.fixture
def process() -> Iterator[int]:
    running = subprocess.Popen(["sleep", "60"], start_new_session=True)
    yield running.pid
    running.kill()
    running.wait()


def test_it_is_given_back(process: int) -> None:
    if os.geteuid() != 0:
        pytest.skip("going before others needs root")
    said: list[str] = []
    for role in ("sender", "emulator"):
        machine: Any = Stub("m", role, State(Process(process)))
        with preferred([machine], said.append):
            assert os.sched_getscheduler(process) == os.SCHED_FIFO
        assert os.sched_getscheduler(process) == os.SCHED_OTHER
    assert said == []


def test_real_machines_are_left_alone_and_one_that_ended_is_told() -> None:
    said: list[str] = []
    real: Any = Stub("real", "sender", None)
    ended: Any = Stub("gone", "sender", State(Process(2**22 + 5)))
    with preferred([real, ended], said.append):
        assert len(said) == 1 and said[0].startswith("gone does not go before other processes")
