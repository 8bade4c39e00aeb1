# SPDX-License-Identifier: Apache-2.0
"""Whatever stands in claims, controls and quick, loading ends in a profile or in a ProfileError with a place."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from howdah.errors import ProfileError
from howdah.profile import load
from tests.claim_factory import HEAD

WORDS = st.sampled_from(
    [
        *(
            "utilisation",
            "exit_cause",
            "exit_time_s",
            "cubic",
            "reno",
            "path.rtt",
            "algorithm",
            "control",
            "20 ms",
            "40ms",
        ),
        *(
            "much more",
            "similar",
            "rises",
            "flat",
            "all",
            "any",
            "max",
            "sum",
            "10 %",
            "3 s",
            "870",
            "off",
            "",
            "x.0.y",
        ),
    ]
)
SCALARS = st.one_of(
    WORDS, st.none(), st.booleans(), st.integers(-5, 5), st.floats(-2, 2).map(lambda value: round(value, 3))
)
KEYS = st.sampled_from(
    [
        *(
            "id",
            "entry",
            "says",
            "source",
            "value",
            "than",
            "expect",
            "each",
            "hold",
            "control",
            "because",
            "contradiction",
            "note",
            "unsupported",
        ),
        *("metric", "flow", "take", "at", "equals", "within", "above", "between", "ratio", "difference", "is", "trend"),
        *("over", "by", "in_at_least", "what", "set", "path.rtt", "algorithm", "repetitions", "off", "word", "is_"),
    ]
)
VALUES = st.recursive(
    SCALARS,
    lambda inner: st.one_of(st.lists(inner, max_size=3), st.dictionaries(KEYS, inner, max_size=4)),
    max_leaves=8,
)
GOOD: dict[str, Any] = {
    "id": "it",
    "says": "so",
    "value": {"metric": "utilisation", "at": {"algorithm": "cubic"}},
    "expect": {"above": "50 %"},
    "each": "path.rtt",
}


def loads(directory: Path, sections: dict[str, Any]) -> None:
    file = directory / "fuzz.yaml"
    # JSON is YAML; what is written here is read by the same parser as any profile.
    body = "".join(f"{name}: {json.dumps(value)}\n" for name, value in sections.items())
    file.write_text(HEAD.format(rtt="[20 ms, 40 ms]", repetitions=2) + body, encoding="utf-8")
    for quick in (False, True):
        try:
            load(file, quick=quick)
        except ProfileError as error:
            assert error.where is not None
            assert error.where.startswith(str(file))
            assert error.what


_SLOW = settings(max_examples=150, deadline=None, suppress_health_check=[HealthCheck.function_scoped_fixture])


@_SLOW
@given(st.dictionaries(KEYS, VALUES, max_size=4))
def test_claims(tmp_path: Path, changes: dict[str, Any]) -> None:
    loads(tmp_path, {"claims": [{**GOOD, **changes}]})


@_SLOW
@given(st.sampled_from(["claims", "controls", "quick"]), VALUES)
def test_sections(tmp_path: Path, name: str, value: Any) -> None:
    loads(tmp_path, {name: value})


@_SLOW
@given(VALUES, VALUES)
def test_controls(tmp_path: Path, settings_: Any, at: Any) -> None:
    loads(tmp_path, {"controls": {"off": {"what": "x", "set": settings_, "at": at}}, "claims": [GOOD]})
