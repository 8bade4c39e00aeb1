# SPDX-License-Identifier: Apache-2.0
"""The analysis: raw/ to tables, tables to metrics, both to a verdict.

All modules that this one imports, directly or not, are part of the key of the results (``analysis_sha256``). So it must
not import anything that the results do not depend on.
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

Timed = Callable[[str], AbstractContextManager[None]]  # a context around the stage of this name


def analyse(directory: RunDirectory, plan: Plan, timed: Timed) -> None:
    """Write tables, metrics.json and verdict.json, replacing those of an older analysis. Needs no kernel."""
    with timed("ingest"):
        ingest(directory, plan)
    evaluate(directory, plan, timed)


def evaluate(directory: RunDirectory, plan: Plan, timed: Timed) -> None:
    """Write metrics.json and verdict.json from the existing tables and the raw records that the judge reads."""
    with timed("measure"):
        data = load(directory, plan)
        measure(directory, plan, data)
    with timed("judge"):
        judge(directory, plan, data)
