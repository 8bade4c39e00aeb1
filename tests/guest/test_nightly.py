# SPDX-License-Identifier: Apache-2.0
"""Nights on real runs: equal nights are green, planted changes red, and the command a night names shows it again."""

from __future__ import annotations

import json
import re
import shlex
import xml.etree.ElementTree as ET
from pathlib import Path
from typing import Any

import pytest

from howdah.command.main import main
from tests.boards import answer, served, unanswered
from tests.guest.remembering import new_guests
from tests.ktap_reader import read_ktap
from tests.prometheus_fixture import prometheus_or_skip

pytestmark = [pytest.mark.guest, pytest.mark.usefixtures("remembered_guests")]

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

# The buffer of profiles/quick.yaml, to be cut to 30 kB, which Reno meets when it has sent for a third of a second.
RENO = """\
howdah: 1
name: reno
path: {rate: 20 Mbit/s, rtt: 40 ms, buffer: %s}
algorithm: reno
duration: 2 s
collect: {tcp_info: 100 ms, qdisc: 20 ms, interfaces: off}
"""


class _Nights:
    def __init__(self, suite: Path, capsys: pytest.CaptureFixture[str]) -> None:
        self.suite, self.capsys = suite, capsys

    def __call__(self, *more: str) -> tuple[int, dict[str, Any]]:
        code = main(["nightly", str(self.suite), "--jobs", "1", "--json", *more])
        out = self.capsys.readouterr().out
        return code, json.loads(out)


def test_a_planted_change_is_found_and_equal_nights_are_green(
    tmp_path: Path, capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(tmp_path)
    (tmp_path / "tree-that-is-none").mkdir()
    (tmp_path / "suite.yaml").write_text(SUITE)
    profile = tmp_path / "tiny.yaml"
    profile.write_text(PROFILE % "")
    night = _Nights(Path("suite.yaml"), capsys)
    code, accepted = night("--accept")
    assert code == 0
    assert len(accepted["not_built"]) == 1
    assert accepted["runs_that_do_not_count"] == 0

    with monkeypatch.context() as patch:
        new_guests(patch)
        code, equal = night("--again")
    assert code == 0, "the same kernel, all runs made anew"
    assert equal["runs"] == {"made": 5, "found": 0}
    assert equal["states"] == {"equal": 1, "not built": 1}
    assert equal["tests"] == {"primary": 0, "other": 0}, "they have to be equal: nothing is left to statistics"

    profile.write_text(PROFILE % PLANTED)
    code, red = night()
    assert code == 6
    assert red["states"] == {"regression": 1, "not built": 1}
    (cell,) = [cell for cell in red["cells"] if cell["state"] == "regression"]
    found = {each["metric"]: each for each in cell["comparisons"] if each["outcome"] == "regression"}
    assert found["exit_cause"]["tonight"] == "loss"
    assert found["exit_cwnd_packets"]["difference"] > 0
    assert (tmp_path / "runs" / cell["experiment"] / "report.html").exists()

    (subtest, *_not_built) = read_ktap((tmp_path / "runs/tiny.nights/latest/night.ktap").read_text())
    assert [(case.ok, case.name) for case in subtest.cases] == [(False, "planted")]
    assert any(re.fullmatch(r"planted: duration_ms: [1-9]\d+", line) for line in subtest.cases[0].diagnostics)
    with served(tmp_path / "runs", tmp_path / "data", prometheus_or_skip()) as client:
        assert unanswered(client) == [], "every query of the dashboards finds these runs and nights"
        assert answer(client, "howdah_run_info"), "at once, as somebody types it"

    command = shlex.split(cell["reproduce"])
    assert command[:2] == ["howdah", "nightly"]
    assert main([*command[1:], "--jobs", "1", "--json"]) == 6
    again = json.loads(capsys.readouterr().out)
    assert [each["regressions"] for each in again["cells"]] == [cell["regressions"]]


def test_a_buffer_cut_to_a_third_is_red_with_three_repetitions_and_with_five(
    tmp_path: Path, capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    """Three are refused as soon as there is more than one comparison, and see it where there is one."""
    monkeypatch.chdir(tmp_path)
    profile, suite = tmp_path / "reno.yaml", tmp_path / "suite.yaml"
    profile.write_text(RENO % "1 bdp")
    night = _Nights(suite, capsys)
    suite.write_text("suite: cut\ncells:\n- profile: reno.yaml\n  repetitions: 3\n")
    code, refused = night("--accept")
    assert code == 2
    assert refused["error"]["where"] == f"{suite}:4"
    assert not (tmp_path / "runs").exists()

    suite.write_text("suite: cut\ncells:\n- profile: reno.yaml\n  repetitions: 5\n")  # all measures
    assert night("--accept")[0] == 0
    profile.write_text(RENO % "30 kB")
    code, five = night()
    assert (code, five["states"]) == (6, {"regression": 1})
    regressed = {each["metric"]: each for each in five["cells"][0]["comparisons"] if each["outcome"] == "regression"}
    assert regressed["exit_cwnd_packets"]["tonight"] < regressed["exit_cwnd_packets"]["baseline"] / 2
    assert regressed["utilisation"]["tonight"] < regressed["utilisation"]["baseline"] - 0.05

    # Three of the same repetitions, which are there already, and one measure: few enough to be let through.
    suite.write_text("suite: cut\ncells:\n- {profile: reno.yaml, repetitions: 3, metrics: [exit_cwnd_packets]}\n")
    profile.write_text(RENO % "1 bdp")
    assert night("--accept")[0] == 0
    profile.write_text(RENO % "30 kB")
    code, three = night()
    assert code == 6
    assert three["runs"] == {"made": 0, "found": 3}
    (cell,) = three["cells"]
    assert cell["state"] in ("unproven", "regression")
    (case,) = ET.parse(tmp_path / "runs" / "cut.nights" / "latest" / "junit.xml").getroot().iter("testcase")
    assert float(case.get("time", "0")) > 0
    assert case.find("failure") is not None or case.find("error") is not None
