# SPDX-License-Identifier: Apache-2.0
"""Recorded transfers as the tables that runs have: ``howdah.load("slow.pcap")``."""

from __future__ import annotations

import warnings
from collections.abc import Callable
from functools import cached_property, partial
from typing import Any, NoReturn

import pyarrow as pa

from howdah.errors import HowdahError
from howdah.explain.read import MOST_FLOWS, Read, read_files
from howdah.library.data import Data
from howdah.library.recorded_packets import ack_rows, block_rows, segment_rows
from howdah.library.recorded_rows import (
    axis_columns,
    exit_rows,
    leg_rows,
    metric_rows,
    path_rows,
    round_rows,
    sample_rows,
)
from howdah.library.rows import Rows, of_table

_TABLES: dict[str, Callable[[Read], pa.Table]] = {
    "tcp_probe": ack_rows,
    "segment": segment_rows,
    "sack_block": block_rows,
    "rounds": round_rows,
    "samples": sample_rows,
    "legs": leg_rows,
}


class Recording(Data):
    """Tables of the flows that ``howdah explain`` finds in files: an experiment ``recorded``, a run for each file.

    Columns have the names that those of runs have; what nobody can see in a recording is null. A file is read when the
    first table is asked for, and what is wrong with it is a warning; HowdahError, if it is not a recording.
    """

    @cached_property
    def _read(self) -> Read:
        read = read_files(self.paths, MOST_FLOWS)
        for problem in read.problems:
            warnings.warn(f"howdah: {problem}", stacklevel=2)
        return read

    @cached_property
    def runs(self) -> Rows:
        """A row for every flow: what its path is found to be."""
        return of_table("runs", lambda: path_rows(self._read))

    @cached_property
    def metrics(self) -> Rows:
        """A row for every measure of every flow: ``value`` is a number from ``low`` to ``high``, or ``text`` a word;
        ``how`` says how it was found, ``why`` why it is not there."""
        return of_table("metrics", lambda: metric_rows(self._read))

    @cached_property
    def exits(self) -> Rows:
        """A row for every flow that left its start-up: when, where and why."""
        return of_table("exits", lambda: exit_rows(self._read))

    @property
    def rounds(self) -> Rows:
        """A row for every round of every flow: what was in flight when it began, and what was sent in it."""
        return self.table("rounds")

    @property
    def samples(self) -> Rows:
        """A row for every round trip that the recording shows."""
        return self.table("samples")

    @property
    def legs(self) -> Rows:
        """A row for every two taps, one behind the other, of one connection: what was lost there, and its delays."""
        return self.table("legs")

    @property
    def tables(self) -> list[str]:
        """Names of the tables that have rows."""
        return [name for name in _TABLES if len(self.table(name))]

    def table(self, name: str) -> Rows:
        if name not in _TABLES:
            raise HowdahError(f"a recording has no table {name!r}", hint=f"Its tables are {', '.join(_TABLES)}.")
        if name not in self._made:
            self._made[name] = of_table(name, partial(_TABLES[name], self._read))
        return self._made[name]

    @cached_property
    def _made(self) -> dict[str, Rows]:
        return {}

    @property
    def axes(self) -> list[str]:
        return list(axis_columns())

    def _told_apart(self, options: dict[str, Any]) -> list[str]:
        return ["algorithm", *(["run"] if len(self.paths) > 1 and options.get("x") != "run" else [])]

    @property
    def checks(self) -> NoReturn:
        """A recording has none."""
        _has_none("checks")

    @property
    def differences(self) -> NoReturn:
        """A recording has none."""
        _has_none("differences")

    @property
    def completion(self) -> NoReturn:
        """A recording has none."""
        _has_none("completion")


def _has_none(name: str) -> NoReturn:
    raise HowdahError(f"a recording has no {name}", hint="Runs have them: 'howdah new --from' writes a profile of one.")
