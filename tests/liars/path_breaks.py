# SPDX-License-Identifier: Apache-2.0
"""How the liars of the path change a plan behind its own back: rates, buffers, times, algorithms, settings."""

from __future__ import annotations

import dataclasses
from typing import Any

from howdah.plan.event import Event, StartFlow, StopFlow
from howdah.plan.plan import Plan
from tests.liars.breaking import Break, altered, bottleneck, named, netem, values, with_operations
from tests.steps import with_changed_options
from tests.unit.plan_factory import collecting


def rate(share: float) -> Break:
    def broken(plan: Plan) -> Plan:
        rate = round(plan.path.rate_bits_per_second * share)
        return altered(plan, bottleneck(plan, "class"), lambda item: item["options"].update(rate_bits_per_second=rate))

    return broken


def buffer(frames: int) -> Break:
    def broken(plan: Plan) -> Plan:
        limit = plan.path.buffer_bytes + frames * plan.path.frame_bytes
        wanted = bottleneck(plan, "qdisc", kind="bfifo")
        return altered(plan, wanted, lambda item: item["options"].update(limit_bytes=limit))

    return broken


def queue(kind: str, **settings: int | bool) -> Break:
    def broken(plan: Plan) -> Plan:
        wanted = bottleneck(plan, "qdisc", kind="bfifo")
        return altered(plan, wanted, lambda item: item.update(kind=kind, options=dict(settings)))

    return broken


def another_flow(plan: Plan) -> Plan:
    flow = plan.flows[0]
    other = dataclasses.replace(flow, id=2, name="other", source_port=40011, destination_port=5011)
    more = [Event(0, StartFlow(2)), Event(plan.duration_us, StopFlow(2))]
    timeline = sorted([*plan.timeline, *more], key=lambda event: event.at_us)
    return dataclasses.replace(plan, flows=[flow, other], timeline=timeline)


def other_times(start_us: int | None = None, stop_us: int | None = None) -> Break:
    times = {"start_flow": start_us, "stop_flow": stop_us}

    def broken(plan: Plan) -> Plan:
        timeline = [
            event if (at := times.get(event.op)) is None else dataclasses.replace(event, at_us=at)
            for event in plan.timeline
        ]
        return dataclasses.replace(plan, timeline=timeline)

    return broken


def late_changes(plan: Plan) -> Plan:
    late = [
        dataclasses.replace(event, at_us=event.at_us + 50_000)
        if event.op == "class" and event.at_us < plan.duration_us
        else event
        for event in plan.timeline
    ]
    return dataclasses.replace(plan, timeline=sorted(late, key=lambda event: event.at_us))


def lost_one_by_one(plan: Plan) -> Plan:
    """netem's plain random loss, of the same share."""

    def plainly(item: dict[str, Any]) -> None:
        for name in ("burst_begins_ratio", "burst_ends_ratio"):
            item["options"].pop(name, None)

    return altered(plan, named("qdisc", kind="netem"), plainly)


def without_changes(plan: Plan) -> Plan:
    return dataclasses.replace(plan, timeline=[event for event in plan.timeline if event.op != "qdisc"])


def shorter_tick(plan: Plan) -> Plan:
    def shorter(event: Event) -> Event:
        options = event.change.arguments().get("options", {})
        if not options.get("tick_us"):
            return event
        return with_changed_options(event, tick_us=4000)

    return dataclasses.replace(plan, timeline=[shorter(event) for event in plan.timeline])


def other_algorithm(plan: Plan) -> Plan:
    return dataclasses.replace(plan, flows=[dataclasses.replace(plan.flows[0], kernel_algorithm="reno")])


def hystart_off(plan: Plan) -> Plan:
    off = altered(plan, named("module_parameter", name="hystart"), lambda item: item.update(value="0"))
    return dataclasses.replace(off, kernel_parameters={**plan.kernel_parameters, "tcp_cubic.hystart": "0"})


def segmentation_on(plan: Plan) -> Plan:
    """As a network that nobody prepared has it: packets of 64 kB, which the rate limit takes for one."""
    kept = [item for item in plan.operations if item.op not in ("offload", "gso")]
    return dataclasses.replace(plan, operations=kept)


def netem_on_the_sender(plan: Plan) -> Plan:
    return altered(
        plan, named("qdisc", node="s1", kind="pfifo"), lambda item: item.update(kind="netem", options=netem())
    )


def second_rate_limit(plan: Plan) -> Plan:
    """Acknowledgements leave the receiver at 1 Mbit/s."""
    place = {"node": "r1", "interface": "r1-eth0", "kind": "htb"}
    rate = {"rate_bits_per_second": 1_000_000, "burst_bytes": 1514, "cburst_bytes": 1514, "quantum_bytes": 1514}
    return with_operations(
        plan,
        ("qdisc", {**place, "parent": "root", "handle": "1:", "options": {"default_class": 1}}),
        ("class", {**place, "parent": "1:", "classid": "1:1", "options": rate}),
    )


def small_trace_buffer(plan: Plan) -> Plan:
    """And a collector that believes the path to be slow and reads it late."""
    path = dataclasses.replace(plan.path, carried_bits_per_second=1000)
    return dataclasses.replace(
        plan, path=path, collect=collecting(plan.collect, trace_buffer_bytes=1 << 16, qdisc_us=None)
    )


def sysctl(name: str, value: str, node: str | None = None) -> Break:
    return values("sysctl", {"value": value}, node=node, name=name)
