# SPDX-License-Identifier: Apache-2.0
"""A run as an overview of many needs it, in a tenth of the memory."""

from __future__ import annotations

import sys
from dataclasses import replace
from typing import Any

from howdah.record.digest import DIGESTS
from howdah.record.result import Run

_KEPT = ("tables/", "connections.parquet")  # what is read when somebody asks for it
_TREE = "guest_tree"


def brief(run: Run) -> Run:
    """Without the plan's operations, the checks that hold, and all digests but those of tables. Nothing else is
    missing; equal words are there once for all runs."""
    record = {name: value for name, value in run.provenance.items() if name not in (DIGESTS, _TREE)}
    if DIGESTS in run.provenance:
        digests = run.provenance[DIGESTS]
        record[DIGESTS] = {sys.intern(name): value for name, value in digests.items() if name.startswith(_KEPT)}
    if tree := run.provenance.get(_TREE):
        record[_TREE] = {"sha256": tree.get("sha256")}
    verdict = run.verdict
    if verdict is not None:
        verdict = {**verdict, "checks": [check for check in verdict.get("checks", []) if check.get("ok") is not True]}
    return replace(
        run,
        plan=replace(run.plan, operations=[]) if run.plan else None,
        metrics=[{sys.intern(name): _once(value) for name, value in row.items()} for row in run.metrics],
        cross_checks=[],
        verdict=verdict,
        provenance=record,
    )


def _once(value: Any) -> Any:
    return sys.intern(value) if isinstance(value, str) else value
