# SPDX-License-Identifier: Apache-2.0
"""A night on real runs: equal nights are green, a planted change is red, and the command it names shows it again."""

from __future__ import annotations

import json
import shlex
from pathlib import Path

import pytest

from howdah.command.main import main

pytestmark = pytest.mark.guest

PROFILE = """\
howdah: 1
name: tiny
path: {rate: 20 Mbit/s, rtt: 60 ms, buffer: 2 bdp}
algorithms:
  planted: {like: cubic%s}
algorithm: planted
duration: 2 s
collect: {tcp_info: 100 ms, qdisc: 20 ms, interfaces: off}
"""
PLANTED = ", parameters: {hystart: 0}"

SUITE = """\
suite: tiny
cells:
  - profile: tiny.yaml
    kernels: [debian-6.12, tree-that-is-none]
    repetitions: 5
    metrics: [exit_cwnd_packets, retransmitted_packets, utilisation, exit_cause]
"""


def test_a_planted_change_is_found_and_equal_nights_are_green(
    tmp_path: Path, capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(tmp_path)
    (tmp_path / "tree-that-is-none").mkdir()
    (tmp_path / "suite.yaml").write_text(SUITE)
    profile = tmp_path / "tiny.yaml"
    profile.write_text(PROFILE % "")
    words = ["nightly", "suite.yaml", "--jobs", "1", "--json"]
    assert main([*words, "--accept"]) == 0
    accepted = json.loads(capsys.readouterr().out)
    assert len(accepted["not_built"]) == 1
    assert accepted["runs_that_do_not_count"] == 0

    assert main([*words, "--again"]) == 0, "the same kernel, all runs made anew"
    equal = json.loads(capsys.readouterr().out)
    assert equal["runs"] == {"made": 5, "found": 0}
    assert equal["states"] == {"equal": 1, "not built": 1}

    profile.write_text(PROFILE % PLANTED)
    assert main(words) == 6
    red = json.loads(capsys.readouterr().out)
    assert red["states"] == {"regression": 1, "not built": 1}
    (cell,) = [cell for cell in red["cells"] if cell["state"] == "regression"]
    found = {each["metric"]: each for each in cell["comparisons"] if each["outcome"] == "regression"}
    assert found["exit_cause"]["tonight"] == "loss"
    assert found["exit_cwnd_packets"]["difference"] > 0
    assert (tmp_path / "runs" / cell["experiment"] / "report.html").exists()

    command = shlex.split(cell["reproduce"])
    assert command[0] == "howdah"
    assert main([*command[1:], "--jobs", "1", "--json"]) == 6
    again = json.loads(capsys.readouterr().out)
    assert [each["regressions"] for each in again["cells"]] == [cell["regressions"]]
