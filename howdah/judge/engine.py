# SPDX-License-Identifier: Apache-2.0
"""Whether the guest did what the plan says, when the plan says."""

from __future__ import annotations

from collections.abc import Iterable

from howdah.judge.busy import WHY, Idle, excused
from howdah.judge.check import told_of_many
from howdah.judge.tolerance import Tolerance
from howdah.linux.netlink.discipline.netem import Netem
from howdah.plan.plan import Flow, Plan
from howdah.record.agent import AgentFailure, AgentRecord, FlowRecord
from howdah.record.verdict import ENGINE, Check


def engine_checks(plan: Plan, agent: AgentRecord | None, tolerance: Tolerance, idle: Idle | None = None) -> list[Check]:
    """``agent`` is agent.json, None if it is missing; ``idle`` is howdah/judge/busy.py's, where there is one."""
    if agent is None:
        return [Check("agent", ENGINE, False, "agent.json is missing: the guest did not finish")]
    checks = [_status(agent), *_clock(plan, agent, tolerance, idle), _epoch(plan, agent)]
    checks += flow_checks(plan.flows, agent, tolerance, idle, is_black_hole=plan.path.is_black_hole)
    checks.append(placement(plan, agent))
    return checks


def _status(agent: AgentRecord) -> Check:
    if agent.status == "ok":
        return Check("agent", ENGINE, True, "every operation of the plan was carried out")
    error = agent.error or AgentFailure()
    message = f"the agent stopped at {error.operation}: {error.message}"
    return Check("agent", ENGINE, False, message)


def _epoch(plan: Plan, agent: AgentRecord) -> Check:
    """In virtual time the experiment starts at the very uptime the plan says."""
    found = agent.epoch_monotonic_ns
    if not plan.traits.exact_uptime:
        return Check("epoch", ENGINE, found is not None, "the epoch follows from when the network was built")
    expected = plan.epoch_us * 1000
    ok = found == expected
    message = f"time zero was at an uptime of {found} ns, the plan says {expected} ns"
    return Check("epoch", ENGINE, ok, message, expected, found, 0, "ns")


def _clock(plan: Plan, agent: AgentRecord, tolerance: Tolerance, idle: Idle | None) -> list[Check]:
    """Phases begin and end when the plan says; a clock that ran away while the guest waited for something is seen here.

    The guest's clock stands still while it computes and runs free while it waits for anything outside.
    """
    calibration = plan.calibration
    latest_us = {"setup": min(calibration.before_us, 0), "flows": plan.duration_us}
    earliest_us = {"flows": plan.duration_us}
    if calibration.enabled:
        window = calibration.phase_us + calibration.settle_us
        latest_us["calibrate-before"] = calibration.before_us + window
        latest_us["quiesce"] = calibration.after_us
        latest_us["calibrate-after"] = calibration.after_us + window
    phases = {phase.phase: phase for phase in agent.phases}
    checks = []
    for phase, latest in latest_us.items():
        name = f"clock {phase}"
        if phase not in phases:
            checks.append(Check(name, ENGINE, False, f"phase {phase} did not happen", latest, None, None, "us"))
            continue
        end_us = phases[phase].end_ns / 1000
        late = end_us > latest + tolerance.clock_us
        early = phase in earliest_us and end_us < earliest_us[phase] - tolerance.clock_us
        message = f"phase {phase} ended at {end_us / 1e6:.6f} s, the plan allows until {latest / 1e6:.6f} s"
        if late and excused(idle, latest * 1000, phases[phase].end_ns):
            late = False
            message += WHY
        if late:
            message += ": the guest's clock ran away, because something made it wait for the host"
        if early:
            message += ": it was cut short"
        checks.append(Check(name, ENGINE, not (late or early), message, latest, end_us, tolerance.clock_us, "us"))
    return checks


def flow_checks(
    flows: Iterable[Flow],
    agent: AgentRecord,
    tolerance: Tolerance,
    idle: Idle | None,
    *,
    is_black_hole: bool = False,
) -> list[Check]:
    """One of each flow that is written out, by the first record of its id, and one of each group's connections.

    Through a black hole a flow that moves nothing does what it should; the middlebox' checks have what was dropped.
    """
    groups: dict[str, list[Check]] = {}
    checks: list[Check] = []
    for flow in flows:
        check = _flow_check(flow, agent.by_id.get(flow.id), tolerance, idle, is_black_hole)
        (checks if flow.group is None else groups.setdefault(flow.group, [])).append(check)
    return checks + [_group_check(group, each) for group, each in groups.items()]


def _group_check(group: str, each: list[Check]) -> Check:
    good = sum(check.ok is not False for check in each)
    message = f"{good} of the {len(each)} connections of {group} started on time, and moved what they should"
    message += told_of_many(each)
    return Check(f"connections {group}", ENGINE, good == len(each), message, len(each), good, 0, "connections")


def _flow_check(
    flow: Flow, record: FlowRecord | None, tolerance: Tolerance, idle: Idle | None, is_black_hole: bool
) -> Check:
    """The flow connected, started on time, and moved data; ``record`` is that of agent.json."""
    name = f"flow {flow.id}"
    if record is None or record.start_ns is None:
        return Check(name, ENGINE, False, f"{flow.title} never started")
    if record.error:
        return Check(name, ENGINE, False, f"{flow.title} failed: {record.error}")
    if record.connected_ns is None:
        return Check(name, ENGINE, False, f"{flow.title} never connected")
    start_us = record.start_ns / 1000
    late = excused(idle, flow.start_us * 1000, record.start_ns)
    if abs(start_us - flow.start_us) > tolerance.clock_us and not late:
        message = f"{flow.title} started at {start_us:.0f} us instead of {flow.start_us} us"
        return Check(name, ENGINE, False, message, flow.start_us, start_us, tolerance.clock_us, "us")
    if not record.bytes_received:
        if is_black_hole:
            why = "no full packet passes the middlebox, and no sender hears of it"
            return Check(name, ENGINE, None, f"{flow.title} moved no data: {why}")
        return Check(name, ENGINE, False, f"{flow.title} moved no data")
    used = record.kernel_algorithm
    if used is not None and used != flow.kernel_algorithm:
        message = f"{flow.title} used the congestion control {used} instead of {flow.kernel_algorithm}"
        return Check(name, ENGINE, False, message)
    end_us = record.end_ns / 1000 if record.end_ns is not None else flow.stop_us
    if _is_bulk(flow) and record.complete and end_us < flow.stop_us - tolerance.clock_us:
        message = f"{flow.title} ended at {end_us:.0f} us, the plan lets it send until {flow.stop_us}"
        return Check(name, ENGINE, False, message, flow.stop_us, end_us, tolerance.clock_us, "us")
    # A transfer that is under way when the run ends stops writing then, and what it wrote still arrives.
    cut = end_us > flow.stop_us
    if flow.size_bytes is not None and record.complete and not cut and record.bytes_received != flow.size_bytes:
        message = f"{flow.title} moved {record.bytes_received} bytes instead of {flow.size_bytes}"
        return Check(name, ENGINE, False, message, flow.size_bytes, record.bytes_received, 0, "bytes")
    message = f"{flow.title} started on time and moved {record.bytes_received} bytes"
    return Check(name, ENGINE, True, message, flow.start_us, start_us, tolerance.clock_us, "us")


def _is_bulk(flow: Flow) -> bool:
    """Whether the agent writes for it without a pause until its end; what a program sends is the program's affair."""
    return flow.size_bytes is None and flow.group is None and flow.kind.single


def tc_not_asked(name: str) -> Check:
    """A check of what ``tc`` tells, where the path is not calibrated."""
    return Check(name, ENGINE, None, "the plan asks for no calibration, so tc was not asked")


def placement(plan: Plan, agent: AgentRecord) -> Check:
    """No netem on a host: it entangles with TCP small queues and pacing, and is not the path's delay.

    From the dump ``tc`` made of the network as it was, not from the plan.
    """
    hosts = {host.name for host in plan.hosts if host.role != "router"}
    if not agent.qdiscs:
        if not plan.calibration.enabled:
            return tc_not_asked("netem placement")
        return Check("netem placement", ENGINE, False, "agent.json holds no dump of the qdiscs")
    found = [
        f"{node}:{item.dev}"
        for node, dump in agent.qdiscs.items()
        if node in hosts
        for item in dump.qdiscs
        if item.kind == Netem.kind
    ]
    ok = not found
    message = (
        "delay is added on routers only"
        if ok
        else f"netem sits on a host ({', '.join(found)}): delay belongs on a router"
    )
    return Check("netem placement", ENGINE, ok, message, 0, len(found), 0, "qdiscs")
