# SPDX-License-Identifier: Apache-2.0
"""A flow that no line of a profile writes out: one connection of a group."""

from __future__ import annotations

from typing import Literal

from howdah.profile.group import DatagramSection, HttpSection
from howdah.profile.model import FlowSection


class GeneratedFlowSection(FlowSection):
    """Made by howdah/plan/group.py. ``origin`` is the group's place in ``groups``, ``slot`` the host pair it takes,
    ``bursts`` when datagrams are sent (from, to; microseconds after the epoch)."""

    group: str
    origin: int
    slot: int
    direction: Literal["forward", "reverse"] = "forward"
    request: int | None = None
    udp: DatagramSection | None = None
    http: HttpSection | None = None
    requests: int = 1
    answer: int = 0  # bytes, of each of several requests
    think: int = 0
    bursts: tuple[tuple[int, int], ...] = ()
