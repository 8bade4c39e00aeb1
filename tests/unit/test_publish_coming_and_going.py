# SPDX-License-Identifier: Apache-2.0
"""``howdah serve --live`` on a directory whose runs come, grow and are removed: the server and its page stay right."""

from __future__ import annotations

import json
import os
import re
import shutil
import signal
import subprocess
import sys
import threading
import time
import urllib.request
from collections.abc import Callable, Iterator
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import pytest

from howdah.publish.server import free_port
from tests.experiment_factory import Scenario, make_experiment
from tests.prometheus_fixture import prometheus_or_skip
from tests.unit.recorded_run import record_experiment
from tests.unit.underway_run import make_virtual

_LONGEST_S = 90.0


@dataclass
class Served:
    """The command, what it said, and where it answers."""

    process: subprocess.Popen[str]
    url: str
    runs: Path
    said: list[str] = field(default_factory=list)

    def board(self) -> dict[str, Any]:
        with urllib.request.urlopen(f"{self.url}/user/runs.json", timeout=10) as answer:
            found: dict[str, Any] = json.load(answer)
            return found

    def until(self, what: str, holds: Callable[[dict[str, Any]], bool]) -> dict[str, Any]:
        end = time.monotonic() + _LONGEST_S
        while time.monotonic() < end:
            assert self.process.poll() is None, f"the server ended: {self.said}"
            board = self.board()
            if holds(board):
                return board
            time.sleep(0.2)
        raise AssertionError(f"{what} within {_LONGEST_S:g} s; the board: {self.board()}; {self.said}")


@pytest.fixture
def served(tmp_path: Path) -> Iterator[Served]:
    prometheus_or_skip()
    runs = tmp_path / "runs"
    runs.mkdir()
    make_experiment(runs, Scenario(name="there", repetitions=1, flows=1, duration_s=2.0))
    port = free_port()
    command = [sys.executable, "-m", "howdah.command.main", "serve", "--live", "--runs", str(runs), "--port", str(port)]
    process = subprocess.Popen(
        command, stdout=subprocess.PIPE, stderr=subprocess.STDOUT, text=True, env=os.environ | {"NO_COLOR": "1"}
    )
    assert process.stdout is not None
    said: list[str] = []
    url = ""
    for line in process.stdout:
        said.append(line)
        if found := re.search(r"Runs as they happen: (http://\S+)/user/", line):
            url = found.group(1)
        if line.startswith("New runs appear"):
            break
    lines = process.stdout
    listener = threading.Thread(target=lambda: said.extend(lines), daemon=True)
    listener.start()
    assert url, said
    yield Served(process, url, runs, said)
    if process.poll() is None:
        process.send_signal(signal.SIGTERM)
        process.wait(30)
    listener.join(10)


def _names(board: dict[str, Any], what: str) -> set[str]:
    return {f"{each['experiment']}/{each['run']}" for each in board[what]}


def test_runs_come_grow_end_and_are_removed_while_the_server_stays(served: Served) -> None:
    served.until("an empty board", lambda board: not board["underway"] and not board["finished"])
    # A run begins.
    underway = make_virtual(served.runs)
    underway.write(0.3)
    board = served.until("the run in progress", lambda board: len(board["underway"]) == 1)
    (name,) = _names(board, "underway")
    # Another experiment comes, whole, and is removed while the run goes on.
    make_experiment(served.runs, Scenario(name="guest", repetitions=1, flows=1, duration_s=2.0))
    shutil.rmtree(served.runs / "guest")
    # A run ends: it is news. Its experiment is removed: it is no more on the page, and the run in progress still is.
    underway.write(0.8)
    record_experiment(served.runs / "ended")
    board = served.until("the run that ended", lambda board: len(board["finished"]) == 1)
    assert _names(board, "underway") == {name}
    shutil.rmtree(served.runs / "ended")
    board = served.until("no run that was removed", lambda board: not board["finished"])
    assert _names(board, "underway") == {name}
    # The run in progress is removed under the server's hands, file by file.
    before = board["underway"][0]["flows"][0]["acks"]
    for file in ("plan.json", "raw/tcp_probe.bin"):
        (underway.directory / file).unlink()
        served.board()
    shutil.rmtree(underway.directory.parent)
    served.until("no run that was removed", lambda board: not board["underway"])
    # And a new one comes at the same place.
    again = make_virtual(served.runs)
    again.write(0.5)
    board = served.until("the new run", lambda board: len(board["underway"]) == 1)
    assert _names(board, "underway") == {name}
    assert 0 < board["underway"][0]["flows"][0]["acks"] < before, "nothing is left of the one that was removed"
    with urllib.request.urlopen(f"{served.url}/user/live.html", timeout=10) as page:
        assert page.status == 200
    assert not [line for line in served.said if "Traceback" in line], served.said


def test_the_server_outlives_a_directory_that_is_damaged(served: Served) -> None:
    for name, content in (("empty", ""), ("torn", '{"format": 1, "cells": ['), ("other", "[1, 2]")):
        (served.runs / name).mkdir()
        (served.runs / name / "experiment.json").write_text(content)
        (served.runs / name / "run").mkdir()
        (served.runs / name / "run" / "run.json").write_text(content)
    underway = make_virtual(served.runs)
    underway.write(0.5)
    served.until("the run beside them", lambda board: len(board["underway"]) == 1)
    assert not [line for line in served.said if "Traceback" in line], served.said
