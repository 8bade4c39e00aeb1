# SPDX-License-Identifier: Apache-2.0
"""Two senders, a router on each side of the bottleneck, two receivers."""

from mininet.topo import Topo

NOTHING = None


class Other:
    """A class that is no topology."""

    def __init__(self, pairs: int = 1) -> None:
        self.pairs = pairs


class Own(Topo):  # type: ignore[misc]
    def build(self, pairs: int = 2) -> None:
        left, right = self.addHost("left", role="router"), self.addHost("right", role="router")
        self.addLink(left, right, role="bottleneck")
        for number in range(1, pairs + 1):
            self.addLink(self.addHost(f"s{number}", role="sender"), left)
            self.addLink(self.addHost(f"d{number}", role="receiver"), right)
