# SPDX-License-Identifier: Apache-2.0
"""Random numbers for a machine that has no source of them.

A virtual machine whose time counts instructions has no noise. The first program that asks for random numbers
(iperf3, for the name of its session) waits, while the kernel takes seconds of the processor to find some. The plan's
seed is given to the kernel instead, so that reruns are equal, too.
"""

from __future__ import annotations

import fcntl
import struct
from pathlib import Path

_RNDADDENTROPY = 0x40085203  # _IOW('R', 0x03, int [2]); random(4)
_BITS_A_BYTE = 8
_BYTES = 64


def give_entropy(seed: int) -> None:
    """Credit the kernel with 512 bits, whatever the seed: it hashes them. Raises OSError without the privilege."""
    content = f"howdah {seed}".encode().ljust(_BYTES, b"\0")
    pool = struct.pack("ii", len(content) * _BITS_A_BYTE, len(content)) + content
    with Path("/dev/random").open("wb", buffering=0) as device:
        fcntl.ioctl(device, _RNDADDENTROPY, pool)
