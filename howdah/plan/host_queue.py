# SPDX-License-Identifier: Apache-2.0
"""The queues that a plan gives to senders' interfaces while flows run (howdah/plan/exchange.py)."""

from __future__ import annotations

import dataclasses
from collections.abc import Iterator
from dataclasses import dataclass

from howdah.linux.netlink.discipline.discipline import HostQueue
from howdah.plan.placed import Replace
from howdah.plan.plan import Plan

HOST_HANDLE = "20:"


@dataclass(frozen=True)
class PlannedQueue:
    """A queue of a sender's interface."""

    node: str
    interface: str
    queue: HostQueue


def host_queues(plan: Plan) -> Iterator[PlannedQueue]:
    """Yield the senders' queues that may drop packets."""
    for item in plan.timeline:
        new = item.change
        if isinstance(new, Replace) and new.handle == HOST_HANDLE and isinstance(new.discipline, HostQueue):
            yield PlannedQueue(*new.at, new.discipline)


def queue_words(queue: HostQueue) -> str:
    """Return the queue as text: ``fq, limit 10000, flow_limit 100 packets``."""
    options = [f"{name.removesuffix('_packets')} {value}" for name, value in dataclasses.asdict(queue).items()]
    return ", ".join([queue.kind, *options]) + " packets"
