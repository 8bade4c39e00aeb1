# SPDX-License-Identifier: Apache-2.0
"""What a plan depends on of the engine that will run it."""

from __future__ import annotations

from dataclasses import dataclass, replace


@dataclass(frozen=True)
class Traits:
    """``own_kernel``: it is ours to load modules into, so traffic is in the kernel by default.

    ``virtual_clock``: time is simulated, so timers are on time and rate limits are exact to one frame.
    ``exact_uptime``: computing takes no simulated time either, so the experiment starts at an uptime that the plan
    fixes; elsewhere the agent chooses the instant when the network is built.
    """

    own_kernel: bool
    virtual_clock: bool
    exact_uptime: bool


_TRAITS = {
    "uml": Traits(own_kernel=True, virtual_clock=True, exact_uptime=True),
    "vm": Traits(own_kernel=True, virtual_clock=True, exact_uptime=False),
    "lab": Traits(own_kernel=True, virtual_clock=False, exact_uptime=False),
    "host": Traits(own_kernel=False, virtual_clock=False, exact_uptime=False),
}
ENGINES = tuple(_TRAITS)


def traits(engine: str, *, real_time: bool = False) -> Traits:
    """Of the engine of that name; of one nothing is known of, none. ``real_time``: the vm engine without its clock."""
    found = _TRAITS.get(engine, Traits(own_kernel=False, virtual_clock=False, exact_uptime=False))
    return replace(found, virtual_clock=False) if real_time else found
