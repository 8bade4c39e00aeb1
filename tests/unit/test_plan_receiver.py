# SPDX-License-Identifier: Apache-2.0
"""Receivers' behaviours and processors in profile and plan: names, hosts, operations, and what is refused."""

from __future__ import annotations

import json
from pathlib import Path

import pytest

from howdah.codec import encoded
from howdah.errors import ProfileError
from howdah.linux.netlink.discipline import make_discipline
from howdah.linux.netlink.discipline.howdah_cpu import HostProcessor
from howdah.linux.netlink.qdisc import format_handle, parse_handle, qdisc_request
from howdah.plan.compile import compile_plan
from howdah.plan.plan import Plan
from howdah.plan.processor import PROCESSOR_MODULE
from howdah.plan.receiver import RECEIVER_MODULE
from howdah.plan.step import Operation
from howdah.plan.text import render
from howdah.profile import load
from howdah.profile.processor import MODELS, NONE, ProcessorSection
from howdah.receiver import MOST_BACKLOG_BLOCKS, RECEIVERS
from tests.steps import operation

QUICK = Path(__file__).parents[2] / "profiles" / "quick.yaml"


def plan(*overrides: str, engine: str | None = None) -> Plan:
    return compile_plan(load(QUICK, overrides).cells()[0], engine)


def filters(found: Plan) -> dict[str, Operation]:
    """The ACK filters of a plan, by host."""
    return {
        item.arguments()["node"]: item
        for item in found.operations
        if item.op == "qdisc" and item.arguments()["kind"] == RECEIVER_MODULE
    }


def quick_routes(found: Plan) -> set[str]:
    return {item.arguments()["node"] for item in found.operations if item.arguments().get("quick_ack")}


def without_sack(found: Plan) -> set[str]:
    wanted = {"name": "net.ipv4.tcp_sack", "value": "0"}
    return {
        item.arguments()["node"]
        for item in found.operations
        if item.op == "sysctl" and wanted.items() <= item.arguments().items()
    }


def test_linux_is_the_plan_there_was() -> None:
    said = plan("receiver=linux")
    assert said.to_json() == plan().to_json()
    value = json.loads(said.to_json())
    assert "receiver" not in value
    assert all("receiver_behaviour" not in flow for flow in value["flows"])
    assert not filters(said) and not quick_routes(said) and not without_sack(said)
    assert RECEIVER_MODULE not in (said.required_modules or [])


@pytest.mark.parametrize("name", RECEIVERS)
def test_a_behaviour_becomes_operations_on_the_receiving_host_only(name: str) -> None:
    known = RECEIVERS[name]
    found = plan(f"receiver={name}")
    assert found.receiver == name
    assert [flow.receiver_behaviour for flow in found.flows] == [name]
    assert quick_routes(found) == ({"r1"} if known.quick_ack else set())
    assert without_sack(found) == (set() if known.sack else {"r1"})
    assert {*filters(found)} == ({"r1"} if known.ack_filter else set())
    assert (RECEIVER_MODULE in (found.required_modules or [])) == (known.ack_filter is not None)
    if known.ack_filter:
        assert filters(found)["r1"].arguments()["options"] == known.ack_filter.__dict__
    assert Plan.from_json(found.to_json()).to_json() == found.to_json()


def test_a_receiver_that_stops_reporting_may_do_so_at_another_number_of_blocks() -> None:
    found = plan("receiver={behaviour: windows-xp, backlog_blocks: 7}")
    assert filters(found)["r1"].arguments()["options"]["backlog_blocks"] == 7
    assert found.receiver == "windows-xp"
    swept = "receiver={behaviour: [delayed-ack, windows-xp], backlog_blocks: 7}"
    both = [compile_plan(cell) for cell in load(QUICK, [swept, "algorithm=cubic"]).cells()]
    numbers = [filters(each)["r1"].arguments()["options"]["backlog_blocks"] for each in both]
    assert numbers == [0, 7], "one that never stops is as it was"
    with pytest.raises(ProfileError, match="delayed-ack has no number of blocks") as caught:
        plan("receiver={behaviour: delayed-ack, backlog_blocks: 7}")
    assert caught.value.hint is not None and caught.value.hint.endswith("windows-xp")


def test_the_module_takes_as_many_blocks_as_a_profile_may_say() -> None:
    header = (QUICK.parents[1] / "modules/receiver/receiver.h").read_text()
    assert f"#define MOST_BACKLOG_BLOCKS {MOST_BACKLOG_BLOCKS}\n" in header


def test_a_filter_needs_every_segment_acknowledged() -> None:
    assert all(receiver.quick_ack for receiver in RECEIVERS.values() if receiver.ack_filter)


def test_it_is_swept() -> None:
    cells = load(QUICK, ["receiver=[linux, windows-xp]", "algorithm=cubic"]).cells()
    assert [cell.axes for cell in cells] == [{"receiver": "linux"}, {"receiver": "windows-xp"}]
    assert [compile_plan(cell).flows[0].receiver_behaviour for cell in cells] == ["linux", "windows-xp"]


def test_an_unknown_name_is_told_with_the_nearest_one() -> None:
    with pytest.raises(ProfileError, match=r"there is no receiver behaviour 'windows-xq'; did you mean windows-xp\?"):
        load(QUICK, ["receiver=windows-xq"])
    with pytest.raises(ProfileError, match="receiver_behaviour"):
        load(QUICK, ["flows=[{receiver_behaviour: solaris}]"])


def test_each_flow_has_its_own() -> None:
    found = plan("flows=[{receiver_behaviour: freebsd-7}, {}]", "receiver=no-sack")
    assert [flow.receiver_behaviour for flow in found.flows] == ["freebsd-7", "no-sack"]
    assert {*filters(found)} == {"r1"}
    assert without_sack(found) == {"r2"}


def test_background_is_linux_unless_it_says_otherwise_or_shares_a_host() -> None:
    found = plan("flows=[{}]", "background=[{}, {receiver_behaviour: quick-ack}]", "receiver=windows-xp")
    assert [flow.receiver_behaviour for flow in found.flows] == ["windows-xp", "linux", "quick-ack"]
    shared = plan("flows=[{}]", "background=[{receiver: r1, sender: s1}]", "receiver=windows-xp")
    assert [flow.receiver_behaviour for flow in shared.flows] == ["windows-xp", "windows-xp"]


def test_the_connections_of_a_group_have_that_of_the_group() -> None:
    group = "groups=[{name: some, connections: 2, size: 10 kB, receiver_behaviour: delayed-ack}]"
    found = plan("flows=[]", group, "receiver=no-sack")
    assert {flow.receiver_behaviour for flow in found.flows} == {"delayed-ack"}


def test_a_filter_stands_where_no_rate_is_limited() -> None:
    reverse = "background=[{direction: reverse, sender: s1, receiver: r1}]"
    with pytest.raises(ProfileError, match="r1 cannot be windows-xp"):
        plan("flows=[{}]", reverse, "path.reverse_rate=20 Mbit/s", "receiver=windows-xp")
    plan("flows=[{}]", reverse, "path.reverse_rate=20 Mbit/s", "receiver=no-sack")


def test_the_machines_own_kernel_takes_what_needs_no_module() -> None:
    assert quick_routes(plan("receiver=quick-ack", engine="host")) == {"r1"}


def test_a_sysctl_of_the_profile_comes_last() -> None:
    found = plan("receiver=no-sack", "host.sysctls={net.ipv4.tcp_sack: 1}")
    values = [
        item.arguments()["value"]
        for item in found.operations
        if item.op == "sysctl" and item.arguments()["name"] == "net.ipv4.tcp_sack" and item.arguments()["node"] == "r1"
    ]
    assert values == ["0", "1"]


def settings(found: Plan, node: str | None) -> dict[str, list[str]]:
    """The values that a plan gives to each sysctl of a node, in order."""
    values: dict[str, list[str]] = {}
    for item in found.operations:
        if item.op == "sysctl" and item.arguments()["node"] == node:
            values.setdefault(item.arguments()["name"], []).append(item.arguments()["value"])
    return values


@pytest.mark.parametrize(
    ("name", "buffers", "time_stamps"),
    [
        ("windows-10", "4096 131070 26349091", False),  # 65535 << 8 bytes, of 163/256 of a buffer
        ("macos", "4096 262144 6628036", True),  # 4 MiB, of 162/256
        ("macos-stretch", "4096 262144 6628036", True),
        ("android-lte", "4096 1048576 2097152", True),
        ("android-5g", "4096 6291456 16777216", True),
    ],
)
def test_a_receiver_of_today_has_bounds_of_its_window(name: str, buffers: str, time_stamps: bool) -> None:
    found = plan(f"receiver={name}")
    assert settings(found, "r1")["net.ipv4.tcp_rmem"] == [buffers]
    assert settings(found, "s1")["net.ipv4.tcp_rmem"] == settings(plan(), "s1")["net.ipv4.tcp_rmem"]
    assert ("net.ipv4.tcp_timestamps" in settings(found, "r1")) is not time_stamps
    assert settings(found, None)["net.core.rmem_max"] == ["212992"], "it would choose the window scale"
    assert RECEIVERS[name].sources
    assert RECEIVERS[name].emulated


def test_an_older_kernel_offers_half_of_a_buffer() -> None:
    assert settings(plan("receiver=macos", "kernel=debian-6.1"), "r1")["net.ipv4.tcp_rmem"] == ["4096 262144 8388608"]
    two = plan("receiver.behaviour=macos", "receiver.kernel=debian-5.10", "path.rtt=100 ms")
    assert settings(two, "r1")["net.ipv4.tcp_rmem"] == ["4096 262144 8388608"]
    assert settings(plan("receiver=android-lte", "kernel=debian-6.1"), "r1")["net.ipv4.tcp_rmem"] == [
        "4096 1048576 2097152"
    ]


def test_a_buffer_of_the_profile_and_one_of_the_receiver_are_refused() -> None:
    with pytest.raises(ProfileError, match="macos has a receive buffer of its own"):
        plan("receiver=macos", "host.tcp_rmem=4096 131072 8000000")
    found = plan("receiver=macos", "host.sysctls={net.ipv4.tcp_rmem: 4096 131072 8000000}")
    assert settings(found, "r1")["net.ipv4.tcp_rmem"] == ["4096 262144 6628036", "4096 131072 8000000"]


def test_people_can_read_it() -> None:
    found = plan("receiver=windows-xp")
    (line,) = filters(found)["r1"].lines()
    assert line.endswith("howdah_receiver every 2 delay 200ms quick-first 0 sack-blocks 3 backlog-blocks 100")
    routes = [line for item in found.operations if item.op == "route" for line in item.lines()]
    assert [line.endswith("quickack 1") for line in routes].count(True) == 1


def plans(*overrides: str, engine: str | None = None) -> list[Plan]:
    return [compile_plan(cell, engine) for cell in load(QUICK, overrides).cells()]


def plan_of_processor(*overrides: str, engine: str | None = None) -> Plan:
    return plans(*overrides, engine=engine)[0]


def queues(found: Plan) -> list[Operation]:
    return [item for item in found.operations if item.op == "qdisc" and item.arguments()["kind"] == HostProcessor.kind]


def test_without_one_the_plan_is_what_it_was() -> None:
    said = plan_of_processor("sender.processor=none", "receiver={processor: {packet: 0, search: one-pass}}")
    assert said.to_json() == plan_of_processor().to_json()
    value = json.loads(said.to_json())
    assert "processors" not in value and "processor" not in value["collect"]["intervals_us"]
    assert not queues(said) and PROCESSOR_MODULE not in (said.required_modules or [])


def test_a_model_is_a_name_and_every_constant_can_be_given() -> None:
    (each,) = plan_of_processor("sender.processor=of-2007").processors
    assert (each.host, each.interface, each.model) == ("s1", "s1-eth0", "of-2007")
    values = {item.field: item.value for item in MODELS["of-2007"]}
    assert (each.packet_ns, each.ack_ns, each.searched_ns) == (values["packet"], values["ack"], values["searched"])
    assert (each.search, each.queue_packets) == (values["search"], values["queue"])
    (own,) = plan_of_processor("sender.processor={model: of-2007, searched: 0.4 us, queue: 300}").processors
    assert (own.searched_ns, own.queue_packets, own.ack_ns) == (400, 300, values["ack"])
    assert own.sources["searched"] == own.sources["queue"] == "the profile"
    assert own.sources["ack"] != "the profile"


def test_the_hosts_of_one_side_have_it() -> None:
    found = plan_of_processor(
        "sender.processor={ack: 2 us}",
        "receiver={behaviour: delayed-ack, processor: {packet: 1500 ns}}",
        "flows=[{}, {}]",
    )
    assert [each.host for each in found.processors] == ["s1", "s2", "r1", "r2"]
    assert [item.arguments()["node"] for item in queues(found)] == ["s1", "s2", "r1", "r2"]
    assert {item.arguments()["parent"] for item in queues(found)} == {"ingress"}
    assert PROCESSOR_MODULE in (found.required_modules or [])
    lines = [" ".join(map(str, words)) for item in queues(found) for words in [item.lines()]]
    assert "qdisc add dev s1-eth0 ingress handle ffff: howdah_cpu packet 0s ack 2us searched 0s" in lines[0]
    assert "packet 1.5us" in lines[2] and "limit 1000" in lines[2]
    assert found.collect.processor_us == 100_000


def test_it_is_swept_as_any_field() -> None:
    found = plans("algorithm=cubic", "sender.processor=[none, of-2007]")
    assert [[each.model for each in one.processors] for one in found] == [[], ["of-2007"]]
    found = plans("algorithm=cubic", "sender.processor={ack: 1 us, queue: [300, 1000]}")
    assert [one.processors[0].queue_packets for one in found] == [300, 1000]


def test_a_plan_is_read_back_and_shown() -> None:
    found = plan_of_processor("sender.processor=of-2007", "collect.processor=20 ms")
    assert Plan.from_json(found.to_json()) == found
    text = render(found)
    assert "processor of s1 (of-2007)" in text
    assert "100 ns" in text and "tcp_sacktag_write_queue() of Linux 2.6.15 to 2.6.23" in text


@pytest.mark.parametrize(
    ("override", "words"),
    [
        ("sender.processor=of-1999", "of-1999"),
        ("sender.processor={ack: 2}", "unit"),
        ("sender.processor={ack: 2 s}", "at most one second"),
        ("sender.processor={ack: 0.5 ns}", "whole number of nanoseconds"),
        ("sender.processor={queue: 0}", "queue"),
        ("sender.processor={search: twice}", "search"),
    ],
)
def test_what_there_cannot_be_is_refused(override: str, words: str) -> None:
    with pytest.raises(ProfileError, match=words):
        plan_of_processor(override)


def test_every_model_has_every_constant_with_its_source() -> None:
    fields = [name for name in ProcessorSection.model_fields if name != "model"]
    for model, constants in MODELS.items():
        assert [item.field for item in constants] == fields, model
        assert all(item.source for item in constants)
        section = ProcessorSection(model=model)  # type: ignore[arg-type]
        written = ProcessorSection.model_validate({item.field: item.written for item in constants})
        assert [getattr(written, item.field) for item in constants] == [item.value for item in constants]
        assert section.is_there == (model != NONE)


def test_what_arrives_has_a_parent_of_its_own() -> None:
    assert parse_handle("ingress") == 0xFFFFFFF1
    assert format_handle(0xFFFFFFF1) == "ingress"
    (found,) = queues(plan_of_processor("sender.processor=of-2007"))
    request = qdisc_request(
        2, "ingress", "ffff:", make_discipline(found.arguments()["kind"], found.arguments()["options"])
    )
    assert request[8:16] == bytes.fromhex("0000ffff f1ffffff"), "handle and parent"
    assert HostProcessor.kind.encode() + b"\0" in request
    assert len(HostProcessor.kind) < 16, "the kernel's names of queueing disciplines are that short"
    with pytest.raises(TypeError, match="ack_ns"):
        encoded(operation("qdisc", **{**found.arguments(), "options": {"packet_ns": 1}}))
