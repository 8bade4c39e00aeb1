# SPDX-License-Identifier: Apache-2.0
"""A path that is what the plan says is valid, and every check of it was made. Paths that are not: tests/liars."""

from __future__ import annotations

import contextlib
import os
import threading
import time
from collections.abc import Iterator
from pathlib import Path

import pytest

from howdah.engine.uml.engine import UmlEngine
from tests.guest import guest_run
from tests.guest.shared_run import shared_run

pytestmark = pytest.mark.guest

SLOW = """
howdah: 1
name: slow
description: a path on which a small packet takes longer than 1 ms
path: {{{path}, rtt: 40 ms, buffer: 20 packets}}
flows: [{{sender: s1, receiver: r1}}, {{sender: s2, receiver: r2}}, {{sender: s3, receiver: r3}}]
algorithm: cubic
duration: 2 s
"""
LARGE = ("path.rate=400 Mbit/s", "path.rtt=100 ms", "duration=3 s")


@pytest.fixture(scope="module")
def engine() -> Iterator[UmlEngine]:
    yield guest_run.require_engine()


@pytest.mark.parametrize("overrides", [("algorithm=cubic",), ("algorithm=bbr",), (*LARGE, "algorithm=cubic")])
def test_the_path_as_planned_is_valid(engine: UmlEngine, overrides: tuple[str, ...]) -> None:
    _directory, verdict = shared_run(engine, guest_run.plan_of(*overrides))
    assert guest_run.failures(verdict) == {}
    assert verdict.verdict == "pass"
    # Nothing passes because it was not looked at.
    made = {check.name for check in verdict.checks if check.ok}
    assert {"rate", "buffer", "dequeue rate", "minimum RTT flow 1", "packets forward", "packets reverse"} <= made


@pytest.mark.parametrize("rate", ["1 Mbit/s", "50 Mbit/s"])
@pytest.mark.parametrize("packets", [1, 3, 4, 5])
def test_a_buffer_of_a_few_packets_is_measured(engine: UmlEngine, rate: str, packets: int) -> None:
    overrides = (f"path.rate={rate}", "path.rtt=20 ms", f"path.buffer={packets} packets", "duration=1 s")
    _directory, verdict = shared_run(engine, guest_run.plan_of(*overrides))
    assert guest_run.failures(verdict) == {}
    made = {(check.stage, check.name) for check in verdict.checks if check.ok}
    assert {(stage, name) for stage in ("before", "after") for name in ("rate", "buffer")} <= made


@pytest.mark.parametrize(
    "path", ["rate: 10 kbit/s", "{rate: 200 kbit/s, burst: none}", "{rate: 100 kbit/s, reverse_rate: 4 kbit/s}"]
)
def test_delays_of_several_hosts_of_a_slow_path_are_measured(engine: UmlEngine, tmp_path: Path, path: str) -> None:
    profile = tmp_path / "slow.yaml"
    profile.write_text(SLOW.format(path=path.strip("{}")), encoding="utf-8")
    _directory, verdict = shared_run(engine, guest_run.plan_of(profile=profile))
    assert guest_run.failures(verdict) == {}
    made = [check.name for check in verdict.checks if check.ok and check.stage == "before"]
    assert sum("delay s" in name for name in made) == 6, "three ways there and three back"


def test_a_train_through_a_slower_interface_is_waited_for(engine: UmlEngine) -> None:
    plan = guest_run.plan_of("path.sender_interface=10 Mbit/s", "path.rate=100 Mbit/s", "path.buffer=1000 packets")
    _directory, verdict = shared_run(engine, plan)
    assert guest_run.failures(verdict) == {}


def test_a_console_that_is_read_slowly_costs_real_time_only(engine: UmlEngine, tmp_path: Path) -> None:
    """The kernel's console writes are synchronous for the guest: its clock stands still meanwhile."""
    fifo = tmp_path / "console"
    os.mkfifo(fifo)
    done = threading.Event()
    taken: list[int] = []

    def read_slowly() -> None:
        descriptor = os.open(fifo, os.O_RDONLY | os.O_NONBLOCK)
        while not done.wait(0.1):
            with contextlib.suppress(BlockingIOError):
                taken.append(len(os.read(descriptor, 1 << 14)))
        os.close(descriptor)

    reader = threading.Thread(target=read_slowly)
    reader.start()
    time.sleep(0.1)  # a pipe without a reader cannot be opened for writing
    try:
        with guest_run.agent_in(TALKATIVE, fifo):
            _directory, verdict = guest_run.run(engine, guest_run.plan_of(), tmp_path / "run")
    finally:
        done.set()
        reader.join()
    assert sum(taken) > 1 << 17, "the console was not slow enough to be felt"
    assert guest_run.failures(verdict) == {}


TALKATIVE = """
import os, runpy, sys
sys.path.insert(0, "/howdah/in")
from collectors.interval.qdisc import QdiscCollector

sample = QdiscCollector.sample

def talk(self, now_ns):
    os.write(2, b"the queue is being read\\n" * 64)
    sample(self, now_ns)

QdiscCollector.sample = talk
runpy.run_module("howdah.agent", run_name="__main__", alter_sys=True)
"""
