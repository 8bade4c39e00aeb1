# SPDX-License-Identifier: Apache-2.0
"""Stacks of receivers: their YAML, what a plan says of them, what is refused, and how they are built."""

from __future__ import annotations

from pathlib import Path

import pytest

from howdah.agent.loop import Loop
from howdah.agent.traffic.stack import stack_environment
from howdah.agent.traffic.stack_program import StackProgram, StackReport
from howdah.build.cache import Cache
from howdah.build.stack import StackUnsupportedError, build_stack, provide_stacks
from howdah.engine.uml.engine import UmlEngine
from howdah.errors import HowdahError, ProfileError
from howdah.place import STACKS
from howdah.profile.stack import read_stack, shipped_stacks
from howdah.report.pathfacts import _receiver_text
from tests.unit.profile_factory import make_one, make_plans

LWIP = "receiver: {stack: lwip}\n"
SENDS = "sender: {stack: smoltcp}\nalgorithm: reno\n"


def ignore(_what: str, _done: int, _of: int) -> None:
    """No progress display."""


def write_stack(place: Path, name: str = "mine", **changes: str) -> Path:
    (place / "sources").mkdir(exist_ok=True)
    (place / "sources" / "program").write_text("#!/bin/sh\n", encoding="utf-8")
    fields = {
        "summary": "a test",
        "directory": "sources",
        "build": "[[cp, program, '{out}/program']]",
        "program": "program",
    }
    text = "".join(f"{key}: {value}\n" for key, value in (fields | changes).items() if value)
    file = place / f"{name}.yaml"
    file.write_text(text, encoding="utf-8")
    return file


def test_linux_is_the_plan_there_was(tmp_path: Path) -> None:
    said = make_one(tmp_path, "receiver: {stack: linux}\n").to_json()
    assert said == make_one(tmp_path).to_json()
    assert "receiver_stack" not in said


def test_a_flow_has_its_own(tmp_path: Path) -> None:
    extra = (
        "receiver: {stack: lwip}\nflows: [{}, {receiver_stack: linux}, {receiver_stack: gvisor}]\nbackground: [{}]\n"
    )
    plan = make_one(tmp_path, extra)
    assert [flow.receiver_name for flow in plan.flows] == ["lwip", "linux", "gvisor", "linux"]
    assert [flow.sink for flow in plan.flows] == ["stack", "kernel", "stack", "kernel"]


def test_a_list_is_a_sweep(tmp_path: Path) -> None:
    plans = make_plans(tmp_path, "receiver: {stack: [linux, lwip]}\n")
    assert [(plan.receiver, plan.axes) for plan in plans] == [
        ("linux", {"receiver.stack": "linux"}),
        ("lwip", {"receiver.stack": "lwip"}),
    ]


@pytest.mark.parametrize(
    ("extra", "said"),
    [
        ("receiver: {stack: lwipp}\n", "small.yaml:7: there is no stack 'lwipp'\n  did you mean lwip?"),
        ("receiver: {stack: windows-xp}\n", "windows-xp is a behaviour of receivers, not a stack"),
        ("receiver: {stack: ./none.yaml}\n", "there is no file"),
        ("flows: [{receiver_stack: smolltcp}]\n", "did you mean smoltcp?"),
        ("receiver: {stack: lwip}\nsplit: true\n", "the ends of another stack must be in one kernel"),
        ("sender: {stack: gvisr}\n", "did you mean gvisor?"),
        ("flows: [{sender_stack: ./none.yaml}]\n", "there is no file"),
        ("sender: {stack: gvisor, behaviour: of-2007}\nalgorithm: reno\n", "initial window"),
    ],
)
def test_what_is_refused(tmp_path: Path, extra: str, said: str) -> None:
    with pytest.raises(ProfileError) as caught:
        make_plans(tmp_path, extra)
    assert said in str(caught.value)


@pytest.mark.parametrize(
    ("changes", "said"),
    [
        ({"program": ""}, "program"),
        ({"bild": "[[true]]"}, "did you mean build?"),
        ({"directory": "sourcs"}, "mine.yaml:2: there is no directory"),
        ({"build": "[]"}, "mine.yaml:3"),
        ({"program": "../program"}, "mine.yaml:4"),
    ],
)
def test_a_yaml_that_describes_no_stack(tmp_path: Path, changes: dict[str, str], said: str) -> None:
    with pytest.raises(ProfileError) as caught:
        read_stack(write_stack(tmp_path, **changes))
    assert said in str(caught.value)


def test_a_stack_is_not_called_as_a_behaviour_is(tmp_path: Path) -> None:
    with pytest.raises(ProfileError, match="name of a receiver behaviour"):
        read_stack(write_stack(tmp_path, "no-sack"))


def test_the_shipped_ones_describe_what_is_there() -> None:
    assert shipped_stacks() == sorted(file.stem for file in STACKS.glob("*.yaml")) != []
    for name in shipped_stacks():
        stack = read_stack(STACKS / f"{name}.yaml")
        assert stack.name == name and stack.section.needs and stack.section.hint


def test_one_of_a_person_is_built_once_for_what_it_is_made_of(tmp_path: Path) -> None:
    cache = Cache(tmp_path / "cache")
    file = write_stack(tmp_path)
    plan = make_one(tmp_path, f"receiver: {{stack: {file}}}\n")
    assert plan.receiver == "mine"
    (built,) = provide_stacks(plan, ignore, cache).choose()
    assert [each.name for each in built.directory.iterdir()] == ["program"]
    assert built.described().plain() == {"identity": built.identity, "source": str(file), "tools": {}}
    assert provide_stacks(plan, ignore, cache).choose() == [built]
    (tmp_path / "sources" / "program").write_text("#!/bin/sh\necho ready\n", encoding="utf-8")
    (changed,) = provide_stacks(plan, ignore, cache).choose()
    assert changed.directory != built.directory and changed.identity != built.identity
    assert not (tmp_path / "sources" / ".work").exists()


def test_one_that_does_not_build_says_why_and_what_to_do(tmp_path: Path) -> None:
    file = write_stack(tmp_path, build="[[sh, -c, 'echo fatal error: no lwip; exit 1']]", hint="apt install it")
    with pytest.raises(HowdahError) as caught:
        build_stack(read_stack(file), ignore, Cache(tmp_path / "cache"))
    assert "the stack mine does not build: fatal error: no lwip" in str(caught.value)
    assert "apt install it" in str(caught.value) and caught.value.where == str(file)


def test_one_whose_build_leaves_no_program(tmp_path: Path) -> None:
    file = write_stack(tmp_path, build="[['true']]")
    with pytest.raises(ProfileError, match="leaves no program in"):
        build_stack(read_stack(file), ignore, Cache(tmp_path / "cache"))


@pytest.mark.parametrize(
    ("changes", "said"),
    [
        ({"needs": "{compiler-of-nobody: --version}"}, "unsupported: compiler-of-nobody, which builds the stack mine"),
        ({"needs": "{'false': --version}"}, "unsupported: false, which builds the stack mine, does not work here"),
        ({"libraries": "[libnobody.so.9]"}, "unsupported: the library libnobody.so.9 of the stack mine"),
    ],
)
def test_one_that_cannot_be_built_here_is_unsupported(tmp_path: Path, changes: dict[str, str], said: str) -> None:
    with pytest.raises(StackUnsupportedError) as caught:
        build_stack(read_stack(write_stack(tmp_path, **changes)), ignore, Cache(tmp_path / "cache"))
    assert said in str(caught.value)


def test_libraries_bring_those_that_they_need_but_not_the_c_library(tmp_path: Path) -> None:
    """Under the names by which they are looked for when the program starts."""
    file = write_stack(tmp_path, libraries="[libstdc++.so.6]")
    built = build_stack(read_stack(file), ignore, Cache(tmp_path / "cache"))
    assert {each.name for each in built.directory.iterdir()} == {"program", "libstdc++.so.6", "libgcc_s.so.1"}


def test_a_cluster_does_not_make_such_runs(tmp_path: Path) -> None:
    with pytest.raises(HowdahError, match=r"TCP stack \(lwip\) that is built on the machine"):
        UmlEngine(Cache(tmp_path / "cache")).check_portable(make_one(tmp_path, LWIP))


def test_the_report_names_it() -> None:
    assert _receiver_text("lwip") == "lwip (a stack of its own)"
    assert _receiver_text("no-sack") == "no-sack (emulated)"


def test_what_the_plan_says_of_a_sender(tmp_path: Path) -> None:
    plan = make_one(tmp_path, SENDS)
    (flow,) = plan.flows
    assert (flow.traffic, flow.sink, flow.receiver_stack) == ("stack", "kernel", None)
    assert flow.sender_stack is not None
    assert plan.collect.pcap == ["s1:s1-eth0"], "its packets are all that tells of it"
    assert type(plan).from_json(plan.to_json()).flows == plan.flows
    told = stack_environment(flow, "sender")
    assert (told["STACK_ROLE"], told["STACK_ALGORITHM"]) == ("send", "reno")
    assert (told["STACK_ADDRESS"], told["STACK_PORT"], told["STACK_PEER"]) == ("10.1.1.1", "40001", "10.2.1.1")


def test_a_flow_has_its_own_sender(tmp_path: Path) -> None:
    extra = "sender: {stack: lwip}\nalgorithm: reno\nflows: [{}, {sender_stack: linux}, {sender_stack: gvisor}]\n"
    plan = make_one(tmp_path, extra + "background: [{}]\n")
    assert [flow.sender_stack and flow.sender_stack.name for flow in plan.flows] == ["lwip", None, "gvisor", None]


def test_one_that_only_receives_does_not_send(tmp_path: Path) -> None:
    with pytest.raises(ProfileError, match=r"the stack mine only receives: mine\.yaml names no algorithms") as caught:
        make_one(tmp_path, f"sender: {{stack: {write_stack(tmp_path)}}}\n")
    assert caught.value.hint == "docs/stacks.md says what a program that sends has to do"


def test_a_flow_is_complete_when_its_receiver_has_all_and_not_when_the_peer_has_closed(tmp_path: Path) -> None:
    """A source closes a round trip later, when its last byte is acknowledged."""
    program = StackProgram("flow 1", "mine", Loop(virtual_time=False), tmp_path / "1-receiver")
    program._parse_line("connected", 10)
    program._parse_line("all", 70)
    program._parse_line("bytes 100000", 110)
    assert program.report == StackReport(connected_ns=10, all_ns=70, ended_ns=110, moved_bytes=100_000)
