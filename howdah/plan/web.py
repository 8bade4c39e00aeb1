# SPDX-License-Identifier: Apache-2.0
"""Web sessions: pages of objects, each object a connection of its own.

As in ns-2's generator the times do not depend on how fast the network answers: the next page, or object, is asked for
a while after the last one was, whether or not that has come. Otherwise a faster algorithm would meet more traffic.
"""

from __future__ import annotations

import math
from random import Random

from howdah.plan.connection import MOST_GENERATED, Connection
from howdah.plan.distribution import exponential, pareto_second
from howdah.profile.group import WebSection


def web_connections(web: WebSection, start_us: int, before_us: int, mss_bytes: int, draw: Random) -> list[Connection]:
    """The connections of all sessions by their starts; those that would not start before ``before_us`` are left out.

    The first session starts at ``start_us``, its first page and object with it.
    """
    found: list[Connection] = []
    session_us = float(start_us)
    for _ in range(web.sessions):
        page_us = session_us
        for _ in range(_geometric(draw, web.pages)):
            object_us = page_us
            for _ in range(_count(draw, web.objects, web.objects_shape)):
                size = min(_count(draw, web.object_packets, web.object_shape) * mss_bytes, web.largest)
                if object_us < before_us and len(found) <= MOST_GENERATED:
                    found.append(Connection(int(object_us), None, size))
                object_us += exponential(draw, web.between_objects)
            page_us += exponential(draw, web.between_pages)
        session_us += exponential(draw, web.between_sessions)
    return sorted(found, key=lambda connection: connection.start_us)


def _count(draw: Random, mean: int, shape: float) -> int:
    return max(1, round(pareto_second(draw, mean, shape)))


def _geometric(draw: Random, mean: int) -> int:
    """1, 2, … with this mean."""
    if mean == 1:
        return 1
    return 1 + int(math.log1p(-draw.random()) / math.log1p(-1 / mean))
