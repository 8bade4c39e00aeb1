# SPDX-License-Identifier: Apache-2.0
"""What the judge makes of settings read back from the kernel, where no guest of the liars has such a kernel."""

from __future__ import annotations

import dataclasses
from typing import Any

import pytest

from howdah.agent.wiring.netlink import ROUTE_METRICS as NUMBERS
from howdah.judge.settings import settings_checks
from howdah.plan.kernel import Part
from howdah.plan.operation import ROUTE_METRICS
from howdah.plan.plan import Operation, Plan
from howdah.trait import traits
from tests.unit import path_factory

PLACE = {"node": "left", "interface": "left-eth1"}
HTB = {**PLACE, "parent": "1:", "classid": "1:1", "kind": "htb", "options": {"rate_bits_per_second": 20_000_000}}


def plan(*more: tuple[str, dict[str, Any]], engine: str = "uml", **changes: Any) -> Plan:
    found = path_factory.path_plan(engine=engine, traits=traits(engine), **changes)
    return dataclasses.replace(found, operations=[*found.operations, *(Operation(*each) for each in more)])


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
    checks = settings_checks(asked or plan(), told)
    return {check.name: check.message for check in checks if check.ok is False}


def test_what_is_as_planned_passes_every_check() -> None:
    assert wrong(agent()) == {}
    assert [check.ok for check in settings_checks(plan(), agent())] == [True] * 5
    assert settings_checks(plan(), None) == [], "a missing agent.json is a failed check of its own"


def test_an_agent_that_did_not_ask_for_routes_is_not_judged_by_them() -> None:
    (check,) = [each for each in settings_checks(plan(), agent(routes=None)) if each.name == "routes"]
    assert check.ok is None


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


@pytest.mark.parametrize(
    ("op", "arguments", "words"),
    [
        ("mtu", {"mtu_bytes": 9000}, "mtu_bytes of s1:s1-eth0 is 1500, the plan says 9000"),
        ("gso", {"gso_max_segs": 40}, "gso_max_segs of s1:s1-eth0 is 1, the plan says 40"),
        ("offload", {"feature": "tso", "enabled": True}, "tso of s1:s1-eth0 is off, the plan says on"),
    ],
)
def test_a_setting_of_an_interface_is_named(op: str, arguments: dict[str, Any], words: str) -> None:
    asked = plan((op, {"node": "s1", "interface": "s1-eth0", **arguments}))
    assert wrong(agent(), asked) == {"interfaces": words}


def test_the_kernels_own_queues_are_no_surprise() -> None:
    for kind, ok in (("noqueue", True), ("mq", True), ("fq_codel", True), ("tbf", False), ("netem", False)):
        told = agent()
        told["qdiscs"]["left"]["qdiscs"].append({"kind": kind, "handle": "0:", "dev": "left-eth1"})
        assert ("queues" not in wrong(told)) is ok, kind


def test_a_nic_between_two_machines_has_a_queue_of_the_engines() -> None:
    told = agent()
    told["qdiscs"]["left"]["qdiscs"].append({"kind": "pfifo", "handle": "1:", "dev": "left-eth1"})
    assert "queues" in wrong(told)
    assert wrong(told, plan(engine="machines")) == {}


def test_a_queue_that_is_missing_is_named() -> None:
    told = agent()
    told["qdiscs"]["right"]["qdiscs"] = []
    assert wrong(told) == {"queues": "the queue 1: of right:right-eth1 is missing, the plan says netem"}


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
    none = {"jitter_us": 0, "distribution": None, "rate_bits_per_second": None, "reorder_ratio": 0.0}
    asked = plan()
    asked = dataclasses.replace(
        asked,
        operations=[
            Operation(each.op, {**each.arguments, "options": {**none, **each.arguments["options"]}})
            if each.op == "qdisc"
            else each
            for each in asked.operations
        ],
        parts=[Part(name="receivers", kernel=asked.kernel, hosts=["r1"])] if several else [],
    )
    told = agent()
    told["qdiscs"]["right"]["qdiscs"] = [{"kind": kind, "handle": handle, "dev": "right-eth1"}]
    assert ("queues" not in wrong(told, asked)) is ok


def test_the_rate_of_a_class_is_known_to_a_byte_a_second_and_not_from_an_older_tc() -> None:
    for rate, ok in ((20_000_000, True), (20_000_007, True), (20_000_020, False)):
        asked = plan(("class", {**HTB, "options": {"rate_bits_per_second": rate}}))
        assert ("queues" not in wrong(agent(), asked)) is ok
    told = agent()
    told["qdiscs"]["left"]["classes"] = {"left-eth1": ["class htb 1:1 root rate 1Mbit"]}
    assert wrong(told, plan(("class", HTB))) == {}


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


def test_many_differences_are_counted() -> None:
    asked = plan(*(("sysctl", {"node": "s1", "name": "a", "value": "2"}) for _ in range(1)),
                 *(("sysctl", {"node": "s1", "name": name, "value": "2"}) for name in "bcde"))  # fmt: skip
    told = agent(sysctls={"s1": dict.fromkeys("abcde", "1")})
    assert wrong(told, asked)["sysctls"].endswith("(and 2 more)")


def test_plan_and_agent_know_the_same_metrics_of_routes() -> None:
    assert set(ROUTE_METRICS) == set(NUMBERS)


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
