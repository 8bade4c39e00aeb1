# SPDX-License-Identifier: Apache-2.0
"""The base classes of collectors, and what a run gives them."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace
from typing import ClassVar

from howdah.codec import planned
from howdah.linux.namespace import Namespace
from howdah.linux.netlink.diag import Endpoint
from howdah.linux.output import Output
from howdah.plan.plan import Flow, Plan


@planned
class Watched:
    """A connection to watch: its flow, its ends as each end's own host sees them, and whether it exists now.

    Connections of a group are opened when they start and closed when they are done (``is_over``); others are always
    active.
    """

    flow: Flow
    endpoint: Endpoint
    is_active: Callable[[], bool] = lambda: True
    is_over: Callable[[], bool] = lambda: False
    find: Callable[[], Endpoint] | None = None  # current ends of a programs' connection, whose client port may vary

    @property
    def program_port(self) -> int | None:
        """The server's port if programs make a TCP connection."""
        program = self.flow.program
        if program is None or program.protocol != "tcp":
            return None
        return self.flow.source_port if program.sends == "server" else self.flow.destination_port

    @property
    def generated(self) -> bool:
        """Whether it belongs to a group."""
        return self.flow.group is not None

    @property
    def ends(self) -> tuple[tuple[str, Endpoint], tuple[str, Endpoint]]:
        endpoint = self.endpoint if self.find is None else self.find()
        return (self.flow.sender, endpoint), (self.flow.receiver, endpoint.reversed())


@planned
class HereWatched(Watched):
    """A connection with only the ends that are in this kernel."""

    here: frozenset[str] = frozenset()

    @property
    def ends(self) -> tuple[tuple[str, Endpoint], ...]:  # type: ignore[override]
        return tuple(end for end in super().ends if end[0] in self.here)


@planned
class Surroundings:
    """What a run gives its collectors; ``node_numbers`` are positions in ``plan.hosts``, which framed files use."""

    plan: Plan | None  # None for a recording by hand, which has no plan
    namespaces: dict[str, Namespace]
    node_numbers: dict[str, int]
    connections: list[Watched]
    output: Output

    @property
    def planned(self) -> Plan:
        assert self.plan is not None
        return self.plan

    def ends_in(self, here: frozenset[str]) -> Surroundings:
        """Return the surroundings with only those ends of connections that are in these nodes."""
        connections: list[Watched] = [
            HereWatched(item.flow, item.endpoint, item.is_active, item.is_over, here=here) for item in self.connections
        ]
        return replace(self, connections=connections)


class CollectorError(Exception):
    """A collector cannot work here; the message says what is missing."""


class Collector:
    """A source of data: ``check`` (can it run here?), ``start``, ``sample`` at every ``interval_ns``, ``stop``.

    Between start and stop a collector must not affect packets: it may not wait or open sockets that take part.
    """

    interval_ns: int | None = None

    def __init__(self, surroundings: Surroundings) -> None:
        self.surroundings = surroundings

    def check(self) -> None:
        """Raise CollectorError if the collector cannot run here."""

    def start(self, now_ns: int) -> None:
        """Open what is needed; called once, before the flows."""

    def sample(self, now_ns: int) -> None:
        """Take one sample; ``now_ns`` is the CLOCK_MONOTONIC time of the wake-up."""

    def stop(self, now_ns: int) -> None:
        """Take the last sample and close everything; called once, after the network fell silent."""


class IntervalCollector(Collector):
    """A collector that a profile's ``collect:`` names with its sampling interval; howdah/registered.py finds it.

    ``says`` is its line in the profile reference; ``default`` is its interval if a profile gives none (None: off).
    """

    says: ClassVar[str]
    default: ClassVar[str | None] = None

    def __init__(self, surroundings: Surroundings, interval_us: int | None) -> None:
        super().__init__(surroundings)
        self.interval_ns = None if interval_us is None else interval_us * 1000

    @classmethod
    def planned_for(cls, _plan: Plan) -> bool:
        """Whether a run of the plan has anything for it to read."""
        return True

    @classmethod
    def works_in(cls, _surroundings: Surroundings) -> bool:
        """Whether this kernel has anything for it to read."""
        return True
