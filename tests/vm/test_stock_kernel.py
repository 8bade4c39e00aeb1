# SPDX-License-Identifier: Apache-2.0
"""An unmodified distribution kernel in a virtual machine says what the user-mode kernel says of the same path."""

from __future__ import annotations

import json
import os
import subprocess
import sys
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import pytest

from howdah.command.main import main
from howdah.engine.vm.watch import UP
from howdah.record.directory import RunDirectory
from howdah.record.raw import read_raw_bytes
from howdah.record.table import equal
from howdah.validate.comparison import TOLERANCES
from tests.guest.remembering import new_guests

# Its emulator is bound to one core: beside emulated machines, and what the tests here start, that takes long.
pytestmark = [pytest.mark.vm, pytest.mark.timeout(1800), pytest.mark.usefixtures("qemu", "remembered_guests")]

# Small enough for an emulated processor: 10 to 20 s of its time. The module is built for both kernels.
PROFILE = """\
howdah: 1
name: both
path: {rate: 10 Mbit/s, rtt: 40 ms, buffer: 1 bdp}
algorithm: hystart-linux-cubic
duration: 2 s
"""
DISAGREE = 6
# From the machine's first program to its end: while its kernel boots it is hardly ever idle, and before and after there
# is no machine.
RESTLESS = f"""\
import sys, time
from pathlib import Path
def machine():
    for signs in Path(sys.argv[1]).rglob(".partial-*/raw/.signs"):
        console = signs.with_name("console.log")
        if console.exists() and {UP!r} in console.read_bytes():
            return signs
while (signs := machine()) is None:
    time.sleep(0.1)
while signs.exists():
    for _ in range(1000):
        until = time.perf_counter() + 5e-6
        while time.perf_counter() < until:
            pass
        time.sleep(7e-5)
"""


def validate(place: Path, capsys: pytest.CaptureFixture[str], *options: str) -> tuple[int, dict[str, Any]]:
    capsys.readouterr()
    status = main(["validate", str(place / "both.yaml"), "--runs", str(place), "--json", *options])
    record: dict[str, Any] = json.loads(capsys.readouterr().out)
    return status, record


@pytest.fixture(scope="module")
def place(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A directory with the runs of both engines."""
    place = tmp_path_factory.mktemp("engines")
    (place / "both.yaml").write_text(PROFILE)
    main(["validate", str(place / "both.yaml"), "--runs", str(place), "--json"])
    return place


@pytest.fixture(scope="module")
def run(place: Path) -> Path:
    (found,) = [path.parent for path in place.glob("both-vm/*/run.json")]
    return found


def test_the_engines_agree(place: Path, capsys: pytest.CaptureFixture[str]) -> None:
    status, record = validate(place, capsys)
    (point,) = record["points"]
    assert [side["verdict"] for side in point["sides"]] == ["pass", "pass"], point["problems"]
    differing = [pair for pair in point["measures"] if not pair["agrees"]]
    assert (status, differing) == (0, [])
    assert record["agrees"]
    assert {pair["metric"] for pair in point["measures"]} == {tolerance.metric for tolerance in TOLERANCES}
    assert all(value is not None for pair in point["measures"] for value in pair["values"]), "nothing was compared"
    assert (place / "both-validation.md").read_text().startswith("| path |")


def test_a_planted_difference_is_found(place: Path, capsys: pytest.CaptureFixture[str]) -> None:
    """Another initial window on one side: the other side's run is the one of before."""
    status, record = validate(place, capsys, "--plant", "uml:flows.1.initial_window=20")
    (point,) = record["points"]
    assert status == DISAGREE
    assert not record["agrees"]
    assert "exit_cwnd_packets" in [pair["metric"] for pair in point["measures"] if not pair["agrees"]]


def test_the_record_says_what_it_was(run: Path) -> None:
    record = json.loads((run / "run.json").read_text())
    assert record["engine"]["name"] == "vm"
    assert record["engine"]["processor"] == "1 instructions a nanosecond"
    assert record["kernel"]["release"].endswith("-amd64")
    assert record["kernel"]["package"].startswith("linux-image-6.12")
    assert record["modules"]["ss_hystartl"]["sha256"]
    kernel = json.loads((run / "raw" / "agent.json").read_text())["kernel_release"]
    assert kernel == record["kernel"]["release"]


def test_nothing_of_the_machine_stays(run: Path) -> None:
    names = [file.name for file in (run / "raw").iterdir()]
    assert not [name for name in names if name.startswith(".")]


@contextmanager
def restless(place: Path) -> Iterator[None]:
    """What is started here has one processor, with two processes on it that wake up all the time and so interrupt it,
    while a machine of ``place`` runs.

    More of them, or others on further processors, take nothing from the machine that these do not take.
    """
    before = os.sched_getaffinity(0)
    os.sched_setaffinity(0, {max(before)})
    processes = [subprocess.Popen([sys.executable, "-S", "-c", RESTLESS, str(place)]) for _ in range(2)]
    try:
        yield
        assert [process.wait(60) for process in processes] == [0, 0], "nothing was disturbed"
    finally:
        os.sched_setaffinity(0, before)
        for process in processes:
            process.kill()
            process.wait()


def test_a_rerun_beside_other_work_is_equal(
    place: Path, run: Path, capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    """Under a virtual clock nothing of what this machine does reaches the run; progress was shown of both.

    The rerun is made in each session. What it repeats may be of an earlier one.

    Without warp.c five of five such reruns differed by some nanoseconds.
    """
    capsys.readouterr()
    new_guests(monkeypatch)
    with restless(place):
        status = main(["rerun", str(run), "--runs", str(place), "--json"])
    answer = json.loads(capsys.readouterr().out)
    assert answer["equal"], answer["difference"]
    assert status == 0
    again = Path(answer["rerun"])
    assert equal(RunDirectory(run), RunDirectory(again)) is None
    for name in ("tcp_probe.bin", "qdisc.bin", "tcp_info.bin", "progress.json"):
        assert read_raw_bytes(again / "raw" / name) == read_raw_bytes(run / "raw" / name), name
