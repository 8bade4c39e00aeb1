# SPDX-License-Identifier: Apache-2.0
"""Algorithm names, and modules of a profile: a file that is named is what is measured, or the profile is refused."""

from __future__ import annotations

import json
import re
from pathlib import Path

import pytest

from howdah.algorithm import ALGORITHMS, LONGEST_KERNEL_NAME, algorithms_with, from_modules
from howdah.errors import ProfileError
from howdah.plan.plan import Plan
from howdah.plan.text import render
from howdah.profile import load
from howdah.profile.module import provided_modules
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


def test_modules_whose_names_cannot_be_algorithms_bring_none() -> None:
    paths = [Path("sink.ko"), Path("tcp_a_name_that_is_long.c"), Path("tcp_.c"), Path("tcp_ok.ko")]
    assert list(from_modules(each for path in paths for each in provided_modules(path))) == ["ok"]


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
        ("{like: search, kernel: search_reno}", 8, "not built into the kernel"),
    ],
)
def test_a_like_that_cannot_be_is_refused_with_its_line(tmp_path: Path, section: str, line: int, words: str) -> None:
    file = write_profile(tmp_path, f"algorithms:\n  mine: {section}\n  later: {{like: search}}\nalgorithm: mine\n")
    with pytest.raises(ProfileError) as caught:
        load(file)
    assert words in str(caught.value)
    assert caught.value.where == f"{file}:{line}"


def test_a_plug_in_of_ones_own_brings_both_bases() -> None:
    found = from_modules(provided_modules(Path("elsewhere/ss_half_way.c")))
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


def _write(directory: Path, *names: str) -> None:
    for name in names:
        (directory / name).parent.mkdir(exist_ok=True)
        (directory / name).write_text("/* C */\n")


@pytest.mark.parametrize(
    ("file", "algorithm", "kernel"),
    [
        ("tcp_cubic.c", "cubic", "cubic"),
        ("tcp_cubic.ko", "cubic", "cubic"),
        ("tcp_reno.c", "reno", "reno"),
        ("tcp_bbr.c", "bbr", "bbr"),
        ("tcp_vegas.c", "vegas", "vegas"),
        ("tcp_westwood.c", "westwood", "westwood"),
        ("tcp_search.c", "search", "search"),
        ("ss_search.c", "search", "search_reno"),
        ("ss_search.c", "search-3-cubic", "search_cubic"),
        ("ss_hystartl.c", "hystart-linux", "hystartl_reno"),
        ("tcp-mine.c", "mine", "mine"),
    ],
)
def test_a_module_of_the_profile_is_the_one_that_is_measured(
    tmp_path: Path, file: str, algorithm: str, kernel: str
) -> None:
    _write(tmp_path, file)
    plan = make_one(tmp_path, f"modules: [{file}]\nalgorithm: {algorithm}\n")
    module = file.partition(".")[0].replace("-", "_")
    assert plan.flows[0].kernel_algorithm == kernel
    assert plan.own_algorithms == {kernel: module}
    assert module in (plan.required_modules or [])
    assert f"(provides {kernel})" in render(plan)
    assert Plan.from_json(plan.to_json()) == plan


def test_a_congestion_control_in_bpf_is_for_a_stock_kernel(tmp_path: Path) -> None:
    _write(tmp_path, "tcp_mine.bpf.c")
    profile = "modules: [tcp_mine.bpf.c]\nalgorithm: mine\n"
    plan = make_one(tmp_path, profile + "engine: vm\n")
    assert plan.own_algorithms == {"mine": "tcp_mine"}
    assert "tcp_mine" in (plan.required_modules or [])
    with pytest.raises(ProfileError, match="uml engine loads no congestion control in BPF") as refused:
        make_one(tmp_path, profile)
    assert "--engine vm" in str(refused.value.hint)


def test_bpf_has_no_parameters(tmp_path: Path) -> None:
    _write(tmp_path, "tcp_mine.bpf.c")
    own = "algorithms: {less: {kernel: mine, module: tcp_mine, parameters: {gain: 2}}}\n"
    with pytest.raises(ProfileError, match=r"takes no parameters \(gain\)"):
        make_one(tmp_path, f"modules: [tcp_mine.bpf.c]\nalgorithm: less\nengine: vm\n{own}")


def test_a_replaced_built_in_takes_no_parameter_of_the_kernels_own(tmp_path: Path) -> None:
    """tcp_cubic.hystart=1 on the command line would reach the code that is not measured."""
    _write(tmp_path, "tcp_cubic.c")
    plain, without = make_plans(tmp_path, "modules: [tcp_cubic.c]\nalgorithm: [cubic, cubic-no-hystart]\n")
    for plan in (plain, without):
        assert not [name for name in plan.kernel_parameters if name.startswith("tcp_cubic")]
        assert not operations(plan, "module_parameter")
    assert plain.module_parameters == {}
    assert without.module_parameters == {"tcp_cubic": {"hystart": "0"}}


def test_what_is_like_a_replaced_one_is_the_files_too(tmp_path: Path) -> None:
    _write(tmp_path, "tcp_cubic.c")
    text = "modules: [tcp_cubic.c]\nalgorithms: {odd: {like: cubic, parameters: {beta: 600}}}\nalgorithm: odd\n"
    plan = make_one(tmp_path, text)
    assert (plan.own_algorithms, plan.module_parameters) == ({"cubic": "tcp_cubic"}, {"tcp_cubic": {"beta": "600"}})


def test_a_file_of_another_name_can_stand_beside_the_kernels_own(tmp_path: Path) -> None:
    """The stock cubic and one's own in one profile: each run has one of them."""
    _write(tmp_path, "better_cubic.c")
    text = (
        "modules: [better_cubic.c]\nalgorithms: {better: {kernel: cubic, module: better_cubic}}\n"
        "algorithm: [cubic, better]\n"
    )
    stock, own = make_plans(tmp_path, text)
    assert stock.own_algorithms == {}
    assert "better_cubic" not in (stock.required_modules or [])
    assert stock.kernel_parameters["tcp_cubic.hystart"] == "1"
    assert "own_algorithms" not in stock.to_json()
    assert "(not loaded in this run)" in render(stock)
    assert own.own_algorithms == {"cubic": "better_cubic"}
    assert "better_cubic" in (own.required_modules or [])
    assert "tcp_cubic.hystart" not in own.kernel_parameters


def test_two_modules_behind_one_name_of_the_kernel_cannot_share_a_run(tmp_path: Path) -> None:
    _write(tmp_path, "better_cubic.c")
    text = (
        "modules: [better_cubic.c]\nalgorithms: {better: {kernel: cubic, module: better_cubic}}\n"
        "flows:\n  - {algorithm: cubic}\n  - {algorithm: better}\n"
    )
    with pytest.raises(ProfileError, match="the kernel has one cubic, of tcp_cubic or of better_cubic"):
        load(write_profile(tmp_path, text))


@pytest.mark.parametrize(
    ("text", "words"),
    [
        ("modules: [tcp_mine.c]\nalgorithm: cubic\n", r"tcp_mine\.c is never used.*its algorithm \(mine\)"),
        ("modules: [ss_mine.c]\nalgorithm: [cubic, reno]\n", r"ss_mine\.c is never used.*\(mine, mine-cubic\)"),
        ("modules: [tcp_mine.c, tcp_reno.c]\nalgorithm: [cubic, mine]\n", r"tcp_reno\.c is never used.*\(reno\)"),
        (
            "modules: [special.c]\nalgorithms: {odd: {kernel: odd, module: special}}\nalgorithm: cubic\n",
            r"special\.c is never used.*\(odd\)",
        ),
        (
            "modules: [special.c]\nalgorithms: {odd: {like: cubic, module: special}}\nalgorithm: cubic\n",
            r"special\.c is never used.*\(odd\)",
        ),
        (
            "modules: [tcp_mine.c]\nalgorithms: {mine: {kernel: cubic}}\nalgorithm: mine\n",
            r"tcp_mine\.c is never used",
        ),
        ("modules: [a/tcp_mine.c, b/tcp_mine.c]\nalgorithm: mine\n", "two modules are called tcp_mine: a/tcp_mine.c"),
        ("modules: [tcp_mine.c, tcp_mine.ko]\nalgorithm: mine\n", "two modules are called tcp_mine"),
        ("modules: [tcp_mine.c, tcp-mine.c]\nalgorithm: mine\n", "two modules are called tcp_mine"),
        ("modules: [tcp_mine.c, ss_mine.c]\nalgorithm: mine\n", "both bring an algorithm called mine"),
        ("modules: [howdah_traffic.c]\n", "howdah's own modules"),
    ],
)
def test_a_module_that_would_not_be_measured_is_refused(tmp_path: Path, text: str, words: str) -> None:
    names = ("tcp_mine.c", "tcp-mine.c", "tcp_mine.ko", "ss_mine.c", "tcp_reno.c", "special.c", "howdah_traffic.c")
    _write(tmp_path, *names, "a/tcp_mine.c", "b/tcp_mine.c")
    with pytest.raises(ProfileError, match=words) as caught:
        load(write_profile(tmp_path, text))
    assert caught.value.where == f"{tmp_path / 'small.yaml'}:7"


@pytest.mark.parametrize(
    "text",
    [
        "algorithm: reno\nflows:\n  - {}\n  - {algorithm: mine}\n",
        "algorithm: reno\ngroups:\n  - {name: g, connections: 2, size: 1 kB, interval: 1 s, algorithm: mine}\n",
        "algorithms: {other: {kernel: mine, module: tcp_mine}}\nalgorithm: other\n",
    ],
)
def test_one_flow_that_uses_a_module_is_enough(tmp_path: Path, text: str) -> None:
    _write(tmp_path, "tcp_mine.c")
    plan = make_one(tmp_path, f"modules: [tcp_mine.c]\n{text}")
    assert plan.own_algorithms == {"mine": "tcp_mine"}


def test_modules_can_be_taken_out_from_the_command_line(tmp_path: Path) -> None:
    _write(tmp_path, "tcp_cubic.c")
    plan = make_one(tmp_path, "modules: [tcp_cubic.c]\nalgorithm: cubic\n", ["modules=[]"])
    assert plan.modules == []
    assert plan.own_algorithms == {}


def test_known_algorithms_of_a_replaced_module_are_no_longer_built_in() -> None:
    table = algorithms_with(provided_modules(Path("tcp_cubic.c")))
    assert not table["cubic"].builtin
    assert not table["cubic-no-hystart"].builtin
    assert table["bbr"].builtin
    assert "version" not in table["bbr"].summary
