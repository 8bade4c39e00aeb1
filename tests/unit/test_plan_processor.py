# SPDX-License-Identifier: Apache-2.0
"""``processor:`` of senders and receivers in profile and plan: constants, hosts, operations, and what is refused."""

from __future__ import annotations

import json
from pathlib import Path

import pytest

from howdah.errors import ProfileError
from howdah.linux.netlink.discipline import made
from howdah.linux.netlink.discipline.howdah_cpu import HostProcessor
from howdah.linux.netlink.qdisc import format_handle, parse_handle, qdisc_request
from howdah.plan.command import command_lines
from howdah.plan.compile import compile_plan
from howdah.plan.operation import OperationError, operation
from howdah.plan.plan import Plan
from howdah.plan.processor import PROCESSOR_MODULE
from howdah.plan.step import Operation
from howdah.plan.text import render
from howdah.profile import load
from howdah.profile.processor import MODELS, NONE, ProcessorSection

QUICK = Path(__file__).parents[2] / "profiles" / "quick.yaml"


def plans(*overrides: str, engine: str | None = None) -> list[Plan]:
    return [compile_plan(cell, engine) for cell in load(QUICK, overrides).cells()]


def plan(*overrides: str, engine: str | None = None) -> Plan:
    return plans(*overrides, engine=engine)[0]


def queues(found: Plan) -> list[Operation]:
    return [item for item in found.operations if item.op == "qdisc" and item.arguments["kind"] == HostProcessor.kind]


def test_without_one_the_plan_is_what_it_was() -> None:
    said = plan("sender.processor=none", "receiver={processor: {packet: 0, search: one-pass}}")
    assert said.to_json() == plan().to_json()
    value = json.loads(said.to_json())
    assert "processors" not in value and "processor" not in value["collect"]["intervals_us"]
    assert not queues(said) and PROCESSOR_MODULE not in (said.required_modules or [])


def test_a_model_is_a_name_and_every_constant_can_be_given() -> None:
    (each,) = plan("sender.processor=of-2007").processors
    assert (each.host, each.interface, each.model) == ("s1", "s1-eth0", "of-2007")
    values = {item.field: item.value for item in MODELS["of-2007"]}
    assert (each.packet_ns, each.ack_ns, each.searched_ns) == (values["packet"], values["ack"], values["searched"])
    assert (each.search, each.queue_packets) == (values["search"], values["queue"])
    (own,) = plan("sender.processor={model: of-2007, searched: 0.4 us, queue: 300}").processors
    assert (own.searched_ns, own.queue_packets, own.ack_ns) == (400, 300, values["ack"])
    assert own.sources["searched"] == own.sources["queue"] == "the profile"
    assert own.sources["ack"] != "the profile"


def test_the_hosts_of_one_side_have_it() -> None:
    found = plan(
        "sender.processor={ack: 2 us}",
        "receiver={behaviour: delayed-ack, processor: {packet: 1500 ns}}",
        "flows=[{}, {}]",
    )
    assert [each.host for each in found.processors] == ["s1", "s2", "r1", "r2"]
    assert [item.arguments["node"] for item in queues(found)] == ["s1", "s2", "r1", "r2"]
    assert {item.arguments["parent"] for item in queues(found)} == {"ingress"}
    assert PROCESSOR_MODULE in (found.required_modules or [])
    lines = [" ".join(map(str, words)) for item in queues(found) for words in [command_lines(item)]]
    assert "qdisc add dev s1-eth0 ingress handle ffff: howdah_cpu packet 0s ack 2us searched 0s" in lines[0]
    assert "packet 1.5us" in lines[2] and "limit 1000" in lines[2]
    assert found.collect.processor_us == 100_000


def test_it_is_swept_as_any_field() -> None:
    found = plans("algorithm=cubic", "sender.processor=[none, of-2007]")
    assert [[each.model for each in one.processors] for one in found] == [[], ["of-2007"]]
    found = plans("algorithm=cubic", "sender.processor={ack: 1 us, queue: [300, 1000]}")
    assert [one.processors[0].queue_packets for one in found] == [300, 1000]


def test_a_plan_is_read_back_and_shown() -> None:
    found = plan("sender.processor=of-2007", "collect.processor=20 ms")
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
        ("receiver={behaviour: windows-xp, processor: of-2007}", "both take what arrives"),
    ],
)
def test_what_there_cannot_be_is_refused(override: str, words: str) -> None:
    with pytest.raises(ProfileError, match=words):
        plan(override)


def test_no_module_no_processor() -> None:
    with pytest.raises(ProfileError, match="emulated by a kernel module") as raised:
        plan("sender.processor=of-2007", engine="host")
    assert "uml" in str(raised.value.hint)


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
    (found,) = queues(plan("sender.processor=of-2007"))
    request = qdisc_request(2, "ingress", "ffff:", made(found.arguments["kind"], found.arguments["options"]))
    assert request[8:16] == bytes.fromhex("0000ffff f1ffffff"), "handle and parent"
    assert HostProcessor.kind.encode() + b"\0" in request
    assert len(HostProcessor.kind) < 16, "the kernel's names of queueing disciplines are that short"
    with pytest.raises(OperationError, match="ack_ns"):
        operation("qdisc", **{**found.arguments, "options": {"packet_ns": 1}})
