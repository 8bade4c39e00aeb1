# SPDX-License-Identifier: Apache-2.0
"""Shapes of what ``howdah nightly`` prints with ``--json``."""

from __future__ import annotations

from typing import Any

from pydantic import Field

from howdah.record.model import FilePart


class NightlyCell(FilePart):
    id: str
    experiment: str
    cell: str
    repetitions: int


class NightlyList(FilePart):
    suite: str
    cells: list[NightlyCell]


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


class Nightly(FilePart):
    """night.json (docs/nightly.md)."""

    night: str
    suite: str
    started: str
    ended: str
    wall_s: float
    baseline: str
    states: dict[str, int]
    problems: list[str]
    cells: list[dict[str, Any]]
    range: dict[str, Any] | None = Field(default=None, description="of a night over a range of commits")
