# SPDX-License-Identifier: Apache-2.0
"""Ports of the flows of a plan: a pair of ports identifies the flow in all records, as no two flows share one."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

from howdah.errors import ProfileError

FIRST_SOURCE_PORT = 40001
FIRST_DESTINATION_PORT = 5001
# Ports of either side. Senders' ports end at 65000, and receivers' ports below the first of the senders'.
MOST_PORTS = 25_000
MOST_KEPT = 20_000  # most flows that keep their ports for the whole run
_CONNECTING_RTTS = 4  # a listener exists until its connection is accepted


@dataclass(frozen=True)
class PortNeed:
    """What matters for the ports of a flow: whether it ``keeps`` them for the whole run, its start, its RTT, and its
    two hosts, the sender's first."""

    keeps: bool
    start_us: int
    rtt_us: int
    hosts: tuple[str, str]


def port_pairs(flows: Sequence[PortNeed]) -> list[tuple[int, int]]:
    """Return sender's and receiver's port of each flow; the i-th flow has the i-th ports, as long as there are enough.

    With more flows, those that do not keep their ports take turns, in the order of their starts. Receivers have one
    port more than senders, so that no pair repeats. Raise ProfileError, without a place, if the ports do not suffice.
    """
    if len(flows) <= MOST_PORTS:
        return [(FIRST_SOURCE_PORT + index, FIRST_DESTINATION_PORT + index) for index in range(len(flows))]
    kept = [index for index, flow in enumerate(flows) if flow.keeps]
    if len(kept) > MOST_KEPT:
        what = f"{len(kept)} flows each need a port of their own for the whole run; there are {MOST_KEPT}"
        raise ProfileError(what, hint="ask for fewer of them")
    others = sorted((index for index, flow in enumerate(flows) if not flow.keeps), key=lambda i: (flows[i].start_us, i))
    turns = MOST_PORTS - len(kept)
    numbers = {index: (number, number) for number, index in enumerate(kept)}
    taken_us: dict[tuple[int, tuple[str, int]], int] = {}  # by side, host and number
    for turn, index in enumerate(others):
        flow = flows[index]
        numbers[index] = pair = len(kept) + turn % turns, len(kept) + turn % (turns + 1)
        for place in enumerate(zip(flow.hosts, pair, strict=True)):
            before_us = taken_us.get(place)
            if before_us is not None and flow.start_us - before_us < _CONNECTING_RTTS * flow.rtt_us:
                what = f"more than {turns} connections are opened within {_CONNECTING_RTTS} round trips"
                hint = "start them later after each other (interval, spread), or ask for more pairs"
                raise ProfileError(what, hint=hint)
            taken_us[place] = flow.start_us
    pairs = (numbers[index] for index in range(len(flows)))
    return [(FIRST_SOURCE_PORT + source, FIRST_DESTINATION_PORT + destination) for source, destination in pairs]
