# SPDX-License-Identifier: Apache-2.0
"""Traits of engines: all that plan, agent, judge and measures depend on.

A plan carries the traits of its engine (``traits`` of plan.json), so that nothing downstream compares engine names.
"""

from __future__ import annotations

from dataclasses import field, replace

from howdah.codec import OCCASIONAL, planned

_MODEL = "model ("  # prefix of a simulator's label; no kernel release contains a bracket


@planned
class Traits:
    """The properties of every run of an engine.

    ``own_kernel``: modules can be loaded into the kernel, so traffic is in the kernel by default.
    ``virtual_clock``: time is simulated, so timers are on time and rate limits are exact to one frame.
    ``exact_uptime``: computing takes no simulated time either, so the experiment starts at an uptime that the plan
    fixes; with other engines the agent chooses the instant once the network is built.
    ``finite_processor``: computing takes simulated time, and the engine counts what the processor does.
    ``outlives_run``: kernel and machine continue after the run; the agent restores what it changed.
    ``several_kernels``: hosts may be in separate kernels that share a virtual time.
    ``several_machines``: hosts are spread over machines, each with its own kernel and clock.
    ``boots_machine``: the engine boots a machine described by the profile's ``machine:`` section.
    ``agent_seeds_random``: only the agent gives the kernel its random seed.
    ``readable_while_running``: raw/ can be read during the run.
    ``model``: the release of a simulator whose TCP is a model; empty for a real kernel. It is shown in place of a
    kernel (``label``).
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
        """The text shown in place of a kernel's release, ``model (ns-2 2.35)``; empty for a real kernel."""
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
    """Return whether a kernel's release is in fact a simulator's label."""
    return kernel.startswith(_MODEL)


def engines() -> tuple[str, ...]:
    """Return the names of all engines, the default first."""
    return tuple(_TRAITS)


def known_engines(asked: object = None) -> str:
    """List the engines for a message about an unknown one; ``asked`` may be misspelt or a former name."""
    import difflib  # here because guests import this file and do not need it

    new = _FORMER_NAMES.get(asked) if isinstance(asked, str) else None
    close = difflib.get_close_matches(str(asked), engines(), n=1, cutoff=0.5) if asked is not None and not new else []
    hint = f" ({asked} is now called {new})" if new else f" (did you mean {close[0]}?)" if close else ""
    return ", ".join(engines()) + hint


def traits(engine: str, *, real_time: bool = False) -> Traits:
    """Return the traits of an engine, with ``real_time`` without its virtual clock. Raises KeyError if unknown."""
    found = _TRAITS[engine]
    return replace(found, virtual_clock=False, exact_uptime=False, finite_processor=False) if real_time else found


def declare(engine: str, found: Traits) -> None:
    """Register an engine. Raises ValueError if the name belongs to an engine with other traits."""
    if _TRAITS.setdefault(engine, found) != found:
        raise ValueError(f"there is an engine called {engine!r} with other traits")
