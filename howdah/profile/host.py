# SPDX-License-Identifier: Apache-2.0
"""The ``host`` section of a profile: settings of every host's network stack."""

from __future__ import annotations

from typing import Annotated

from pydantic import Field

from howdah.profile.field import Section, Text

FIXED = "fixed"
BUFFER_TRIPLE = rf"^(?:{FIXED}|\s*[0-9]{{1,10}}\s+[0-9]{{1,10}}\s+[0-9]{{1,10}}\s*)$"
_BufferTriple = Annotated[str, Field(pattern=BUFFER_TRIPLE)]


class HostSection(Section):
    """Settings of the kernel's network stack."""

    sysctls: dict[str, Text] = Field(default_factory=dict, description="name: value, set last on every node")
    tcp_rmem: _BufferTriple | None = Field(
        default=None,
        description="least, initial and largest receive buffer in bytes; never a limit by default; `fixed`: the "
        "largest from the beginning",
    )
    tcp_wmem: _BufferTriple | None = Field(
        default=None,
        description="least, initial and largest send buffer in bytes; by default a limit only in a recovery without "
        "SACK, since Linux lets it grow to two windows; `fixed`: the largest from the beginning",
    )
    packets_per_ack: Annotated[int, Field(ge=0, le=1_000_000)] | None = Field(
        default=None,
        description="most packets an ACK counts as, in the slow start of every plug-in and in their reno; 0: as many "
        "as it acknowledges, as by default",
    )
    first_acks_per_packet: Annotated[int, Field(ge=0, le=1_000_000)] | None = Field(
        default=None,
        description="packets acknowledged for one by which the plug-ins' cubic grows before the first congestion; 0: "
        "as Linux today, as by default",
    )
    ipv6: bool = Field(default=False, description="leave IPv6 on; its random timers shift runs by microseconds")
