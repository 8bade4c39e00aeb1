# SPDX-License-Identifier: Apache-2.0
"""The path is broken behind the plan's back, in one way a test, and the verdict says *invalid* and which way."""

from __future__ import annotations

import contextlib
import copy
import dataclasses
import os
import threading
import time
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import pytest

from howdah.engine.uml import engine as engine_module
from howdah.engine.uml.engine import UmlEngine
from howdah.engine.uml.guest import Ending, Guest
from howdah.engine.uml.guest import boot as boot_guest
from howdah.plan.plan import Operation, Plan
from tests.guest import guest_run

pytestmark = pytest.mark.guest

LARGE = ("path.rate=400 Mbit/s", "path.rtt=100 ms", "duration=3 s")


@pytest.fixture(scope="module")
def engine() -> Iterator[UmlEngine]:
    yield guest_run.require_engine()


def altered(plan: Plan, wanted: Callable[[Operation], bool], change: Callable[[dict[str, Any]], Any]) -> Plan:
    """The plan with some operations carried out differently from what everything else in it says."""
    operations = copy.deepcopy(plan.operations)
    found = [operation for operation in operations if wanted(operation)]
    assert found, "the plan has no such operation"
    for operation in found:
        change(operation.arguments)
    return dataclasses.replace(plan, operations=operations)


def _is(op: str, **arguments: Any) -> Callable[[Operation], bool]:
    return lambda operation: operation.op == op and all(operation.arguments.get(k) == v for k, v in arguments.items())


def _bottleneck(plan: Plan, op: str, **more: Any) -> Callable[[Operation], bool]:
    calibration = plan.calibration
    return _is(op, node=calibration.bottleneck_node, interface=calibration.bottleneck_interface, **more)


def _invalid(engine: UmlEngine, plan: Plan, path: Path, broken: Plan | None = None) -> dict[tuple[str, str], str]:
    """What the judge says of a run that carried out ``broken`` instead of ``plan``."""
    _directory, verdict = guest_run.run(engine, plan, path / "run", broken)
    found = guest_run.failures(verdict)
    assert verdict["verdict"] == "invalid"
    return found


@pytest.mark.parametrize("overrides", [("algorithm=cubic",), ("algorithm=bbr",), (*LARGE, "algorithm=cubic")])
def test_the_path_as_planned_is_valid(engine: UmlEngine, overrides: tuple[str, ...], tmp_path: Path) -> None:
    _directory, verdict = guest_run.run(engine, guest_run.plan_of(*overrides), tmp_path / "run")
    assert guest_run.failures(verdict) == {}
    assert verdict["verdict"] == "pass"
    # Nothing passes because it was not looked at.
    made = {check["name"] for check in verdict["checks"] if check["ok"]}
    assert {"rate", "buffer", "dequeue rate", "minimum RTT flow 0", "packets forward", "packets reverse"} <= made


def test_a_train_through_a_slower_interface_is_waited_for(engine: UmlEngine, tmp_path: Path) -> None:
    plan = guest_run.plan_of("path.sender_interface=10 Mbit/s", "path.rate=100 Mbit/s", "path.buffer=1000 packets")
    _directory, verdict = guest_run.run(engine, plan, tmp_path / "run")
    assert guest_run.failures(verdict) == {}


def test_a_wrong_rate(engine: UmlEngine, tmp_path: Path) -> None:
    plan = guest_run.plan_of()
    slower = plan.path.rate_bits_per_second * 99 // 100
    broken = altered(plan, _bottleneck(plan, "class"), lambda item: item["options"].update(rate_bits_per_second=slower))
    found = _invalid(engine, plan, tmp_path, broken)
    assert {("before", "rate"), ("after", "rate"), ("during", "dequeue rate")} <= set(found)
    assert "too low" in found["before", "rate"]


@pytest.mark.parametrize(("share", "words"), [(0.5, "too low"), (1.5, "too high")])
def test_a_wrong_buffer(engine: UmlEngine, share: float, words: str, tmp_path: Path) -> None:
    plan = guest_run.plan_of()
    limit = int(plan.path.buffer_bytes * share)
    broken = altered(
        plan, _bottleneck(plan, "qdisc", kind="bfifo"), lambda item: item["options"].update(limit_bytes=limit)
    )
    found = _invalid(engine, plan, tmp_path, broken)
    assert words in found["before", "buffer"]
    assert words in found["after", "buffer"]
    assert (("during", "peak backlog") in found) == (share > 1)


@pytest.mark.parametrize(("node", "direction"), [("right", "forward"), ("left", "reverse")])
def test_a_wrong_delay_in_one_direction(engine: UmlEngine, node: str, direction: str, tmp_path: Path) -> None:
    plan = guest_run.plan_of()
    broken = altered(plan, _is("qdisc", node=node, kind="netem"), lambda item: item["options"].update(delay_us=20_100))
    found = _invalid(engine, plan, tmp_path, broken)
    names = {name.split()[0] for stage, name in found if name.endswith("s1-r1")}
    assert names == {direction}
    assert "too long" in found["before", f"{direction} delay s1-r1"]


def test_too_short_a_delay_shows_in_the_flows_rtt_as_well(engine: UmlEngine, tmp_path: Path) -> None:
    plan = guest_run.plan_of()
    broken = altered(plan, _is("qdisc", kind="netem"), lambda item: item["options"].update(delay_us=15_000))
    found = _invalid(engine, plan, tmp_path, broken)
    assert "shorter than the path's" in found["during", "minimum RTT flow 0"]


def test_mininets_limit_of_netem(engine: UmlEngine, tmp_path: Path) -> None:
    """1000 packets hold less than 50 ms at 400 Mbit/s."""
    plan = guest_run.plan_of(*LARGE)
    broken = altered(
        plan,
        _is("qdisc", node="right", kind="netem"),
        lambda item: item["options"].update(limit_packets=1000),
    )
    found = _invalid(engine, plan, tmp_path, broken)
    assert "its limit is too small" in found["accounting", "netem drops right:right-eth1"]


def test_netem_on_a_sender(engine: UmlEngine, tmp_path: Path) -> None:
    def delay_here(item: dict[str, Any]) -> None:
        options = {"delay_us": 0, "limit_packets": 10_000, "seed": None, "jitter_us": 0, "distribution": None}
        item.update(
            kind="netem",
            options={
                **options,
                "loss_ratio": 0.0,
                "rate_bits_per_second": None,
                "reorder_ratio": 0.0,
                "reorder_gap": 0,
            },
        )

    plan = guest_run.plan_of()
    broken = altered(plan, _is("qdisc", node="s1", kind="pfifo"), delay_here)
    found = _invalid(engine, plan, tmp_path, broken)
    assert "netem sits on a host (s1:s1-eth0)" in found["engine", "netem placement"]


def test_hidden_drops_of_the_receive_backlog(engine: UmlEngine, tmp_path: Path) -> None:
    plan = guest_run.plan_of("path.sender_interface=unlimited")
    broken = altered(
        plan,
        _is("sysctl", name="net.core.netdev_max_backlog"),
        lambda item: item.update(value="1"),
    )
    found = _invalid(engine, plan, tmp_path, broken)
    assert "netdev_max_backlog is too small" in found["accounting", "softnet drops"]


def test_loss_that_nobody_asked_for(engine: UmlEngine, tmp_path: Path) -> None:
    plan = guest_run.plan_of()
    broken = altered(
        plan,
        _is("qdisc", node="right", kind="netem"),
        lambda item: item["options"].update(loss_ratio=0.01, seed=1),
    )
    found = _invalid(engine, plan, tmp_path, broken)
    assert ("accounting", "netem drops right:right-eth1") in found


def test_memory_pressure(engine: UmlEngine, tmp_path: Path) -> None:
    plan = guest_run.plan_of(*LARGE)
    broken = altered(plan, _is("sysctl", name="net.ipv4.tcp_mem"), lambda item: item.update(value="16 32 100000"))
    found = _invalid(engine, plan, tmp_path, broken)
    assert "tcp_mem is too small" in found["accounting", "memory pressure"]


def test_a_receive_window_that_is_too_small_by_mistake(engine: UmlEngine, tmp_path: Path) -> None:
    """The plan says the buffer is large; what the host gets is small."""
    plan = guest_run.plan_of()
    broken = altered(
        plan, _is("sysctl", node="r1", name="net.ipv4.tcp_rmem"), lambda item: item.update(value="4096 16384 32768")
    )
    found = _invalid(engine, plan, tmp_path, broken)
    assert "the receiver's buffers are too small" in found["during", "receive window flow 0"]


def test_lost_trace_records(engine: UmlEngine, tmp_path: Path) -> None:
    """A small buffer, and a collector that believes the path to be slow and reads it late."""
    plan = guest_run.plan_of()
    broken = dataclasses.replace(
        plan,
        path=dataclasses.replace(plan.path, rate_bits_per_second=1000, carried_bits_per_second=1000),
        collect=dataclasses.replace(plan.collect, trace_buffer_bytes=1 << 18),
    )
    found = _invalid(engine, plan, tmp_path, broken)
    assert "per-ACK records were lost" in found["collection", "lost trace records"]


def _with_agent(monkeypatch: pytest.MonkeyPatch, script: str, console: Path | None = None) -> None:
    """Let the guest run ``script``, which ends by running the agent, and write its console elsewhere."""

    def boot(guest: Guest, progress: Callable[[str, int, int], None]) -> Ending:
        (guest.share / "wrapper.py").write_text(script, encoding="utf-8")
        command = (guest.command[0], "-S", "/howdah/in/wrapper.py", *guest.command[guest.command.index("--in") :])
        return boot_guest(dataclasses.replace(guest, console=console or guest.console, command=command), progress)

    monkeypatch.setattr(engine_module, "boot", boot)


def test_a_guest_that_waits_for_the_host(engine: UmlEngine, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """While a collector waits for a file that the host is slow to make, the virtual clock runs away."""
    _with_agent(monkeypatch, WAITING)
    plan = guest_run.plan_of()
    awaited = tmp_path / "run" / "share" / "go"

    def answer_late() -> None:
        asked = tmp_path / "run" / "raw" / "asked"
        while not asked.exists() and not done.wait(0.01):
            pass
        done.wait(0.1)  # some twenty seconds of the clock that runs away; at 120 the guest is ended
        awaited.touch()

    done = threading.Event()
    host = threading.Thread(target=answer_late)
    host.start()
    try:
        found = _invalid(engine, plan, tmp_path)
    finally:
        done.set()
        host.join()
    assert "the guest's clock jumped" in found["collection", "the bottleneck's queue readings"]
    assert "the guest's clock ran away" in found["engine", "clock flows"]


def test_a_console_that_is_read_slowly_costs_real_time_only(
    engine: UmlEngine, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """The kernel's console writes are synchronous for the guest: its clock stands still meanwhile."""
    fifo = tmp_path / "console"
    os.mkfifo(fifo)
    _with_agent(monkeypatch, TALKATIVE, fifo)
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
        _directory, verdict = guest_run.run(engine, guest_run.plan_of(), tmp_path / "run")
    finally:
        done.set()
        reader.join()
    assert sum(taken) > 1 << 17, "the console was not slow enough to be felt"
    assert guest_run.failures(verdict) == {}


WAITING = """
import os, runpy, sys, time
sys.path.insert(0, "/howdah/in")
from collectors.qdisc import QdiscCollector

sample = QdiscCollector.sample

def wait(self, now_ns):
    self.samples = getattr(self, "samples", 0) + 1
    if self.samples == 50:
        open("/howdah/out/asked", "w").close()
        while not os.path.exists("/howdah/in/go"):
            time.sleep(1)
    sample(self, now_ns)

QdiscCollector.sample = wait
runpy.run_module("howdah.agent", run_name="__main__", alter_sys=True)
"""

TALKATIVE = """
import os, runpy, sys
sys.path.insert(0, "/howdah/in")
from collectors.qdisc import QdiscCollector

sample = QdiscCollector.sample

def talk(self, now_ns):
    os.write(2, b"the queue is being read\\n" * 64)
    sample(self, now_ns)

QdiscCollector.sample = talk
runpy.run_module("howdah.agent", run_name="__main__", alter_sys=True)
"""
