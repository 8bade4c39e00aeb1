# SPDX-License-Identifier: Apache-2.0
"""``sender: of-2007``: what it fills in, what the profile overrides, and what it cannot change."""

from __future__ import annotations

from pathlib import Path
from typing import get_args

import pytest

from howdah.build.kernel_source import patch_sets
from howdah.codec import encoded
from howdah.errors import ProfileError
from howdah.place import DOCS
from howdah.plan.compile import compile_plan
from howdah.plan.plan import Plan
from howdah.plan.text import render
from howdah.profile import load
from howdah.profile.end import BUNDLES, TODAY, SenderSection
from howdah.record.provenance import first_record

PROFILE = """
howdah: 1
name: period
path: {rate: 20 Mbit/s, rtt: 60 ms}
algorithm: standard-cubic
sender: of-2007
duration: 5 s
"""


def plans(tmp_path: Path, *overrides: str, text: str = PROFILE) -> list[Plan]:
    file = tmp_path / "period.yaml"
    file.write_text(text)
    return [compile_plan(cell) for cell in load(file, overrides).cells()]


def sysctl(plan: Plan, node: str, name: str) -> str:
    """The last value that the plan sets, which is the one in force."""
    found = [
        item.arguments()["value"]
        for item in plan.operations
        if item.op == "sysctl" and item.arguments()["name"] == name and item.arguments()["node"] in (node, None)
    ]
    return str(found[-1])


def test_the_field_has_every_bundle() -> None:
    assert get_args(SenderSection.model_fields["behaviour"].annotation) == (TODAY, *BUNDLES)


def test_every_setting_says_where_it_is_from() -> None:
    assert all(setting.source and setting.what for bundle in BUNDLES.values() for setting in bundle)


def test_the_whole_bundle_is_in_force(tmp_path: Path) -> None:
    [plan] = plans(tmp_path)
    [flow] = plan.flows
    assert (flow.initial_window_packets, flow.receiver_behaviour) == (3, "delayed-ack")
    core = plan.module_parameters["howdah_slow_start"]
    assert core == {"packets_per_ack": "1", "first_acks_per_packet": "50"}
    for name in ("tcp_recovery", "tcp_early_retrans", "tcp_comp_sack_nr"):
        assert sysctl(plan, "s1", f"net.ipv4.{name}") == sysctl(plan, "r1", f"net.ipv4.{name}") == "0"
    for name in ("tcp_wmem", "tcp_rmem"):
        _, initial, largest = sysctl(plan, "s1", f"net.ipv4.{name}").split()
        assert initial == largest
        assert int(largest) >= 2**28
    bursts = [item.arguments()["options"]["burst_bytes"] for item in plan.operations if item.op == "class"]
    assert max(bursts) < plan.path.frame_bytes
    # What is queued in it must fit into the guest.
    assert plan.guest_memory_bytes > 2**28
    assert plan.sender is not None
    assert not any(setting.instead_of is not None for setting in plan.sender.settings.values())


@pytest.mark.parametrize(
    ("override", "field", "value"),
    [
        ("flows.1.initial_window=10", "flows.initial_window", 10),
        ("host.packets_per_ack=2", "host.packets_per_ack", 2),
        ("host.first_acks_per_packet=0", "host.first_acks_per_packet", 0),
        ("host.sysctls={net.ipv4.tcp_recovery: 1}", "host.sysctls.net.ipv4.tcp_recovery", "1"),
        ("host.tcp_wmem=4096 87380 4194304", "host.tcp_wmem", "4096 87380 4194304"),
        ("receiver=quick-ack", "receiver.behaviour", "quick-ack"),
        ("path.burst=frame", "path.burst", "frame"),
    ],
)
def test_single_settings_can_be_given_another_value(tmp_path: Path, override: str, field: str, value: object) -> None:
    flows = PROFILE + "flows: [{}]\n"
    [plan] = plans(tmp_path, override, text=flows)
    assert plan.sender is not None
    settings = plan.sender.settings
    assert str(settings[field].value) == str(value)
    assert [name for name, setting in settings.items() if setting.instead_of is not None] == [field]
    assert f"{value}, the profile's, instead of" in render(plan)


def test_every_flow_background_and_group_begins_with_that_window(tmp_path: Path) -> None:
    more = """
flows: [{name: one}, {name: two, initial_window: 4}]
background: [{name: beside}]
groups:
  - {name: many, role: background, connections: 2, size: 10 kB, interval: 1 s}
  - {name: datagrams, role: background, connections: 1, udp: {rate: 1 Mbit/s}}
"""
    [plan] = plans(tmp_path, text=PROFILE + more)
    windows = {flow.name: flow.initial_window_packets for flow in plan.flows if flow.datagram_bytes is None}
    assert windows == {"one": 3, "two": 4, "beside": 3, "many-1": 3, "many-2": 3}


def test_it_may_be_swept_and_a_control(tmp_path: Path) -> None:
    text = PROFILE.replace("sender: of-2007", "sender: [linux, of-2007]")
    names = [plan.sender and plan.sender.name for plan in plans(tmp_path, text=text)]
    assert names == [None, "of-2007"]


def test_a_setting_that_the_kernels_own_algorithm_does_not_read_is_refused(tmp_path: Path) -> None:
    with pytest.raises(ProfileError, match=r"host.packets_per_ack cannot change how reno grows"):
        plans(tmp_path, "sender=linux", "host.packets_per_ack=1", "algorithm=reno")


def test_a_sender_of_today_is_not_in_the_plan(tmp_path: Path) -> None:
    [plan] = plans(tmp_path, "sender=linux")
    assert '"sender": {' not in plan.to_json()
    assert "sender" not in first_record(plan.to_json(), "key").plain()
    assert "howdah_slow_start" not in plan.module_parameters


def test_run_json_and_the_plans_text_have_it(tmp_path: Path) -> None:
    [plan] = plans(tmp_path)
    assert Plan.from_json(plan.to_json()).sender == plan.sender
    assert first_record(plan.to_json(), "key").sender == encoded(plan.sender)
    text = render(plan)
    for setting in BUNDLES["of-2007"]:
        assert setting.field in text
        assert setting.source in text


def test_the_documentation_has_the_table() -> None:
    page = (DOCS / "senders.md").read_text(encoding="utf-8")
    for setting in BUNDLES["of-2007"]:
        assert f"| `{setting.field}` | {setting.value} | {setting.what} | {setting.source} |" in page


def test_the_documentation_has_every_patch() -> None:
    page = (DOCS / "senders.md").read_text(encoding="utf-8")
    for patches in patch_sets().values():
        assert f"`kernel: {patches.kernel}`" in page
        assert all(f"`{file.stem}`" in page for file in patches.files)
