# SPDX-License-Identifier: Apache-2.0
"""The types of everything that an installed package can add to howdah. docs/extending.md has a complete example.

A package declares what it adds as entry points. The groups, and what each entry point must refer to:

``howdah.collectors``  a package: its ``guest.py`` has ``COLLECTOR`` (``CollectorHook``), its ``host.py`` ``READER``
``howdah.measures``    a ``MeasureEntry``
``howdah.checks``      a function (``CheckRun``)
``howdah.exports``     a function (``WriteRun``)
``howdah.engines``     an ``EngineEntry``
``howdah.commands``    a ``CommandEntry``
``howdah.sets``        a function (``NameProfiles``)

The entry point's name is the name of the addition: a collector's is its key in ``collect:`` and names its table.
A name that howdah or another package already uses is refused.

This module imports nothing of howdah at run time, so a package can import it without loading what it does not use.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, ClassVar, Protocol

if TYPE_CHECKING:
    import argparse
    from pathlib import Path

    import pyarrow as pa

    from collectors.collector import Surroundings
    from howdah.command.shape import CommandAnswer
    from howdah.engine.engine import Engine
    from howdah.ingest.source import Context, SourceReport
    from howdah.measure.measured import Measured
    from howdah.metric import Metric
    from howdah.plan.plan import Plan
    from howdah.record.directory import RunDirectory
    from howdah.record.result import Run
    from howdah.record.verdict import Check
    from howdah.trait import Traits

GROUPS = ("collectors", "measures", "checks", "exports", "engines", "commands", "sets")


class CollectorHook(Protocol):
    """The interface of ``COLLECTOR``, a class. ``collectors/collector.py`` and ``polled.py`` have base classes for it.

    Only this one file is copied into the guest: it may import the standard library, ``collectors`` and
    ``howdah.linux``. Between ``start`` and ``stop`` it must not disturb the packets: no waiting, no sockets on the
    network under test.
    """

    says: ClassVar[str]  # its text in the profile reference
    default: ClassVar[str | None]  # its interval if a profile names none, such as "100 ms"; None: off
    interval_ns: int | None

    def __init__(self, surroundings: Surroundings, interval_us: int | None) -> None: ...

    @classmethod
    def planned_for(cls, plan: Plan, /) -> bool:
        """Return whether a run of the plan has what it reads; if not, the collector is left out."""
        ...

    @classmethod
    def works_in(cls, surroundings: Surroundings, /) -> bool:
        """Return whether this kernel, perhaps one of several in the run, has what it reads."""
        ...

    def check(self) -> None:
        """Raise CollectorError if the collector cannot run here; that ends the run."""
        ...

    def start(self, now_ns: int, /) -> None:
        """Open files and sockets; called once, before the flows start."""
        ...

    def sample(self, now_ns: int, /) -> None:
        """Take one reading; called every ``interval_ns``. ``now_ns`` is CLOCK_MONOTONIC at the wake-up."""
        ...

    def stop(self, now_ns: int, /) -> None:
        """Take the last reading, write pending data, close everything; called once, when the network is silent."""
        ...


@dataclass(frozen=True)
class Reader:
    """The interface of ``READER``: a collector's table, and how to build it from raw/.

    ``read`` gets the run with its plan, its raw/ and its epoch. It returns the table with the columns of ``schema``,
    and a report; any problem in the report makes the run invalid. Damaged data only cost the rows that they held. A run
    whose plan ``must_have_rows`` is invalid if the table is empty; with ``whole_run`` it is also invalid if rows are
    missing at its beginning or end.
    """

    schema: pa.Schema
    read: Callable[[Context], tuple[pa.Table, SourceReport]]
    must_have_rows: Callable[[Plan], bool] = lambda _plan: True
    whole_run: bool = True
    table: str | None = None  # its name, if not the collector's


@dataclass(frozen=True)
class MeasureEntry:
    """A metric and how to compute it.

    ``metric`` is its row in the table of metrics: unit, header, meaning. It has the name of the entry point.
    ``compute`` returns a value for each flow by its number, and for the run as a whole under None; a string instead of
    a number gives the reason why there is no value. It reads tables with ``howdah.record.table.read(directory, name)``.
    """

    metric: Metric
    compute: Callable[[RunDirectory, Measured], dict[int | None, float | int | str]]


# The checks of a run; one that fails makes the run invalid.
CheckRun = Callable[["RunDirectory", "Measured"], Iterable["Check"]]

# Writes a run below a directory and returns the files.
WriteRun = Callable[["Run", "Path"], "list[Path]"]


@dataclass(frozen=True)
class EngineEntry:
    """An engine: the traits that plans depend on, and a function that creates it (``howdah/engine/engine.py``)."""

    traits: Traits
    make: Callable[[], Engine]


@dataclass(frozen=True)
class CommandEntry:
    """A command. ``says`` is its line in ``howdah --help``, listed under ``heading`` if the help has that heading.

    ``add_parser`` calls ``commands.add_parser(NAME)``, adds its arguments, and ends with ``set_defaults(execute=…)``: a
    function that takes the parsed options and returns the exit code. It imports what the command needs. ``answers``
    returns the classes of the objects that it prints with ``--json`` (``howdah.command.shape``).
    """

    says: str
    add_parser: Callable[[argparse._SubParsersAction[Any]], None]
    heading: str = ""
    answers: Callable[[], Iterable[type[CommandAnswer]]] = tuple


# Names for several profiles, as ``howdah nightly --claims`` takes them: each with its profiles.
NameProfiles = Callable[[], "Mapping[str, list[str]]"]
