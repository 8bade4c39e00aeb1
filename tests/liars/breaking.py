# SPDX-License-Identifier: Apache-2.0
"""Ways to change a plan behind its own back: what is carried out is not what everything else in the plan says."""

from __future__ import annotations

import dataclasses
from collections.abc import Callable
from typing import Any

from howdah.plan.plan import Plan
from howdah.plan.step import Operation
from tests.steps import operation

Wanted = Callable[[Operation], bool]
Break = Callable[[Plan], Plan]


def altered(plan: Plan, wanted: Wanted, change: Callable[[dict[str, Any]], Any]) -> Plan:
    """The plan with other arguments of some operations; there must be such operations."""
    found = [wanted(each) for each in plan.operations]
    assert any(found), "the plan has no such operation"
    pairs = zip(plan.operations, found, strict=True)
    return dataclasses.replace(plan, operations=[_changed(each, change) if is_it else each for each, is_it in pairs])


def _changed(of: Operation, change: Callable[[dict[str, Any]], Any]) -> Operation:
    arguments = of.arguments()
    change(arguments)
    return operation(of.op, **arguments)


def with_operations(plan: Plan, *more: tuple[str, dict[str, Any]]) -> Plan:
    """The plan with operations that follow all others."""
    return dataclasses.replace(plan, operations=[*plan.operations, *(operation(op, **values) for op, values in more)])


def named(op: str, **arguments: Any) -> Wanted:
    return lambda step: step.op == op and all(step.arguments().get(k) == v for k, v in arguments.items())


def bottleneck(plan: Plan, op: str, **more: Any) -> Wanted:
    calibration = plan.calibration
    return named(op, node=calibration.bottleneck_node, interface=calibration.bottleneck_interface, **more)


def options(op: str, /, changes: dict[str, Any], **arguments: Any) -> Break:
    """Other options of the queues or classes with these arguments."""
    return lambda plan: altered(plan, named(op, **arguments), lambda item: item["options"].update(changes))


def values(op: str, /, changes: dict[str, Any], **arguments: Any) -> Break:
    """Other values of the operations with these arguments."""
    return lambda plan: altered(plan, named(op, **arguments), lambda item: item.update(changes))


def netem(**options: Any) -> dict[str, Any]:
    """Options of a delay line that does nothing but what is given."""
    usual: dict[str, Any] = {"delay_us": 0, "limit_packets": 10_000, "seed": None, "jitter_us": 0, "distribution": None}
    usual |= {"loss_ratio": 0.0, "rate_bits_per_second": None, "reorder_ratio": 0.0, "reorder_gap": 0}
    return {**usual, **options}
