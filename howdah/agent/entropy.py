# SPDX-License-Identifier: Apache-2.0
"""Random numbers for a machine without a source of entropy.

A virtual machine whose clock counts instructions has no noise, and the first program that reads random numbers (iperf3,
for its session's name) waits seconds of processor time for the kernel to gather some. The agent credits the plan's seed
to the kernel instead, which also makes reruns equal.
"""

from __future__ import annotations

import fcntl
import struct
from pathlib import Path

_RNDADDENTROPY = 0x40085203  # _IOW('R', 0x03, int [2]); random(4)
_BITS_A_BYTE = 8
_BYTES = 64


def give_entropy(seed: int) -> None:
    """Credit the kernel with 512 bits derived from the seed; the kernel hashes them. Raises OSError without the
    privilege."""
    content = f"howdah {seed}".encode().ljust(_BYTES, b"\0")
    pool = struct.pack("ii", len(content) * _BITS_A_BYTE, len(content)) + content
    with Path("/dev/random").open("wb", buffering=0) as device:
        fcntl.ioctl(device, _RNDADDENTROPY, pool)
