# SPDX-License-Identifier: Apache-2.0
"""Memory of a guest: what captures take of it, and what thousands of short connections do not."""

from __future__ import annotations

import itertools
from pathlib import Path

from howdah.plan.memory import BASE_MEMORY_BYTES, FLOW_MEMORY_BYTES, LARGEST_TRACE_BYTES
from howdah.plan.plan import CAPTURE_BUFFER_BYTES
from tests.unit.profile_factory import make_one

PATH = ["path.rate=100 Mbit/s", "path.buffer=1 bdp"]
INTERFACES = ("s1:s1-eth0", "left:left-eth0", "left:left-eth1", "r1:r1-eth0")


def test_each_capture_has_its_buffer(tmp_path: Path) -> None:
    """The kernel allocates it at once: four are more than all that a plain guest has to spare."""
    plans = [make_one(tmp_path, f"collect: {{pcap: [{', '.join(INTERFACES[:count])}]}}\n", PATH) for count in range(5)]
    memory = [plan.guest_memory_bytes for plan in plans]
    steps = {later - earlier for earlier, later in itertools.pairwise(memory)}
    assert len(steps) == 1
    assert min(steps) > CAPTURE_BUFFER_BYTES
    assert 4 * CAPTURE_BUFFER_BYTES >= BASE_MEMORY_BYTES


def test_short_connections_do_not_add_up(tmp_path: Path) -> None:
    """Ten times as many, one after the other at the same pace, need no more, but for trace and agent."""

    def memory_bytes(connections: int) -> int:
        group = f"groups: [{{name: short, connections: {connections}, interval: 5 ms, size: 20 kB, pairs: 4}}]\n"
        asked = [*PATH, f"duration={connections * 5 // 1000 + 10} s"]
        return make_one(tmp_path, group, asked).guest_memory_bytes

    of_agent = (20_000 - 2000) * FLOW_MEMORY_BYTES
    assert memory_bytes(20_000) - memory_bytes(2000) <= LARGEST_TRACE_BYTES + of_agent
    assert memory_bytes(20_000) < 1 << 30
