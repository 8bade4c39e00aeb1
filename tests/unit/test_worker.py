# SPDX-License-Identifier: Apache-2.0
"""The worker itself: several runs one after another, each a process of its own, and one that dies."""

from __future__ import annotations

import json
import os
import subprocess
import sys
from pathlib import Path
from typing import Any

# A run's directory says by its name how the run ends; its process is told on standard output.
_WORKER = """
import os, sys
from howdah.work import worker
def execute(directory, progress, *, keep_data):
    progress("flows" if keep_data else "spare", os.getpid(), 2)
    if directory.path.name == "dies":
        print("no such luck", file=sys.stderr)
        os._exit(7)
    if directory.path.name == "arrays":
        import numpy, pyarrow
        pyarrow.array(numpy.arange(2), mask=numpy.array([True, False]))
        (directory.path / "run.json").write_text('{"status": "finished"}')
        return "pandas" if "pandas" in sys.modules else "no pandas"
    if directory.path.name == "raises":
        raise ValueError("out of range")
    (directory.path / "run.json").write_text('{"status": "finished"}')
    return "pass"
worker.execute = execute
sys.exit(worker.main())
"""


def _order(place: Path, keep_data: bool = True) -> str:
    return json.dumps({"run": str(place), "keep_data": keep_data, "patience_s": None}) + "\n"


def _answers(places: list[Path], keep_data: bool = True) -> list[dict[str, Any]]:
    told = "".join(_order(place, keep_data) for place in places)
    command = [sys.executable, "-c", _WORKER, str(os.getpid())]
    done = subprocess.run(command, input=told, capture_output=True, text=True, check=True, timeout=60)
    return [json.loads(line) for line in done.stdout.splitlines()]


def _places(root: Path, *names: str) -> list[Path]:
    found = [root / name for name in names]
    for place in found:
        place.mkdir()
    return found


def test_each_run_is_a_process_of_its_own(tmp_path: Path) -> None:
    answers = _answers(_places(tmp_path, "one", "two\nlines"))
    assert [answer.get("verdict") for answer in answers] == [None, "pass", None, "pass"]
    assert answers[0]["done_us"] != answers[2]["done_us"]


def test_a_run_is_told_whether_its_data_stay(tmp_path: Path) -> None:
    places = _places(tmp_path, "one")
    assert [_answers(places, keep)[0]["phase"] for keep in (True, False)] == ["flows", "spare"]


def test_an_array_does_not_load_pandas(tmp_path: Path) -> None:
    """pyarrow would, in each process that is forked."""
    assert _answers(_places(tmp_path, "arrays"))[-1] == {"verdict": "no pandas", "failed": False}


def test_one_that_dies_is_told_and_the_next_is_made(tmp_path: Path) -> None:
    places = _places(tmp_path, "dies", "raises", "whole")
    ends = [answer for answer in _answers(places) if "phase" not in answer]
    assert ends == [{"died": 7}, {"died": 1}, {"verdict": "pass", "failed": False}]
    assert (places[0] / "engine.log").read_text() == "no such luck\n"
    assert "ValueError: out of range" in (places[1] / "engine.log").read_text()


def test_what_is_no_run_is_an_error_with_its_place(tmp_path: Path) -> None:
    command = [sys.executable, "-m", "howdah.work.worker", str(os.getpid())]
    told = _order(tmp_path)
    done = subprocess.run(command, input=told, capture_output=True, text=True, check=True, timeout=60)
    (answer,) = map(json.loads, done.stdout.splitlines())
    assert "not a run directory" in answer["error"]
    assert answer["where"] == str(tmp_path)
