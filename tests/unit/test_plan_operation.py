# SPDX-License-Identifier: Apache-2.0
"""The vocabulary of operations, and the command lines they stand for."""

from __future__ import annotations

import re
import shlex
from pathlib import Path
from typing import Any

import pytest

from howdah.codec import encoded
from howdah.plan.event import PlannedChange
from howdah.plan.reference import page as with_table
from howdah.plan.step import Operation
from tests.steps import event, operation
from tests.unit.profile_factory import make_one

DATA_FORMAT = Path(__file__).resolve().parents[2] / "docs" / "data-format.md"
NETEM: dict[str, Any] = {
    "delay_us": 120_000,
    "limit_packets": 1000,
    "seed": None,
    "jitter_us": 0,
    "distribution": None,
    "loss_ratio": 0.0,
    "rate_bits_per_second": None,
    "reorder_ratio": 0.0,
    "reorder_gap": 0,
}
PLACE = {"node": "right", "interface": "right-eth1"}


@pytest.mark.parametrize(
    ("op", "arguments", "what"),
    [
        ("teleport", {}, "there is no operation 'teleport'; known: address, adopt"),
        ("up", {"node": "s1"}, "Up lacks interface"),
        ("up", {"node": "s1", "interface": "lo", "speed": 3}, "Up has no field speed"),
        (
            "qdisc",
            {**PLACE, "parent": "root", "handle": "1:", "kind": "tbf", "options": {}},
            "there is no kind 'tbf'; known: bfifo, cake",
        ),
        (
            "qdisc",
            {**PLACE, "parent": "root", "handle": "1:", "kind": "bfifo", "options": {"limit": 5}},
            "Bfifo lacks limit_bytes",
        ),
        (
            "class",
            {**PLACE, "parent": "1:", "classid": "1:1", "kind": "netem", "options": {}},
            "netem has no classes",
        ),
    ],
)
def test_what_is_not_in_the_vocabulary_cannot_be_read(op: str, arguments: dict[str, Any], what: str) -> None:
    with pytest.raises((TypeError, ValueError), match=re.escape(what)):
        encoded(operation(op, **arguments))


def test_events_have_their_own_vocabulary() -> None:
    assert event(5, "start_flow", flow=1).at_us == 5
    with pytest.raises(ValueError, match="there is no operation 'up'; known: class, link, qdisc"):
        event(0, "up", node="s1", interface="lo")


def test_the_format_page_lists_the_vocabulary() -> None:
    page = DATA_FORMAT.read_text(encoding="utf-8")
    for kind in {*Operation.known.values(), *PlannedChange.known.values()}:
        assert f"| `{kind.op}` |" in page
        assert kind.__doc__, "its meaning there"
    assert page == with_table(page), "run make references"


@pytest.mark.parametrize(
    ("made", "lines"),
    [
        (operation("sysctl", node=None, name="a.b", value="1 2"), ["sysctl -w 'a.b=1 2'"]),
        (
            operation("adopt", node="s1", interface="s1-eth0", mac="02::1", nic_mac="52::1", tag=None, ipv6=False),
            [
                "ip link show permaddr 52::1",
                "ip link set dev NIC down name s1-eth0",
                "ip link set dev s1-eth0 address 02::1 netns s1",
            ],
        ),
        (
            operation("adopt", node="s1", interface="s1-eth0", mac="02::1", nic_mac="52::1", tag=7, ipv6=False),
            [
                "ip link show permaddr 52::1",
                "ip link add link NIC name s1-eth0 type vlan id 7",
                "ip link set dev s1-eth0 address 02::1 netns s1",
            ],
        ),
        (operation("sysctl", node="s1", name="a.b", value="1"), ["ip netns exec s1 sysctl -w a.b=1"]),
        (
            operation("node", name="left", router=True),
            ["ip netns add left", "ip netns exec left sysctl -w net.ipv4.ip_forward=1"],
        ),
        (
            operation("link", a_node="s1", a_interface="e0", a_mac="m1", b_node="left", b_interface="e1", b_mac="m2"),
            ["ip link add e0 address m1 netns s1 type veth peer name e1 address m2 netns left"],
        ),
        (
            operation(
                "route",
                node="s1",
                destination="default",
                via="10.1.1.254",
                interface="e0",
                initial_window_packets=44,
                initial_receive_window_packets=None,
            ),
            ["ip -n s1 route add default via 10.1.1.254 dev e0 initcwnd 44"],
        ),
        (
            operation("offload", **PLACE, feature="tso", enabled=False),
            ["ip netns exec right ethtool -K right-eth1 tso off"],
        ),
        (
            operation("module_parameter", module="tcp_cubic", name="hystart", value="0"),
            ["echo 0 > /sys/module/tcp_cubic/parameters/hystart"],
        ),
        (
            operation("qdisc", **PLACE, parent="root", handle="1:", kind="netem", options=NETEM),
            ["tc -n right qdisc add dev right-eth1 root handle 1: netem limit 1000 delay 120ms"],
        ),
        (
            operation(
                "qdisc",
                **PLACE,
                parent="root",
                handle="1:",
                kind="netem",
                options={**NETEM, "loss_ratio": 0.005, "seed": 7, "rate_bits_per_second": 10**9},
            ),
            [
                "tc -n right qdisc add dev right-eth1 root handle 1: "
                "netem limit 1000 delay 120ms loss 0.5% seed 7 rate 1000000000bit"
            ],
        ),
    ],
)
def test_command_lines(made: Operation, lines: list[str]) -> None:
    assert made.lines() == lines


def test_a_change_of_delay_is_a_change_of_the_qdisc() -> None:
    change = event(1, "qdisc", **PLACE, parent="root", handle="1:", kind="netem", options=NETEM)
    assert change.change.line().startswith("tc -n right qdisc change dev right-eth1 root handle 1: netem")
    assert event(1, "stop_flow", flow=3).change.line() == "stop flow 3"


def test_every_operation_of_a_plan_is_in_the_vocabulary_and_can_be_shown(tmp_path: Path) -> None:
    plan = make_one(tmp_path, "algorithm: cubic-no-hystart\nflows: [{initial_window: 5}]\n")
    for item in plan.operations:
        assert operation(item.op, **item.arguments()) == item
        for line in item.lines():
            assert shlex.split(line)[0] in ("ip", "tc", "sysctl", "echo")
    made = {item.op for item in plan.operations}
    assert made == set(Operation.known) - {"adopt", "filter", "police", "txqueuelen"}, "this plan uses all others"


def test_order_of_operations(tmp_path: Path) -> None:
    """What an operation needs was made before it."""
    plan = make_one(tmp_path, "flows: [{}, {}]\n")
    nodes: set[str] = set()
    interfaces: set[str] = set()
    up: set[str] = set()
    for item in plan.operations:
        arguments = item.arguments()
        if item.op == "node":
            nodes.add(arguments["name"])
        elif item.op == "link":
            assert {arguments["a_node"], arguments["b_node"]} <= nodes
            interfaces |= {arguments["a_interface"], arguments["b_interface"]}
        elif "interface" in arguments:
            assert arguments["interface"] in interfaces | {"lo"}
            if item.op == "up":
                up.add(arguments["interface"])
            if item.op == "route":
                assert interfaces <= up, "a route needs its interface up"
        elif arguments.get("node") is not None:
            assert arguments["node"] in nodes
