# SPDX-License-Identifier: Apache-2.0
"""The judge and a profile's own module: a run whose flows used something else is invalid."""

from __future__ import annotations

import dataclasses
from typing import Any

import pytest

from howdah.judge.engine import own_module_checks
from howdah.plan.plan import Plan
from howdah.record.verdict import Check
from tests.unit.plan_factory import make_plan
from tests.unit.told_by_agent import agent_of, told

GOOD = {"srcversion": "ABC", "algorithms": ["cubic"], "uses_before": 1, "uses_most": 3}


def _plan() -> Plan:
    return dataclasses.replace(make_plan(), own_algorithms={"cubic": "tcp_cubic"})


def test_a_module_in_use_passes_and_is_named() -> None:
    (check,) = own_module_checks(_plan(), told(modules={"tcp_cubic": GOOD}))
    assert check.ok is True
    assert (check.name, check.measured) == ("module of cubic", 3)
    assert "srcversion ABC" in check.message


def test_of_bpf_its_programs_are_named() -> None:
    record = GOOD | {"srcversion": None, "uses_before": 0, "programs": {"init": "00ff", "ssthresh": "11ee"}}
    (check,) = own_module_checks(_plan(), told(modules={"tcp_cubic": record}))
    assert check.ok is True
    assert "2 programs in BPF" in check.message


@pytest.mark.parametrize(
    ("agent", "words"),
    [
        (None, "not checked whether"),
        ({}, "not checked whether"),
        ({"modules": {"tcp_cubic": {"srcversion": None, "parameters": {"hystart": "1"}}}}, "not checked whether"),
        ({"modules": {"tcp_cubic": GOOD | {"algorithms": ["even"]}}}, "its module tcp_cubic registered even"),
        ({"modules": {"tcp_cubic": GOOD | {"algorithms": []}}}, "registered nothing"),
        ({"modules": {"tcp_cubic": GOOD | {"uses_most": 1}}}, "no connection used"),
    ],
)
def test_anything_else_is_an_invalid_run(agent: dict[str, Any] | None, words: str) -> None:
    (check,) = own_module_checks(_plan(), agent_of(agent))
    assert check.ok is False
    assert words in check.message


def test_a_run_without_modules_of_the_profile_has_no_such_check() -> None:
    assert own_module_checks(make_plan(), None) == []


USED = "connections used the profile's module tcp_cubic for cubic"
UNCHECKED = "it was not checked whether the flows use the profile's module tcp_cubic"


@pytest.mark.parametrize(
    ("record", "ok", "message", "numbers"),
    [
        (GOOD, True, f"{USED} (srcversion ABC)", (2, 3, None, "uses")),
        (GOOD | {"uses_most": 2}, True, f"{USED} (srcversion ABC)", (2, 2, None, "uses")),
        (
            GOOD | {"uses_most": 1},
            False,
            "no connection used the profile's module tcp_cubic",
            (2, 1),
        ),
        (GOOD | {"uses_before": 0, "uses_most": 0}, False, "no connection used the profile's module tcp_cubic", (1, 0)),
        (
            GOOD | {"programs": {"a": "1", "b": "2", "c": "3"}},
            True,
            f"{USED} (3 programs in BPF)",
            (2, 3, None, "uses"),
        ),
        (
            GOOD | {"algorithms": ["even", "odd"]},
            False,
            "the algorithm cubic is not the profile's: its module tcp_cubic registered even, odd",
            ("cubic", "even, odd"),
        ),
        (
            GOOD | {"algorithms": []},
            False,
            "the algorithm cubic is not the profile's: its module tcp_cubic registered nothing",
            ("cubic", "nothing"),
        ),
        (GOOD | {"algorithms": None}, False, UNCHECKED, ()),
        (GOOD | {"uses_before": None}, False, UNCHECKED, ()),
        (GOOD | {"uses_most": None}, False, UNCHECKED, ()),
    ],
)
def test_what_is_said_of_a_module(record: dict[str, Any], ok: bool, message: str, numbers: tuple[Any, ...]) -> None:
    found = own_module_checks(_plan(), told(modules={"other": GOOD, "tcp_cubic": record}))
    assert found == [Check("module of cubic", "engine", ok, message, *numbers)]
