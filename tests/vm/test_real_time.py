# SPDX-License-Identifier: Apache-2.0
"""A virtual machine in real time whose processor is taken away for a while makes an invalid run, never a wrong one."""

from __future__ import annotations

import json
import os
import signal
import subprocess
import sys
import time
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

import pytest

from howdah.build.accelerator import QEMU

pytestmark = [pytest.mark.vm, pytest.mark.usefixtures("qemu")]

PROFILE = """\
howdah: 1
name: slow
path: {rate: 2 Mbit/s, rtt: 100 ms, buffer: 2 bdp}
algorithm: cubic
duration: 6 s
engine: vm
machine: {time: real, accelerator: tcg}
"""
HELD_UP_S = 0.8
INVALID = 5


def machine_of(place: Path) -> int | None:
    """The process of QEMU that works below a directory."""
    for process in Path("/proc").glob("[0-9]*"):
        try:
            words = (process / "cmdline").read_bytes().split(b"\0")
        except OSError:
            continue
        if words[0].endswith(QEMU.encode()) and any(str(place).encode() in word for word in words):
            return int(process.name)
    return None


@contextmanager
def experiment(place: Path) -> Iterator[subprocess.Popen[bytes]]:
    (place / "slow.yaml").write_text(PROFILE)
    command = [sys.executable, "-m", "howdah.command.main", "run", str(place / "slow.yaml"), "--no-report", "--json"]
    process = subprocess.Popen([*command, "--runs", str(place)], stdout=subprocess.DEVNULL)
    try:
        yield process
    finally:
        process.terminate()
        process.wait()


def wait_for_flows(process: subprocess.Popen[bytes], place: Path) -> None:
    """Until the machine's port has said so twice: it first does when the accounts before the flows are still to be
    taken, and the watch over the processor begins after them."""
    while process.poll() is None:
        if any(signs.read_text().count("\nc") >= 2 for signs in place.glob("slow/.partial-*/raw/.signs")):
            return
        time.sleep(0.2)


def test_a_machine_that_was_held_up_is_invalid(tmp_path: Path) -> None:
    with experiment(tmp_path) as process:
        wait_for_flows(process, tmp_path)
        held = machine_of(tmp_path)
        assert held is not None, "the run ended before it began"
        os.kill(held, signal.SIGSTOP)
        time.sleep(HELD_UP_S)
        os.kill(held, signal.SIGCONT)
        assert process.wait() == INVALID
    (run,) = [path.parent for path in tmp_path.glob("slow/*/run.json")]
    record = json.loads((run / "run.json").read_text())
    assert (record["status"], record["engine"]["accelerator"]) == ("finished", "tcg")
    assert record["engine"]["processor"] == "as fast as it goes"
    verdict = json.loads((run / "verdict.json").read_text())
    failed = {check["name"]: check["message"] for check in verdict["checks"] if check["ok"] is False}
    assert verdict["verdict"] == "invalid"
    assert "short of processor time" in failed.get("processor of the virtual machine", ""), failed
