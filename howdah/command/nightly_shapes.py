# SPDX-License-Identifier: Apache-2.0
"""Shapes of what ``howdah nightly`` prints with ``--json``."""

from __future__ import annotations

from howdah.nightly.night import NightFile
from howdah.record.model import FilePart


class ListedCell(FilePart):
    id: str
    experiment: str
    cell: str
    repetitions: int


class NightlyList(FilePart):
    suite: str
    cells: list[ListedCell]


class NightlyAccept(FilePart):
    baseline: str
    experiments: list[str]
    not_built: list[str]
    runs_that_do_not_count: int


class ShareShape(FilePart):
    proven: float
    failed: float


class PowerRow(FilePart):
    kernel: str
    plant: str
    share: float
    found: list[ShareShape]


class NightlyPower(FilePart):
    suite: str
    cells: int
    tests: int
    measured: int
    trials: int
    repetitions: list[int]
    accepted: list[bool]
    rows: list[PowerRow]
    left_out: list[str]


class Nightly(NightFile):
    night: str
