# SPDX-License-Identifier: Apache-2.0
"""Queueing disciplines by kind: file NAME.py has the kind NAME. Guests import only the kinds in their plan."""

from __future__ import annotations

import importlib
from collections.abc import Mapping
from functools import cache
from typing import Any

from howdah.linux.netlink.discipline.discipline import Discipline, HopQueue, HostQueue


@cache
def discipline(kind: str) -> type[Discipline]:
    """Return the class of a kind. Raises ValueError for an unknown kind."""
    found = _found(kind) if kind.isidentifier() else None
    if found is None:
        raise ValueError(f"there is no kind {kind!r}; known: {', '.join(disciplines())}")
    return found


def made(kind: str, options: Mapping[str, Any]) -> Discipline:
    """Return a discipline with the options of a plan. Raises ValueError for an unknown kind, TypeError for wrong
    options."""
    return discipline(kind)(**options)


def class_made(kind: str, options: Mapping[str, Any]) -> Any:
    """Return a class of a discipline with the options of a plan. Raises ValueError if the kind has no classes."""
    found = discipline(kind).classes
    if found is None:
        raise ValueError(f"{kind} has no classes")
    return found(**options)


@cache
def statistics_of(kind: str) -> type[Discipline] | None:
    """Return the class that parses a kind's own statistics; None for a kind that this project does not know."""
    return _found(kind) if kind.isidentifier() else None


@cache
def disciplines() -> dict[str, type[Discipline]]:
    """Return all disciplines by kind."""
    import pkgutil  # not imported in guests, which know their kinds

    names = sorted(module.name for module in pkgutil.iter_modules(__path__))
    return {name: found for name in names if (found := _found(name)) is not None}


@cache
def queues() -> dict[str, type[HopQueue]]:
    """Return the queues that a hop of a path can have, by their names in profiles."""
    found = [kind for kind in disciplines().values() if issubclass(kind, HopQueue) and not kind.named_by]
    return {kind.name: kind for kind in sorted(found, key=lambda kind: (not kind.fills, kind.name))}


@cache
def host_queues() -> dict[str, type[HostQueue]]:
    """Return the queues that a sender's interface can have, by their names in profiles."""
    return {kind.name: kind for kind in disciplines().values() if issubclass(kind, HostQueue)}


def _found(kind: str) -> type[Discipline] | None:
    name = f"{__name__}.{kind}"
    try:
        module = importlib.import_module(name)
    except ModuleNotFoundError as error:
        if error.name != name:
            raise
        return None
    classes = (each for each in vars(module).values() if isinstance(each, type) and issubclass(each, Discipline))
    return next((each for each in classes if vars(each).get("kind") == kind), None)
