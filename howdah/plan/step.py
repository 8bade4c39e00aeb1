# SPDX-License-Identifier: Apache-2.0
"""Steps that build a network, and events that change it. Standard library only."""

from __future__ import annotations

from typing import Any

from howdah.codec import planned


@planned
class PlacedQueue:
    """A queueing discipline, and where it is."""

    node: str
    interface: str
    parent: str
    handle: str
    kind: str
    options: dict[str, Any]

    @property
    def at(self) -> tuple[str, str]:
        """Node and interface."""
        return self.node, self.interface

    @property
    def place(self) -> tuple[str, str, str]:
        """Node, interface and handle."""
        return self.node, self.interface, self.handle


class _Placing:
    op: str
    arguments: dict[str, Any]

    @property
    def queue(self) -> PlacedQueue | None:
        """Of a ``qdisc`` or a ``replace``."""
        return PlacedQueue(**self.arguments) if self.op in ("qdisc", "replace") else None


@planned
class Operation(_Placing):
    """One step that builds the network; ``op`` names the kind, ``arguments`` are JSON values. See operation.py."""

    op: str
    arguments: dict[str, Any]


@planned
class Event(_Placing):
    """Something that happens at a given time: ``start_flow``, ``stop_flow``; ``qdisc``, ``class``: a change of path."""

    at_us: int
    op: str
    arguments: dict[str, Any]
