# SPDX-License-Identifier: Apache-2.0
"""What a check may say: its stage, its unit, and the words about raw files."""

from __future__ import annotations

from dataclasses import asdict
from typing import Any

import pytest

from howdah.ingest.source import IngestReport, SourceReport
from howdah.judge.check import none_of, within
from howdah.judge.collection import raw_files
from howdah.record.verdict import Check


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


@pytest.mark.parametrize(
    ("measured", "why", "ok", "message"),
    [
        (100.0, "", True, "the delay is as configured: 100 us, expected 100 ± 0.5"),
        (100.5, "", True, "the delay is as configured: 100.5 us, expected 100 ± 0.5"),
        (99.5, "", True, "the delay is as configured: 99.5 us, expected 100 ± 0.5"),
        (100.75, "", False, "the delay is too high: 100.75 us, expected 100 ± 0.5"),
        (99.25, "", False, "the delay is too low: 99.25 us, expected 100 ± 0.5"),
        (None, "", None, "the delay was not measured: no data"),
        (None, "no probe came", None, "the delay was not measured: no probe came"),
    ],
)
def test_a_value_may_be_off_by_its_tolerance(measured: float | None, why: str, ok: bool | None, message: str) -> None:
    found = within("delay", "before", measured, 100.0, 0.5, "us", "the delay", why)
    assert found == Check("delay", "before", ok, message, 100.0, measured, 0.5, "us")
    if not why:
        assert within("delay", "before", measured, 100.0, 0.5, "us", "the delay") == found


@pytest.mark.parametrize(
    ("count", "ok", "message"),
    [(0, True, "none was lost"), (1, False, "1 of them: lost"), (None, None, "probes were not counted")],
)
def test_a_count_must_be_zero(count: int | None, ok: bool | None, message: str) -> None:
    found = none_of("loss", "after", count, "probes", "none was lost", "{count} of them: lost")
    assert found == Check("loss", "after", ok, message, 0, count, 0, "probes")


def test_a_check_is_written_with_all_its_fields() -> None:
    assert asdict(Check("loss", "after", True, "none", 0, 1.5, 0, "probes")) == {
        "name": "loss",
        "stage": "after",
        "ok": True,
        "message": "none",
        "expected": 0,
        "measured": 1.5,
        "tolerance": 0,
        "unit": "probes",
    }
    with pytest.raises(ValueError, match="no such name and unit: Check"):
        Check(None, "after", True, "", tolerance=1)  # type: ignore[arg-type]
