# SPDX-License-Identifier: Apache-2.0
"""The engines by name. A further one needs its traits and a function that makes it: see ``register``."""

from __future__ import annotations

import importlib
from collections.abc import Callable

from howdah.engine.engine import Engine
from howdah.errors import EngineUnavailableError
from howdah.extension import extensions
from howdah.hooks import EngineEntry
from howdah.registered import declare_engines
from howdah.trait import Traits, declare, known_engines

Factory = Callable[[], Engine]


def _own(engine: str) -> Factory:
    """Imports the engine itself: the host engine works where the guest's builder does not."""
    module, _, kind = engine.partition(":")

    def make() -> Engine:
        made: Engine = getattr(importlib.import_module(f"howdah.engine.{module}"), kind)()
        return made

    return make


def _machines() -> Engine:
    from howdah.engine.machines.engine import MachinesEngine
    from howdah.engine.machines.machine import fleet_of_environment

    return MachinesEngine(fleet_of_environment())


_FACTORIES: dict[str, Factory] = {
    "uml": _own("uml.engine:UmlEngine"),
    "vm": _own("vm.engine:VmEngine"),
    "machines": _machines,
    "host": _own("host:HostEngine"),
    "ns2": _own("ns2.engine:Ns2Engine"),
}


def register(name: str, traits: Traits, factory: Factory) -> None:
    """Add an engine of your own: profiles, ``--engine`` and plans know it from then on.

    Raises ValueError if the name belongs to an engine with other traits.
    """
    declare(name, traits)
    _FACTORIES[name] = factory


def _installed(name: str) -> Factory | None:
    """That of an engine which an installed package adds."""
    found = extensions("engines", _FACTORIES).get(name)
    if found is None:
        return None
    entry: EngineEntry = found.load()
    return lambda: found.guarded(entry.make)


def engine(name: str) -> Engine:
    """The engine of that name. Raises EngineUnavailableError for an unknown name."""
    declare_engines()
    factory = _FACTORIES.get(name) or _installed(name)
    if factory is None:
        raise EngineUnavailableError(
            f"there is no engine called {name!r}", hint=f"The engines are {known_engines(name)}."
        )
    return factory()


_prepared: dict[str, Engine] = {}


def keep(name: str, engine: Engine) -> None:
    """Have this process, and those that it forks, make their runs with an engine that has built what they need.

    An engine of an installed package is made again for each run: it may hold a file or a socket, which a fork closes.
    """
    if name in _FACTORIES:
        _prepared[name] = engine


def kept(name: str) -> Engine | None:
    """The engine that was kept last; None in a process that has prepared none."""
    return _prepared.get(name)
