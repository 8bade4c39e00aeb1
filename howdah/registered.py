# SPDX-License-Identifier: Apache-2.0
"""The interval collectors by name, and the engines that packages add.

A collector is two files and needs no other registration.

The guest's file is ``collectors/interval/NAME.py``: its ``COLLECTOR`` reads the kernel and defines what ``collect:`` of
a profile takes. The host's file is ``howdah/ingest/NAME.py``: its ``READER`` has the schema of the table NAME and fills
it. An installed package adds both with one entry point in ``howdah.collectors``, which names a package with a
``guest.py`` and a ``host.py``.
"""

from __future__ import annotations

import importlib
from dataclasses import dataclass
from functools import cache
from pathlib import Path

from howdah.errors import HowdahError
from howdah.extension import Extension, extensions
from howdah.hooks import CollectorHook, Reader
from howdah.place import COLLECTORS
from howdah.trait import declare, engines

FOLDER = COLLECTORS / "interval"
KIND = "collectors"
# The original collectors are started in this order; others follow them.
_FIRST = ("tcp_info", "qdisc", "interface", "counters", "processor")
# Published results belong to profiles with this spelling, and are bound to the profiles' text.
_KEYS = {"interface": "interfaces"}


@dataclass(frozen=True)
class Registered:
    """A collector's two files. ``extension`` is None for howdah's own."""

    name: str
    extension: Extension | None = None

    @property
    def word(self) -> str:
        """Its key in ``collect:`` of a profile."""
        return _KEYS.get(self.name, self.name)

    @property
    def collector(self) -> type[CollectorHook]:
        """The class that runs in the guest. Raises HowdahError if a package's file cannot be imported."""
        if self.extension is not None:
            found: type[CollectorHook] = self.extension.load("guest").COLLECTOR
            return found
        own: type[CollectorHook] = importlib.import_module(f"collectors.interval.{self.name}").COLLECTOR
        return own

    @property
    def guest_file(self) -> Path:
        """The source file of ``collector``."""
        if self.extension is None:
            return FOLDER / f"{self.name}.py"
        return Path(self.extension.load("guest").__file__)

    @property
    def reader(self) -> Reader:
        """The reader that fills the table. Raises HowdahError if a package's file cannot be imported."""
        if self.extension is not None:
            found: Reader = self.extension.load("host").READER
            return found
        own: Reader = importlib.import_module(f"howdah.ingest.{self.name}").READER
        return own


@cache
def declare_engines() -> None:
    """Register the engines of installed packages with their traits. Raises HowdahError for one that fails to load."""
    for name, each in extensions("engines", engines()).items():
        declare(name, each.load().traits)


@cache
def registered() -> dict[str, Registered]:
    """Return all collectors by name, howdah's own first. Raises HowdahError for a duplicate name."""
    names = [file.stem for file in FOLDER.glob("*.py") if file.stem != "__init__"]
    names.sort(key=lambda name: (_FIRST.index(name) if name in _FIRST else len(_FIRST), name))
    more = extensions(KIND, names)
    return {name: Registered(name) for name in names} | {name: Registered(name, each) for name, each in more.items()}


def collector_named(name: str) -> Registered:
    """Return the collector with this name. Raises HowdahError if it is not registered."""
    try:
        return registered()[name]
    except KeyError:
        raise HowdahError(
            f"there is no collector {name!r} here",
            hint="Install the package that brings it: run.json of a run names it under extensions.",
        ) from None
