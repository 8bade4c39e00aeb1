# SPDX-License-Identifier: Apache-2.0
"""What the judge makes of settings read back from the kernel, where no guest of the liars has such a kernel."""

from __future__ import annotations

import dataclasses
from typing import Any

import pytest

from howdah.judge.settings import settings_checks
from howdah.plan.kernel import Part
from howdah.plan.operation import AddRoute
from howdah.plan.plan import Plan
from howdah.record.verdict import Check
from howdah.trait import traits
from tests.steps import operation
from tests.unit import path_factory
from tests.unit.told_by_agent import agent_of

TSO_OFF = {"offloads": {"tso": False}}
PLACE = {"node": "left", "interface": "left-eth1"}
RED: dict[str, Any] = dict.fromkeys(("packet_bytes", "burst_packets", "probability", "rate_bits_per_second"), 0)
RED |= {"limit_bytes": 5, "least_bytes": 1, "most_bytes": 2, "adaptive": False, "ecn": False, "ewma_log": 0}
RED |= {"probability_log": 0, "idle_log": 0, "idle_shifts": []}
HTB: dict[str, Any] = {
    **PLACE,
    "parent": "1:",
    "classid": "1:1",
    "kind": "htb",
    "options": dict.fromkeys(("burst_bytes", "cburst_bytes", "quantum_bytes"), 1514),
}


def plan(*more: tuple[str, dict[str, Any]], engine: str = "uml", **changes: Any) -> Plan:
    found = path_factory.path_plan(engine=engine, traits=traits(engine), **changes)
    return dataclasses.replace(
        found, operations=[*found.operations, *(operation(op, **arguments) for op, arguments in more)]
    )


def agent(**changes: Any) -> dict[str, Any]:
    """What the kernel of path_plan's network says of itself."""
    netem = [{"kind": "netem", "handle": "1:", "dev": dev} for dev in ("right-eth1", "left-eth0")]
    found: dict[str, Any] = {
        "sysctls": {"*": {"net.core.default_qdisc": "fq_codel"}, "s1": {"a": "1"}, "r1": {"a": "1"}},
        "links": {"s1": {"s1-eth0": {"mtu_bytes": 1500, "gso_max_segs": 1, "offloads": {"tso": False}}}},
        "qdiscs": {
            "right": {"qdiscs": netem[:1], "classes": {}},
            "left": {"qdiscs": netem[1:], "classes": {"left-eth1": [{"handle": "1:1", "rate": 2_500_000}]}},
        },
        "routes": {"s1": [{"destination": "default", "initial_window_packets": None}]},
        "modules": {},
    }
    return found | changes


def wrong(told: dict[str, Any] | None, asked: Plan | None = None) -> dict[str, str]:
    checks = settings_checks(asked or plan(), agent_of(told))
    return {check.name: check.message for check in checks if check.ok is False}


def test_kernels_of_several_machines_may_have_other_defaults() -> None:
    uneven = agent(sysctls={"*": {}, "s1": {"a": "1"}, "r1": {"a": "0"}})
    assert "a is 1 at s1, 0 at r1" in wrong(uneven)["sysctls"]
    assert wrong(uneven, plan(engine="machines")) == {}


def test_every_kernel_of_a_machine_set_has_the_settings_of_all() -> None:
    asked = plan(("sysctl", {"node": None, "name": "net.x", "value": "7"}), engine="machines")
    assert wrong(agent(sysctls={"*": {"net.x": "7"}, "*beta": {"net.x": "0x7"}}), asked) == {}
    assert (
        "net.x is 8 in the kernel"
        in wrong(agent(sysctls={"*": {"net.x": "7"}, "*beta": {"net.x": "8"}}), asked)["sysctls"]
    )


def test_a_value_of_several_numbers_is_compared_word_by_word() -> None:
    asked = plan(("sysctl", {"node": "s1", "name": "rmem", "value": "4096 131072 6291456"}))
    for found, ok in (("4096\t131072\t6291456", True), ("4096 131072 6291457", False), ("4096 131072", False)):
        assert ("sysctls" not in wrong(agent(sysctls={"s1": {"rmem": found}}), asked)) is ok


def test_the_last_value_of_the_plan_counts() -> None:
    first, last = ({"node": "s1", "name": "a", "value": value} for value in ("5", "1"))
    assert wrong(agent(), plan(("sysctl", first), ("sysctl", last))) == {}
    assert "the plan says 5" in wrong(agent(), plan(("sysctl", last), ("sysctl", first)))["sysctls"]


def test_a_nic_between_two_machines_has_a_queue_of_the_engines() -> None:
    told = agent()
    told["qdiscs"]["left"]["qdiscs"].append({"kind": "pfifo", "handle": "1:", "dev": "left-eth1"})
    assert "queues" in wrong(told)
    assert wrong(told, plan(engine="machines")) == {}


@pytest.mark.parametrize(
    ("handle", "kind", "several", "ok"),
    [
        ("1:", "howdah_wire", True, True),
        ("1:", "howdah_wire", False, False),
        ("1:", "pfifo", True, False),
        ("2:", "howdah_wire", True, False),
    ],
)
def test_a_wire_takes_the_place_of_a_delay_line_between_kernels(
    handle: str, kind: str, several: bool, ok: bool
) -> None:
    asked = plan()
    asked = dataclasses.replace(
        asked,
        parts=[Part(name="receivers", kernel=asked.kernel, hosts=["r1"])] if several else [],
    )
    told = agent()
    told["qdiscs"]["right"]["qdiscs"] = [{"kind": kind, "handle": handle, "dev": "right-eth1"}]
    assert ("queues" not in wrong(told, asked)) is ok


def test_hosts_that_tell_nothing_of_themselves_are_not_judged() -> None:
    """A receiver that is not Linux."""
    told = agent(qdiscs={"left": agent()["qdiscs"]["left"]}, links={"left": {}}, routes={"left": []})
    route = {"node": "r1", "destination": "default", "via": "10.0.0.1", "interface": "r1-eth0"}
    asked = plan(("route", {**route, "initial_window_packets": None, "initial_receive_window_packets": 20}))
    assert (
        wrong({**told, "links": {"left": {"left-eth0": {}}}, "routes": {"left": [{"destination": "x"}]}}, asked) == {}
    )


def test_parameters_of_every_source_are_compared() -> None:
    told = agent(modules={"tcp_x": {"parameters": {"a": "Y", "b": "16", "c": "1,2"}}})
    same = plan(
        ("module_parameter", {"module": "tcp_x", "name": "b", "value": "0x10"}),
        kernel_parameters={"tcp_x.a": "1"},
        module_parameters={"tcp_x": {"c": "1,2", "unreadable": "5"}, "absent": {"d": "1"}},
    )
    assert wrong(told, same) == {}
    other = dataclasses.replace(same, kernel_parameters={"tcp_x.a": "0"}, module_parameters={"tcp_x": {"c": "1,3"}})
    assert wrong(told, other)["module parameters"] == "tcp_x.a is Y, the plan says 0; tcp_x.c is 1,2, the plan says 1,3"


def test_what_a_kernel_was_booted_with_is_compared() -> None:
    asked = plan(kernel_parameters={"tcp_x.a": "1", "ipv6.disable": "1"})
    given = {"tcp_x.a": "Y", "ipv6.disable": "1", "random.trust_cpu": "off"}
    assert wrong(agent(boot_parameters=given), asked) == {}
    assert wrong(agent(), asked) == {}, "an agent of an earlier release did not ask"
    others = {"tcp_x.a": "0", "tcp_y.b": "2"}
    assert wrong(agent(boot_parameters=others), asked)["boot parameters"] == (
        "the kernel was given tcp_x.a=0, the plan says 1; the kernel was not given ipv6.disable, the plan says 1; "
        "the kernel was given tcp_y.b, the plan says nothing of it"
    )
    parts = agent(boot_parameters=given, machines={"far": {"boot_parameters": {"ipv6.disable": "1"}}})
    assert wrong(parts, asked)["boot parameters"] == "the kernel of far was not given tcp_x.a, the plan says 1"


ROUTE = {"node": "s1", "destination": "default", "via": "10.0.0.1", "interface": "s1-eth0"}
NAMES = {
    "sysctls": "sysctls",
    "interfaces": "links",
    "queues": "qdiscs",
    "routes": "routes",
    "module parameters": "modules",
}


def test_each_check_says_what_is_right_and_what_was_not_asked() -> None:
    assert settings_checks(plan(), None) == [], "a missing agent.json is a failed check of its own"
    assert settings_checks(plan(), agent_of(agent())) == [
        Check(name, "engine", True, f"the {name} are those of the plan", 0, 0, 0, "settings") for name in NAMES
    ]
    for name, source in NAMES.items():
        ok = None if name == "routes" else False
        expected = Check(name, "engine", ok, f"agent.json holds no {source}", 0, 0, 0, "settings")
        (found,) = [each for each in settings_checks(plan(), agent_of(agent(**{source: None}))) if each.name == name]
        assert found == dataclasses.replace(expected, expected=None, measured=None, tolerance=None, unit=None)


@pytest.mark.parametrize("count", [3, 4, 5])
def test_three_differences_are_said_and_the_others_counted(count: int) -> None:
    names = "bcdef"[:count]
    asked = plan(*(("sysctl", {"node": "s1", "name": name, "value": "2"}) for name in names))
    told = agent(sysctls={"s1": dict.fromkeys(names, "1")})
    words = "; ".join(f"{name} is 1 at s1, the plan says 2" for name in names[:3])
    words += f" (and {count - 3} more)" if count > 3 else ""
    assert Check("sysctls", "engine", False, words, 0, count, 0, "settings") in settings_checks(asked, agent_of(told))


@pytest.mark.parametrize(
    ("sysctls", "words"),
    [
        (
            {"s1": {"a": "1"}, "r1": {"a": "0"}, "x": {"a": "1"}},
            "a is 1 at s1 and x, 0 at r1, and the plan sets it nowhere",
        ),
        ({"s1": {"a": "1"}, "r1": {"b": "0"}, "*": {"a": "7"}}, None),
        ({"s1": {"net.ipv4.tcp_congestion_control": "x"}, "r1": {"net.ipv4.tcp_congestion_control": "y"}}, None),
        ({"s1": {"net.ipv4.ip_forward": "0"}, "r1": {"net.ipv4.ip_forward": "1"}}, None),
    ],
)
def test_a_sysctl_of_no_plan_is_the_same_on_all_nodes(sysctls: dict[str, Any], words: str | None) -> None:
    assert wrong(agent(sysctls=sysctls)) == ({} if words is None else {"sysctls": words})
    asked = plan(("sysctl", {"node": "s1", "name": "a", "value": "1"}))
    assert wrong(agent(sysctls=sysctls), asked) == {}, "a plan that sets it on one node leaves the others"
    parts = dataclasses.replace(plan(), operations=[], parts=[Part(name="far", kernel="debian-6.1", hosts=["r1"])])
    assert wrong(agent(sysctls=sysctls), parts) == {}, "another kernel may have other defaults"


def test_a_sysctl_of_all_is_asked_of_every_kernel_and_of_no_node() -> None:
    asked = plan(("sysctl", {"node": None, "name": "x", "value": "7"}))
    told = agent(sysctls={"*": {"x": "7"}, "*far": {"x": "8"}, "s1": {"x": "9"}})
    assert wrong(told, asked) == {"sysctls": "x is 8 in the kernel, the plan says 7"}
    unread = plan(("sysctl", {"node": "s9", "name": "x", "value": "7"}))
    assert wrong(told, unread) == {}, "nobody asked that node"


@pytest.mark.parametrize(
    ("op", "arguments", "link", "words"),
    [
        ("mtu", {"mtu_bytes": 1500}, {"mtu_bytes": 1500}, None),
        ("mtu", {"mtu_bytes": 9000}, {"mtu_bytes": 1500}, "mtu_bytes of s1:s1-eth0 is 1500, the plan says 9000"),
        ("offload", {"feature": "tso", "enabled": True}, TSO_OFF, "tso of s1:s1-eth0 is off, the plan says on"),
        ("gso", {"gso_max_segs": 2}, {"gso_max_segs": 1}, "gso_max_segs of s1:s1-eth0 is 1, the plan says 2"),
        (
            "offload",
            {"feature": "tso", "enabled": False},
            {"offloads": {"tso": True}},
            "tso of s1:s1-eth0 is on, the plan says off",
        ),
        ("offload", {"feature": "tso", "enabled": False}, TSO_OFF, None),
        ("offload", {"feature": "tso", "enabled": False}, {"offloads": {}}, None),
        ("mtu", {"mtu_bytes": 9000}, {}, None),
    ],
)
def test_an_interface_is_as_planned(
    op: str, arguments: dict[str, Any], link: dict[str, Any], words: str | None
) -> None:
    asked = plan((op, {"node": "s1", "interface": "s1-eth0", **arguments}))
    told = agent(links={"s1": {"s1-eth0": link, "s1-eth1": {"mtu_bytes": 7}}})
    assert wrong(told, asked) == ({} if words is None else {"interfaces": words})
    assert wrong(agent(links={"s2": {}}), asked) == {}


def _qdiscs(*items: dict[str, Any], node: str = "left") -> dict[str, Any]:
    """The agent's answer with these queues beside the healthy ones of a node."""
    told = agent()
    told["qdiscs"][node]["qdiscs"] = [*told["qdiscs"][node]["qdiscs"], *items]
    return told


FIFO = {**PLACE, "parent": "1:1", "handle": "10:", "kind": "bfifo", "options": {"limit_bytes": 5000}}


@pytest.mark.parametrize(
    ("planned", "found", "words"),
    [
        (FIFO, {"kind": "bfifo", "options": {"limit": 5000}}, None),
        (
            FIFO,
            {"kind": "bfifo", "options": {"limit": 5001}},
            "the queue 10: of left:left-eth1 has limit 5001 bytes, the plan says 5000",
        ),
        (FIFO, {"kind": "bfifo", "options": {"limit": "4Kb"}}, None),  # an older tc prints text
        (FIFO, {"kind": "bfifo"}, None),
        (
            FIFO,
            {"kind": "pfifo", "options": {"limit": 9}},
            "the queue 10: of left:left-eth1 is pfifo, the plan says bfifo",
        ),
        (
            {**FIFO, "kind": "pfifo", "options": {"limit_packets": 5}},
            {"kind": "pfifo", "options": {"limit": 6}},
            "the queue 10: of left:left-eth1 has limit 6 packets, the plan says 5",
        ),
        (
            {**FIFO, "kind": "red", "options": RED},
            {"kind": "red", "options": {"limit": 6, "min": 1, "max": 2}},
            "the queue 10: of left:left-eth1 has limit 6 bytes, the plan says 5",
        ),
    ],
)
def test_a_simple_queue_holds_what_the_plan_says(
    planned: dict[str, Any], found: dict[str, Any], words: str | None
) -> None:
    other = {"dev": "left-eth9", "handle": "10:", "kind": "bfifo", "options": {"limit": 1}}
    told = _qdiscs({"dev": "left-eth9", **other}, {"dev": "left-eth1", "handle": "10:", **found})
    assert wrong(told, plan(("qdisc", planned))) == ({} if words is None else {"queues": words})


@pytest.mark.parametrize(
    ("dev", "handle", "kind", "words"),
    [
        ("left-eth1", "7:", "tbf", "left:left-eth1 has a queue 7: of kind tbf that the plan does not know"),
        ("left-eth1", "0:", "fq_codel", None),
        ("left-eth1", "0:", "pfifo_fast", None),
        ("left-eth1", "0:", "noqueue", None),
        ("left-eth1", "0:", "mq", None),
        ("left-eth1", "0:", "fq", "left:left-eth1 has a queue 0: of kind fq that the plan does not know"),
        ("left-eth0", "2:", "tbf", "left:left-eth0 has a queue 2: of kind tbf that the plan does not know"),
        ("lo", "7:", "tbf", None),  # no end of a link
    ],
)
def test_a_queue_that_nobody_planned_is_named(dev: str, handle: str, kind: str, words: str | None) -> None:
    found = wrong(_qdiscs({"dev": dev, "handle": handle, "kind": kind}))
    assert found == ({} if words is None else {"queues": words})


@pytest.mark.parametrize(
    ("rate", "ok"),
    [(20_000_000, True), (20_000_008, True), (20_000_009, False), (19_999_992, True), (19_999_991, False)],
)
def test_a_class_has_its_rate_to_a_byte_a_second(rate: int, ok: bool) -> None:
    asked = plan(("class", {**HTB, "options": {**HTB["options"], "rate_bits_per_second": rate}}))
    words = f"the class 1:1 of left:left-eth1 has 20000000 bit/s, the plan says {rate}"
    assert wrong(agent(), asked) == ({} if ok else {"queues": words})
    others = [{"handle": "1:2", "rate": 1}, {"handle": "1:1"}, {"handle": "1:1", "rate": 2_500_000}]
    told = agent()
    told["qdiscs"]["left"]["classes"]["left-eth1"] = others
    assert wrong(told, asked) == ({} if ok else {"queues": words})
    told["qdiscs"]["left"]["classes"]["left-eth1"] = ["class htb 1:1 root rate 1Mbit"]  # of an older tc
    assert wrong(told, asked) == {}


@pytest.mark.parametrize(
    ("planned", "found", "words"),
    [
        ({}, {}, None),
        ({"initial_window_packets": 20}, {"initial_window_packets": 20}, None),
        (
            {"initial_window_packets": 20},
            {"initial_window_packets": 10},
            "the route of s1 to default has initial_window_packets 10, the plan says initial_window_packets 20",
        ),
        (
            {"initial_window_packets": 20},
            {},
            "the route of s1 to default has no window of its own, the plan says initial_window_packets 20",
        ),
        (
            {},
            {"initial_receive_window_packets": 9, "initial_window_packets": 8},
            "the route of s1 to default has initial_window_packets 8, initial_receive_window_packets 9, "
            "the plan says no window of its own",
        ),
    ],
)
def test_a_route_has_the_windows_of_the_plan(planned: dict[str, int], found: dict[str, int], words: str | None) -> None:
    none = dict.fromkeys(AddRoute.METRICS)
    told = agent(routes={"s1": [{"destination": "default", **none, **found}, {"destination": "10.0.0.0/8", **none}]})
    assert wrong(told, plan(("route", {**ROUTE, **none, **planned}))) == ({} if words is None else {"routes": words})


def test_a_parameter_has_the_last_value_that_was_set() -> None:
    """The kernel's, what an operation sets, and the module's; of what cannot be read nothing is said."""
    told = agent(modules={"m": {"parameters": {"a": "1", "b": "2"}}})
    operation = ("module_parameter", {"module": "m", "name": "b", "value": "3"})
    asked = plan(operation, kernel_parameters={"m.b": "9", "n.c": 1, "alone": "1"}, module_parameters={"m": {"a": 2}})
    words = "m.b is 2, the plan says 3; m.a is 1, the plan says 2"
    assert wrong(told, asked) == {"module parameters": words}
    assert wrong(agent(modules={"m": {}}), asked) == {}


def test_a_kernel_that_lives_on_was_not_booted_for_the_run() -> None:
    asked = plan(kernel_parameters={"ipv6.disable": "1", "m.a": "1"}, engine="machines")
    told = agent(modules={"ipv6": {"parameters": {"disable": "0"}}, "m": {"parameters": {"a": "0"}}})
    assert wrong(told, asked) == {"module parameters": "m.a is 0, the plan says 1"}
    booted = plan(kernel_parameters={"ipv6.disable": "1"})
    assert wrong(told, booted) == {"module parameters": "ipv6.disable is 0, the plan says 1"}
    given = agent(boot_parameters={})
    assert [each.name for each in settings_checks(asked, agent_of(given))] == list(NAMES)
    assert [each.name for each in settings_checks(plan(), agent_of(given))] == list(NAMES)
    assert Check(
        "boot parameters",
        "engine",
        False,
        "the kernel was not given ipv6.disable, the plan says 1",
        0,
        1,
        0,
        "settings",
    ) in settings_checks(booted, agent_of(given))
