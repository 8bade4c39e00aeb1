# SPDX-License-Identifier: Apache-2.0
"""What is said of a comparison before it is run: what it changes besides, and which claims no run can answer."""

from __future__ import annotations

import json
import re
from pathlib import Path

import pytest

from howdah.command.main import main
from howdah.errors import ProfileError
from howdah.measure.presence import needed
from howdah.plan.caution import plan_cautions
from howdah.profile.algorithm import HYSTART_PAIR
from tests.unit.profile_factory import make_one, make_plans, write_profile

GROUP = "groups: [{name: web, connections: 3, request: 300 B, size: 100 kB}]\n"
BOTH = "algorithm: [cubic, cubic-no-hystart]\n"
PAIR = f"{HYSTART_PAIR}\n"


def test_an_algorithm_that_background_flows_take_too_is_told_with_their_number(tmp_path: Path) -> None:
    (sentence,) = plan_cautions(make_plans(tmp_path, f"{GROUP}background: [{{}}, {{}}, {{}}]\n{BOTH}"))
    assert "3 background flows" in sentence
    assert HYSTART_PAIR in sentence, "two settings of one module cannot hold the third"


def test_background_that_names_its_own_is_held_and_nothing_is_told(tmp_path: Path) -> None:
    plans = make_plans(tmp_path, f"{GROUP}background: [{{algorithm: cubic}}]\n{PAIR}")
    assert plan_cautions(plans) == []
    assert {flow.algorithm for plan in plans for flow in plan.flows if flow.role == "background"} == {"cubic"}
    assert plan_cautions(make_plans(tmp_path, f"{GROUP}background: [{{}}]\nalgorithm: reno\n")) == [], "no comparison"


def test_who_holds_cubic_beside_both_of_its_settings_is_told_of_the_pair(tmp_path: Path) -> None:
    with pytest.raises(ProfileError) as refused:
        make_plans(tmp_path, f"{GROUP}background: [{{algorithm: cubic}}]\n{BOTH}")
    assert HYSTART_PAIR in str(refused.value.hint)


@pytest.mark.parametrize(
    ("algorithm", "told"), [("jump-start", True), ("large-initial-window", True), ("cubic", False)]
)
def test_an_initial_window_that_nothing_obeys_is_told(tmp_path: Path, algorithm: str, told: bool) -> None:
    swept = GROUP.replace("size:", "initial_window: [4, 10], size:")
    sentences = plan_cautions(make_plans(tmp_path, f"{swept}algorithm: {algorithm}\n"))
    assert [algorithm in sentence and "initial_window" in sentence for sentence in sentences] == [True] * told


@pytest.mark.parametrize(
    ("metric", "lacking", "having"),
    [
        ("receive_window_limited_s", "", "collect: {pcap: ['r1:r1-eth0']}\n"),
        ("completion_time_s", "", "flows: [{size: 1 MB}]\n"),
        ("completion_time_median_s", "", GROUP),
        ("exit_cause", GROUP, ""),
        ("jain_index", "", "flows: [{}, {}]\n"),
        ("cpu_seconds_per_simulated_second", "", "collect: {cpu: true}\n"),
    ],
)
def test_a_metric_takes_something_of_the_plan(tmp_path: Path, metric: str, lacking: str, having: str) -> None:
    assert needed(metric, make_one(tmp_path, lacking))
    assert needed(metric, make_one(tmp_path, having)) is None


CLAIM = """claims:
  - id: held
    says: the receive window holds it
    value: {metric: receive_window_limited_s}
    expect: {at_least: 1 s}
"""


def test_the_plan_says_which_claim_no_run_can_answer(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    profile = write_profile(tmp_path, CLAIM)
    assert main(["plan", str(profile)]) == 0
    assert re.search(r"# .*claim held .*receive_window_limited_s.*pcap", capsys.readouterr().out.replace("\n", " "))
    assert main(["plan", str(profile), "--json"]) == 0
    (sentence,) = json.loads(capsys.readouterr().out)["cautions"]
    assert "held" in sentence
    profile = write_profile(tmp_path, f"{CLAIM}collect: {{pcap: ['r1:r1-eth0']}}\n")
    assert main(["plan", str(profile), "--json"]) == 0
    assert json.loads(capsys.readouterr().out)["cautions"] == []
