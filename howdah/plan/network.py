# SPDX-License-Identifier: Apache-2.0
"""The network of a plan: nodes, links and addresses, from a Mininet topology or assigned."""

from __future__ import annotations

import ipaddress
from collections import deque
from collections.abc import Iterator
from dataclasses import dataclass, field


@dataclass(frozen=True)
class Interface:
    """One end of a link. ``address`` and ``second_address`` include the prefix length: ``10.1.1.1/24``."""

    node: str
    name: str
    mac: str
    address: str
    second_address: str | None = None

    @property
    def addresses(self) -> list[str]:
        return [self.address] + ([self.second_address] if self.second_address else [])


@dataclass(frozen=True)
class Link:
    a: Interface
    b: Interface
    bottleneck: bool = False

    def at(self, node: str) -> Interface:
        return self.a if self.a.node == node else self.b

    def facing(self, node: str) -> Interface:
        """The interface at the other end."""
        return self.b if self.a.node == node else self.a


@dataclass(frozen=True)
class Route:
    """``destination`` is a prefix or ``default``; ``via`` is a neighbour's address without prefix length."""

    node: str
    destination: str
    via: str
    interface: str


@dataclass(frozen=True)
class Network:
    """Nodes with their role (``sender``, ``router``, ``receiver``), links and routes, each in order of creation."""

    name: str
    roles: dict[str, str]
    links: list[Link]
    routes: list[Route] = field(default_factory=list)
    _links: dict[str, list[Link]] = field(default_factory=dict, init=False, compare=False, repr=False)
    _ways: dict[tuple[str, str], list[Link]] = field(default_factory=dict, init=False, compare=False, repr=False)

    def nodes(self, role: str) -> list[str]:
        return [node for node, its_role in self.roles.items() if its_role == role]

    def links_of(self, node: str) -> Iterator[Link]:
        if not self._links:  # cached for hundreds of hosts and each change of their delay lines
            for link in self.links:
                self._links.setdefault(link.a.node, []).append(link)
                self._links.setdefault(link.b.node, []).append(link)
        return iter(self._links.get(node, ()))

    def access_link(self, host: str) -> Link:
        """A host's only link."""
        return next(self.links_of(host))

    @property
    def bottleneck(self) -> Link:
        return next(link for link in self.links if link.bottleneck)

    def way(self, start: str, end: str) -> list[Link]:
        """Return the links of the shortest route between nodes, in order; empty without one. Hosts do not forward."""
        if (start, end) not in self._ways:  # cached for hundreds of flows between the same hosts
            self._ways[start, end] = self._found(start, end)
        return self._ways[start, end]

    def _found(self, start: str, end: str) -> list[Link]:
        before: dict[str, tuple[str, Link] | None] = {start: None}
        waiting = deque([start])
        while waiting and end not in before:
            node = waiting.popleft()
            if node != start and self.roles[node] != "router":
                continue
            for link in self.links_of(node):
                neighbour = link.facing(node).node
                if neighbour not in before:
                    before[neighbour] = (node, link)
                    waiting.append(neighbour)
        links: list[Link] = []
        step = before.get(end)
        while step is not None:
            links.append(step[1])
            step = before[step[0]]
        return links[::-1]

    def bottleneck_ends(self, sender: str, receiver: str) -> tuple[Interface, Interface] | None:
        """Return the bottleneck's interfaces in the direction of travel, or None if the route does not cross it."""
        node = sender
        for link in self.way(sender, receiver):
            if link.bottleneck:
                return link.at(node), link.facing(node)
            node = link.facing(node).node
        return None


def bare(address: str) -> str:
    """``10.1.1.1/24`` → ``10.1.1.1``."""
    return address.partition("/")[0]


def prefix(address: str) -> str:
    """``10.1.1.1/24`` → ``10.1.1.0/24``."""
    return str(ipaddress.ip_interface(address).network)
