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


def test_a_run_without_modules_of_the_profile_has_no_such_check() -> None:
    assert own_module_checks(make_plan(), None) == []


USED = "connections used the profile's module tcp_cubic for cubic"
UNUSED = "no connection used the profile's module tcp_cubic"
OTHERS = "the algorithm cubic is not the profile's: its module tcp_cubic registered"
UNCHECKED = "it was not checked whether the flows use the profile's module tcp_cubic"


@pytest.mark.parametrize(
    ("record", "ok", "message", "numbers"),
    [
        (GOOD, True, f"{USED} (srcversion ABC)", (2, 3, None, "uses")),
        (GOOD | {"uses_most": 2}, True, f"{USED} (srcversion ABC)", (2, 2, None, "uses")),
        (GOOD | {"uses_most": 1}, False, UNUSED, (2, 1)),
        (GOOD | {"uses_before": 0, "uses_most": 0}, False, UNUSED, (1, 0)),
        (GOOD | {"programs": dict.fromkeys("abc", "1")}, True, f"{USED} (3 programs in BPF)", (2, 3, None, "uses")),
        (GOOD | {"algorithms": ["even", "odd"]}, False, f"{OTHERS} even, odd", ("cubic", "even, odd")),
        (GOOD | {"algorithms": []}, False, f"{OTHERS} nothing", ("cubic", "nothing")),
        *((GOOD | {name: None}, False, UNCHECKED, ()) for name in ("algorithms", "uses_before", "uses_most")),
    ],
)
def test_what_is_said_of_a_module(record: dict[str, Any], ok: bool, message: str, numbers: tuple[Any, ...]) -> None:
    found = own_module_checks(_plan(), told(modules={"other": GOOD, "tcp_cubic": record}))
    assert found == [Check("module of cubic", "engine", ok, message, *numbers)]


@pytest.mark.parametrize(
    "agent", [None, {}, {"modules": {"tcp_cubic": {"srcversion": None, "parameters": {"a": "1"}}}}]
)
def test_a_module_that_nobody_looked_at_is_not_taken_for_used(agent: dict[str, Any] | None) -> None:
    assert own_module_checks(_plan(), agent_of(agent)) == [Check("module of cubic", "engine", False, UNCHECKED)]
