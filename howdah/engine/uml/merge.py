# SPDX-License-Identifier: Apache-2.0
"""Merges raw/PART/ of the kernels of a run into the files of raw/ that describe the whole run.

Every kernel has the whole network, and each packet is in one kernel at a time, so counters of a node or queue are the
sums over all kernels. A wire's queue is what entered it minus what arrived, modulo 2^32. A host's sockets and stack
counters come from the kernel in which it lives, settings of routers from the senders' kernel.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import replace
from pathlib import Path
from typing import TypeVar

from howdah.agent.calibration.divided import EndsRecord, evaluate
from howdah.codec import encoded
from howdah.engine.machines.merge import (
    found_parts,
    merge_accounts,
    merge_agents,
    merge_texts,
    read_accounting,
    read_part,
    sum_of,
)
from howdah.plan.line import WIRE_HANDLE
from howdah.plan.plan import Plan
from howdah.plan.qdisc import ROOT_HANDLE
from howdah.record.account import Accounting, CounterState, NodeCounters, Queue
from howdah.record.agent import AgentRecord
from howdah.record.clock import CLOCK_FILE, CLOCK_FORMAT, ClockRecord, Correction, MachineClock
from howdah.record.directory import write_json
from howdah.record.wire import WIRE_FILE, KernelWires, WireRecord

_U32 = 2**32
_Item = TypeVar("_Item")


def merge(raw: Path, plan: Plan) -> AgentRecord:
    """Write agent.json, accounting.json, calibration-*.json, wire.json, clock.json and the accounts of tracepoints;
    return the first. Raises RunFailedError if a kernel left no record."""
    names = [part.name for part in plan.parts]
    agents = {name: read_part(AgentRecord, raw / name / "agent.json") for name in names}
    epoch_ns = plan.epoch_us * 1000
    write_json(raw / CLOCK_FILE, encoded(_clocks(names, epoch_ns)))
    agent = merge_agents(plan, {name: _own(plan, name, agents[name]) for name in names}, _right(names), epoch_ns)
    write_json(raw / "agent.json", encoded(agent))
    states = {name: read_accounting(raw / name) for name in names}
    write_json(raw / "accounting.json", merge_accounting(plan, states))
    for stage in ("before", "after"):
        ends = found_parts(EndsRecord, raw, names, f"ends-{stage}.json")
        if len(ends) == len(names):
            write_json(raw / f"calibration-{stage}.json", encoded(evaluate(plan, ends)))
    merge_accounts(raw, names)
    wires = {name: read_part(KernelWires, raw / name / WIRE_FILE).wires for name in names}
    write_json(raw / WIRE_FILE, encoded(WireRecord(1, wires)))
    for name in names:
        merge_texts(raw, name, epoch_ns, epoch_ns, Correction())
    return agent


def _right(names: list[str]) -> dict[str, Correction]:
    return {name: Correction() for name in names}


def _clocks(names: list[str], epoch_ns: int) -> ClockRecord:
    """Return the clock record: all kernels share one clock, so nothing is corrected."""
    machines = dict.fromkeys(names, MachineClock(epoch_ns))
    return ClockRecord(CLOCK_FORMAT, "the virtual time of all kernels", epoch_ns=epoch_ns, machines=machines)


def _nodes_set_by(plan: Plan, name: str) -> set[str]:
    first = plan.parts[0].name
    routers = [host.name for host in plan.hosts if host.role == "router"] if name == first else []
    return {*routers, *(host for part in plan.parts if part.name == name for host in part.hosts)}


def _own(plan: Plan, name: str, agent: AgentRecord) -> AgentRecord:
    tells = _nodes_set_by(plan, name) | {"*"}

    def own(told: Mapping[str, _Item] | None) -> dict[str, _Item]:
        return {node: item for node, item in (told or {}).items() if node in tells}

    return replace(
        agent, sysctls=own(agent.sysctls), qdiscs=own(agent.qdiscs), links=own(agent.links), routes=own(agent.routes)
    )


def merge_accounting(plan: Plan, states: Mapping[str, Accounting]) -> Accounting:
    """Merge the accountings of all kernels."""
    return {
        "silent": all(state["silent"] for state in states.values()),
        "before": _merged(plan, {name: state["before"] for name, state in states.items()}),
        "after": _merged(plan, {name: state["after"] for name, state in states.items()}),
    }


def _merged(plan: Plan, parts: Mapping[str, CounterState]) -> CounterState:
    first = next(iter(parts.values()))
    return {
        "time_ns": max(part["time_ns"] for part in parts.values()),
        "nodes": {node: _node([part["nodes"][node] for part in parts.values()]) for node in first["nodes"]},
        "softnet": sum_of([part["softnet"] for part in parts.values()]),
        "netstat": _netstat(plan, parts),
    }


def _netstat(plan: Plan, parts: Mapping[str, CounterState]) -> dict[str, dict[str, int]]:
    """Return each host's counters from the kernel in which it lives, and the sums for each router."""
    lives = {host: part.name for part in plan.parts for host in part.hosts}
    nodes = next(iter(parts.values()))["netstat"]
    return {
        node: parts[lives[node]]["netstat"][node]
        if node in lives
        else sum_of([part["netstat"][node] for part in parts.values()])
        for node in nodes
    }


def _node(parts: list[NodeCounters]) -> NodeCounters:
    interfaces = {name: sum_of([part["interfaces"][name] for part in parts]) for name in parts[0]["interfaces"]}
    queues: dict[tuple[str, str], Queue] = {}
    for part in parts:
        for queue in part["qdiscs"]:
            if queue["handle"] == WIRE_HANDLE:  # the wire and the netem above it form one line
                queue = {**queue, "handle": ROOT_HANDLE, "parent": "root"}
            known = queues.setdefault((queue["interface"], queue["handle"]), dict.fromkeys(queue, 0))
            for key, value in queue.items():
                known[key] = (known[key] + value) if isinstance(value, int) else value
    for queue in queues.values():
        for name in ("backlog_bytes", "backlog_packets"):
            queue[name] %= _U32
    return {"interfaces": interfaces, "qdiscs": list(queues.values())}
