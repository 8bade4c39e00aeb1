# SPDX-License-Identifier: Apache-2.0
"""What is said of a comparison before it is run: what it changes besides."""

from __future__ import annotations

import json
from pathlib import Path

import pytest

from howdah.algorithm import HYSTART_PAIR
from howdah.command.main import main
from howdah.errors import ProfileError
from howdah.plan.caution import plan_cautions
from tests.unit.profile_factory import make_plans, write_profile

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
    ("rate", "burst", "told"),
    [
        ("1 Gbit/s", "3 kB", "The policer drops nothing"),
        ("20 Mbit/s", "200 kB", "hardly to be seen"),
        ("20 Mbit/s", "30 kB", None),
        ("5 Mbit/s", "200 kB", None),
    ],
)
def test_a_policer_without_effect_is_told_once(tmp_path: Path, rate: str, burst: str, told: str | None) -> None:
    """The path has 20 Mbit/s and a buffer of one BDP, 100 kB."""
    policer = f"path.policer={{rate: {rate}, burst: {burst}}}"
    sentences = plan_cautions(make_plans(tmp_path, PAIR, [policer, "repetitions=2"]))
    assert [told is not None and told in sentence for sentence in sentences] == [True] * (told is not None)


def test_plan_says_it_in_both_of_its_forms(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    profile = write_profile(tmp_path, f"{GROUP}background: [{{}}]\n{BOTH}")
    assert main(["plan", str(profile)]) == 0
    assert "1 background flow too" in capsys.readouterr().out
    assert main(["plan", str(profile), "--json"]) == 0
    (sentence,) = json.loads(capsys.readouterr().out)["cautions"]
    assert "1 background flow too" in sentence
    assert main(["plan", str(write_profile(tmp_path, "")), "--json"]) == 0
    assert json.loads(capsys.readouterr().out)["cautions"] == []
