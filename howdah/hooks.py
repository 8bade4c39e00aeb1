# SPDX-License-Identifier: Apache-2.0
"""All that an installed package can add to howdah, as types. docs/extending.md has a whole package as an example.

A package names what it adds as entry points. The groups, and what each entry point names:

``howdah.collectors``  a package: its ``guest.py`` has ``COLLECTOR`` (``CollectorHook``), its ``host.py`` ``READER``
``howdah.measures``    a ``MeasureEntry``
``howdah.checks``      a function (``CheckRun``)
``howdah.exports``     a function (``WriteRun``)
``howdah.engines``     an ``EngineEntry``
``howdah.commands``    a ``CommandEntry``
``howdah.sets``        a function (``NameProfiles``)

The name of an entry point is the name of what it adds: a collector has it in ``collect:``, and so has its table.
A name that howdah or another package has is refused.

This module imports nothing of howdah when it runs, so a package may import it without loading what it does not use.
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
    """What ``COLLECTOR`` of a guest's file is: a class. ``collectors/collector.py`` and ``polled.py`` have bases of it.

    The file is copied into the guest alone, so it imports the standard library, ``collectors`` and ``howdah.linux``.
    Nothing that it does between ``start`` and ``stop`` may reach the packets: no waiting, no sockets that take part.
    """

    says: ClassVar[str]  # what the profile reference says of it
    default: ClassVar[str | None]  # its interval where a profile names none, "100 ms"; None: off
    interval_ns: int | None

    def __init__(self, surroundings: Surroundings, interval_us: int | None) -> None: ...

    @classmethod
    def planned_for(cls, plan: Plan, /) -> bool:
        """Whether a run of the plan has what it reads; a plan that has not is without it."""
        ...

    @classmethod
    def works_in(cls, surroundings: Surroundings, /) -> bool:
        """Whether what it reads is in this kernel, one of several perhaps."""
        ...

    def check(self) -> None:
        """Raises CollectorError where it cannot run here; that ends the run."""
        ...

    def start(self, now_ns: int, /) -> None:
        """Open what is needed; called once, before the flows."""
        ...

    def sample(self, now_ns: int, /) -> None:
        """One reading, at every ``interval_ns``; ``now_ns`` is CLOCK_MONOTONIC of the wake-up."""
        ...

    def stop(self, now_ns: int, /) -> None:
        """Take the last reading, write what is left, close everything; called once, when the network is silent."""
        ...


@dataclass(frozen=True)
class Reader:
    """What ``READER`` of a host's file is: the collector's table, and how raw/ becomes it.

    ``read`` gets the run with its plan, its raw/ and its epoch. It gives the table with the columns of ``schema`` and
    a report, whose problems make the run invalid. Data that are damaged cost the rows that they held.
    A run whose plan ``must_have_rows`` is invalid without any; so is one that lacks them at its beginning or its end,
    where they are of the ``whole_run``.
    """

    schema: pa.Schema
    read: Callable[[Context], tuple[pa.Table, SourceReport]]
    must_have_rows: Callable[[Plan], bool] = lambda _plan: True
    whole_run: bool = True
    table: str | None = None  # its name, where it is not the collector's


@dataclass(frozen=True)
class MeasureEntry:
    """A metric and how it is computed.

    ``metric`` is its row of the table of metrics: unit, header, meaning. Its name is that of the entry point.
    ``compute`` gives the value of each flow by its number, of the run as a whole by None; a text in place of a number
    says why there is no value. It reads tables with ``howdah.record.table.read(directory, name)``.
    """

    metric: Metric
    compute: Callable[[RunDirectory, Measured], dict[int | None, float | int | str]]


# The checks of a run; one that fails makes the run invalid.
CheckRun = Callable[["RunDirectory", "Measured"], Iterable["Check"]]

# Writes a run below a directory and returns the files.
WriteRun = Callable[["Run", "Path"], "list[Path]"]


@dataclass(frozen=True)
class EngineEntry:
    """An engine: what it is, as far as plans depend on it, and what makes it (``howdah/engine/engine.py``)."""

    traits: Traits
    make: Callable[[], Engine]


@dataclass(frozen=True)
class CommandEntry:
    """A command. ``says`` is its line in ``howdah --help``, below ``heading`` if the help has that.

    ``add_parser`` calls ``commands.add_parser(NAME)``, adds its arguments, and ends with ``set_defaults(execute=…)``:
    a function of the options that returns the exit code. What the command works with is imported there.
    ``answers`` gives what it prints with ``--json``: the class of each object (``howdah.command.shape``).
    """

    says: str
    add_parser: Callable[[argparse._SubParsersAction[Any]], None]
    heading: str = ""
    answers: Callable[[], Iterable[type[CommandAnswer]]] = tuple


# Names that stand for several profiles, as ``howdah nightly --claims`` takes them: the profiles of each.
NameProfiles = Callable[[], "Mapping[str, list[str]]"]
