# SPDX-License-Identifier: Apache-2.0
"""Compact JSON reads back to what was written, and its lines are those that a person reviews."""

from __future__ import annotations

import json
from typing import Any

from hypothesis import given
from hypothesis import strategies as st

from howdah.atlas.published import RESULTS
from howdah.generated import compact_json
from howdah.place import DOCS

_VALUES = st.recursive(
    st.none() | st.booleans() | st.integers() | st.floats(allow_nan=False) | st.text(max_size=40),
    lambda inner: st.lists(inner, max_size=5) | st.dictionaries(st.text(max_size=8), inner, max_size=5),
    max_leaves=30,
)


@given(value=_VALUES, width=st.integers(0, 60))
def test_it_reads_back(value: Any, width: int) -> None:
    assert json.loads(compact_json(value, width=width, rows=("a",))) == value


def test_short_values_share_a_line_and_rows_have_one_each() -> None:
    value = {"name": "x", "points": [1, 2, 3], "claims": [{"id": "a", "says": "s" * 90}, {"id": "b"}]}
    assert compact_json(value, width=40, rows=("claims",)).splitlines() == [
        "{",
        ' "name": "x",',
        ' "points": [1, 2, 3],',
        ' "claims": [',
        '  {"id": "a", "says": "' + "s" * 90 + '"},',
        '  {"id": "b"}',
        " ]",
        "}",
    ]


def test_published_results_have_a_claim_a_line() -> None:
    for file in RESULTS.glob("*.json"):
        text = file.read_text(encoding="utf-8")
        found = json.loads(text)
        unknown = found.get("unknown") or {}
        # A line each, and one for each bracket.
        fields = 20 + len(unknown) + len(unknown.get("fields", ())) + len(found["revisions"])
        assert len(text.splitlines()) <= len(found["claims"]) + len(found["encodings"]) + fields + 5, file.name
        assert compact_json(found, rows=("claims", "encodings")) == text, file.name


def test_the_schema_is_one_to_read() -> None:
    text = (DOCS / "profile.schema.json").read_text(encoding="utf-8")
    assert compact_json(json.loads(text)) == text
