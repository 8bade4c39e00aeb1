# SPDX-License-Identifier: Apache-2.0
"""Workers: several runs one after another, each a process of its own; who starts those processes."""

from __future__ import annotations

import json
import os
import signal
import subprocess
import sys
import time
from pathlib import Path
from typing import Any

import pytest

from howdah.record.directory import RunDirectory
from howdah.work.local import WorkerProcesses
from howdah.work.worker import NAME

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


ROOT = Path(__file__).resolve().parents[2]

# Two runs at once, which are none, and then one more: what their workers are, and what they say.
_COMMAND = """
import json, sys
from pathlib import Path
from howdah.record.directory import RunDirectory
from howdah.unloaded import leave_pandas_out
from howdah.work.local import WorkerProcesses

leave_pandas_out()
first, second, third = (RunDirectory(Path(each)) for each in sys.argv[1:])
makers = WorkerProcesses()
makings = [makers.give(each) for each in (first, second)]
pids = [making.process.pid for making in makings]
for making in makings:
    while making.read():
        pass
    makers.finish(making)
names = [Path(f"/proc/{pid}/comm").read_text().strip() for pid in pids]
makings.append(makers.give(third))
again = makings[-1].process.pid in pids
while makings[-1].read():
    pass
makers.finish(makings[-1])
kinds = [type(making.process).__name__ for making in makings]
last = [vars(making.last) for making in makings]
print(json.dumps({"kinds": kinds, "pids": pids, "names": names, "again": again, "last": last}))
sys.stdout.flush()
if sys.stdin.readline() == "end\\n":
    makers.end()
    print(json.dumps([making.process.poll() for making in makings]))
"""


def _started(tmp_path: Path) -> tuple[subprocess.Popen[str], dict[str, Any]]:
    places = [tmp_path / name for name in ("one", "two", "three")]
    for place in places:
        place.mkdir()
    command = [sys.executable, "-c", _COMMAND, *map(str, places)]
    process = subprocess.Popen(command, cwd=ROOT, stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True)
    assert process.stdout is not None
    return process, json.loads(process.stdout.readline())


@pytest.mark.timeout(60)
def test_a_command_forks_them_and_ends_them(tmp_path: Path) -> None:
    process, said = _started(tmp_path)
    answer, _ = process.communicate("end\n")
    assert said["kinds"] == 3 * ["Forked"]
    assert said["again"], "one that waits is used before another is started"
    assert [last["where"] for last in said["last"]] == [str(tmp_path / name) for name in ("one", "two", "three")]
    assert all("not a run directory" in last["error"] for last in said["last"])
    assert json.loads(answer) == [0, 0, 0]
    assert process.returncode == 0


@pytest.mark.timeout(60)
def test_they_have_a_name_and_die_with_their_command(tmp_path: Path) -> None:
    process, said = _started(tmp_path)
    with process:
        assert said["names"] == [NAME, NAME]
        process.send_signal(signal.SIGKILL)
    while any(Path(f"/proc/{pid}").exists() for pid in said["pids"]):
        time.sleep(0.01)


@pytest.mark.parametrize("environment", [None, {"HOWDAH_NOTHING": "1"}])
def test_another_program_has_them_started(tmp_path: Path, environment: dict[str, str] | None) -> None:
    """What it has patched, and what it holds, stays its own."""
    makers = WorkerProcesses(environment=environment)
    making = makers.give(RunDirectory(tmp_path))
    assert isinstance(making.process, subprocess.Popen)
    while making.read():
        pass
    assert making.last is not None
    assert "not a run directory" in (making.last.error or "")
    found = Path(f"/proc/{making.process.pid}/environ").read_bytes()
    assert (b"HOWDAH_NOTHING=1" in found) == (environment is not None)
    assert f"\0{os.getpid()}\0".encode() in Path(f"/proc/{making.process.pid}/cmdline").read_bytes()
    makers.finish(making)
    makers.end()
    assert making.process.poll() == 0
