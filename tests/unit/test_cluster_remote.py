# SPDX-License-Identifier: Apache-2.0
"""Clusters over SSH and SLURM: started for real, the other machine being this one and SLURM being a stand-in."""

from __future__ import annotations

import os
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

pytest.importorskip("distributed", reason="Dask is not installed")
pytest.importorskip("asyncssh", reason="asyncssh is not installed")

from howdah.cluster import worker
from howdah.cluster.connect import connected, read_settings
from howdah.cluster.message import call
from howdah.cluster.place import Place
from howdah.cluster.reach import make_certificates
from howdah.errors import HowdahError
from howdah.place import PROJECT
from tests.cluster_processes import wait_for
from tests.faults.processes import left_after, processes_of
from tests.ssh_server import HOST, ssh_server


@pytest.fixture
def far(tmp_path: Path) -> dict[str, str]:
    """The environment of what is started elsewhere: it has a cache of its own."""
    place = tmp_path / "far"
    place.mkdir()
    names = {"HOME": place, "TMPDIR": place, "HOWDAH_CACHE": place / "cache", "PYTHONPATH": PROJECT}
    return {"PATH": os.environ["PATH"], **{name: str(value) for name, value in names.items()}}


@pytest.fixture
def home(tmp_path: Path, far: dict[str, str], monkeypatch: pytest.MonkeyPatch) -> Iterator[Path]:
    place = tmp_path / "home"
    monkeypatch.setenv("HOME", str(place))
    with ssh_server(place, far):
        yield place


def _workers(client: Any) -> list[dict[str, Any]]:
    """What each says of itself, as soon as there is one."""
    wait_for(lambda: bool(client.scheduler_info()["workers"]))
    return [call(client, address, worker.hello) for address in client.scheduler_info()["workers"]]


@pytest.mark.usefixtures("home")
def test_a_cluster_over_ssh_with_tls_is_there_and_goes_again(tmp_path: Path, far: dict[str, str]) -> None:
    hosts = tmp_path / "hosts.txt"
    hosts.write_text(f"{HOST}\n")
    make_certificates(tmp_path / "tls", 1)
    with connected(Place(kind="ssh", argument=str(hosts), tls=tmp_path / "tls"), lambda _text: None) as client:
        assert client.scheduler.address.startswith(f"tls://{HOST}:")
        (found,) = _workers(client)
        assert found["slots"] == len(os.sched_getaffinity(0))
        assert Path(far["HOWDAH_CACHE"], "store-name").read_text() == found["store"], "its cache is not ours"
    assert left_after(tmp_path / "far", 20.0) == []


@pytest.mark.usefixtures("home")
def test_what_was_started_over_ssh_ends_with_a_killed_command(tmp_path: Path) -> None:
    (tmp_path / "hosts.txt").write_text(f"{HOST}\n")
    program = (
        "import sys, time\nfrom pathlib import Path\n"
        "from howdah.cluster.connect import connected\nfrom howdah.cluster.place import Place\n"
        "with connected(Place(kind='ssh', argument=sys.argv[1]), lambda text: print(text, flush=True)):\n"
        "    time.sleep(600)\n"
    )
    command = [sys.executable, "-c", program, str(tmp_path / "hosts.txt")]
    process = subprocess.Popen(command, stdout=subprocess.PIPE, env={**os.environ, "PYTHONPATH": str(PROJECT)})
    assert process.stdout is not None
    assert b"cluster: tcp://127.0.0.1:" in process.stdout.readline()
    assert len(processes_of(tmp_path / "far")) >= 2
    process.kill()
    process.wait()
    process.stdout.close()
    assert left_after(tmp_path / "far", 20.0) == []


def test_a_host_that_lets_nobody_in_is_told(tmp_path: Path, home: Path) -> None:
    hosts = tmp_path / "hosts.txt"
    hosts.write_text(f"{HOST}\n")
    (home / ".ssh" / "known_hosts").write_text("")
    with (
        pytest.raises(HowdahError, match=r"cannot be started over SSH: .*[Hh]ost key"),
        connected(Place(kind="ssh", argument=str(hosts)), lambda _text: None),
    ):
        pass


# Starts the job's script on this machine in a session of its own, whose number is the job's; knows no queue.
_SBATCH = """\
#!/bin/sh
grep '^#SBATCH' "$1" > "$JOBS/directives"
cp "$1" "$JOBS/script"
env --ignore-environment HOME="$FAR" TMPDIR="$FAR" HOWDAH_CACHE="$FAR/cache" PYTHONPATH="$PYTHONPATH" PATH="$PATH" \\
  setsid sh "$JOBS/script" > "$JOBS/said" 2>&1 < /dev/null &
echo "Submitted batch job $!"
"""
_SCANCEL = """\
#!/bin/sh
echo "$1" >> "$JOBS/cancelled"
kill -TERM -- "-$1"
"""


@pytest.fixture
def jobs(tmp_path: Path, far: dict[str, str], monkeypatch: pytest.MonkeyPatch) -> Path:
    programs, place = tmp_path / "bin", tmp_path / "jobs"
    for directory in (programs, place):
        directory.mkdir()
    for name, text in (("sbatch", _SBATCH), ("scancel", _SCANCEL)):
        (programs / name).write_text(text)
        (programs / name).chmod(0o755)
    values = {"JOBS": place, "FAR": far["HOME"], "PYTHONPATH": PROJECT}
    for variable, value in values.items():
        monkeypatch.setenv(variable, str(value))
    monkeypatch.setenv("PATH", f"{programs}:{os.environ['PATH']}")
    return place


def test_a_job_of_slurm_brings_a_worker_and_is_cancelled(jobs: Path, tmp_path: Path, far: dict[str, str]) -> None:
    pytest.importorskip("dask_jobqueue", reason="dask-jobqueue is not installed")
    settings = tmp_path / "cluster.yaml"
    settings.write_text(
        "jobs: 1\ncores: 2\nmemory: 2 GB\nqueue: short\nwalltime: '00:10:00'\ninterface: lo\n"
        f"local_directory: {tmp_path / 'far'}\n"
    )
    with connected(Place(kind="slurm", argument=str(settings)), lambda _text: None) as client:
        (found,) = _workers(client)
        assert found["slots"] == 2, "one process with as many runs at once as the job has cores"
        assert Path(far["HOWDAH_CACHE"], "store-name").read_text() == found["store"]
    directives = (jobs / "directives").read_text()
    assert "#SBATCH -p short\n" in directives
    assert "#SBATCH -t 00:10:00\n" in directives
    wait_for(lambda: (jobs / "cancelled").exists())
    assert left_after(tmp_path / "far", 20.0) == []


@pytest.mark.parametrize("content", [b"jobs: [1", b"cores: \xff", b"- 1", b"%YAML 1.12", b""])
def test_settings_that_are_no_yaml_mapping_are_told_with_their_file(content: bytes, tmp_path: Path) -> None:
    settings = tmp_path / "cluster.yaml"
    settings.write_bytes(content)
    with pytest.raises(HowdahError) as told:
        read_settings(settings)
    assert str(told.value.where).startswith(str(settings))


@pytest.mark.parametrize("jobs_asked", ["0", "many"])
def test_no_number_of_jobs_is_told(jobs_asked: str, tmp_path: Path) -> None:
    pytest.importorskip("dask_jobqueue", reason="dask-jobqueue is not installed")
    settings = tmp_path / "cluster.yaml"
    settings.write_text(f"jobs: {jobs_asked}\ncores: 1\nmemory: 1 GB\n")
    with (
        pytest.raises(HowdahError, match="jobs: expected the number of jobs"),
        connected(Place(kind="slurm", argument=str(settings)), lambda _text: None),
    ):
        pass
