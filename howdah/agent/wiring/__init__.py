# SPDX-License-Identifier: Apache-2.0
"""Building the emulated network from the plan's operations: over netlink, or with stock Mininet and the stock tools."""

from __future__ import annotations

from pathlib import Path

from howdah.agent.error import AgentError
from howdah.agent.settings import Settings
from howdah.agent.wiring.netlink import NetlinkWiring
from howdah.plan.plan import Plan

Wiring = NetlinkWiring


def make_wiring(kind: str, plan: Plan, inputs: Path, settings: Settings | None = None) -> Wiring:
    """Return the wiring, ``netlink`` or ``mininet``; it builds nothing yet. Raises AgentError for another kind."""
    if kind == "netlink":
        return NetlinkWiring(settings)
    if kind == "mininet":
        from howdah.agent.wiring.mininet import MininetWiring

        return MininetWiring(plan, inputs, settings)
    raise AgentError("wiring", f"{kind!r} is not one of netlink, mininet")
