# SPDX-License-Identifier: Apache-2.0
"""The engines by name. To add one, pass its traits and a factory to ``register``."""

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
    """Return a factory that imports the engine only when called: the host engine works where nothing can be built."""
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
    """Add an engine: profiles, ``--engine`` and plans then know its name.

    Raises ValueError if the name belongs to an engine with other traits.
    """
    declare(name, traits)
    _FACTORIES[name] = factory


def _installed(name: str) -> Factory | None:
    found = extensions("engines", _FACTORIES).get(name)
    if found is None:
        return None
    entry: EngineEntry = found.load()
    return lambda: found.guarded(entry.make)


def engine(name: str) -> Engine:
    """Create the engine with this name. Raises EngineUnavailableError for an unknown name."""
    declare_engines()
    factory = _FACTORIES.get(name) or _installed(name)
    if factory is None:
        raise EngineUnavailableError(
            f"there is no engine called {name!r}", hint=f"The engines are {known_engines(name)}."
        )
    return factory()


_prepared: dict[str, Engine] = {}


def keep(name: str, engine: Engine) -> None:
    """Keep an engine that has built its parts for the runs of this process and its forks.

    An engine of an installed package is created for each run instead: it may hold a file or socket that a fork closes.
    """
    if name in _FACTORIES:
        _prepared[name] = engine


def kept(name: str) -> Engine | None:
    """Return the engine that was kept last; None in a process that has prepared none."""
    return _prepared.get(name)
