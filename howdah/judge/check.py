# SPDX-License-Identifier: Apache-2.0
"""Helpers that make a check."""

from __future__ import annotations

from howdah.record.verdict import Check

MOST_TOLD = 10  # of the connections of a group that fail


def none_of(name: str, stage: str, count: int | None, unit: str, good: str, bad: str) -> Check:
    """A count that must be zero; None means it is not known. ``bad`` may contain ``{count}``."""
    if count is None:
        return Check(name, stage, None, f"{unit} were not counted", 0, None, 0, unit)
    ok = count == 0
    return Check(name, stage, ok, good if ok else bad.format(count=count), 0, count, 0, unit)


def told_of_many(checks: list[Check]) -> str:
    """What the first of many checks say that fail, and how many more fail; empty where none does."""
    wrong = [check.message for check in checks if check.ok is False]
    more = f"; and {len(wrong) - MOST_TOLD} more" if len(wrong) > MOST_TOLD else ""
    return ": " + "; ".join(wrong[:MOST_TOLD]) + more if wrong else ""


def within(
    name: str,
    stage: str,
    measured: float | None,
    expected: float,
    tolerance: float,
    unit: str,
    what: str,
    why: str = "",
) -> Check:
    """A value within ``tolerance`` of what is expected; ``why`` says why it is missing."""
    if measured is None:
        return Check(name, stage, None, f"{what} was not measured: {why or 'no data'}", expected, None, tolerance, unit)
    ok = abs(measured - expected) <= tolerance
    relation = "is as configured" if ok else ("is too high" if measured > expected else "is too low")
    message = f"{what} {relation}: {measured:.10g} {unit}, expected {expected:.10g} ± {tolerance:.4g}"
    return Check(name, stage, ok, message, expected, measured, tolerance, unit)
