# SPDX-License-Identifier: Apache-2.0
"""Receivers with a TCP of their own: lwIP in a guest, equal twice; programs that do not keep the contract, told."""

from __future__ import annotations

import json
import os
import shutil
import subprocess
from pathlib import Path

import pytest

from howdah.build.cache import Cache
from howdah.build.stack import build_stack
from howdah.engine.uml import staged
from howdah.errors import RunFailedError
from howdah.plan.plan import Plan
from howdah.profile.stack import read_stack
from howdah.record import table as store
from howdah.record.directory import RunDirectory, read_json
from tests.guest.guest_run import boot, failures, ignore, measures, plan_of, require_engine, run
from tests.guest.receiver_capture import CAPTURE, read_conversation
from tests.guest.shared_run import shared_run

pytestmark = pytest.mark.guest

SHORT = ("path.rate=5 Mbit/s", "path.rtt=40 ms", "path.buffer=2 bdp", "duration=2 s")
# Twice the window that Debian's lwIP offers, so the window is what holds the sender back.
LONG = ("path.rate=20 Mbit/s", "path.rtt=60 ms", "path.buffer=1 bdp", "duration=2 s")
SEEN = {"lwip": "MSS 1460, window scale 1", "gvisor": "MSS 1460, window scale 7, SACK, time stamps"}
SEEN["smoltcp"] = "MSS 1460, window scale 8, SACK"
FETCHES = {"smoltcp": ["cargo", "fetch", "--locked"], "gvisor": ["go", "mod", "download"]}


def require_stack(name: str) -> None:
    """Skip, with the reason, where its tools or its library are missing or what it is made of cannot be fetched."""
    stack = read_stack(Path(__file__).parents[2] / "stacks" / f"{name}.yaml")
    missing = [program for program in stack.section.needs if shutil.which(program) is None]
    if missing:
        pytest.skip(f"{missing[0]} is not installed")
    if name == "lwip" and not Path("/usr/include/lwip/lwip/init.h").exists():
        pytest.skip("liblwip-dev is not installed: setup/packages-test.txt lists it")
    if name in FETCHES:
        environment = {**os.environ, **stack.section.environment, "CARGO_TARGET_DIR": os.devnull}
        done = subprocess.run(
            FETCHES[name], cwd=stack.directory, env=environment, capture_output=True, text=True, check=False
        )
        if done.returncode:
            pytest.skip(f"what the stack {name} is made of cannot be fetched: {done.stderr.strip()[-200:]}")
    build_stack(stack, ignore, Cache())


def make_stack(directory: Path, script: str) -> str:
    """A stack that is a shell script; returns what a profile calls it."""
    sources = directory / "sources"
    sources.mkdir()
    (sources / "program").write_text(f"#!/bin/sh\n{script}\n", encoding="utf-8")
    build = "summary: a test\ndirectory: sources\nbuild: [[cp, program, '{out}/program']]\nprogram: program\n"
    (directory / "wrong.yaml").write_text(build, encoding="utf-8")
    return f"receiver.stack={directory / 'wrong.yaml'}"


def failure_of(directory: Path, script: str) -> str:
    engine = require_engine()
    plan = plan_of(*SHORT, "calibrate=false", make_stack(directory, script))
    with pytest.raises(RunFailedError) as caught:
        boot(engine, plan, directory / "run")
    return f"{caught.value}"


def test_lwip_receives_and_is_measured(tmp_path: Path) -> None:
    engine = require_engine()
    require_stack("lwip")
    plan = plan_of(*LONG, CAPTURE, "receiver.stack=lwip")
    first, verdict = shared_run(engine, plan)
    assert failures(verdict) == {}
    (flow,) = json.loads((first.raw / "agent.json").read_text(encoding="utf-8"))["flows"]
    assert flow["complete"] and flow["bytes_received"] == flow["bytes_sent"] > 1_000_000
    found = measures(first)
    assert found["receiver_options"] == SEEN["lwip"]
    assert found["most_sack_blocks"] is None and found["offered_window_growth"] == 1
    assert found["receive_window_limited_s"] > 1
    seen = read_conversation(first.raw / "pcap" / "r1-r1-eth0.pcap", 5001)
    assert not any(segment.sack_permitted for segment in seen.handshake if segment.sent)
    assert {row["receiver"] for row in read_json(first.metrics)["rows"]} == {"lwip"}

    second, _ = run(engine, plan, tmp_path / "second")
    _assert_equal(first, second)


@pytest.mark.parametrize("name", ["smoltcp", "gvisor"])
def test_stacks_of_other_languages_receive(tmp_path: Path, name: str) -> None:
    engine = require_engine()
    require_stack(name)
    plan = plan_of(*SHORT, CAPTURE, f"receiver.stack={name}")
    first, verdict = shared_run(engine, plan)
    assert failures(verdict) == {}
    assert measures(first)["receiver_options"] == SEEN[name]
    (flow,) = json.loads((first.raw / "agent.json").read_text(encoding="utf-8"))["flows"]
    assert flow["complete"] and flow["bytes_received"] == flow["bytes_sent"] > 500_000
    second = boot(engine, plan, tmp_path / "second")
    captures = [directory.raw / "pcap" / "r1-r1-eth0.pcap" for directory in (first, second)]
    assert captures[0].read_bytes() == captures[1].read_bytes()


def _assert_equal(first: RunDirectory, second: RunDirectory) -> None:
    names = sorted(file.stem for file in (first.path / "tables").glob("*.parquet"))
    assert {"segment", "tcp_probe"} <= set(names)
    assert [name for name in names if not store.read(first, name).equals(store.read(second, name))] == []


@pytest.mark.parametrize(
    ("script", "expected"),
    [
        ("exec sleep 100000", "the stack wrong does not answer: it has not said 'ready' after 1 s; it said nothing"),
        ("echo no memory >&2; exit 3", "the stack wrong ended early with status 3; it said: no memory"),
        ("echo unsupported no TAP here; exit 127", "unsupported by the stack wrong: no TAP here"),
        ("exec /no/such/program", "unsupported by the stack wrong; it said: "),
    ],
)
def test_a_stack_that_does_not_listen_is_told(tmp_path: Path, script: str, expected: str) -> None:
    assert expected in failure_of(tmp_path, script)


def test_a_stack_that_ends_while_its_flow_runs_is_told(tmp_path: Path) -> None:
    engine = require_engine()
    plan: Plan = plan_of(*SHORT, make_stack(tmp_path, "echo ready; sleep 5; echo tired >&2; exit 1"))
    _, verdict = run(engine, plan, tmp_path / "run")
    said = " ".join(failures(verdict).values())
    assert "the stack wrong ended early with status 1; it said: tired" in said


def test_a_stack_that_polls_without_waiting_is_told_with_its_name(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(staged, "STANDS_STILL_AFTER_S", 1.5)
    monkeypatch.setattr(staged, "_PACKET_S", 0)
    said = failure_of(tmp_path, "echo ready; while :; do :; done")
    assert "simulated time stands still" in said
    assert "while the stack wrong" in said
