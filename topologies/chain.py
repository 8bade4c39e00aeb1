# SPDX-License-Identifier: Apache-2.0
"""Chain: n senders, several bottlenecks in series, n receivers; and beside each hop a pair that crosses only that one.

::

    s1 ─┐                                      ┌─ r1
        ├─ left ════════ m1 ════════ right ────┤
    s2 ─┘   │           │  │            │      └─ r2
            x1         y1  x2          y2

Hop k leads from the k-th router to the next; ``xk`` sends to ``yk`` over it (a parking lot). Routers are ``left``,
``m1``, ``m2`` …, ``right``. ``before`` and ``after`` say how many hops lie on either side of the one bottleneck, which
is the link with ``role='bottleneck'``. What else the parameters mean is said in dumbbell.py.
"""

from __future__ import annotations

import importlib.util
import sys
from pathlib import Path
from typing import Any

from mininet.topo import Topo

MOST_PAIRS = 200
MOST_HOPS = 9


def _dumbbell() -> Any:
    """The module beside this one; ``mn --custom`` reads a file without making its directory importable."""
    name = "howdah_topology_dumbbell"
    if name not in sys.modules:
        specification = importlib.util.spec_from_file_location(name, Path(__file__).with_name("dumbbell.py"))
        assert specification is not None
        assert specification.loader is not None
        sys.modules[name] = importlib.util.module_from_spec(specification)
        specification.loader.exec_module(sys.modules[name])
    return sys.modules[name]


class Chain(Topo):  # type: ignore[misc]
    """``pairs`` senders and receivers; ``before`` + 1 + ``after`` hops."""

    def build(self, pairs: int = 1, before: int = 0, after: int = 1, **_params: Any) -> None:
        pairs, before, after = int(pairs), int(before), int(after)
        hops = before + 1 + after
        if not 1 <= pairs <= MOST_PAIRS or not 1 <= hops <= MOST_HOPS:
            raise ValueError(f"a chain has 1 to {MOST_PAIRS} pairs and 1 to {MOST_HOPS} hops, not {pairs} and {hops}")
        self._nodes = _dumbbell()
        names = ["left", *(f"m{number}" for number in range(1, hops)), "right"]
        for number, name in enumerate(names):
            routes = self._routes(number, hops)
            self.addHost(name, cls=self._nodes.linux_router, role="router", ip=None, routes=routes)
        for number in range(hops):
            self.addLink(
                names[number],
                names[number + 1],
                role="bottleneck" if number == before else "hop",
                addr1=f"02:00:00:00:{number:02x}:01",
                addr2=f"02:00:00:00:{number:02x}:02",
                params1={"ip": f"10.0.{number}.1/30"},
                params2={"ip": f"10.0.{number}.2/30"},
            )
        for side, role, router, letter in ((1, "sender", "left", "s"), (2, "receiver", "right", "r")):
            for pair in range(1, pairs + 1):
                self._host(side, role, router, f"{letter}{pair}", pair)
        for hop in range(1, hops + 1):
            self._host(3, "sender", names[hop - 1], f"x{hop}", hop)
            self._host(4, "receiver", names[hop], f"y{hop}", hop)

    @staticmethod
    def _routes(number: int, hops: int) -> list[tuple[str, str]]:
        """Of the router with this number: senders are to its left, receivers to its right, crossing hosts where they
        are."""
        ahead, back = f"10.0.{number}.2", f"10.0.{number - 1}.1"
        routes = []
        if number < hops:
            routes += [("10.2.0.0/16", ahead), ("10.12.0.0/16", ahead)]
        if number > 0:
            routes += [("10.1.0.0/16", back), ("10.11.0.0/16", back)]
        for hop in range(1, hops + 1):
            for side, home in ((3, hop - 1), (4, hop)):
                if home != number:
                    via = ahead if home > number else back
                    routes += [(f"10.{side}.{hop}.0/24", via), (f"10.{10 + side}.{hop}.0/24", via)]
        return routes

    def _host(self, side: int, role: str, router: str, name: str, number: int) -> None:
        network, second = f"10.{side}.{number}", f"10.{10 + side}.{number}"
        self.addHost(name, cls=self._nodes.end_host, role=role, ip=f"{network}.1/24", defaultRoute=f"via {network}.254")
        self.addLink(
            name,
            router,
            addr1=f"02:00:00:{side:02x}:{number:02x}:01",
            addr2=f"02:00:00:{side:02x}:{number:02x}:02",
            params1={"ip": f"{network}.1/24", "second_ip": f"{second}.1/24"},
            params2={"ip": f"{network}.254/24", "second_ip": f"{second}.254/24"},
        )


topos = {"chain": Chain}
