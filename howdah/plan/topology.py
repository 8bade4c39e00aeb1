# SPDX-License-Identifier: Apache-2.0
"""From a Mininet ``Topo`` to a ``Network``: the real class is instantiated, as pure Python, and read.

Names are Mininet's (``left-eth0``), as is the order in which nodes and links are made, so that a plan and stock Mininet
build the same network. ``role`` parameters of a topology mark senders, routers, receivers and the bottleneck link;
addresses and MACs that it leaves out are assigned.
"""

from __future__ import annotations

import importlib.util
import ipaddress
import re
import sys
from pathlib import Path
from types import ModuleType
from typing import Any

from howdah.errors import ProfileError
from howdah.place import TOPOLOGIES
from howdah.plan.network import Interface, Link, Network, Route, bare, prefix

ROLES = ("sender", "router", "receiver")
LONGEST_INTERFACE = 15  # IFNAMSIZ - 1
SHIPPED = TOPOLOGIES


def load_topo(name: str | None, file: Path | None, class_name: str | None, arguments: dict[str, int]) -> Any:
    """Instantiate a shipped topology by name, or a class of a file. Raise ProfileError."""
    source = file or SHIPPED / f"{name}.py"
    if not source.is_file():
        raise ProfileError(f"there is no topology file {source}")
    module = _import(source)
    made = getattr(module, class_name, None) if class_name else getattr(module, "topos", {}).get(name)
    if made is None or not _is_topo(made):
        known = ", ".join(sorted(key for key, value in vars(module).items() if _is_topo(value)))
        wanted = class_name or name
        what = f"there is no class {wanted}" if made is None else f"{wanted} is not a Topo class of Mininet's"
        raise ProfileError(what, where=str(source), hint=f"it has {known or 'none'}")
    try:
        return made(**arguments)
    except (Exception, SystemExit) as error:  # a user's code may raise anything
        given = ", ".join(map(str, arguments.values()))
        raise ProfileError(f"{made.__name__}({given}) failed: {error!r}", where=str(source)) from error


def _import(source: Path) -> ModuleType:
    name = f"howdah_topology_{re.sub(r'[^A-Za-z0-9_]', '_', source.stem)}"
    specification = importlib.util.spec_from_file_location(name, source)
    if specification is None or specification.loader is None:
        raise ProfileError("this is not a Python file", where=str(source))
    module = importlib.util.module_from_spec(specification)
    sys.modules[name] = module
    try:
        specification.loader.exec_module(module)
    except (Exception, SystemExit) as error:  # a user's code may raise anything
        raise ProfileError(f"the topology cannot be imported: {error!r}", where=str(source)) from error
    finally:
        del sys.modules[name]
    return module


def _is_topo(value: object) -> bool:
    return isinstance(value, type) and any(base.__name__ == "Topo" for base in value.__mro__[1:])


def lower(topo: Any, name: str) -> Network:
    """Convert a ``Topo``: nodes, links, addresses and routes. Raise ProfileError for what cannot be planned."""
    if topo.switches():
        raise ProfileError(f"{topo.switches()[0]} is a switch; only hosts and routers can be planned", where=name)
    roles = {node: str(topo.nodeInfo(node).get("role")) for node in topo.hosts()}
    for node, role in roles.items():
        if role not in ROLES:
            raise ProfileError(f"node {node} has no role", where=name, hint=f"give it role= one of {', '.join(ROLES)}")
    links = [_link(topo, number, info) for number, (_, _, info) in enumerate(topo.links(sort=True, withInfo=True))]
    network = Network(name, roles, links)
    _check(network)
    network.routes.extend(_routes(topo, network))
    return network


def _link(topo: Any, number: int, info: dict[str, Any]) -> Link:
    nodes = (info["node1"], info["node2"])
    routers = [topo.nodeInfo(node).get("role") == "router" for node in nodes]
    ends = []
    for end, (node, is_router) in enumerate(zip(nodes, routers, strict=True), start=1):
        parameters = info.get(f"params{end}") or {}
        last = 254 if is_router and not all(routers) else end
        own = topo.nodeInfo(node).get("ip") if info[f"port{end}"] == 0 and not is_router else None
        address = parameters.get("ip") or own or f"10.{64 + number // 256}.{number % 256}.{last}/24"
        second = parameters.get("second_ip")
        if second is None and not all(routers):
            second = f"10.{128 + number // 256}.{number % 256}.{last}/24"
        mac = info.get(f"addr{end}") or f"02:00:01:{number // 256:02x}:{number % 256:02x}:{end:02x}"
        interface = info.get(f"intfName{end}") or f"{node}-eth{info[f'port{end}']}"
        ends.append(Interface(node, interface, mac.lower(), address, second))
    return Link(ends[0], ends[1], info.get("role") == "bottleneck")


def _check(network: Network) -> None:
    def wrong(what: str) -> ProfileError:
        return ProfileError(what, where=network.name)

    count = sum(link.bottleneck for link in network.links)
    if count != 1:
        raise wrong(f"{count} links have role='bottleneck'; a topology has exactly one")
    for role in ("sender", "receiver"):
        if not network.nodes(role):
            raise wrong(f"no node has role={role!r}")
    for host in network.nodes("sender") + network.nodes("receiver"):
        attached = list(network.links_of(host))
        if len(attached) != 1 or network.roles[attached[0].facing(host).node] != "router":
            raise wrong(f"{host} must have exactly one link, to a router")
    seen: dict[str, str] = {}
    for link in network.links:
        for interface, peer in ((link.a, link.b), (link.b, link.a)):
            if len(interface.name) > LONGEST_INTERFACE:
                raise wrong(f"{interface.name} is longer than an interface's name can be ({LONGEST_INTERFACE})")
            for value in (*map(bare, interface.addresses), interface.mac):
                if value in seen:
                    raise wrong(f"{interface.name} and {seen[value]} have the same address {value}")
                seen[value] = interface.name
            try:
                same = ipaddress.ip_address(bare(peer.address)) in ipaddress.ip_interface(interface.address).network
            except ValueError as error:
                raise wrong(f"{interface.name}: {error}") from None
            if not same:
                raise wrong(f"{interface.address} and {peer.address} on one link are not in one network")


def _routes(topo: Any, network: Network) -> list[Route]:
    routes = []
    for node, role in network.roles.items():
        declared = topo.nodeInfo(node).get("routes")
        if role != "router":
            link = network.access_link(node)
            routes.append(Route(node, "default", bare(link.facing(node).address), link.at(node).name))
        elif declared is not None:
            routes += [_declared(network, node, destination, via) for destination, via in declared]
        else:
            routes += _shortest(network, node)
    return routes


def _declared(network: Network, node: str, destination: str, via: str) -> Route:
    for link in network.links_of(node):
        if bare(link.facing(node).address) == via:
            return Route(node, destination, via, link.at(node).name)
    raise ProfileError(f"{node} has a route via {via}, which is not a neighbour's address", where=network.name)


def _shortest(network: Network, router: str) -> list[Route]:
    """Return a route to both prefixes of every host that is not a neighbour."""
    routes = []
    for host in network.nodes("sender") + network.nodes("receiver"):
        way = network.way(router, host)
        if len(way) < 2:
            continue
        via, interface = bare(way[0].facing(router).address), way[0].at(router).name
        addresses = network.access_link(host).at(host).addresses
        routes += [Route(router, prefix(address), via, interface) for address in addresses]
    return routes
