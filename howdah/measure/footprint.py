# SPDX-License-Identifier: Apache-2.0
"""What a connection takes in the kernel's memory, as the module of profiles/atlas/footprint.c tells it."""

from __future__ import annotations

from howdah.measure.row import Sheet
from howdah.record.agent import AgentRecord

_MODULE = "footprint"


def footprint_rows(sheet: Sheet, agent: AgentRecord) -> None:
    """``sock_bytes``, ``tcp_sock_bytes``, ``ack_sample_bytes``, ``rate_sample_bytes`` and
    ``congestion_control_room_bytes`` of the kernel; no rows in a run that does not load the module."""
    module = (agent.modules or {}).get(_MODULE)
    for name, size in module.parameters.items() if module else ():
        if size is not None and size.isdecimal():
            sheet.add(None, name, int(size))
