# SPDX-License-Identifier: Apache-2.0
"""Ends of flows that are programs or stacks, for tests that care for little of them."""

from __future__ import annotations

from howdah.plan.traffic import PlannedStack, ProgramEnd, Programs


def make_stack(name: str, algorithm: str | None = None) -> PlannedStack:
    return PlannedStack(
        name=name,
        file=f"stacks/{name}.yaml",
        program=name,
        interface="stack1",
        host_interface="r1-eth0",
        mac="02:5a:00:00:00:01",
        mtu_bytes=1500,
        prefix_bits=24,
        netmask="255.255.255.0",
        gateway="10.2.1.254",
        algorithm=algorithm,
    )


def make_quic(name: str) -> Programs:
    end = ProgramEnd([name], {}, [], own=False, signal="INT")
    return Programs("server", "udp", [], None, "server", name, end, end)
