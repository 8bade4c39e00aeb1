# SPDX-License-Identifier: Apache-2.0
"""Operations that build the network: nodes, veth pairs, offloads, addresses, routes, permanent neighbours."""

from __future__ import annotations

from collections.abc import Iterator

from howdah.errors import ProfileError
from howdah.plan.network import Interface, Network, bare
from howdah.plan.operation import Address, AddRoute, Gso, Mtu, Neighbour, Node, Offload, Up, VethLink
from howdah.plan.step import Operation
from howdah.profile import Cell

# The path is sized for packets that nothing splits or merges. Checksum offload keeps the kernel default: veth need not
# compute checksums, and computing them would only cost time.
OFFLOADS_OFF = ("tso", "gso", "gro", "lro")


def wire(network: Network, cell: Cell, pairs: list[tuple[str, str]]) -> list[Operation]:
    """Return all operations before the qdiscs, in Mininet's order of nodes and links."""
    path = cell.scenario.path
    operations: list[Operation] = [Node(node, role == "router") for node, role in network.roles.items()]
    operations += [_veth_pair(link.a, link.b) for link in network.links]
    for interface in _interfaces(network):
        place = (interface.node, interface.name)
        operations.append(Mtu(*place, path.mtu))
        operations += [Offload(*place, name, enabled=False) for name in OFFLOADS_OFF]
        if path.gso_max_segs is not None and network.roles[interface.node] != "router":
            operations.append(Gso(*place, path.gso_max_segs))
        operations += [Address(*place, address) for address in interface.addresses]
    operations += [Up(node, "lo") for node in network.roles]
    operations += [Up(item.node, item.name) for item in _interfaces(network)]
    operations += _routes(network)
    operations += _initial_windows(network, cell, pairs)
    operations += _neighbours(network)
    return operations


def _veth_pair(a: Interface, b: Interface) -> VethLink:
    return VethLink(a.node, a.name, a.mac, b.node, b.name, b.mac)


def _interfaces(network: Network) -> Iterator[Interface]:
    for link in network.links:
        yield link.a
        yield link.b


def _routes(network: Network) -> list[AddRoute]:
    return [AddRoute(route.node, route.destination, route.via, route.interface) for route in network.routes]


def _initial_windows(network: Network, cell: Cell, pairs: list[tuple[str, str]]) -> list[AddRoute]:
    """Return routes to the peers with initial windows: initcwnd at the sender, initrwnd at the receiver."""
    asked: dict[tuple[str, str, str], int | None] = {}
    for index, (flow, (sender, receiver)) in enumerate(zip(cell.scenario.every_flow, pairs, strict=True)):
        if getattr(flow, "direction", "forward") == "reverse":
            sender, receiver = receiver, sender
        for node, peer, name, value in (
            (sender, receiver, "initial_window", flow.initial_window),
            (receiver, sender, "initial_receive_window", flow.initial_receive_window),
        ):
            if asked.setdefault((node, peer, name), value) != value:
                what = f"flow {index + 1} and an earlier one join {sender} and {receiver} with different {name}"
                raise ProfileError(
                    what, where=cell.place(*cell.scenario.place_of(index), name), hint="give them hosts of their own"
                )
    operations = []
    for (node, peer, name), value in asked.items():
        if value is None:
            continue
        link = network.access_link(node)
        operations.append(
            AddRoute(
                node=node,
                destination=f"{bare(network.access_link(peer).at(peer).address)}/32",
                via=bare(link.facing(node).address),
                interface=link.at(node).name,
                initial_window_packets=value if name == "initial_window" else None,
                initial_receive_window_packets=value if name == "initial_receive_window" else None,
            )
        )
    return operations


def _neighbours(network: Network) -> list[Neighbour]:
    """Return permanent neighbour entries for both ends of every link, so that a run has no ARP packets or timers."""
    operations = []
    for link in network.links:
        for near, far in ((link.a, link.b), (link.b, link.a)):
            # A host sends only to its router's first address, the gateway; routers send to both addresses of a host.
            addresses = far.addresses if network.roles[near.node] == "router" else [far.address]
            operations += [Neighbour(near.node, near.name, bare(address), far.mac) for address in addresses]
    return operations
