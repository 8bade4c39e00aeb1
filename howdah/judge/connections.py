# SPDX-License-Identifier: Apache-2.0
"""Account for every connection: planned, started, and finished, failed or unfinished at the end of the run.

The agent and the tables report these numbers. They are compared with the kernel's own counters of connections opened,
accepted, refused and reset.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable

from howdah.judge.accounting import Snapshots
from howdah.judge.check import none_of
from howdah.number import counted
from howdah.plan.plan import Flow, Plan
from howdah.record.agent import AgentRecord, FlowRecord
from howdah.record.verdict import ACCOUNTING, Check

# Counters of connections that were requested and not made, or that the kernel gave up.
REFUSED = {
    "TcpExtListenOverflows": "queue of connections to accept was full",
    "TcpExtListenDrops": "SYN dropped by a listener",
    "TcpExtTCPReqQFullDrop": "SYN dropped, queue of requests full",
    "TcpExtTCPReqQFullDoCookies": "SYN answered by a cookie, queue of requests full",
    "TcpAttemptFails": "attempt to connect failed",
    "TcpExtTCPAbortOnMemory": "aborted, no memory for orphans",
    "TcpExtTCPAbortOnTimeout": "given up after retransmissions",
    "TcpExtTCPTimeWaitOverflow": "forgotten, too many in TIME_WAIT",
}
_RESET = ("TcpExtTCPAbortOnData", "TcpExtTCPAbortOnClose")  # counters of sockets closed early
_OPENED, _ACCEPTED = "TcpActiveOpens", "TcpPassiveOpens"
_NAMES = ("connections recorded", "connections ended", "connections opened", "connections refused")
_MOST_NAMED = 3


def connection_checks(plan: Plan, rows: list[int], agent: AgentRecord | None, state: Snapshots | None) -> list[Check]:
    """Return the checks of a run with groups, or with TCP flows of a fixed size. ``rows`` are the flows in the table
    ``flow``, ``state`` is accounting.json; a missing file is None."""
    flows = [flow for flow in plan.flows if flow.is_tcp and (flow.group is not None or flow.size_bytes is not None)]
    if not flows:
        return []
    checks = [_recorded(plan, agent, rows)]
    if agent is not None:
        checks.append(_ended(flows, agent))
    if state is None:
        return checks  # another check reports that it is missing
    return [*checks, _opened(plan, agent or AgentRecord(), state), _refused(state)]


def _recorded(plan: Plan, agent: AgentRecord | None, rows: list[int]) -> Check:
    """Check that the plan, agent.json and the table have the same flows, each once."""
    planned = {flow.id for flow in plan.flows}
    recorded = [record.id for record in agent.flows] if agent is not None else []
    wrong = []
    for what, found in (("agent.json", recorded), ("the table flow", rows)):
        twice = [number for number, count in Counter(found).items() if count > 1]
        for words, numbers in (
            ("lacks", planned.difference(found)),
            ("has twice", twice),
            ("has, and the plan has not,", set(found) - planned),
        ):
            if numbers:
                wrong.append(f"{what} {words} {_named(numbers)}")
    message = f"{counted(len(planned), 'flow')} planned, {len(recorded)} in agent.json, {len(rows)} in the table"
    message += "".join(f"; {each}" for each in wrong)
    return Check(_NAMES[0], ACCOUNTING, not wrong, message, len(planned), len(rows), 0, "flows")


def _named(numbers: Iterable[int]) -> str:
    ordered = sorted(numbers)
    return f"flow {', '.join(map(str, ordered[:_MOST_NAMED]))}" + (" …" if len(ordered) > _MOST_NAMED else "")


def _ended(flows: list[Flow], agent: AgentRecord) -> Check:
    """Check that started = finished + failed + unfinished, that all connections started, and that no record contradicts
    itself."""
    started = finished = failed = unfinished = 0
    wrong: dict[str, list[int]] = {}
    for flow in flows:
        record = agent.flow(flow.id)
        started += record.start_ns is not None
        finished += record.complete
        failed += record.error is not None
        unfinished += record.start_ns is not None and not record.complete and record.error is None
        if (why := _contradiction(flow, record)) is not None:
            wrong.setdefault(why, []).append(flow.id)
    missing = started - finished - failed - unfinished
    message = f"{started} of {counted(len(flows), 'connection')} started: {finished} finished, {failed} failed, "
    message += f"{unfinished} unfinished when the run ended"
    message += "".join(f"; {_named(numbers)} {why}" for why, numbers in wrong.items())
    ok = not missing and not wrong and started == len(flows)
    return Check(_NAMES[1], ACCOUNTING, ok, message, len(flows), finished + failed + unfinished, 0, "connections")


def _contradiction(flow: Flow, record: FlowRecord) -> str | None:
    """Return how the record of a connection contradicts itself, or None."""
    if record.complete and record.error is not None:
        return "finished and failed"
    if record.start_ns is None and (record.complete or record.bytes_received):
        return "moved data and never started"
    if record.start_ns is None:
        return "never started"
    whole = flow.size_bytes is not None and (record.bytes_received or 0) >= flow.size_bytes
    end = record.end_ns if record.end_ns is not None else flow.stop_us * 1000
    if whole and not record.complete and record.error is None and end < flow.stop_us * 1000 and flow.kind.single:
        return "moved all of its bytes and is not finished"
    return None


def _is_counted(flow: Flow) -> bool:
    """Return whether the kernel counts exactly one connection of the flow, at both ends."""
    kind = flow.kind
    own = flow.sender_stack is None and flow.receiver_stack is None and flow.quic is None
    return own and flow.program is None and not (kind.opens_others or kind.control_connection)


def _opened(plan: Plan, agent: AgentRecord, state: Snapshots) -> Check:
    """Compare the connections that the agent started with those that the hosts' kernels opened and accepted."""
    flows = [flow for flow in plan.flows if flow.is_tcp]
    growth = {name: sum(state.counter(name).values()) for name in (_OPENED, _ACCEPTED) if state.counter(name)}
    why = ""
    if plan.traits.several_machines:
        why = "machines have connections of others"
    elif not all(_is_counted(flow) for flow in flows):
        why = "programs, or stacks that are not the kernel's, have connections that it counts otherwise"
    elif len(growth) < 2:
        why = f"{_OPENED} was not counted"
    if why:
        return Check(_NAMES[2], ACCOUNTING, None, f"opened connections were not compared: {why}", unit="connections")
    records = [agent.flow(flow.id) for flow in flows]
    started = sum(_connects(record) for record in records)
    both = sum(record.sender_cookie is not None and record.receiver_cookie is not None for record in records)
    opened, accepted = growth[_OPENED], growth[_ACCEPTED]
    resets = sum(sum(state.counter(name).values()) for name in _RESET)
    unfinished = sum(record.start_ns is not None and not record.complete for record in records)
    message = f"the agent started {started}, the kernels opened {opened} ({_OPENED}) and accepted {accepted} "
    message += f"({_ACCEPTED})"
    ok = opened == started and both <= accepted <= opened
    if opened != started:
        message += f": {abs(opened - started)} {'that nobody planned' if opened > started else 'never left their host'}"
    elif not ok:
        message += f", the agent has both ends of {both}"
    if resets and not unfinished:
        ok = False
        message += f"; the kernels reset {counted(resets, 'socket')} ({' and '.join(_RESET)}), and all are finished"
    return Check(_NAMES[2], ACCOUNTING, ok, message, started, opened, 0, "connections")


def _connects(record: FlowRecord) -> int:
    """Return the number of a flow's connections; HTTP clients report it per request."""
    counts = [each.connects for each in record.transactions or [] if each.connects is not None]
    return sum(counts) if counts else int(record.start_ns is not None)


def _refused(state: Snapshots) -> Check:
    found = {name: sum(state.counter(name).values()) for name in REFUSED}
    moved = {name: count for name, count in found.items() if count}
    hosts = dict.fromkeys(node for name in moved for node, count in state.counter(name).items() if count)
    refusals = "; ".join(f"{name} {count}: {REFUSED[name]}" for name, count in moved.items())
    bad = f"{{count}} connections were refused or given up ({refusals}; at {', '.join(hosts)})"
    known = any(state.counter(name) for name in REFUSED)
    total = sum(moved.values()) if known else None
    return none_of(_NAMES[3], ACCOUNTING, total, "connections", "no connection was refused or given up", bad)
