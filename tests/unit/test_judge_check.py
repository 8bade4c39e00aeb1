# SPDX-License-Identifier: Apache-2.0
"""What a check may say: its stage, its unit, and the words about raw files."""

from __future__ import annotations

from typing import Any

import pytest

from howdah.ingest.source import IngestReport, SourceReport
from howdah.judge.check import Check
from howdah.judge.collection import raw_files


@pytest.mark.parametrize(
    ("count", "words"),
    [
        (0, "every raw file was read to its end"),
        (3, "raw data are damaged or missing: p0; p1; a: p2"),
        (4, "raw data are damaged or missing: p0; p1; a: p2 (and 1 more)"),
    ],
)
def test_three_problems_of_raw_files_are_named_and_the_others_counted(count: int, words: str) -> None:
    problems = [f"p{number}" for number in range(count)]
    report = IngestReport(sources={"a": SourceReport(problems=problems[2:])}, problems=problems[:2])
    check = raw_files(report)
    assert (check.ok, check.message) == (count == 0, words)
    assert (check.expected, check.measured, check.tolerance, check.unit) == (0, count, 0, "problems")


@pytest.mark.parametrize(
    ("change", "field"),
    [
        ({"name": None}, "name"),
        ({"message": None}, "message"),
        ({"stage": None}, "stage"),
        ({"stage": "Engine"}, "stage"),
        ({"tolerance": "packets"}, "tolerance"),
        ({"unit": "PACKETS"}, "unit"),
        ({"unit": "packets "}, "unit"),
        ({"unit": ""}, "unit"),
        ({"unit": None}, "unit"),
    ],
)
def test_a_check_that_verdict_json_cannot_have_is_not_made(change: dict[str, Any], field: str) -> None:
    right: dict[str, Any] = {
        "name": "a",
        "stage": "engine",
        "ok": True,
        "message": "it is",
        "tolerance": 0.5,
        "unit": "bit/s",
    }
    Check(**right)
    Check(**{**right, "tolerance": None, "unit": None})
    with pytest.raises(ValueError, match=f"no such {field}"):
        Check(**{**right, **change})
