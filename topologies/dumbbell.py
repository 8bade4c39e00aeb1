# SPDX-License-Identifier: Apache-2.0
"""Dumbbell: n senders, two routers, n receivers, one bottleneck between the routers.

::

    s1 ─┐                        ┌─ r1
        ├─ left ══════════ right ─┤
    s2 ─┘      bottleneck        └─ r2

Load it in plain Mininet with ``mn --custom topologies/dumbbell.py --topo dumbbell,2``: hosts reach each other through
the routers, without any shaping. Shaping (rates, buffers, delays) is not part of the topology.

What the parameters mean to whoever reads the topology: a node's ``role`` is ``sender``, ``router`` or ``receiver``; a
link's ``role`` is ``bottleneck`` on the one link that is. Every interface has an address for flows (``ip``) and hosts
a second one (``second_ip``), in a prefix of its own that is routed the same way, for measuring the path.
"""

from __future__ import annotations

from functools import cache
from typing import Any

from mininet.topo import Topo

MOST_PAIRS = 200


@cache
def node_classes() -> tuple[type, type]:
    """The classes of a host and of a router. Who only plans a topology makes no node, and need not load those of
    Mininet's, which takes longer than the plan."""
    from mininet.node import Node

    class EndHost(Node):  # type: ignore[misc]
        """A host with a second address on each interface that declares one."""

        def config(self, **params: Any) -> Any:
            result = super().config(**params)
            for interface in self.intfList():
                second = interface.params.get("second_ip")
                if second:
                    self.cmd("ip address add", second, "broadcast + dev", interface.name)
            return result

    class LinuxRouter(EndHost):
        """A node that forwards; ``routes`` is a list of (prefix, gateway)."""

        def config(self, **params: Any) -> Any:
            self.cmd("sysctl -w net.ipv4.ip_forward=1")
            result = super().config(**params)
            for prefix, gateway in self.params.get("routes", []):
                self.cmd("ip route replace", prefix, "via", gateway)
            return result

    return EndHost, LinuxRouter


def end_host(name: str, **params: Any) -> Any:
    """Makes a host, as Mininet asks for it."""
    return node_classes()[0](name, **params)


def linux_router(name: str, **params: Any) -> Any:
    """Makes a router, as Mininet asks for it."""
    return node_classes()[1](name, **params)


def _mac(side: int, pair: int, end: int) -> str:
    """A locally administered address; ``end`` is 1 at the host (or the left router), 2 at the other end."""
    return f"02:00:00:{side:02x}:{pair:02x}:{end:02x}"


class Dumbbell(Topo):  # type: ignore[misc]
    """``pairs`` senders and as many receivers. Interfaces: left-eth0 and right-eth0 are the bottleneck's ends."""

    def build(self, pairs: int = 1, **_params: Any) -> None:
        pairs = int(pairs)
        if not 1 <= pairs <= MOST_PAIRS:
            raise ValueError(f"a dumbbell has 1 to {MOST_PAIRS} pairs, not {pairs}")
        self.addHost(
            "left",
            cls=linux_router,
            role="router",
            ip=None,
            routes=[("10.2.0.0/16", "10.0.0.2"), ("10.12.0.0/16", "10.0.0.2")],
        )
        self.addHost(
            "right",
            cls=linux_router,
            role="router",
            ip=None,
            routes=[("10.1.0.0/16", "10.0.0.1"), ("10.11.0.0/16", "10.0.0.1")],
        )
        self.addLink(
            "left",
            "right",
            role="bottleneck",
            addr1=_mac(0, 0, 1),
            addr2=_mac(0, 0, 2),
            params1={"ip": "10.0.0.1/30"},
            params2={"ip": "10.0.0.2/30"},
        )
        for side, role, router, letter in ((1, "sender", "left", "s"), (2, "receiver", "right", "r")):
            for pair in range(1, pairs + 1):
                self._host(side, role, router, f"{letter}{pair}", pair)

    def _host(self, side: int, role: str, router: str, name: str, pair: int) -> None:
        network, second = f"10.{side}.{pair}", f"10.{10 + side}.{pair}"
        self.addHost(name, cls=end_host, role=role, ip=f"{network}.1/24", defaultRoute=f"via {network}.254")
        self.addLink(
            name,
            router,
            addr1=_mac(side, pair, 1),
            addr2=_mac(side, pair, 2),
            params1={"ip": f"{network}.1/24", "second_ip": f"{second}.1/24"},
            params2={"ip": f"{network}.254/24", "second_ip": f"{second}.254/24"},
        )


topos = {"dumbbell": Dumbbell}
