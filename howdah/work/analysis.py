# SPDX-License-Identifier: Apache-2.0
"""The analysis: raw/ to tables, tables to metrics, both to a verdict.

Everything this module imports, directly or not, is part of the key of the results (``analysis_sha256``). So it imports
nothing that they do not depend on.
"""

from __future__ import annotations

from collections.abc import Callable
from contextlib import AbstractContextManager

from howdah.ingest.run import ingest
from howdah.judge.run import judge
from howdah.measure.measured import load
from howdah.measure.run import measure
from howdah.plan.plan import Plan
from howdah.record.directory import RunDirectory

Timed = Callable[[str], AbstractContextManager[None]]  # around the stage of that name


def analyse(directory: RunDirectory, plan: Plan, timed: Timed) -> None:
    """Write tables, metrics.json and verdict.json. Needs no kernel; overwrites what an older analysis left."""
    with timed("ingest"):
        ingest(directory, plan)
    evaluate(directory, plan, timed)


def evaluate(directory: RunDirectory, plan: Plan, timed: Timed) -> None:
    """Write metrics.json and verdict.json from the tables that are there, and the raw records the judge reads."""
    with timed("measure"):
        data = load(directory, plan)
        measure(directory, plan, data)
    with timed("judge"):
        judge(directory, plan, data)
