# SPDX-License-Identifier: Apache-2.0
"""What goes wrong around a run ends in a clear message and costs no finished run."""

from __future__ import annotations

import json
import os
import shutil
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path

import pytest

from howdah.record.digest import seal
from howdah.record.directory import RunDirectory
from howdah.record.run import read_record
from howdah.record.verdict import read_verdict
from tests.guest.guest_run import howdah

pytestmark = pytest.mark.guest


@pytest.fixture(scope="module")
def finished(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A runs directory, with a space in its name, that holds the finished runs of quick."""
    runs = tmp_path_factory.mktemp("finished") / "my runs"
    answer = howdah("run", "quick", "--runs", runs, "--no-report")
    assert answer.returncode == 0, answer.stderr
    return runs


@pytest.fixture
def small_disk(tmp_path: Path, finished: Path) -> Iterator[Path]:
    """A file system on which one of the finished runs fits, but not two."""
    if os.geteuid() != 0:
        pytest.skip("a small file system to fill can be mounted only by root")
    place = tmp_path / "small"
    place.mkdir()
    files = [path for path in next(finished.glob("quick/reno-*")).rglob("*") if path.is_file()]
    page = 4096
    needs = sum(-(-path.stat().st_size // page) * page for path in files)
    subprocess.run(["mount", "-t", "tmpfs", "-o", f"size={needs + needs // 2}", "tmpfs", str(place)], check=True)
    yield place
    subprocess.run(["umount", str(place)], check=True)


def test_a_full_disk(small_disk: Path, finished: Path) -> None:
    # One finished run is there already; the next one does not fit.
    source = next(finished.glob("quick/reno-*"))
    (small_disk / "quick").mkdir()
    kept = small_disk / "quick" / source.name
    shutil.copytree(source, kept)
    answer = howdah("run", "quick", "--runs", small_disk, "--no-report")
    assert answer.returncode in (1, 4)
    assert "Traceback" not in answer.stderr
    assert "space" in answer.stderr + answer.stdout or "disk" in answer.stderr + answer.stdout
    assert json.loads((kept / "verdict.json").read_text())["verdict"] == "pass"
    for record in small_disk.glob("quick/*/run.json"):
        assert not record.parent.name.startswith(".partial-")


def test_a_truncated_trace_is_invalid_and_named(finished: Path, tmp_path: Path) -> None:
    runs = tmp_path / "runs"
    shutil.copytree(finished / "quick", runs / "quick")
    trace = next(runs.glob("quick/cubic-*/raw/tcp_probe.bin*"))  # compressed, where it is large
    with trace.open("r+b") as file:
        file.truncate(trace.stat().st_size // 2 + 1000)
    report = ("report", "quick", "--reanalyse", "--without-prometheus", "--runs", runs)
    answer = howdah(*report)
    assert answer.returncode == 6
    said = " ".join(answer.stderr.split())  # lines fit the terminal, and break where paths have it
    assert f"raw/{trace.name} was changed after it was recorded" in said
    run = RunDirectory(trace.parents[1])
    seal(run, read_record(run))  # as if the guest had left it so
    answer = howdah(*report)
    assert answer.returncode == 0, answer.stderr
    broken = read_verdict(RunDirectory(next(runs.glob("quick/cubic-*"))))
    assert broken.verdict == "invalid"
    assert any("tcp_probe.bin" in check.message for check in broken.checks if check.ok is False)
    whole = read_verdict(RunDirectory(next(runs.glob("quick/reno-*"))))
    assert whole.verdict == "pass"


def test_two_runs_at_once_do_not_touch_each_other(tmp_path: Path) -> None:
    start = [sys.executable, "-m", "howdah.command.main", "run", "quick", "--jobs", "1", "--no-report", "--runs"]
    processes = [
        subprocess.Popen([*start, str(tmp_path / name)], stdout=subprocess.DEVNULL, stderr=subprocess.PIPE, text=True)
        for name in ("one", "two")
    ]
    for process in processes:
        _, said = process.communicate(timeout=300)
        assert process.returncode == 0, said
    tables = [sorted(tmp_path.glob(f"{name}/quick/*/tables/tcp_probe.parquet")) for name in ("one", "two")]
    assert [file.read_bytes() for file in tables[0]] == [file.read_bytes() for file in tables[1]]


def test_a_rerun_is_equal_and_a_changed_run_is_not(finished: Path, tmp_path: Path) -> None:
    runs = tmp_path / "runs"
    shutil.copytree(finished / "quick", runs / "quick")
    name = next(runs.glob("quick/cubic-*")).name
    same = howdah("rerun", f"quick/{name}", "--runs", runs)
    assert same.returncode == 0, same.stdout + same.stderr
    assert same.stdout.startswith("equal")
    # The original's plan is made to say something else than what was run.
    plan_file = runs / "quick" / name / "plan.json"
    plan_file.write_text(
        plan_file.read_text().replace('"rate_bits_per_second": 20000000', '"rate_bits_per_second": 20010000')
    )
    other = howdah("rerun", f"quick/{name}", "--runs", runs, "--json")
    assert other.returncode == 6, other.stdout + other.stderr
    answer = json.loads(other.stdout)
    assert answer["equal"] is False
    assert answer["difference"]


def test_a_kernel_that_is_not_there(tmp_path: Path) -> None:
    answer = howdah("run", "quick", "--kernel", tmp_path / "linux", "--runs", tmp_path / "runs")
    assert answer.returncode == 1
    assert str(tmp_path / "linux") in answer.stderr
    empty = tmp_path / "empty"
    empty.mkdir()
    answer = howdah("run", "quick", "--kernel", empty, "--runs", tmp_path / "runs")
    assert answer.returncode == 1
    assert str(empty) in answer.stderr
    assert not list(tmp_path.glob("runs/*/*/plan.json"))


def test_an_engine_that_cannot_run_here_says_what_it_lacks(tmp_path: Path) -> None:
    answer = howdah("run", "quick", "--engine", "host", "--runs", tmp_path / "runs")
    if answer.returncode == 0:
        pytest.skip("this machine can run the host engine")
    assert answer.returncode == 3
    assert "the host engine cannot run on this machine" in answer.stderr
    assert "uml" in answer.stderr
