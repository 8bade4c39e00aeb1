# SPDX-License-Identifier: Apache-2.0
"""An operation that fails stops everything and is named: its number, its text, the kernel's words."""

from __future__ import annotations

import errno
from pathlib import Path
from typing import Any

import pytest

from howdah.agent.error import AgentError
from howdah.agent.wiring import make_wiring
from howdah.agent.wiring.netlink import NetlinkWiring, describe, sysctl_path
from howdah.linux.netlink.message import NetlinkError
from howdah.plan.operation import OPERATIONS
from howdah.plan.step import Operation
from tests.unit.plan_factory import make_plan


class RefusedWiring(NetlinkWiring):
    """Makes no namespaces; the kernel refuses every MTU."""

    def __init__(self) -> None:
        super().__init__()
        self.done: list[str] = []

    def _node(self, name: str, router: bool = False, **_informative: Any) -> None:
        self.done.append(f"{name} {router}")

    def _mtu(self, node: str, interface: str, mtu_bytes: int) -> None:
        self.done.append(f"{node} {interface} {mtu_bytes}")
        raise NetlinkError(errno.EINVAL, "mtu greater than device maximum")


def node(name: str) -> Operation:
    return Operation("node", {"name": name, "router": False})


def test_a_refused_operation_is_named_and_the_following_ones_are_not_run() -> None:
    wiring = RefusedWiring()
    mtu = Operation("mtu", {"node": "s1", "interface": "s1-eth0", "mtu_bytes": 99999999})
    with pytest.raises(AgentError) as caught:
        wiring.apply([node("s1"), mtu, node("r1")])
    assert wiring.done == ["s1 False", "s1 s1-eth0 99999999"]
    assert caught.value.operation == "operation 1 (mtu node=s1 interface=s1-eth0 mtu_bytes=99999999)"
    assert caught.value.message == "Invalid argument (mtu greater than device maximum)"


def test_an_unknown_operation_is_an_error() -> None:
    with pytest.raises(AgentError, match="knows no such operation"):
        RefusedWiring().apply([Operation("teleport", {})])


def test_a_missing_argument_is_an_error_of_that_operation() -> None:
    with pytest.raises(AgentError, match=r"operation 0 \(mtu node=s1\): bad arguments"):
        RefusedWiring().apply([Operation("mtu", {"node": "s1"})])


def test_every_operation_of_the_plan_can_be_applied() -> None:
    missing = [name for name in OPERATIONS if not hasattr(NetlinkWiring, f"_{name}")]
    assert missing == []


def test_an_operation_reads_as_one_line() -> None:
    text = describe(Operation("qdisc", {"node": "left", "options": {"limit_bytes": 5}}))
    assert text == 'qdisc node=left options={"limit_bytes": 5}'


def test_a_sysctl_name_is_a_path() -> None:
    assert sysctl_path("net.ipv4.tcp_rmem") == "/proc/sys/net/ipv4/tcp_rmem"


def test_there_are_two_wirings(tmp_path: Path) -> None:
    with pytest.raises(AgentError, match="netlink, mininet"):
        make_wiring("ovs", make_plan(), tmp_path)
