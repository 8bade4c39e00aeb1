# SPDX-License-Identifier: Apache-2.0
"""Turns at a machine: one at a time, told once to who waits, given on by a process that is killed."""

from __future__ import annotations

import subprocess
import sys
import threading
from pathlib import Path

from howdah.engine.turn import turn

HOLDER = """\
import sys
from pathlib import Path
from howdah.engine.turn import turn
with turn(Path(sys.argv[1]), lambda: None):
    print("mine", flush=True)
    sys.stdin.read()
"""


def test_the_second_waits_for_the_first(tmp_path: Path) -> None:
    lock = tmp_path / "lock"
    order: list[str] = []
    waits = threading.Event()

    def second() -> None:
        with turn(lock, waits.set):
            order.append("second")

    with turn(lock, lambda: order.append("the first waited")):
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
        with turn(lock, lambda: told.append("waits")):
            assert told == ["waits"]
            assert holder.wait(30) != 0
    with turn(lock, lambda: told.append("waits again")):
        assert told == ["waits"]
