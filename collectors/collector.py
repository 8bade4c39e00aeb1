# SPDX-License-Identifier: Apache-2.0
"""What all collectors share: the surroundings they are given, and the three steps of their life."""

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
    """A connection to watch: its flow, its ends as each end's own host sees them, and whether it is there now.

    Connections of a group are opened when they start and closed when they are done (``is_over``); others are always
    active.
    """

    flow: Flow
    endpoint: Endpoint
    is_active: Callable[[], bool] = lambda: True
    is_over: Callable[[], bool] = lambda: False
    find: Callable[[], Endpoint] | None = None  # the connection of programs, whose client's port may be any

    @property
    def program_port(self) -> int | None:
        """The port of the server, where programs make a TCP connection."""
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
    """A connection with the ends that are in this kernel."""

    here: frozenset[str] = frozenset()

    @property
    def ends(self) -> tuple[tuple[str, Endpoint], ...]:  # type: ignore[override]
        return tuple(end for end in super().ends if end[0] in self.here)


@planned
class Surroundings:
    """``node_numbers`` are positions in ``plan.hosts``, which the framed files use."""

    plan: Plan | None  # None where nobody planned: what a machine is asked to record by hand
    namespaces: dict[str, Namespace]
    node_numbers: dict[str, int]
    connections: list[Watched]
    output: Output

    @property
    def planned(self) -> Plan:
        assert self.plan is not None
        return self.plan

    def ends_in(self, here: frozenset[str]) -> Surroundings:
        """The same, where the connections have the ends in these nodes alone."""
        connections: list[Watched] = [
            HereWatched(item.flow, item.endpoint, item.is_active, item.is_over, here=here) for item in self.connections
        ]
        return replace(self, connections=connections)


class CollectorError(Exception):
    """A collector cannot do its work here; the message says what is missing."""


class Collector:
    """``check`` (can it run here?), ``start``, ``sample`` at every ``interval_ns``, ``stop``.

    Nothing a collector does between start and stop may reach the packets: no waiting, no sockets that take part.
    """

    interval_ns: int | None = None

    def __init__(self, surroundings: Surroundings) -> None:
        self.surroundings = surroundings

    def check(self) -> None:
        """Raises CollectorError."""

    def start(self, now_ns: int) -> None:
        """Open what is needed; called once, before the flows."""

    def sample(self, now_ns: int) -> None:
        """One reading; ``now_ns`` is the CLOCK_MONOTONIC time of the wake-up."""

    def stop(self, now_ns: int) -> None:
        """Take the last reading and close everything; called once, after the network fell silent."""


class IntervalCollector(Collector):
    """One that ``collect:`` of a profile names with the interval of its readings; howdah/registered.py finds it.

    ``says`` is its line in the profile reference; ``default`` is its interval where a profile names none (None: off).
    """

    says: ClassVar[str]
    default: ClassVar[str | None] = None

    def __init__(self, surroundings: Surroundings, interval_us: int | None) -> None:
        super().__init__(surroundings)
        self.interval_ns = None if interval_us is None else interval_us * 1000

    @classmethod
    def planned_for(cls, _plan: Plan) -> bool:
        """Whether a run of the plan has what it reads."""
        return True

    @classmethod
    def works_in(cls, _surroundings: Surroundings) -> bool:
        """Whether what it reads is in this kernel."""
        return True
