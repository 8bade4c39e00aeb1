# SPDX-License-Identifier: Apache-2.0
"""What an engine is, as far as plan, agent, judge and measures depend on it.

A plan carries the traits of its engine (``traits`` of plan.json), so nothing downstream asks for an engine's name.
"""

from __future__ import annotations

from dataclasses import field, replace

from howdah.codec import OCCASIONAL, planned

_MODEL = "model ("  # how the label of a simulator begins; no kernel's release has a bracket


@planned
class Traits:
    """What holds for every run of an engine.

    ``own_kernel``: the kernel is ours to load modules into, so traffic is in the kernel by default.
    ``virtual_clock``: time is simulated, so timers are on time and rate limits are exact to one frame.
    ``exact_uptime``: computing takes no simulated time either, so the experiment starts at an uptime that the plan
    fixes; elsewhere the agent chooses the instant when the network is built.
    ``finite_processor``: computing takes simulated time, and the engine counts what the processor does.
    ``outlives_run``: kernel and machine go on when the run is over; the agent puts back what it changed.
    ``several_kernels``: hosts may be in kernels of their own that share a virtual time.
    ``several_machines``: hosts are spread over machines, each with a kernel and a clock of its own.
    ``boots_machine``: the engine boots a machine that the profile's ``machine:`` section describes.
    ``agent_seeds_random``: nothing but the agent gives the kernel its random seed.
    ``readable_while_running``: raw/ can be read while the run is made.
    ``model``: the release of a simulator whose TCP is a model; empty where a kernel runs. It is shown as the kernel of
    such a run (``label``).
    """

    own_kernel: bool = False
    virtual_clock: bool = False
    exact_uptime: bool = False
    finite_processor: bool = False
    outlives_run: bool = False
    several_kernels: bool = False
    several_machines: bool = False
    boots_machine: bool = False
    agent_seeds_random: bool = False
    readable_while_running: bool = False
    model: str = field(default="", metadata=OCCASIONAL)

    @property
    def label(self) -> str:
        """What stands in place of a kernel's release: ``model (ns-2 2.35)``; empty where a kernel runs."""
        return f"{_MODEL}{self.model})" if self.model else ""


_TRAITS: dict[str, Traits] = {
    "uml": Traits(own_kernel=True, virtual_clock=True, exact_uptime=True, several_kernels=True),
    "vm": Traits(
        own_kernel=True, virtual_clock=True, finite_processor=True, boots_machine=True, agent_seeds_random=True
    ),
    "machines": Traits(own_kernel=True, outlives_run=True, several_machines=True),
    "host": Traits(outlives_run=True, readable_while_running=True),
    "ns2": Traits(virtual_clock=True, exact_uptime=True, model="ns-2 2.35"),
}


_FORMER_NAMES = {"lab": "machines"}


def is_model(kernel: str) -> bool:
    """Whether what stands in place of a kernel's release is a simulator's label."""
    return kernel.startswith(_MODEL)


def engines() -> tuple[str, ...]:
    """Names of all engines, the default first."""
    return tuple(_TRAITS)


def known_engines(asked: object = None) -> str:
    """The names for a message about one that no engine has; ``asked`` may be a former name of one."""
    import difflib  # which a guest, that has this file, has no use for

    new = _FORMER_NAMES.get(asked) if isinstance(asked, str) else None
    close = difflib.get_close_matches(str(asked), engines(), n=1, cutoff=0.5) if asked is not None and not new else []
    hint = f" ({asked} is now called {new})" if new else f" (did you mean {close[0]}?)" if close else ""
    return ", ".join(engines()) + hint


def traits(engine: str, *, real_time: bool = False) -> Traits:
    """Of the engine of that name; ``real_time``: without its virtual clock. Raises KeyError for an unknown name."""
    found = _TRAITS[engine]
    return replace(found, virtual_clock=False, exact_uptime=False, finite_processor=False) if real_time else found


def declare(engine: str, found: Traits) -> None:
    """Make an engine known by its name. Raises ValueError if the name stands for another one."""
    if _TRAITS.setdefault(engine, found) != found:
        raise ValueError(f"there is an engine called {engine!r} with other traits")
