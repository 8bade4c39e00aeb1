# SPDX-License-Identifier: Apache-2.0
"""Runs on a worker that has Python and howdah alone: they are those of this machine, and none outlives a worker.

All connections are encrypted: between scheduler, worker and client. Runs of this machine alone are remembered.
"""

from __future__ import annotations

import json
import os
import signal
import subprocess
from collections.abc import Iterator
from pathlib import Path

import pytest

from howdah.build.cache import cache_root
from howdah.command.main import main
from howdah.default import DEFAULT_KERNEL
from howdah.place import PROJECT
from howdah.record.directory import RunDirectory, read_json
from howdah.record.table import equal
from tests.cluster_processes import Processes, wait_for
from tests.faults.processes import left_after, processes_of
from tests.faults.sandbox import PROFILE

pytestmark = [pytest.mark.guest, pytest.mark.usefixtures("remembered_guests")]
pytest.importorskip("distributed", reason="Dask is not installed")
_WITHIN_S = 300.0


@pytest.fixture(scope="module")
def cluster(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Processes]:
    place = tmp_path_factory.mktemp("c")
    assert main(["cluster", "certificates", str(place / "tls")]) == 0
    found = Processes(place, place / "tls")
    try:
        yield found
    finally:
        found.end()


def test_a_bare_worker_makes_the_same_runs_and_dies_with_its_guests(
    cluster: Processes, capsys: pytest.CaptureFixture[str]
) -> None:
    """The first worker is killed in its first run; the second gets what the sweep needs and makes it all."""
    assert cluster.address.startswith("tls://")
    profile = cluster.place / "tiny.yaml"
    profile.write_text(PROFILE)
    killed = cluster.worker("one")
    guests: list[int] = []

    def begun() -> bool:
        guests[:] = [each.pid for each in processes_of(cluster.place / "one") if each.kind == "guest"]
        return bool(guests)

    command = ["run", str(profile), "--no-report", "--json"]
    client: subprocess.Popen[bytes] = cluster.client(*command, "--runs", str(cluster.place / "there"))
    wait_for(begun)
    os.kill(killed.pid, signal.SIGKILL)
    killed.wait()
    assert left_after(cluster.place / "one", 20.0) == []
    cluster.steady_worker()
    assert client.wait(_WITHIN_S) == 0, (cluster.place / "client.txt").read_text()

    capsys.readouterr()
    assert main([*command, "--runs", str(cluster.place / "here")]) == 0
    cells = json.loads(capsys.readouterr().out)["cells"]
    assert len(cells) == 2
    for cell in cells:
        here, there = (RunDirectory(cluster.place / name / "tiny" / cell["run"]) for name in ("here", "there"))
        assert equal(here, there) is None
        assert read_json(here.metrics) == read_json(there.metrics)
        assert read_json(here.verdict) == read_json(there.verdict)
    cache = cluster.place / "steady" / "cache"
    assert not (cache / "kernel").exists(), "nothing was built there"
    assert not list((cache / "unfetched").glob("[!.]*")), "what was fetched is not kept"


_SOUGHT = """\
howdah: 1
name: sought
path: {rate: 5 Mbit/s, rtt: 20 ms, buffer: 1 bdp}
algorithm: reno
duration: 1 s
repetitions: 1
search:
  space:
    path.rtt: {from: 10 ms, to: 120 ms, step: 10 ms}
  minimise: {metric: utilisation}
  budget: {candidates: 10}
"""


def test_a_search_finds_the_same_where_a_worker_goes_in_the_middle(cluster: Processes) -> None:
    profile = cluster.place / "sought.yaml"
    profile.write_text(_SOUGHT)
    killed = cluster.worker("lost")
    cluster.steady_worker()
    command = ["search", str(profile)]
    client = cluster.client(*command, "--runs", str(cluster.place / "there"))

    def in_the_middle() -> bool:
        assert client.poll() is None, (cluster.place / "client.txt").read_text()
        first_batch = "8 of 10 tried" in (cluster.place / "client.txt").read_text()
        return first_batch and any(each.kind == "guest" for each in processes_of(cluster.place / "lost"))

    wait_for(in_the_middle)
    os.kill(killed.pid, signal.SIGKILL)
    killed.wait()
    said = cluster.place / "client.txt"
    assert client.wait(_WITHIN_S) == 0, said.read_text()
    assert said.read_text().count("is ready after") <= 2, "each worker once, and not in each batch"
    assert main([*command, "--runs", str(cluster.place / "here")]) == 0
    here, there = (read_json(cluster.place / name / "sought-search" / "search.json") for name in ("here", "there"))
    assert len(here["candidates"]) == 10
    assert here == there


def test_a_kernel_that_does_not_build_costs_its_own_runs(cluster: Processes) -> None:
    """Told with its place; the worker makes the runs of the other kernel."""
    tree = cluster.place / "broken"
    (tree / "arch" / "um").mkdir(parents=True)
    (tree / "net" / "ipv4").mkdir(parents=True)
    for name in ("Kconfig", "arch/um/Makefile", "net/ipv4/tcp.c"):
        (tree / name).touch()
    broken = "VERSION = 6\nPATCHLEVEL = 12\nSUBLEVEL = 1\nEXTRAVERSION =\n"
    (tree / "Makefile").write_text(f"{broken}%:\n\t@echo 'tcp.c:3: error: it is broken' >&2; false\n")
    profile = cluster.place / "two.yaml"
    profile.write_text(PROFILE.replace("name: tiny", f"name: two\nkernel: [{DEFAULT_KERNEL}, ./broken]"))
    cluster.steady_worker()
    command = ["run", str(profile), "--set", "algorithm=cubic", "--no-report"]
    client = cluster.client(*command, "--runs", str(cluster.place / "two"))
    assert client.wait(_WITHIN_S) != 0
    said = (cluster.place / "client.txt").read_text()
    runs = {file.parent.name: read_json(file)["verdict"] for file in cluster.place.glob("two/two/*/verdict.json")}
    verdicts = {name.partition("-r0")[0]: verdict for name, verdict in runs.items()}
    assert verdicts == {DEFAULT_KERNEL: "pass", "broken": "invalid"}, said
    assert "tcp.c:3: the kernel cannot be configured: it is broken" in said


def test_hosts_reached_over_ssh_make_runs_into_a_store(
    tmp_path: Path, capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    pytest.importorskip("asyncssh", reason="asyncssh is not installed")
    from tests.ssh_server import HOST, ssh_server

    profile, hosts, far = tmp_path / "tiny.yaml", tmp_path / "hosts.txt", tmp_path / "far"
    profile.write_text(PROFILE.replace("[cubic, reno]", "cubic"))
    hosts.write_text(f"{HOST}  # by its name in ~/.ssh/config\n")
    far.mkdir()
    environment = {"PATH": os.environ["PATH"], "HOME": str(far), "TMPDIR": str(far), "XDG_RUNTIME_DIR": str(far)}
    environment |= {"HOWDAH_CACHE": str(far / "cache"), "PYTHONPATH": str(PROJECT)}
    monkeypatch.setenv("HOWDAH_CACHE", str(cache_root()))
    command = ["run", str(profile), "--no-report", "--json"]
    command += ["--cluster", f"ssh:{hosts}", "--store", f"file://{tmp_path}/store"]
    for runs in ("runs", "taken"):
        with ssh_server(tmp_path / f"home-{runs}", environment):
            monkeypatch.setenv("HOME", str(tmp_path / f"home-{runs}"))
            assert main([*command, "--runs", str(tmp_path / runs)]) == 0
        (cell,) = json.loads(capsys.readouterr().out)["cells"]
        assert cell["status"] == "finished"
    (line,) = (far / "cache" / "unfetched" / ".made").read_text().splitlines()  # once
    for runs in ("runs", "taken"):
        assert read_json(tmp_path / runs / "tiny" / cell["run"] / "run.json")["key"] in line
    assert left_after(far, 20.0) == []
