# SPDX-License-Identifier: Apache-2.0
"""Indented JSON is what Python's own encoder makes of it, byte for byte: keys of runs are digests of such text."""

from __future__ import annotations

import enum
import json
from collections import OrderedDict
from typing import Any, NamedTuple

import pytest
from hypothesis import given
from hypothesis import strategies as st

from howdah.indented import indented_json
from howdah.plan.compile import compile_plan
from howdah.plan.written import written
from howdah.profile import load
from tests.durations import ROOT

KEYS = st.one_of(st.text(), st.integers(), st.floats(), st.booleans(), st.none())
SCALARS = st.one_of(st.none(), st.booleans(), st.integers(), st.floats(), st.text())
VALUES = st.recursive(
    SCALARS,
    lambda inner: st.one_of(st.lists(inner), st.lists(inner).map(tuple), st.dictionaries(KEYS, inner)),
    max_leaves=30,
)


@given(VALUES)
def test_any_value(value: Any) -> None:
    assert indented_json(value) == json.dumps(value, indent=1)


class Colour(enum.IntEnum):
    RED = 1


class Name(str):
    __slots__ = ()


class Pair(NamedTuple):
    a: int
    b: list[int]


@pytest.mark.parametrize(
    "value",
    [
        {Colour.RED: Colour.RED, Name("ü"): Name('"')},
        [Pair(1, [2]), OrderedDict(b=1, a=[])],
        {"a": Pair(1, []), "b": OrderedDict(x=OrderedDict())},
        {1: [], False: {}, None: (1,), 0.5: {"a": []}},
        [[], {}, (), [[]], [{}], {"a": ()}],
    ],
)
def test_subclasses_keys_that_are_no_texts_and_what_is_empty(value: Any) -> None:
    assert indented_json(value) == json.dumps(value, indent=1)


@pytest.mark.parametrize("value", [{1, 2}, [{1}], {"a": [object()]}, {(1, 2): 3}, {(1, 2): [3]}, {"a": b"b"}])
def test_what_json_has_no_word_for(value: Any) -> None:
    with pytest.raises(TypeError) as own:
        indented_json(value)
    with pytest.raises(TypeError) as python:
        json.dumps(value, indent=1)
    assert str(own.value) == str(python.value)


@pytest.mark.parametrize("name", ["quick", "senders-stacks", "receivers", "processor"])
def test_a_plan(name: str) -> None:
    for cell in load(ROOT / "profiles" / f"{name}.yaml").cells()[:3]:
        plan = compile_plan(cell)
        assert plan.to_json() == json.dumps(written(plan), indent=1)
