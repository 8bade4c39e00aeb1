# SPDX-License-Identifier: Apache-2.0
"""What a run is expected to take grows with everything that makes a run long."""

from __future__ import annotations

import dataclasses
from collections.abc import Callable

import pytest

from howdah.plan.event import Event, StartFlow
from howdah.plan.plan import Plan
from howdah.work.cost import FLOW_S, expected_core_s
from tests.unit.plan_factory import collecting, make_plan


def _user_space(plan: Plan) -> Plan:
    return dataclasses.replace(plan, flows=[dataclasses.replace(flow, sink="python") for flow in plan.flows])


def _profiled(plan: Plan) -> Plan:
    return dataclasses.replace(plan, collect=dataclasses.replace(plan.collect, cpu=True))


def _changing(plan: Plan) -> Plan:
    return dataclasses.replace(plan, timeline=plan.timeline + [Event(0, StartFlow(1))] * 1000)


def _often_read(plan: Plan) -> Plan:
    return dataclasses.replace(plan, collect=collecting(plan.collect, qdisc_us=1000))


def _of_many_hosts(plan: Plan) -> Plan:
    return dataclasses.replace(plan, hosts=plan.hosts * 10)


def _of_many_flows(plan: Plan) -> Plan:
    one = dataclasses.replace(plan.flows[0], size_bytes=1)
    return dataclasses.replace(plan, flows=plan.flows + [one] * 1000)


@pytest.mark.parametrize("more", [_user_space, _profiled, _changing, _often_read, _of_many_hosts, _of_many_flows])
def test_more_to_do_costs_more(more: Callable[[Plan], Plan]) -> None:
    plan = make_plan()
    assert expected_core_s(more(plan)) > 0.01 + expected_core_s(plan)


def test_nothing_is_read_where_the_collector_is_off() -> None:
    plan = make_plan()
    off = dataclasses.replace(plan, collect=collecting(plan.collect, qdisc_us=None))
    assert expected_core_s(_of_many_hosts(off)) == expected_core_s(off)


def test_programs_copy_no_more_than_the_path_carries() -> None:
    plan = _user_space(make_plan())
    bulk = dataclasses.replace(plan.flows[0], size_bytes=None, start_us=0, stop_us=plan.duration_us)
    one, fifty = (dataclasses.replace(plan, flows=[bulk] * number) for number in (1, 50))
    assert expected_core_s(fifty) == pytest.approx(expected_core_s(one) + 49 * FLOW_S)
