# SPDX-License-Identifier: Apache-2.0
"""Rows of claims.json from what matters of them to a test; all else is empty."""

from __future__ import annotations

from typing import Any

from howdah.record.claims import ClaimRow, PointRow

_SAMPLE: dict[str, Any] = {"text": "", "mean": None, "low": None, "high": None, "n": 0, "unit": ""}
_POINT: dict[str, Any] = {"at": {}, "verdict": "pass", "why": "", "than": None, "comparison": None}
_EXPECTED: dict[str, Any] = {"text": "", "low": None, "high": None, "unit": ""}
_ENDS = dict.fromkeys(("difference_low", "difference_high", "ratio_low", "ratio_high"))
_COMPARISON: dict[str, Any] = {"difference": 0.0, "ratio": None, "paired": False, **_ENDS}
_CONTROL: dict[str, Any] = {"name": "off", "what": "off", "because": "", "verdict": "fail", "why": "", "runs": []}
_GRID: dict[str, Any] = {"text": "", "holds": 0, "of": 1, "share": 0.0, "points": []}


def claim_row(**given: Any) -> ClaimRow:
    """A claim; ``given`` is as claims.json has it."""
    row = {"id": "it", "says": "It is so.", "verdict": "pass", **given}
    row["expected"] = {**_EXPECTED, **row.get("expected", {})}
    if (control := row.get("control")) is not None:
        row["control"] = {**_CONTROL, **control, "measured": _measured(control.get("measured")), "than": None}
    if row.get("unknown") is not None:
        row["unknown"] = {**_GRID, **row["unknown"]}
    return ClaimRow.model_validate({**row, "measured": _measured(row.get("measured"))})


def point_row(**given: Any) -> PointRow:
    """A point of a claim."""
    return PointRow.model_validate(_point(given))


def _measured(given: dict[str, Any] | None) -> dict[str, Any] | None:
    if given is None:
        return None
    return {**_SAMPLE, **given, "points": [_point(each) for each in given.get("points", [])]}


def _point(given: dict[str, Any]) -> dict[str, Any]:
    filled = {name: {**empty, **given[name]} for name, empty in _OF_POINT.items() if given.get(name) is not None}
    return {**_SAMPLE, **_POINT, **given, **filled}


_OF_POINT = {"than": _SAMPLE, "comparison": _COMPARISON}
