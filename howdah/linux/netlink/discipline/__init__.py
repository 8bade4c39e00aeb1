# SPDX-License-Identifier: Apache-2.0
"""Queueing disciplines by their kind: that of file NAME.py is NAME. Guests import those that their plan has."""

from __future__ import annotations

import importlib
from collections.abc import Mapping
from functools import cache
from typing import Any

from howdah.linux.netlink.discipline.discipline import Discipline, HopQueue, HostQueue


@cache
def discipline(kind: str) -> type[Discipline]:
    """The class of a kind. Raises ValueError."""
    found = _found(kind) if kind.isidentifier() else None
    if found is None:
        raise ValueError(f"there is no kind {kind!r}; known: {', '.join(disciplines())}")
    return found


def made(kind: str, options: Mapping[str, Any]) -> Discipline:
    """A discipline with the options of a plan. Raises ValueError for an unknown kind, TypeError for wrong options."""
    return discipline(kind)(**options)


def class_made(kind: str, options: Mapping[str, Any]) -> Any:
    """The same of a class. Raises ValueError where disciplines of the kind have none."""
    found = discipline(kind).classes
    if found is None:
        raise ValueError(f"{kind} has no classes")
    return found(**options)


@cache
def statistics_of(kind: str) -> type[Discipline] | None:
    """What reads the kind's own statistics; None for a kind that this project has no class of."""
    return _found(kind) if kind.isidentifier() else None


@cache
def disciplines() -> dict[str, type[Discipline]]:
    """All by their kinds."""
    import pkgutil  # not in guests, which know what they need

    names = sorted(module.name for module in pkgutil.iter_modules(__path__))
    return {name: found for name in names if (found := _found(name)) is not None}


@cache
def queues() -> dict[str, type[HopQueue]]:
    """Those that a hop of a path can have, by what profiles call them."""
    found = [kind for kind in disciplines().values() if issubclass(kind, HopQueue) and not kind.named_by]
    return {kind.name: kind for kind in sorted(found, key=lambda kind: (not kind.fills, kind.name))}


@cache
def host_queues() -> dict[str, type[HostQueue]]:
    """Those that a sender's interface can have, by what profiles call them."""
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
