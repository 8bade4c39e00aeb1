# SPDX-License-Identifier: Apache-2.0
"""Commands killed at random, disks that give out: a small seeded part of ``make faults``, and what it notices."""

from __future__ import annotations

import json
import os
import shutil
import signal
import subprocess
import sys
import time
from collections.abc import Iterator

import pytest

from tests.faults.disks import PLACES, TROUBLES, namespaces_missing, run_disks
from tests.faults.kills import Killer
from tests.faults.processes import processes_of
from tests.faults.sandbox import ROOT, Sandbox, sandbox

pytestmark = pytest.mark.guest

SEED = 1
KILLS = 12


@pytest.fixture(scope="module")
def place() -> Iterator[Sandbox]:
    with sandbox(forks=True) as made:
        yield made


def test_killed_at_random_moments(place: Sandbox) -> None:
    tally = Killer(place, SEED).run(range(KILLS))
    assert not tally.faults, "\n".join(f"{kill}" for kill in tally.faults)
    assert len(tally.kills) == KILLS
    assert tally.resumed


def test_disks_that_give_out(place: Sandbox) -> None:
    if missing := namespaces_missing():
        pytest.skip(missing)
    disks = run_disks(place, len(PLACES) * len(TROUBLES), SEED)
    assert not any(disk.faults for disk in disks), "\n".join(f"{disk}" for disk in disks if disk.faults)
    assert sum(disk.ended != 0 for disk in disks) > len(disks) / 2, "most of them have too little room to succeed"


def test_a_mount_that_is_left_is_seen(place: Sandbox) -> None:
    if missing := namespaces_missing():
        pytest.skip(missing)
    code = (
        "import subprocess, sys; from pathlib import Path; from tests.faults.sandbox import Sandbox\n"
        "place = Sandbox(Path(sys.argv[1]))\n"
        "subprocess.run(['mount', '-t', 'tmpfs', 'none', str(place.root / 'home')], check=True)\n"
        "print(*place.at_once())"
    )
    command = ["unshare", "--mount", "--map-root-user", sys.executable, "-c", code, str(place.root)]
    done = subprocess.run(command, cwd=ROOT, capture_output=True, text=True, check=True)
    assert "mounts have changed" in done.stdout


# Were the harness blind, the tests above could not fail.


def test_a_process_that_is_left_is_seen(place: Sandbox, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("tests.faults.sandbox._GONE_WITHIN_S", 1.0)
    left = subprocess.Popen(["sleep", "1000"], cwd=place.root)
    try:
        # It has the sandbox's path in its working directory alone.
        assert [process.pid for process in processes_of(place.root)] == [left.pid]
        assert [found for found in place.at_once() if f"a process is left: other {left.pid}" in found]
        assert left.wait(timeout=10) == -signal.SIGKILL
    finally:
        left.kill()


def test_what_is_half_written_is_seen(place: Sandbox) -> None:
    assert place.resume() == []
    run = next(place.runs.glob("tiny/cubic-*/run.json")).parent
    for name, content in (("metrics.json", b'{"rows": ['), ("tables/flow.parquet", b"PAR1"), ("x.parquet", b"\x1f")):
        file = run / name
        before = file.read_bytes() if file.exists() else None
        file.write_bytes(content)
        assert any(name in found for found in place.half_written()), name
        file.unlink()
        if before is not None:
            assert any(run.name in found for found in place.half_written()), f"{name} is missing"
            file.write_bytes(before)
    record = json.loads((run / "run.json").read_text())
    (run / "run.json").write_text(json.dumps({**record, "status": "running"}))
    assert any("still running" in found for found in place.half_written())
    (run / "run.json").write_text(json.dumps(record))
    other = next(place.runs.glob("tiny/reno-*/run.json")).parent
    shutil.copyfile(other / "tables" / "tcp_probe.parquet", run / "tables" / "tcp_probe.parquet")
    assert any("differs from the undisturbed run" in found for found in place.half_written())
    shutil.rmtree(place.runs / "tiny")


def test_locks_and_leftovers_are_seen(place: Sandbox) -> None:
    code = "import fcntl, sys; fcntl.flock(f := open(sys.argv[1], 'w'), fcntl.LOCK_EX); print(flush=True); input()"
    place.runs.mkdir(exist_ok=True)
    lock = place.root / ".lock-x"
    holder = subprocess.Popen(
        [sys.executable, "-c", code, ".lock-x"], cwd=place.root, stdin=subprocess.PIPE, stdout=subprocess.PIPE
    )
    assert holder.stdout is not None
    holder.stdout.readline()
    found = list(place.locks_held())
    holder.kill()
    holder.communicate()
    assert found == [f"a lock is held by nobody: {lock}"]
    lock.unlink()
    for leftover in (place.runs / ".writing-x-1", place.cache / "agent" / ".partial-x-1", place.root / "tmp" / "x"):
        leftover.parent.mkdir(exist_ok=True)
        leftover.touch()
        assert [text for text in place.left() if leftover.name in text], leftover
        leftover.unlink()


def test_the_file_with_which_python_tries_a_directory_is_nobodys(place: Sandbox) -> None:
    """A process that is killed while it looks for a temporary directory leaves it, whatever it is going to run."""
    trying = (
        "import os, signal, tempfile; tempfile._os.unlink = lambda *_: os.kill(os.getpid(), signal.SIGKILL); "
        "tempfile.gettempdir()"
    )
    temporary = place.root / "tmp"
    temporary.mkdir(exist_ok=True)
    subprocess.run([sys.executable, "-c", trying], env={**os.environ, "TMPDIR": str(temporary)}, check=False)
    (probe,) = temporary.iterdir()
    assert list(place.left()) == []
    probe.write_bytes(b"rows")
    assert [text for text in place.left() if probe.name in text], "a file with other content is a command's"
    probe.unlink()
    probe.mkdir()
    assert [text for text in place.left() if probe.name in text], "so is a directory"
    probe.rmdir()


def test_a_directory_of_a_killed_launcher_goes_with_the_next_guest(place: Sandbox) -> None:
    """Command, worker and launcher killed at once: nobody is there to remove the guest's directory."""
    process = place.start(["run", str(place.profile), "--runs", str(place.runs), "--no-report"])
    directories = place.root / "run"
    try:
        while not list(directories.glob("howdah-guest-*/guest")):
            assert process.poll() is None, place.said()
            time.sleep(0.01)
        there = processes_of(place.root)
        for each in there:
            if each.kind in ("worker", "command"):
                os.kill(each.pid, signal.SIGSTOP)  # so that they cannot tidy up behind the launcher
        for kind in ("launcher", "worker", "command"):
            for each in there:
                if each.kind == kind:
                    each.end()
    finally:
        process.kill()
        process.wait()
    assert list(place.at_once()) == []
    assert list(directories.glob("howdah-guest-*"))
    assert place.resume() == []
