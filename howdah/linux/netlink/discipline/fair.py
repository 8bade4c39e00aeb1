# SPDX-License-Identifier: Apache-2.0
"""What the disciplines with a queue for each flow have in common."""

from __future__ import annotations

from howdah.codec import planned
from howdah.linux.netlink.discipline.discipline import AskedSize, Parameters, Room, asked

LARGEST_MEMORY_BYTES = 2**31 - 1
_LEAST_MEMORY_BYTES = 32 << 20
_LEAST_QUANTUM_BYTES = 256


@planned
class FairParameters(Parameters):
    flows: int = asked(1024, "queues that flows are hashed to", least=1, most=65536)
    quantum: AskedSize = asked("1 packet", "bytes a queue may send in its turn", "buffer")


def memory_bytes(room: Room) -> int:
    """A memory limit large enough that the limit in packets takes effect first."""
    needed = 4 * room.buffer_bytes + 64 * room.frame_bytes
    return min(max(_LEAST_MEMORY_BYTES, needed), LARGEST_MEMORY_BYTES)


def quantum_bytes(size: AskedSize, room: Room) -> int:
    return max(room.of(size), _LEAST_QUANTUM_BYTES)
