# SPDX-License-Identifier: Apache-2.0
"""A run as an overview of many needs it, in a tenth of the memory."""

from __future__ import annotations

import sys
from dataclasses import replace
from typing import Any

from howdah.record.result import Run
from howdah.record.run import TreeOrigin

_SHARED = {"kernel", "modules", "confinement", "stacks", "howdah", "host", "algorithms", "extensions"}
_parts: dict[str, Any] = {}
_WORDS = ("metric", "value", "unit", "group", "role", "algorithm", "receiver", "why")
_KEPT = ("tables/", "connections.parquet")  # what is read when somebody asks for it


def brief(run: Run) -> Run:
    """Without the plan's operations, the checks that hold, and all digests but those of tables. Nothing else is
    missing; equal words and parts of run.json are there once for all runs."""
    record = run.provenance
    kept = {name: _shared(getattr(record, name)) for name in _SHARED & record.model_fields_set}
    if record.digests is not None:
        kept["digests"] = {sys.intern(name): each for name, each in record.digests.items() if name.startswith(_KEPT)}
    if record.guest_tree is not None:
        kept["guest_tree"] = _shared(TreeOrigin(sha256=record.guest_tree.sha256))
    verdict = run.verdict
    if verdict is not None:
        verdict = verdict.model_copy(update={"checks": [check for check in verdict.checks if check.ok is not True]})
    return replace(
        run,
        plan=replace(run.plan, operations=[]) if run.plan else None,
        metrics=[replace(row, **{name: _once(getattr(row, name)) for name in _WORDS}) for row in run.metrics],
        cross_checks=[],
        verdict=verdict,
        provenance=record.but(**kept),
    )


def _shared(part: Any) -> Any:
    return _parts.setdefault(repr(part), part)


def _once(value: Any) -> Any:
    return sys.intern(value) if isinstance(value, str) else value
