# SPDX-License-Identifier: Apache-2.0
"""The ns2 engine: what a plan tells ns-2, and what is refused with its line."""

from __future__ import annotations

import dataclasses
from pathlib import Path

import pytest

from howdah.engine.ns2.engine import network_data, silent_us
from howdah.errors import ProfileError
from howdah.plan.compile import compile_plan
from howdah.plan.plan import Plan
from howdah.plan.text import render
from howdah.profile import load
from howdah.profile.machine import declared
from howdah.trait import is_model, traits

GOLDEN = Path(__file__).parent.parent / "golden" / "ns2"
PROFILE = """\
howdah: 1
name: simulated
path: {rate: 5 Mbit/s, rtt: 64 ms, buffer: 60 packets}
flows: [{size: 100 kB, initial_window: 3}]
algorithm: standard
engine: ns2
duration: 10 s
"""
TWO_WAYS = """\
howdah: 1
name: two-ways
path:
  rate: 5 Mbit/s
  reverse_rate: 5 Mbit/s
  rtt: 64 ms
  buffer: 60 packets
  reverse_buffer: 60 packets
  sender_interface: 50 Mbit/s
  loss: 1 %
  mtu: 1486
groups:
  - {name: transfers, connections: 4, alternate: true, interval: 100 ms, size: 28680 B, pairs: 2, initial_window: 3}
algorithm: jump-start
engine: ns2
ns2: {parameters: jump-start-partial-ack, settings: {tcpTick_: 0.001}}
duration: 10 s
collect: {tcp_info: 'off', qdisc: 20 ms}
"""


def plan_of(tmp_path: Path, *overrides: str, text: str = PROFILE) -> Plan:
    file = tmp_path / "simulated.yaml"
    file.write_text(text, encoding="utf-8")
    return compile_plan(load(file, overrides).cells()[0])


def model_of(plan: Plan) -> dict[str, object]:
    assert plan.model is not None
    return dataclasses.asdict(plan.model.flows["1"])


def test_what_ns_2_is_told_of_two_ways_with_loss(tmp_path: Path) -> None:
    """After a change, read what changed, and renew the file."""
    made = network_data(plan_of(tmp_path, text=TWO_WAYS))
    assert made == (GOLDEN / "two-ways.txt").read_text(encoding="utf-8")


def test_a_plan_of_a_model_has_its_parameters_and_nothing_of_a_kernel(tmp_path: Path) -> None:
    plan = plan_of(tmp_path, "ns2.parameters=jump-start")
    assert Plan.from_json(plan.to_json()) == plan
    assert plan.model is not None
    assert (plan.model.parameters, plan.model.window_packets) == ("jump-start", 10_000)
    assert plan.kernel == plan.traits.label == "model (ns-2 2.35)"
    assert is_model(plan.kernel)
    assert not is_model("6.12.9")
    assert {item.op for item in plan.operations} == {"node", "link", "qdisc", "class"}
    assert (plan.required_modules, plan.module_parameters, plan.kernel_parameters) == ([], {}, {})
    assert "Agent/TCP/Sack1 to Agent/TCPSink/Sack1" in render(plan)
    assert "sysctl" not in render(plan)


def test_a_plan_of_a_kernel_says_nothing_of_models(tmp_path: Path) -> None:
    written = plan_of(tmp_path, "engine=uml").to_json()
    assert '"model"' not in written
    assert not traits("uml").label


def test_the_network_is_silent_when_every_queue_has_drained(tmp_path: Path) -> None:
    plan = plan_of(tmp_path, "path.buffer=1 MB")
    drain_us = 1_000_000 * 8_000_000 // 5_000_000
    assert silent_us(plan) >= plan.duration_us + drain_us + plan.flows[0].rtt_us


def test_a_buffer_is_counted_in_packets_or_to_the_byte(tmp_path: Path) -> None:
    plan = plan_of(tmp_path)
    assert "limit 60 unit packets" in network_data(plan)
    assert plan.model is not None
    plan = dataclasses.replace(plan, model=dataclasses.replace(plan.model, queue="bytes"))
    assert f"limit {60 * 1514} unit bytes" in network_data(plan)


@pytest.mark.parametrize(
    ("overrides", "sender", "sink", "congestion"),
    [
        ([], "TCP/Sack1", "TCPSink/Sack1", None),
        (["algorithm=reno"], "TCP/Sack1", "TCPSink/Sack1", None),
        (["ns2.agent=newreno"], "TCP/Newreno", "TCPSink", None),
        (["ns2.parameters=adaptive-start"], "TCP/Newreno", "TCPSink", None),
        (["ns2.agent=newreno", "receiver=no-sack"], "TCP/Newreno", "TCPSink", None),
        (["receiver=quick-ack"], "TCP/Sack1", "TCPSink/Sack1", None),
        (["receiver=delayed-ack"], "TCP/Sack1", "TCPSink/Sack1/DelAck", None),
        (["algorithm=vegas"], "TCP/Vegas", "TCPSink", None),
        (["algorithm=cubic-no-hystart"], "TCP/Linux", "TCPSink/Sack1", "cubic"),
        (["algorithm=fast", "algorithms={fast: {kernel: highspeed}}"], "TCP/Linux", "TCPSink/Sack1", "highspeed"),
        (["algorithm=linux", "algorithms={linux: {kernel: reno}}"], "TCP/Linux", "TCPSink/Sack1", "reno"),
        (["algorithm=linux", "algorithms={linux: {kernel: vegas}}"], "TCP/Linux", "TCPSink/Sack1", "vegas"),
    ],
)
def test_which_agent_stands_for_an_algorithm(
    tmp_path: Path, overrides: list[str], sender: str, sink: str, congestion: str | None
) -> None:
    model = model_of(plan_of(tmp_path, *overrides))
    assert (model["sender"], model["sink"], model["congestion_control"]) == (sender, sink, congestion)


def test_settings_of_a_profile_override_those_of_the_set(tmp_path: Path) -> None:
    own = "algorithms={low: {like: standard, parameters: {init_ssthresh: 32}}}"
    assert "ssthresh 32" in network_data(plan_of(tmp_path, "algorithm=low", own))
    assert "ssthresh 32 " in network_data(plan_of(tmp_path, "ns2.parameters=adaptive-start"))
    changed = network_data(plan_of(tmp_path, "ns2.parameters=adaptive-start", "ns2.settings={ssthresh_: 500}"))
    assert "ssthresh 500 " in changed
    assert "window 77 " in network_data(plan_of(tmp_path, "ns2.settings={window_: 77}"))
    partial = network_data(plan_of(tmp_path, "ns2.settings={partial_ack_: true, maxburst_: 3}"))
    assert "settings {partial_ack_ true maxburst_ 3}" in partial


def test_settings_can_be_swept(tmp_path: Path) -> None:
    file = tmp_path / "swept.yaml"
    file.write_text(PROFILE, encoding="utf-8")
    profile = load(file, ["ns2.parameters=[jump-start, jump-start-partial-ack]", "ns2.agent=[sack1, newreno]"])
    plans = [compile_plan(cell) for cell in profile.cells()]
    assert len({network_data(plan) for plan in plans}) == len(plans) == 4


def test_every_declared_set_has_a_source_and_a_tcp() -> None:
    known = declared()
    assert known.release == traits("ns2").model
    for name, found in known.sets.items():
        assert found.source and found.what, name
        assert found.agent in known.agents
        assert found.queue in ("packets", "bytes")


REFUSED = [
    ("path.queue=codel", "no queue codel"),
    ("path.tick=10 ms", "no tick"),
    ("path.gso_max_segs=kernel", "segmentation offload"),
    ("path.schedule=[{at: 1 s, rate: 2 Mbit/s}]", "no schedule"),
    ("perturbation.jitter=1 ms", "no jitter"),
    ("host.tcp_rmem=4096 4096 4096", "no buffers of a host"),
    ("host.packets_per_ack=1", "no kernel's plug-ins"),
    ("sender=of-2007", "no sender of another time"),
    ("receiver.kernel=debian-6.1", "no kernel"),
    ("sender.processor=of-2007", "no processor of a host"),
    ("split=true", "no kernel to divide"),
    ("collect.cpu=true", "no processor"),
    ("collect.pcap=['r1:r1-eth0']", "no packets to capture"),
    ("traffic.source=iperf3", "no iperf3"),
    ("flows=[{opener: receiver}]", "no receiver that connects"),
    ("receiver=no-sack", "no receiver no-sack"),
    ("algorithm=adaptive-start", "ns-2 has no adaptive-start"),
    ("topology.name=chain", "no topology but the dumbbell"),
]


@pytest.mark.parametrize(("override", "words"), REFUSED)
def test_what_ns_2_does_not_have_is_refused(tmp_path: Path, override: str, words: str) -> None:
    with pytest.raises(ProfileError, match=words) as refused:
        plan_of(tmp_path, override)
    assert refused.value.hint
    assert str(refused.value.where).startswith(f"--set {override.partition('=')[0]}")


def test_a_jump_needs_to_know_how_much(tmp_path: Path) -> None:
    with pytest.raises(ProfileError, match="flow 1 has no size"):
        plan_of(tmp_path, "algorithm=jump-start", "flows=[{initial_window: 3}]")


def test_a_kernel_on_the_command_line_is_refused(tmp_path: Path) -> None:
    file = tmp_path / "simulated.yaml"
    file.write_text(PROFILE, encoding="utf-8")
    with pytest.raises(ProfileError, match="boots no kernel") as refused:
        compile_plan(load(file).cells()[0], kernel="debian-6.1")
    assert refused.value.where == "--kernel debian-6.1"


@pytest.mark.parametrize(
    ("override", "words"),
    [
        ("ns2.parameters=jump-strat", "did you mean jump-start"),
        ("ns2.agent=newrenno", "did you mean newreno"),
        ("ns2.settings={maxburst_: '3; exit'}", "settings"),
        ("ns2.settings={maxburst: 3}", "settings"),
    ],
)
def test_wrong_names_and_values_are_named(tmp_path: Path, override: str, words: str) -> None:
    with pytest.raises(ProfileError, match=words):
        plan_of(tmp_path, override)
