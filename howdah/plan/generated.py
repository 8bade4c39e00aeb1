# SPDX-License-Identifier: Apache-2.0
"""A flow that the profile does not write out: one connection of a group."""

from __future__ import annotations

from typing import Literal

from howdah.profile.group import DatagramSection, HttpSection
from howdah.profile.model import FlowSection


class GeneratedFlowSection(FlowSection):
    """One connection of a group (howdah/plan/group.py). ``origin`` is the group's index in ``groups``, ``slot`` the
    index of its host pair, ``bursts`` the times at which datagrams are sent (from, to; microseconds after the epoch).
    """

    group: str
    origin: int
    slot: int
    direction: Literal["forward", "reverse"] = "forward"
    request: int | None = None
    udp: DatagramSection | None = None
    http: HttpSection | None = None
    requests: int = 1
    answer: int = 0  # bytes of the answer to each of several requests
    think: int = 0
    bursts: tuple[tuple[int, int], ...] = ()
