# SPDX-License-Identifier: Apache-2.0
"""Ports of the flows of a plan: for each a pair that no other flow has, so that it tells whose records they are."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

from howdah.errors import ProfileError

FIRST_SOURCE_PORT = 40001
FIRST_DESTINATION_PORT = 5001
# Of either side. Senders' ports end at 65000, and receivers' ones below the first of the senders'.
MOST_PORTS = 25_000
MOST_KEPT = 20_000  # ports of one flow alone
_CONNECTING_RTTS = 4  # a listener is there until its connection is accepted


@dataclass(frozen=True)
class PortNeed:
    """Of one flow: whether it ``keeps`` its ports for the whole run, when it starts, its round trip, and its two hosts,
    the sender's first."""

    keeps: bool
    start_us: int
    rtt_us: int
    hosts: tuple[str, str]


def port_pairs(flows: Sequence[PortNeed]) -> list[tuple[int, int]]:
    """Sender's and receiver's port of each flow: the i-th has the i-th ones, as far as they go.

    Where there are more flows, those that do not keep their ports take them in turn, in the order of their starts.
    There is one port more for receivers than for senders, so that no pair comes twice. Raises ProfileError without a
    place.
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
