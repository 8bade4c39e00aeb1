# SPDX-License-Identifier: Apache-2.0
"""Runs on a worker that has Python and howdah alone: they are those of this machine, and none outlives a worker."""

from __future__ import annotations

import json
import os
import re
import signal
import subprocess
import sys
import time
from collections.abc import Callable, Iterator
from pathlib import Path

import pytest

from howdah.command.main import main
from howdah.place import PROJECT
from howdah.record.directory import RunDirectory, read_json
from howdah.record.table import equal
from tests.faults.processes import left_after, processes_of
from tests.faults.sandbox import PROFILE

pytestmark = pytest.mark.guest
pytest.importorskip("distributed", reason="Dask is not installed")
_WITHIN_S = 120.0


class Cluster:
    """A scheduler, and workers with a cache of their own and hardly a program."""

    def __init__(self, place: Path) -> None:
        self.place = place
        self.profile = place / "tiny.yaml"
        self.profile.write_text(PROFILE)
        self._started: list[subprocess.Popen[bytes]] = []
        self.address = self._said(self._start("scheduler", ["scheduler", "--port", "0"], dict(os.environ)))

    def _start(self, name: str, arguments: list[str], environment: dict[str, str]) -> Path:
        said = self.place / f"{name}.txt"
        with said.open("wb") as output:
            process = subprocess.Popen(
                [sys.executable, "-m", "howdah.command.main", "cluster", *arguments],
                stdout=output,
                stderr=output,
                env={**environment, "PYTHONPATH": str(PROJECT)},
                start_new_session=True,
            )
        self._started.append(process)
        return said

    @staticmethod
    def _said(file: Path) -> str:
        found: list[re.Match[str]] = []

        def there() -> bool:
            found.extend(re.finditer(r"tcp://[0-9.:]+", file.read_text()))
            return bool(found)

        wait_for(there)
        return found[0][0]

    def worker(self, name: str) -> subprocess.Popen[bytes]:
        place = self.place / name
        (place / "bin").mkdir(parents=True)
        for program in ("env", "taskset"):
            (place / "bin" / program).symlink_to(f"/usr/bin/{program}")
        environment = {"PATH": str(place / "bin"), "HOME": str(place), "XDG_RUNTIME_DIR": str(place)}
        environment |= {"HOWDAH_CACHE": str(place / "cache"), "TMPDIR": str(place)}
        self._said(self._start(name, ["worker", self.address, "--jobs", "1"], environment))
        return self._started[-1]

    def end(self) -> None:
        for process in self._started:
            process.terminate()
        for process in self._started:
            process.wait()


def wait_for(what: Callable[[], bool]) -> None:
    deadline = time.monotonic() + _WITHIN_S
    while not what():
        assert time.monotonic() < deadline
        time.sleep(0.05)


@pytest.fixture(scope="module")
def cluster(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Cluster]:
    found = Cluster(tmp_path_factory.mktemp("c"))
    try:
        yield found
    finally:
        found.end()


def test_a_bare_worker_makes_the_same_runs_and_dies_with_its_guests(
    cluster: Cluster, capsys: pytest.CaptureFixture[str]
) -> None:
    """The first worker is killed in its first run; the second gets what the sweep needs and makes it all."""
    killed = cluster.worker("one")
    guests: list[int] = []

    def begun() -> bool:
        guests[:] = [each.pid for each in processes_of(cluster.place / "one") if each.kind == "guest"]
        return bool(guests)

    command = ["run", str(cluster.profile), "--no-report", "--json", "--scheduler", cluster.address]
    with (cluster.place / "client.txt").open("wb") as said:
        client = subprocess.Popen(
            [sys.executable, "-m", "howdah.command.main", *command, "--runs", str(cluster.place / "there")],
            stdout=said,
            stderr=said,
            env={**os.environ, "PYTHONPATH": str(PROJECT)},
        )
    wait_for(begun)
    os.kill(killed.pid, signal.SIGKILL)
    killed.wait()
    assert left_after(cluster.place / "one", 20.0) == []
    cluster.worker("two")
    assert client.wait(_WITHIN_S) == 0, (cluster.place / "client.txt").read_text()

    assert main(["run", str(cluster.profile), "--no-report", "--json", "--runs", str(cluster.place / "here")]) == 0
    cells = json.loads(capsys.readouterr().out)["cells"]
    assert len(cells) == 2
    for cell in cells:
        here, there = (RunDirectory(cluster.place / name / "tiny" / cell["run"]) for name in ("here", "there"))
        assert equal(here, there) is None
        assert read_json(here.metrics) == read_json(there.metrics)
        assert read_json(here.verdict) == read_json(there.verdict)
    assert not (cluster.place / "two" / "cache" / "kernel").exists(), "nothing was built there"
    assert not list((cluster.place / "two" / "cache" / "spool").glob("[!.]*")), "what was fetched is not kept"
