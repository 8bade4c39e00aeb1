# SPDX-License-Identifier: Apache-2.0
"""A search over real runs: the path on which CUBIC loses packets is found, proven, and fails again as a profile."""

from __future__ import annotations

import json
import re
from pathlib import Path

import pytest

pytest.importorskip("optuna", reason="optuna is not installed")

from howdah.command.main import main
from howdah.profile import load
from tests.guest.test_kernel_said import MODULE

pytestmark = [pytest.mark.guest, pytest.mark.usefixtures("remembered_guests")]

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


# At 1 Mbit/s the window stays below the 40 packets at which the module computes for ever.
HANGS = """\
howdah: 1
name: hangs
path: {rate: 1 Mbit/s, rtt: 20 ms, buffer: 6 packets}
modules: [mine.c]
algorithm: mine
duration: 2 s
claims:
  - id: something
    says: something arrives
    value: {metric: link_utilisation}
    expect: {above: 0}
search:
  space: {path.rate: [1 Mbit/s, 20 Mbit/s], path.buffer: [4 bdp]}
  falsify: something
  budget: {candidates: 2}
"""


def test_a_module_that_hangs_costs_little_and_is_told(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    (tmp_path / "mine.c").write_text(MODULE.replace("BREAK", "while (!zero) cpu_relax()"), encoding="utf-8")
    file = tmp_path / "hangs.yaml"
    file.write_text(HANGS, encoding="utf-8")
    assert main(["search", str(file), "--runs", str(tmp_path / "runs"), "--json"]) == 5
    answered = capsys.readouterr()
    found = json.loads(answered.out)
    assert (found["held"], found["without_value"]) == (1, 1)
    (hung,) = (row for row in found["candidates"] if row["score"] is None)
    assert hung["values"]["path.rate"] == "20 Mbit/s"
    told = " ".join(hung["text"].split())
    spent = re.search(r"the run hangs, and was ended: ([0-9.]+) s of a processor passed", told)
    assert spent is not None, told
    assert float(spent[1]) < 20, "an engine waits for 30"
    assert "module mine was in use" in told
