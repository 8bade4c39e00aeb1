# SPDX-License-Identifier: Apache-2.0
"""A command forks the processes that make its runs; a program that is not howdah's own has them started."""

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
from howdah.work.local import Makers
from howdah.work.worker import NAME

ROOT = Path(__file__).resolve().parents[2]

# Two runs at once, which are none, and then one more: what their workers are, and what they say.
_COMMAND = """
import json, sys
from pathlib import Path
from howdah.record.directory import RunDirectory
from howdah.unloaded import leave_pandas_out
from howdah.work.local import Makers

leave_pandas_out()
first, second, third = (RunDirectory(Path(each)) for each in sys.argv[1:])
makers = Makers()
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
    makers = Makers(environment=environment)
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
