# SPDX-License-Identifier: Apache-2.0
"""An operation that fails stops everything and is named: its number, its text, the kernel's words."""

from __future__ import annotations

import errno
from pathlib import Path

import pytest

from howdah.agent.error import AgentError
from howdah.agent.wiring import make_wiring
from howdah.agent.wiring.netlink import NetlinkWiring, describe
from howdah.linux.kernelfile import sysctl_path
from howdah.linux.netlink.discipline.bfifo import Bfifo
from howdah.linux.netlink.message import NetlinkError
from howdah.plan.operation import Mtu, Node
from howdah.plan.placed import Qdisc
from tests.unit.plan_factory import make_plan


def test_a_refused_operation_is_named_and_the_following_ones_are_not_run(monkeypatch: pytest.MonkeyPatch) -> None:
    done: list[object] = []

    def refuse(mtu: Mtu, _to: object) -> None:
        done.append(mtu)
        raise NetlinkError(errno.EINVAL, "mtu greater than device maximum")

    monkeypatch.setattr(Node, "apply", lambda node, _to: done.append(node))
    monkeypatch.setattr(Mtu, "apply", refuse)
    first, mtu = Node("s1", router=False), Mtu("s1", "s1-eth0", 99999999)
    with pytest.raises(AgentError) as caught:
        NetlinkWiring().apply([first, mtu, Node("r1", router=False)])
    assert done == [first, mtu]
    assert caught.value.operation == "operation 1 (mtu node=s1 interface=s1-eth0 mtu_bytes=99999999)"
    assert caught.value.message == "Invalid argument (mtu greater than device maximum)"


def test_an_operation_of_a_node_that_is_not_there_is_named() -> None:
    with pytest.raises(AgentError) as caught:
        NetlinkWiring().apply([Mtu("nobody", "lo", 1500)])
    assert caught.value.operation == "operation 0 (mtu node=nobody interface=lo mtu_bytes=1500)"
    assert caught.value.message == "bad arguments: 'nobody'"


def test_an_operation_reads_as_one_line() -> None:
    text = describe(Qdisc("left", "left-eth0", "root", "1:", Bfifo(5)))
    place = "node=left interface=left-eth0 parent=root handle=1:"
    assert text == f'qdisc {place} kind=bfifo options={{"limit_bytes": 5}}'


def test_a_sysctl_name_is_a_path() -> None:
    assert sysctl_path("net.ipv4.tcp_rmem") == "/proc/sys/net/ipv4/tcp_rmem"


def test_there_are_two_wirings(tmp_path: Path) -> None:
    with pytest.raises(AgentError, match="netlink, mininet"):
        make_wiring("ovs", make_plan(), tmp_path)
