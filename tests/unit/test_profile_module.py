# SPDX-License-Identifier: Apache-2.0
"""Modules of a profile: a file that is named is what is measured, or the profile is refused."""

from __future__ import annotations

from pathlib import Path

import pytest

from howdah.algorithm import table_with
from howdah.errors import ProfileError
from howdah.plan.plan import Plan
from howdah.plan.text import render
from howdah.profile import load
from howdah.profile.module import brought
from tests.unit.profile_factory import make_one, make_plans, operations, write_profile


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
    table = table_with(brought(Path("tcp_cubic.c")))
    assert not table["cubic"].builtin
    assert not table["cubic-no-hystart"].builtin
    assert table["bbr"].builtin
    assert "version" not in table["bbr"].summary
