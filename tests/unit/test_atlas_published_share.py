# SPDX-License-Identifier: Apache-2.0
"""Claims that count repetitions, judged again from published means and intervals: where these leave no doubt."""

from __future__ import annotations

from typing import Any

import pytest

from howdah.atlas.encoding import encoding, renewed
from howdah.profile.claim import ClaimSection
from tests.claim_rows import claim_row

EQUAL = {"mean": 0.0, "low": None, "high": None, "n": 10, "why": ""}
APART = {"mean": 5.0, "low": 4.5, "high": 5.5, "n": 10, "why": ""}  # no value is below 3.01 or above 6.99
LACKING = {**EQUAL, "n": 9, "missing": 1}


@pytest.mark.parametrize(
    ("point", "expect", "verdict"),
    [
        (EQUAL, {"equals": "0"}, "pass"),
        (EQUAL, {"at_least": "1"}, "fail"),
        (EQUAL, {"at_most": "-1"}, "fail"),
        (EQUAL, {"between": ["0", "1"]}, "pass"),
        (APART, {"at_least": "3"}, "pass"),
        (APART, {"at_least": "3.1"}, "not run"),
        (APART, {"at_least": "6.9"}, "not run"),
        (APART, {"at_least": "7"}, "fail"),
        (APART, {"at_most": "3"}, "fail"),
        (APART, {"between": ["3", "7"]}, "pass"),
        (APART, {"between": ["3", "5"]}, "not run"),
        (APART, {"between": ["4", "6"]}, "not run"),
        (APART, {"equals": "5", "within": "1"}, "not run"),
        (APART, {"between": ["7", "9"]}, "fail"),
        (LACKING, {"equals": "0"}, "not run"),
        ({**EQUAL, "mean": None}, {"equals": "0"}, "not run"),
    ],
)
def test_a_share_of_numbers_needs_runs_unless_all_are_on_one_side(
    point: dict[str, Any], expect: dict[str, Any], verdict: str
) -> None:
    row = claim_row(measured={"points": [point]})
    given = {"id": "a", "says": "x", "value": {"metric": "timeouts", "flow": 1}}
    before = encoding(ClaimSection.model_validate({**given, "expect": expect}))
    claim = ClaimSection.model_validate({**given, "expect": {**expect, "in_at_least": "90 %"}})
    found = renewed(claim, row, before)
    assert found.verdict == verdict, found.why
