# SPDX-License-Identifier: Apache-2.0
"""What a plan names that is not in it, word by word, and names that could be another one."""

from __future__ import annotations

import dataclasses
from collections.abc import Sequence
from typing import Any

import pytest

from howdah.plan.kernel import OwnKernel, Part
from howdah.plan.named import Dependency, check_names, dependencies_of, programs_of
from howdah.plan.plan import Plan
from howdah.plan.traffic import PlannedStack, ProgramFile
from tests.unit.plan_factory import make_plan
from tests.unit.traffic_factory import make_quic, make_stack

SCRIPTS = "its makefiles and build scripts run on this machine"
HEADERS = "the makefiles and scripts of its headers run on this machine"
OUTSIDE = "the run is made outside of a guest, with this machine's own programs"
BUILT = "the commands that build it run on this machine"


def with_(**changes: Any) -> Plan:
    return dataclasses.replace(make_plan(), **changes)


def flow(**changes: Any) -> Plan:
    return with_(flows=[dataclasses.replace(make_plan().flows[0], **changes)])


def program(*files: ProgramFile, server: Sequence[ProgramFile] = ()) -> Plan:
    made = make_quic("own")
    client, server_end = (
        dataclasses.replace(made.end(name), files=list(own)) for name, own in (("client", files), ("server", server))
    )
    return flow(program=dataclasses.replace(made, client=client, server=server_end))


def file(name: str = "a", sha256: str = "0" * 64) -> ProgramFile:
    return ProgramFile(f"/files/{name}", name, sha256)


def stack(**changes: Any) -> PlannedStack:
    return dataclasses.replace(make_stack("lwip"), **changes)


@pytest.mark.parametrize(
    ("plan", "named"),
    [
        (make_plan(), []),
        (with_(engine="vm"), []),
        (with_(engine="host"), [("engine", "host", OUTSIDE)]),
        # A model has no kernel, whatever the plan says of one; of an unknown engine nobody knows that.
        (with_(engine="ns2", kernel="./linux"), [("engine", "ns2", OUTSIDE)]),
        (with_(engine="mine", kernel="./linux"), [("engine", "mine", OUTSIDE), ("kernel", "./linux", SCRIPTS)]),
        (with_(kernel="debian-6.1"), []),
        (with_(kernel="6.6+set-1"), []),
        (with_(kernel="newest"), []),
        (with_(kernel="debian-6.1/.."), [("kernel", "debian-6.1/..", SCRIPTS)]),
        (with_(kernel="debian-6.\u0661"), [("kernel", "debian-6.\u0661", SCRIPTS)]),
        (
            with_(kernel="a", parts=[Part(name="x", kernel="b", hosts=["r1"]), Part(name="y", kernel="a", hosts=[])]),
            [("kernel", "a", SCRIPTS), ("kernel", "b", SCRIPTS)],
        ),
        (with_(machine_kernels={"r": "c", "s": "6.1"}), [("kernel", "c", SCRIPTS)]),
        (with_(own_kernel=OwnKernel(modules=None, headers=None)), []),
        (
            with_(own_kernel=OwnKernel(modules="m", headers="h")),
            [("kernel", "m", HEADERS), ("kernel", "h", HEADERS)],
        ),
        (
            with_(modules=["x.c", "y.c"]),
            [
                ("module", name, "its Kbuild, its includes and the compiler run on this machine")
                for name in ("x.c", "y.c")
            ],
        ),
        (program(), [("program of", "flow 1 (bulk)", "its commands run in the guest")]),
        (flow(receiver_stack=stack(file="stacks/lwip.yaml")), []),
        (flow(receiver_stack=stack(file="stacks/none.yaml")), [("stack", "stacks/none.yaml", BUILT)]),
        (flow(receiver_stack=stack(file="my/stacks/lwip.yaml")), [("stack", "my/stacks/lwip.yaml", BUILT)]),
        (
            flow(receiver_stack=stack(file="r.yaml"), sender_stack=stack(file="s.yaml")),
            [("stack", "s.yaml", BUILT), ("stack", "r.yaml", BUILT)],
        ),
    ],
)
def test_what_runs_where_is_said(plan: Plan, named: list[tuple[str, str, str]]) -> None:
    assert dependencies_of(plan) == [Dependency(*each) for each in named]
    assert [str(each) for each in dependencies_of(plan)] == [f"{kind} {name}: {runs}" for kind, name, runs in named]


def test_each_is_named_once() -> None:
    two = [dataclasses.replace(make_plan().flows[0], id=number, receiver_stack=stack(file="x")) for number in (1, 2)]
    assert dependencies_of(with_(flows=two)) == [Dependency("stack", "x", BUILT)]


def test_files_of_programs_have_a_place_for_each_end() -> None:
    plan = program(file("a"), file("b"), server=[file("c")])
    places = [(place, each.name) for place, each in programs_of(plan)]
    assert places == [("program/1-client", "a"), ("program/1-client", "b"), ("program/1-server", "c")]
    assert list(programs_of(make_plan())) == []


@pytest.mark.parametrize(
    "plan",
    [
        make_plan(),
        program(file("a"), file("b"), server=[file("a")]),  # each end has a place of its own
        program(file(".profile"), file("..data"), file("a.b c")),
        with_(kernel_parameters={"tcp_x.a_1": "!~", "ipv6.disable": ""}),
        flow(receiver_stack=stack(name="lwip")),
    ],
)
def test_plain_names_are_names(plan: Plan) -> None:
    check_names(plan)


_FURTHER = ("/tmp/victim", "a/b", "a\nb", "a\\b", "\x1b[2J", "x" * 300)


@pytest.mark.parametrize(
    ("plan", "said"),
    [
        (with_(run="../x"), "'../x' is not the name of a run or a profile"),
        (with_(profile="-x"), "'-x' is not the name of a run or a profile"),
        (program(file("a"), file("a")), "'a' is not the name of a program's file"),
        (program(file(".")), "'.' is not the name of a program's file"),
        (program(file("..")), "'..' is not the name of a program's file"),
        (program(file("...")), "'...' is not the name of a program's file"),
        (program(file("")), "'' is not the name of a program's file"),
        (program(file("../a")), "'../a' is not the name of a program's file"),
        *((program(file(each)), f"{each!r} is not the name of a program's file") for each in _FURTHER),
        (program(file(" a")), "' a' is not the name of a program's file"),
        (program(file(), server=[file("/b")]), "'/b' is not the name of a program's file"),
        (program(file(sha256="")), "the program's file 'a' has no digest"),
        (program(file(sha256="0" * 63)), "the program's file 'a' has no digest"),
        (program(file(sha256="0" * 65)), "the program's file 'a' has no digest"),
        (program(file(sha256="G" * 64)), "the program's file 'a' has no digest"),
        (program(file(sha256="A" * 64)), "the program's file 'a' has no digest"),
        (with_(kernel_parameters={"init": "/x"}), "init=/x is not a parameter of a kernel's module"),
        (with_(kernel_parameters={"a.b": "1 2"}), "a.b=1 2 is not a parameter of a kernel's module"),
        (with_(kernel_parameters={"a.b.c": "1"}), "a.b.c=1 is not a parameter of a kernel's module"),
        (with_(kernel_parameters={"a.b": "\xe4"}), "a.b=\xe4 is not a parameter of a kernel's module"),
        (flow(receiver_stack=stack(name="a/b")), "'a/b' is not the name of a stack"),
        (flow(sender_stack=stack(name="-a")), "'-a' is not the name of a stack"),
    ],
)
def test_a_name_that_could_be_another_is_refused(plan: Plan, said: str) -> None:
    with pytest.raises(ValueError, match=r"\A") as caught:
        check_names(plan)
    assert str(caught.value) == said
