# SPDX-License-Identifier: Apache-2.0
"""A search over real runs: the path on which CUBIC loses packets is found, proven, and fails again as a profile."""

from __future__ import annotations

import json
from pathlib import Path

import pytest

pytest.importorskip("optuna", reason="optuna is not installed")

from howdah.command.main import main
from howdah.profile import load

pytestmark = pytest.mark.guest

# A tenth of a BDP holds four packets of a burst of ten: what the first window brings at twice the rate overflows it.
PROFILE = """\
howdah: 1
name: lossy
description: where does start-up lose packets?
path: {rate: 20 Mbit/s, rtt: 40 ms, buffer: 8 bdp}
algorithm: cubic
duration: 2 s
repetitions: 2
claims:
  - id: no-loss
    says: nothing is lost at the bottleneck
    value: {metric: bottleneck_drops_packets}
    expect: {at_most: 0 packets}
search:
  space:
    path.rtt: [30 ms, 40 ms]
    path.buffer: [8 bdp, 0.1 bdp]
  falsify: no-loss
  budget: {candidates: 4}
"""


def test_what_is_found_fails_again_as_a_profile(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    file = tmp_path / "lossy.yaml"
    file.write_text(PROFILE, encoding="utf-8")
    assert main(["search", str(file), "--runs", str(tmp_path / "runs"), "--json"]) == 0
    found = json.loads(capsys.readouterr().out)
    assert found["tried"] == 4
    assert found["held"] > 0
    assert found["counterexample"]["values"]["path.buffer"] == "0.1 bdp"
    assert "path.rtt" not in found["counterexample"]["values"]  # as in the profile
    counterexample = tmp_path / "runs/lossy-search/counterexample.yaml"
    assert load(counterexample).repetitions == 2
    assert main(["run", str(counterexample), "--runs", str(tmp_path / "runs"), "--no-report"]) == 6
    claims = json.loads((tmp_path / "runs/lossy-counterexample/claims.json").read_text())
    assert claims["claims"][0]["verdict"] == "fail"
