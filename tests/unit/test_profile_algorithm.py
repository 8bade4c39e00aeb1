# SPDX-License-Identifier: Apache-2.0
"""Algorithm names: the table, a profile's own, and those its modules bring."""

from __future__ import annotations

import json
import re
from pathlib import Path

import pytest

from howdah.algorithm import ALGORITHMS, LONGEST_KERNEL_NAME, from_modules
from howdah.errors import ProfileError
from howdah.plan.plan import Plan
from howdah.profile import load
from howdah.profile.module import brought
from tests.unit.profile_factory import make_one, make_plans, operations, write_profile


def test_names_fit_profiles_and_the_kernel() -> None:
    for name, algorithm in ALGORITHMS.items():
        assert name == algorithm.name
        assert re.fullmatch(r"[a-z0-9]+(?:[-_][a-z0-9]+)*", name, re.ASCII)
        assert len(algorithm.kernel) <= LONGEST_KERNEL_NAME
        assert not algorithm.parameters or algorithm.module


def test_no_hystart_is_cubic_with_a_parameter(tmp_path: Path) -> None:
    plan = make_one(tmp_path, "algorithm: cubic-no-hystart\n")
    assert plan.flows[0].kernel_algorithm == "cubic"
    assert plan.flows[0].algorithm == "cubic-no-hystart"
    assert plan.kernel_parameters["tcp_cubic.hystart"] == "0"
    assert len(operations(plan, "module_parameter", module="tcp_cubic", name="hystart", value="0")) == 1


def test_cubic_says_that_it_has_hystart(tmp_path: Path) -> None:
    """A machine that lives on may have been left without."""
    plan = make_one(tmp_path, "algorithm: cubic\n")
    assert plan.kernel_parameters["tcp_cubic.hystart"] == "1"
    assert len(operations(plan, "module_parameter", module="tcp_cubic", name="hystart", value="1")) == 1
    assert not operations(make_one(tmp_path, "algorithm: reno\n"), "module_parameter")


def test_two_settings_of_one_module_cannot_share_a_run(tmp_path: Path) -> None:
    flows = "flows:\n  - {algorithm: cubic}\n  - {algorithm: reno}\n  - {algorithm: cubic-no-hystart}\n"
    with pytest.raises(ProfileError, match="cubic and cubic-no-hystart cannot share a run") as caught:
        load(write_profile(tmp_path, flows))
    assert caught.value.where == f"{tmp_path / 'small.yaml'}:10"


def test_different_modules_can_share_a_run(tmp_path: Path) -> None:
    plan = make_one(
        tmp_path, "flows:\n  - {algorithm: cubic-no-hystart}\n  - {algorithm: bbr}\n  - {}\nalgorithm: reno\n"
    )
    assert [flow.kernel_algorithm for flow in plan.flows] == ["cubic", "bbr", "reno"]


def test_a_module_brings_its_name(tmp_path: Path) -> None:
    (tmp_path / "tcp_my_start.c").write_text("/* C */\n")
    plans = make_plans(tmp_path, "modules: [./tcp_my_start.c]\nalgorithm: [cubic, my-start, my_start]\n")
    assert [plan.flows[0].kernel_algorithm for plan in plans] == ["cubic", "my_start", "my_start"]
    assert plans[1].modules == [str(tmp_path / "tcp_my_start.c")]


def test_modules_whose_names_cannot_be_algorithms_bring_none() -> None:
    paths = [Path("sink.ko"), Path("tcp_a_name_that_is_long.c"), Path("tcp_.c"), Path("tcp_ok.ko")]
    assert list(from_modules(each for path in paths for each in brought(path))) == ["ok"]


def test_a_profiles_own_algorithm_has_parameters_of_its_module(tmp_path: Path) -> None:
    (tmp_path / "tcp_mine.c").write_text("/* C */\n")
    plan = make_one(
        tmp_path,
        "modules: [tcp_mine.c]\nalgorithm: mine-slow\n"
        "algorithms: {mine-slow: {kernel: mine, parameters: {gain: 150}}}\n",
    )
    assert plan.module_parameters == {"tcp_mine": {"gain": "150"}}
    assert not operations(plan, "module_parameter"), "given when the module is loaded"
    assert "tcp_mine.gain" not in plan.kernel_parameters


def test_any_name_of_the_kernel_can_be_declared(tmp_path: Path) -> None:
    plan = make_one(tmp_path, "algorithms:\n  scalable: {kernel: scalable}\nalgorithm: scalable\n")
    assert plan.flows[0].kernel_algorithm == "scalable"


def test_an_unknown_name_says_where_names_are_listed(tmp_path: Path) -> None:
    with pytest.raises(ProfileError) as caught:
        load(write_profile(tmp_path, "algorithm: zzz\n"))
    assert caught.value.hint is not None
    assert "howdah list algorithms" in caught.value.hint


def test_like_takes_everything_but_what_is_given_anew(tmp_path: Path) -> None:
    text = """\
algorithms:
  search-tight: {like: search-3-cubic, parameters: {threshold: 20}}
  search-tighter: {like: search-tight, parameters: {threshold: 15, drain: 1}}
algorithm: [search-tight, search-tighter]
"""
    first, second = make_plans(tmp_path, text)
    assert first.flows[0].kernel_algorithm == second.flows[0].kernel_algorithm == "search_cubic"
    assert first.module_parameters == {"ss_search": {"version": "3", "threshold": "20"}}
    assert second.module_parameters == {"ss_search": {"version": "3", "threshold": "15", "drain": "1"}}
    assert "ss_search" in (first.required_modules or [])
    profile = tmp_path / "small.yaml"
    lines = profile.read_text().splitlines()
    line = next(number for number, each in enumerate(lines, start=1) if "search-tight:" in each)
    # The version comes with the table's search-3, and counts as written where the algorithm is chosen.
    assert first.parameter_places["ss_search.threshold"] == f"{profile}:{line}"
    assert second.parameter_places["ss_search.drain"] == f"{profile}:{line + 1}"


def test_like_of_what_is_built_in_sets_the_kernels_parameter(tmp_path: Path) -> None:
    text = "algorithms:\n  odd: {like: cubic-no-hystart, parameters: {fast_convergence: 0}}\nalgorithm: odd\n"
    plan = make_one(tmp_path, text)
    assert plan.kernel_parameters["tcp_cubic.hystart"] == "0"
    assert plan.kernel_parameters["tcp_cubic.fast_convergence"] == "0"
    assert plan.flows[0].algorithm == "odd"


def test_parameters_can_be_swept(tmp_path: Path) -> None:
    text = "algorithms:\n  tight: {like: search, parameters: {threshold: [20, 26, 35]}}\nalgorithm: tight\n"
    plans = make_plans(tmp_path, text)
    assert [plan.module_parameters["ss_search"]["threshold"] for plan in plans] == ["20", "26", "35"]
    assert [plan.axes for plan in plans] == [{"algorithms.tight.parameters.threshold": value} for value in (20, 26, 35)]
    assert len({plan.run for plan in plans}) == 3


def test_where_a_parameter_was_written_changes_no_plan(tmp_path: Path) -> None:
    text = "algorithms:\n  tight: {like: search, parameters: {threshold: 20}}\nalgorithm: tight\n"
    (tmp_path / "other").mkdir()
    first, second = make_one(tmp_path, text), make_one(tmp_path / "other", "# one line more\n" + text)
    assert first.parameter_places != second.parameter_places
    assert first.to_json() == second.to_json()
    assert Plan.from_json(first.to_json()) == first


@pytest.mark.parametrize(
    ("section", "line", "words"),
    [
        ("{like: serch, parameters: {threshold: 20}}", 8, "did you mean search?"),
        ("{like: later}", 8, "like 'later', which is not known"),
        ("{like: mine}", 8, "like 'mine', which is not known"),
        ("{like: reno, parameters: {gain: 2}}", 8, "has no parameters to set"),
        ("{parameters: {gain: 2}}", 8, "expected like"),
        ("{like: search, kernel: search_reno}", 8, "none of the kernel's own"),
    ],
)
def test_a_like_that_cannot_be_is_refused_with_its_line(tmp_path: Path, section: str, line: int, words: str) -> None:
    file = write_profile(tmp_path, f"algorithms:\n  mine: {section}\n  later: {{like: search}}\nalgorithm: mine\n")
    with pytest.raises(ProfileError) as caught:
        load(file)
    assert words in str(caught.value)
    assert caught.value.where == f"{file}:{line}"


def test_a_plug_in_of_ones_own_brings_both_bases() -> None:
    found = from_modules(brought(Path("elsewhere/ss_half_way.c")))
    assert {name: (entry.kernel, entry.module, entry.base) for name, entry in found.items()} == {
        "half-way": ("half_way_reno", "ss_half_way", "reno"),
        "half-way-cubic": ("half_way_cubic", "ss_half_way", "cubic"),
    }


def test_beside_a_kernel_name_like_says_whose_start_up_it_has(tmp_path: Path) -> None:
    (tmp_path / "tcp_mine.c").write_text("")
    for like, kernel in (("bbr", "bbr"), ("cubic-no-hystart", "cubic")):
        entries = f"algorithms:\n  mine: {{kernel: mine, like: {like}}}\n  fast: {{like: mine}}\n"
        plan = make_one(tmp_path, f"{entries}algorithm: fast\nmodules: [tcp_mine.c]\n")
        flow = plan.flows[0]
        assert (flow.algorithm, flow.kernel_algorithm, flow.like) == ("fast", "mine", kernel)
        assert json.loads(plan.to_json())["flows"][0]["like"] == kernel


def test_a_plan_without_it_has_no_word_of_it(tmp_path: Path) -> None:
    assert "like" not in json.loads(make_one(tmp_path, "algorithm: bbr\n").to_json())["flows"][0]
