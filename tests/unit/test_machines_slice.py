# SPDX-License-Identifier: Apache-2.0
"""A plan on several machines: where its hosts go, what each machine does, and what is missing when it cannot be."""

from __future__ import annotations

import dataclasses
import json
from collections.abc import Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import pytest

from howdah.agent.wiring.netlink import NetlinkWiring
from howdah.engine.machines import slice as machines_slice
from howdah.engine.machines.placement import Placement, place_hosts, runs_kernel
from howdah.errors import HowdahError
from howdah.plan.plan import Plan
from tests.steps import operation
from tests.unit.profile_factory import make_one

TWO_FLOWS = "flows: [{start: 0 s}, {start: 1 s}]\n"


@dataclass(frozen=True)
class Nic:
    name: str
    mac: str


@dataclass
class Described:
    """A machine of which only what planning needs is there."""

    name: str
    role: str
    kernel_release: str = "6.12.1-amd64"
    interfaces: dict[str, Nic] = field(default_factory=dict)


def machine_set(*wires: tuple[str, str, str], **roles: str) -> dict[str, Any]:
    machines = {name: Described(name, role) for name, role in roles.items()}
    for number, (wire, *ends) in enumerate(wires):
        for end in ends:
            machines[end].interfaces[wire] = Nic(wire, f"52:54:00:00:{number:02x}:{len(end):02x}")
    return dict(machines)


def three() -> dict[str, Any]:
    return machine_set(("w1", "src", "middle"), ("w2", "middle", "to"), src="sender", middle="emulator", to="receiver")


def make(directory: Path, extra: str = "") -> Plan:
    return make_one(directory, extra, engine="machines")


def cut(plan: Plan, placement: Placement) -> dict[str, dict[str, Any]]:
    """The parts as the agents read them."""
    return {name: json.loads(part.to_json()) for name, part in machines_slice.cut(plan, placement).items()}


def of_op(part: Mapping[str, Any], op: str) -> list[dict[str, Any]]:
    return [item["arguments"] for item in part["operations"] if item["op"] == op]


def test_hosts_go_to_the_machines_of_their_role(tmp_path: Path) -> None:
    placement = place_hosts(make(tmp_path, TWO_FLOWS), three())
    assert placement.machines == {
        "s1": "src", "s2": "src", "left": "middle", "right": "middle", "r1": "to", "r2": "to",
    }  # fmt: skip
    assert placement.used == ["src", "middle", "to"]


def test_hosts_take_turns_among_several_machines(tmp_path: Path) -> None:
    machines = machine_set(
        ("a", "src", "middle"), ("b", "second", "middle"), ("c", "middle", "to"),
        src="sender", second="sender", middle="emulator", to="receiver",
    )  # fmt: skip
    placement = place_hosts(make(tmp_path, TWO_FLOWS), machines)
    assert (placement.machines["s1"], placement.machines["s2"]) == ("src", "second")
    assert placement.attachments[("s2", "s2-eth0")].tag is None, "each has a wire of its own"
    tags = {placement.attachments[(host, f"{host}-eth0")].tag for host in ("r1", "r2")}
    assert len(tags) == 2 and None not in tags, "two links on one wire are kept apart by tags"


def test_both_ends_of_a_link_have_its_wire_and_its_tag(tmp_path: Path) -> None:
    plan, machines = make(tmp_path, TWO_FLOWS), three()
    placement = place_hosts(plan, machines)
    for item in plan.operations:
        if item.op == "link" and item.arguments()["a_node"] != item.arguments()["b_node"]:
            ends = [(item.arguments()[f"{end}_node"], item.arguments()[f"{end}_interface"]) for end in "ab"]
            if placement.machines[ends[0][0]] == placement.machines[ends[1][0]]:
                assert not any(end in placement.attachments for end in ends)
                continue
            one, other = (placement.attachments[end] for end in ends)
            assert one.tag == other.tag and one.nic_mac != other.nic_mac


def test_a_missing_wire_is_named(tmp_path: Path) -> None:
    machines = three()
    del machines["to"].interfaces["w2"]
    with pytest.raises(HowdahError, match="no wire joins middle and to, and 1 of the plan's links"):
        place_hosts(make(tmp_path), machines)


def test_a_missing_machine_is_named(tmp_path: Path) -> None:
    machines = three()
    del machines["middle"]
    with pytest.raises(HowdahError, match="the machine set has no emulator"):
        place_hosts(make(tmp_path), machines)


def test_a_receiver_is_chosen_by_its_kernel(tmp_path: Path) -> None:
    machines = machine_set(
        ("a", "src", "middle"), ("b", "middle", "old"), ("c", "middle", "new"),
        src="sender", middle="emulator", old="receiver", new="receiver",
    )  # fmt: skip
    machines["old"].kernel_release = "6.1.0-56-amd64"
    for asked, name in (("debian-6.1", "old"), ("debian-6.12", "new"), ("6.12.1-amd64", "new")):
        plan = make(tmp_path, f"machines: {{receiver: {{kernel: {asked}}}}}\n")
        assert plan.machine_kernels == {"receiver": asked}
        assert place_hosts(plan, machines).machines["r1"] == name
    plan = make(tmp_path, "machines: {receiver: {kernel: debian-5.10}}\n")
    with pytest.raises(
        HowdahError, match=r"no receiver of the machine set runs debian-5.10: old runs 6.1.0-56-amd64, new"
    ):
        place_hosts(plan, machines)


@pytest.mark.parametrize(
    ("release", "asked", "is_it"),
    [
        ("6.1.0-56-amd64", "6.1", True),
        ("6.12.117+deb12-amd64", "6.1", False),
        ("6.12.117+deb12-amd64", "debian-6.12", True),
        ("6.12.117+deb12-amd64", "6.12.117+deb12-amd64", True),
        ("6.12.117+deb12-amd64", "6.12.11", False),
    ],
)
def test_a_release_is_a_kernels_whole_numbers(release: str, asked: str, is_it: bool) -> None:
    assert runs_kernel(release, asked) is is_it


def test_each_host_of_the_plan_is_made_once_and_its_settings_are_beside_it(tmp_path: Path) -> None:
    plan = make(tmp_path, TWO_FLOWS)
    parts = cut(plan, place_hosts(plan, three()))
    made = [node["name"] for part in parts.values() for node in of_op(part, "node")]
    assert sorted(made) == ["left", "r1", "r2", "right", "s1", "s2"]
    for op in ("address", "route", "neighbour", "mtu", "offload", "up"):
        whole = [item.arguments() for item in plan.operations if item.op == op]
        divided = [arguments for part in parts.values() for arguments in of_op(part, op)]
        assert sorted(map(str, divided)) == sorted(map(str, whole)), op
    for part in parts.values():
        nodes = part["slice"]["nodes"]
        for item in part["operations"]:
            operation(item["op"], **item["arguments"])
            assert item["arguments"].get("node") in (None, *nodes)


def test_links_between_machines_are_adopted_with_the_plans_addresses(tmp_path: Path) -> None:
    plan = make(tmp_path)
    parts = cut(plan, place_hosts(plan, three()))
    (own,) = of_op(parts["src"], "adopt")
    link = next(
        item.arguments() for item in plan.operations if item.op == "link" and item.arguments()["a_node"] == "s1"
    )
    assert (own["node"], own["interface"], own["mac"]) == ("s1", link["a_interface"], link["a_mac"])
    assert own["nic_mac"] == "52:54:00:00:00:03" and own["tag"] is None and own["ipv6"] is False
    assert [item["a_node"] for item in of_op(parts["middle"], "link")] == ["left"], "the bottleneck stays a veth pair"
    assert len(of_op(parts["middle"], "adopt")) == 2


def test_netem_is_on_the_emulator_and_every_nic_has_a_queue(tmp_path: Path) -> None:
    plan = make(tmp_path)
    parts = cut(plan, place_hosts(plan, three()))
    kinds = {name: [item["kind"] for item in of_op(part, "qdisc")] for name, part in parts.items()}
    assert kinds["middle"].count("netem") == 2
    assert "netem" not in kinds["src"] + kinds["to"]
    for name in ("src", "to"):
        adopted = {(item["node"], item["interface"]) for item in of_op(parts[name], "adopt")}
        roots = {(item["node"], item["interface"]) for item in of_op(parts[name], "qdisc") if item["parent"] == "root"}
        assert adopted <= roots


def test_what_is_recorded_and_when_is_divided_too(tmp_path: Path) -> None:
    plan = make(tmp_path, TWO_FLOWS)
    parts = cut(plan, place_hosts(plan, three()))
    assert [parts[name]["collect"]["tcp_probe"] for name in ("src", "middle", "to")] == [True, False, False]
    intervals_us = [parts[name]["collect"]["intervals_us"] for name in ("src", "middle", "to")]
    assert [each.get("qdisc") for each in intervals_us] == [None, 100_000, None]
    assert [len(parts[name]["flows"]) for name in ("src", "middle", "to")] == [2, 0, 2]
    events = {name: [event["op"] for event in part["timeline"]] for name, part in parts.items()}
    assert events["src"] == events["to"] and set(events["src"]) == {"start_flow", "stop_flow"} and not events["middle"]
    assert all(part["hosts"] == parts["src"]["hosts"] for part in parts.values()), "numbers of hosts mean the same"


def test_the_emulator_knows_where_to_measure(tmp_path: Path) -> None:
    plan = make(tmp_path)
    part = cut(plan, place_hosts(plan, three()))["middle"]["slice"]
    assert part["wiring"] == "mininet"
    assert part["bottleneck"] == {
        "burst_frames": 10,
        "near_node": "left",
        "near_address": "10.0.0.1",
        "far_node": "right",
        "far_address": "10.0.0.2",
    }
    assert part["probes"] == [
        {
            "sender_node": "left",
            "sender_interface": "left-eth1",
            "receiver_node": "right",
            "receiver_interface": "right-eth1",
        }
    ]


def test_a_plan_for_one_machine_is_what_it_was(tmp_path: Path) -> None:
    """Nothing of the machine set reaches plans of other engines."""
    plan = make_one(tmp_path, engine="uml")
    assert "machine_kernels" not in plan.to_json()
    assert all(item.op != "adopt" for item in plan.operations)
    assert hasattr(NetlinkWiring, "adopt")
    apart = dataclasses.replace(plan.calibration, before_us=0).after_us
    assert make(tmp_path).calibration.after_us == apart + 4_000_000


def test_a_placement_tells_of_its_machines() -> None:
    placement = Placement({"s1": "a", "left": "b", "r1": "a"}, {})
    assert placement.nodes("a") == ["s1", "r1"] and placement.used == ["a", "b"]
