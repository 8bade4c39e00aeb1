# SPDX-License-Identifier: Apache-2.0
"""Flows that the receiver opens: in the plan, and on sockets of this machine."""

from __future__ import annotations

import socket
from pathlib import Path

import pytest

from howdah.agent.loop import Loop
from howdah.agent.traffic.connection import ConnectedFlow
from howdah.linux.clock import now_ns
from howdah.linux.output import Output
from howdah.plan.text import render
from tests.unit.profile_factory import make_one
from tests.unit.trace_factory import make_flow


def test_the_plan_says_who_opens(tmp_path: Path) -> None:
    assert make_one(tmp_path).flows[0].opener == "sender"
    plan = make_one(tmp_path, "flows:\n  - {opener: receiver}\n")
    assert plan.flows[0].opener == "receiver"
    assert "opened by the receiver" in render(plan)


class _Here:
    """A namespace that is this one."""

    def socket(self, kind: int) -> socket.socket:
        return socket.socket(socket.AF_INET, kind)


def _free_port() -> int:
    with socket.socket() as probe:
        probe.bind(("127.0.0.1", 0))
        return int(probe.getsockname()[1])


@pytest.mark.parametrize("opener", ["sender", "receiver"])
def test_whoever_opens_the_sender_sends(opener: str, tmp_path: Path) -> None:
    ports = _free_port(), _free_port()
    description = make_flow(
        id=0,
        name="flow1",
        opener=opener,
        sender="here",
        receiver="here",
        source_address="127.0.0.1",
        source_port=ports[0],
        destination_address="127.0.0.1",
        destination_port=ports[1],
        kernel_algorithm="reno",
        traffic="python",
        sink="python",
        size_bytes=100_000,
    )
    loop = Loop(virtual_time=False)
    flow = ConnectedFlow(description, {"here": _Here()}, loop, Output(tmp_path))  # type: ignore[dict-item]
    flow.prepare()
    flow.start(now_ns())
    loop.run_until(now_ns() + 10_000_000_000, flow.finished)
    flow.close()
    record = flow.record(0)
    assert record.complete, record.error
    assert record.bytes_sent == record.bytes_received == 100_000
    assert None not in (record.sender_cookie, record.receiver_cookie, record.connected_ns)
