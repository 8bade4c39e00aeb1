# SPDX-License-Identifier: Apache-2.0
"""The steps of action.yml, as its script: what a job on GitHub shows, keeps and ends with."""

from __future__ import annotations

import os
import re
import subprocess
import sys
from pathlib import Path

import pytest

from howdah.place import PROJECT
from tests.guest.guest_run import require_engine

pytestmark = pytest.mark.guest

_PROFILE = """\
howdah: 1
name: small
path: {rate: 20 Mbit/s, rtt: 60 ms, buffer: 2 bdp}
algorithms:
  planted: {like: cubic%s}
algorithm: planted
duration: 2 s
collect: {tcp_info: 100 ms, qdisc: 20 ms, interfaces: off}
"""
_SUITE = """\
suite: small
cells:
  - profile: small.yaml
    repetitions: 5
    metrics: [exit_cwnd_packets, retransmitted_packets, utilisation, exit_cause]
"""


class _Job:
    """A directory where the action runs; ``summary`` and ``outputs`` are what it left there, of the last step alone."""

    def __init__(self, place: Path) -> None:
        self.place = place
        self.summary = self.outputs = self.said = ""

    def __call__(self, **inputs: str) -> int:
        summary, outputs = self.place / "summary", self.place / "outputs"
        for file in (summary, outputs):
            file.unlink(missing_ok=True)
        environment = {
            **os.environ,
            "PATH": f"{Path(sys.executable).parent}:{os.environ['PATH']}",
            "PYTHONPATH": str(PROJECT),
            "HOWDAH_RUNS": "howdah-runs",
            "GITHUB_STEP_SUMMARY": str(summary),
            "GITHUB_OUTPUT": str(outputs),
            **inputs,
        }
        command = ["sh", str(PROJECT / "setup/action.sh"), "run"]
        done = subprocess.run(command, cwd=self.place, env=environment, capture_output=True, text=True, check=False)
        status, self.said = done.returncode, done.stderr
        self.summary, self.outputs = summary.read_text(), outputs.read_text()
        assert f"exit-code={status}" in self.outputs
        return status


@pytest.fixture
def job(tmp_path: Path) -> _Job:
    require_engine()
    (tmp_path / "small.yaml").write_text(_PROFILE % "")
    (tmp_path / "suite.yaml").write_text(_SUITE)
    return _Job(tmp_path)


def test_a_profile_gives_table_picture_and_page(job: _Job) -> None:
    assert job(PROFILE="small.yaml") == 0, job.said
    assert "planted" in job.summary
    assert "retrans." in job.summary
    (bars,) = re.findall(r"```mermaid\nxychart-beta\n.*?x-axis \[(.*?)\].*?bar \[(.*?)\]\n```", job.summary, re.DOTALL)
    assert bars[0] == '"planted"'
    (exit_bdp,) = re.findall(r"^planted +1 +flow1 +[\d.]+ +[\d ]+ +([\d.]+) ", job.summary, re.MULTILINE)
    assert float(bars[1]) == pytest.approx(float(exit_bdp), rel=1e-3)
    assert list((job.place / "howdah-runs").glob("*/report.html"))


def test_a_mistake_is_the_jobs_status_and_in_its_summary(job: _Job) -> None:
    assert job(PROFILE="there-is-none.yaml") == 2
    assert "howdah ended with status 2." in job.summary
    assert job() == 2


def test_what_got_worse_fails_the_job_and_becomes_no_baseline(job: _Job) -> None:
    assert job(SUITE="suite.yaml") == 7, "there is no baseline yet"
    assert job(SUITE="suite.yaml", ACCEPT="true") == 0
    stored = {file.name: file.read_bytes() for file in (job.place / "baseline").iterdir()}
    assert stored
    assert job(SUITE="suite.yaml") == 0
    assert (job.place / "howdah.ktap").read_text().startswith("KTAP version 1")
    assert list((job.place / "howdah-runs").rglob("junit.xml"))
    (job.place / "small.yaml").write_text(_PROFILE % ", parameters: {hystart: 0}")
    assert job(SUITE="suite.yaml", ACCEPT="true") == 6
    assert "howdah ended with status 6." in job.summary
    assert {file.name: file.read_bytes() for file in (job.place / "baseline").iterdir()} == stored
