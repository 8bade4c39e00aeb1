# SPDX-License-Identifier: Apache-2.0
"""What a profile's modules bring: names by what they register, directories, and what is wrong with them at once."""

from __future__ import annotations

from pathlib import Path

import pytest

from howdah.algorithm import ProfileModule
from howdah.errors import ProfileError
from howdah.plan.plan import Plan
from howdah.plan.text import render
from howdah.profile import load
from howdah.profile.module import provided_modules
from tests.unit.profile_factory import make_one, make_plans, write_profile

_OPS = """\
/* .name = "comment", */
struct tcp_congestion_ops %(short)s_ops __read_mostly = {
	.flags = TCP_CONG_NON_RESTRICTED,
	.cong_avoid = grow, // .name = "another comment"
	.name = %(name)s,
};
"""


def _write(file: Path, *names: str, before: str = "") -> Path:
    file.parent.mkdir(parents=True, exist_ok=True)
    ops = "".join(_OPS % {"short": f"o{number}", "name": name} for number, name in enumerate(names))
    file.write_text(before + ops)
    return file


def test_a_module_is_called_by_what_it_registers(tmp_path: Path) -> None:
    assert provided_modules(_write(tmp_path / "brutal.c", '"brutal"')) == (
        ProfileModule("brutal", "brutal.c", ("brutal",)),
    )
    plan = make_one(tmp_path, "modules: [brutal.c]\nalgorithm: brutal\n")
    assert plan.own_algorithms == {"brutal": "brutal"}
    assert plan.required_modules == ["brutal", "howdah_traffic"]
    assert "(provides brutal)" in render(plan)


def test_a_name_in_the_profiles_spelling_is_the_same(tmp_path: Path) -> None:
    _write(tmp_path / "reno_custom.c", '"reno_Custom"')
    plans = make_plans(tmp_path, "modules: [reno_custom.c]\nalgorithm: [reno_Custom, reno-custom]\n")
    assert [plan.flows[0].kernel_algorithm for plan in plans] == ["reno_Custom", "reno_Custom"]


def test_one_file_brings_several(tmp_path: Path) -> None:
    _write(tmp_path / "tcp_two.c", '"first"', '"second"')
    plan = make_one(tmp_path, "modules: [tcp_two.c]\nflows:\n  - {algorithm: first}\n  - {algorithm: second}\n")
    assert plan.own_algorithms == {"first": "tcp_two", "second": "tcp_two"}


def test_a_name_may_be_a_macro_of_the_file_its_header_or_the_profile(tmp_path: Path) -> None:
    _write(tmp_path / "a.c", "NAME", before='#define NAME "mine"\n')
    assert provided_modules(tmp_path / "a.c")[0].registers == ("mine",)
    _write(tmp_path / "b.c", "NAME", before='#include "b.h"\n')
    assert provided_modules(tmp_path / "b.c")[0].registers is None
    (tmp_path / "b.h").write_text('#define NAME "yours"\n')
    (tmp_path / "b.c").write_text((tmp_path / "b.c").read_text() + "\n")
    assert provided_modules(tmp_path / "b.c")[0].registers == ("yours",)
    _write(tmp_path / "c.c", "NAME")
    plan = make_one(tmp_path, "modules: [{file: c.c, define: {NAME: '\"ours\"'}}]\nalgorithm: ours\n")
    assert plan.own_algorithms == {"ours": "c"}


def test_a_file_that_says_no_name_is_called_by_its_own(tmp_path: Path) -> None:
    (tmp_path / "tcp_my-own.c").write_text("module_my_own();\n")
    assert provided_modules(tmp_path / "tcp_my-own.c") == (ProfileModule("tcp_my_own", "tcp_my-own.c", None),)
    assert make_one(tmp_path, "modules: [tcp_my-own.c]\nalgorithm: my-own\n").own_algorithms == {"my-own": "tcp_my_own"}


def test_a_file_that_is_named_twice_is_no_two_modules(tmp_path: Path) -> None:
    """Renaming it, the remedy of two files, would not help."""
    _write(tmp_path / "tcp_mine.c", '"mine"')
    with pytest.raises(ProfileError, match=r"\./tcp_mine\.c is named twice") as refused:
        load(write_profile(tmp_path, "modules: [tcp_mine.c, ./tcp_mine.c]\nalgorithm: mine\n"))
    assert "Take one" in str(refused.value.hint)


def test_a_name_that_the_kernel_does_not_take_is_refused_at_once(tmp_path: Path) -> None:
    _write(tmp_path / "tcp_mine.c", '"sixteen_chars_ab"')
    with pytest.raises(ProfileError, match=r"registers 'sixteen_chars_ab', of 16 characters: .* at most 15") as refused:
        load(write_profile(tmp_path, "modules: [tcp_mine.c]\nalgorithm: mine\n"))
    assert refused.value.where == f"{tmp_path / 'small.yaml'}:7"
    _write(tmp_path / "tcp_mine.c", '"fifteen_chars_a"')
    assert make_one(tmp_path, "modules: [tcp_mine.c]\nalgorithm: fifteen_chars_a\n").own_algorithms


def test_an_unknown_name_is_told_what_the_modules_bring(tmp_path: Path) -> None:
    _write(tmp_path / "brutal.c", '"gentle"')
    with pytest.raises(ProfileError, match="there is no algorithm 'brutal'") as refused:
        load(write_profile(tmp_path, "modules: [brutal.c]\nalgorithm: brutal\n"))
    assert "modules: brings gentle (brutal.c)" in str(refused.value.hint)
    assert "need a modules:" not in str(refused.value.hint), "it is there"


def test_an_unknown_name_is_told_that_the_file_which_may_bring_it_is_damaged(tmp_path: Path) -> None:
    (tmp_path / "tcp_mine.ko").write_bytes(b"\x7fELF\x02\x01 and no more")
    with pytest.raises(ProfileError, match="there is no algorithm 'gentle'") as refused:
        load(write_profile(tmp_path, "modules: [tcp_mine.ko]\nalgorithm: gentle\n"))
    assert str(refused.value.hint).startswith("tcp_mine.ko is cut off: it has 18 bytes")
    assert make_one(tmp_path, "modules: [tcp_mine.ko]\nalgorithm: mine\n").own_algorithms == {"mine": "tcp_mine"}


def test_a_file_that_algorithms_names_brings_what_is_said_there(tmp_path: Path) -> None:
    (tmp_path / "tcp_a_very_long_name_of_mine.c").write_text("/* its name is made by a macro */\n")
    own = "algorithms: {x: {kernel: short, module: tcp_a_very_long_name_of_mine.c}}\n"
    plan = make_one(tmp_path, f"modules: [tcp_a_very_long_name_of_mine.c]\nalgorithm: x\n{own}")
    assert plan.own_algorithms == {"short": "tcp_a_very_long_name_of_mine"}
    with pytest.raises(ProfileError, match="cannot name an algorithm") as refused:
        load(write_profile(tmp_path, "modules: [tcp_a_very_long_name_of_mine.c]\n"))
    assert "algorithms: {NAME: {kernel: NAME, module: tcp_a_very_long_name_of_mine}}" in str(refused.value.hint)


def test_a_declared_one_finds_its_module_by_what_it_registers(tmp_path: Path) -> None:
    _write(tmp_path / "odd.c", '"mine"')
    own = "algorithms: {fast: {kernel: mine, parameters: {gain: 2}}}\n"
    plan = make_one(tmp_path, f"modules: [odd.c]\nalgorithm: fast\n{own}")
    assert (plan.own_algorithms, plan.module_parameters) == ({"mine": "odd"}, {"odd": {"gain": "2"}})


def _directory(tmp_path: Path, makefile: str = "obj-m += tcp_mine.o\n") -> None:
    _write(tmp_path / "mine/tcp_mine.c", '"mine"')
    (tmp_path / "mine/Makefile").write_text(makefile)


@pytest.mark.parametrize(
    "makefile",
    [
        "obj-m += tcp_mine.o\n",
        "MODULE := tcp_mine\nobj-m := $(MODULE).o\nall:\n\tmake -C /lib/modules/x/build M=$(PWD)\n",
        "obj-m := whole.o\nwhole-y := \\\n\ttcp_mine.o\n",
        "obj-m := whole.o\nwhole-objs := tcp_mine.o other.o\n",
    ],
)
def test_a_directory_brings_what_its_makefile_names(tmp_path: Path, makefile: str) -> None:
    _directory(tmp_path, makefile)
    plan = make_one(tmp_path, "modules: [mine]\nalgorithm: mine\n")
    module = "whole" if "whole" in makefile else "tcp_mine"
    assert plan.own_algorithms == {"mine": module}
    assert module in (plan.required_modules or [])
    assert plan.modules == [str(tmp_path / "mine")]
    assert f"{tmp_path / 'mine'} (provides mine)" in render(plan)


@pytest.mark.parametrize(
    ("entry", "words"),
    [
        ("empty", "has no Kbuild and no Makefile"),
        ("nothing", "names no module"),
        ("{file: mine, sources: [a.c]}", "a directory's Kbuild or Makefile names its sources"),
        ("{file: a.c, include: [nowhere]}", "there is no directory .*nowhere"),
        ("{file: a.c, sources: [nowhere.c]}", r"there is no \.c file .*nowhere\.c"),
        ('{file: a.c, define: {X: "it\'s"}}', "has a quote"),
        ("{file: a.ko, include: [mine]}", "takes its file alone"),
        ("text.txt", r"expected a kernel module's \.c"),
    ],
)
def test_what_is_wrong_with_an_entry_is_told_at_its_line(tmp_path: Path, entry: str, words: str) -> None:
    _directory(tmp_path)
    _write(tmp_path / "a.c", '"mine"')
    (tmp_path / "a.ko").write_bytes(b"no module")
    (tmp_path / "empty").mkdir()
    (tmp_path / "nothing").mkdir()
    (tmp_path / "nothing/Makefile").write_text("all:\n\ttrue\n")
    with pytest.raises(ProfileError, match=words) as refused:
        load(write_profile(tmp_path, f"modules: [{entry}]\nalgorithm: mine\n"))
    assert refused.value.where == f"{tmp_path / 'small.yaml'}:7"


def test_how_a_module_is_built_is_in_the_plan_only_where_it_is_said(tmp_path: Path) -> None:
    _write(tmp_path / "src/a.c", '"mine"')
    (tmp_path / "src/b.c").write_text("\n")
    (tmp_path / "inc").mkdir()
    entry = "{file: src/a.c, include: [inc], define: {DEBUG: 1}, sources: [src/b.c]}"
    plan = make_one(tmp_path, f"modules: [{entry}]\nalgorithm: mine\n")
    assert Plan.from_json(plan.to_json()) == plan
    build = plan.module_builds[str(tmp_path / "src/a.c")]
    assert (build.include, build.define, build.sources) == (
        [str(tmp_path / "inc")],
        {"DEBUG": "1"},
        [str(tmp_path / "src/b.c")],
    )
    assert "module_builds" not in make_one(tmp_path, "modules: [src/a.c]\nalgorithm: mine\n").to_json()
