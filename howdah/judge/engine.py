# SPDX-License-Identifier: Apache-2.0
"""Check that the guest did what the plan says at the planned times, with the profile's own modules, and that its kernel
reported no problem.

On a machine of declared, finite speed a program may be late for two reasons. The processor was busy without a pause,
which such a run is meant to show; or the machine waited, and its clock cannot be trusted. A counter outside the guest,
which measures the processor's idle time, tells them apart.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable

import numpy as np

from howdah.codec import decoded
from howdah.ingest.source import IngestReport
from howdah.judge.check import Tolerance, failure_summary
from howdah.linux.netlink.discipline.netem import Netem
from howdah.measure.processor import course_of
from howdah.plan.plan import Flow, Plan
from howdah.record import table as store
from howdah.record.agent import AgentFailure, AgentRecord, FlowRecord, KernelLogRecord, ModuleRecord
from howdah.record.directory import RunDirectory, read_json
from howdah.record.kernel_log import SOURCE, KernelAlarm, in_use
from howdah.record.verdict import ENGINE, Check


def engine_checks(plan: Plan, agent: AgentRecord | None, tolerance: Tolerance, idle: Idle | None = None) -> list[Check]:
    """Return the checks of the agent's record. ``agent`` is agent.json, None if it is missing; ``idle`` comes from
    ``idle_of``."""
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
    """Check that in virtual time the experiment started at exactly the planned uptime."""
    found = agent.epoch_monotonic_ns
    if not plan.traits.exact_uptime:
        return Check("epoch", ENGINE, found is not None, "the epoch follows from when the network was built")
    expected = plan.epoch_us * 1000
    ok = found == expected
    message = f"time zero was at an uptime of {found} ns, the plan says {expected} ns"
    return Check("epoch", ENGINE, ok, message, expected, found, 0, "ns")


def _clock(plan: Plan, agent: AgentRecord, tolerance: Tolerance, idle: Idle | None) -> list[Check]:
    """Check that phases began and ended as planned, which detects a clock that ran away while the guest waited.

    The guest's clock stands still while it computes, and runs free while it waits for anything outside.
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
        if late and is_excused(idle, latest * 1000, phases[phase].end_ns):
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
    """Return a check for each single flow, by the first record of its ID, and one for each group's connections.

    Through a black hole a flow that moves no data is correct; the checks of the middlebox cover its drops.
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
    message += failure_summary(each)
    return Check(f"connections {group}", ENGINE, good == len(each), message, len(each), good, 0, "connections")


def _flow_check(
    flow: Flow, record: FlowRecord | None, tolerance: Tolerance, idle: Idle | None, is_black_hole: bool
) -> Check:
    """Check that a flow connected, started on time and moved data. ``record`` is its record in agent.json."""
    name = f"flow {flow.id}"
    if record is None or record.start_ns is None:
        return Check(name, ENGINE, False, f"{flow.title} never started")
    if record.error:
        return Check(name, ENGINE, False, f"{flow.title} failed: {record.error}")
    if record.connected_ns is None:
        return Check(name, ENGINE, False, f"{flow.title} never connected")
    start_us = record.start_ns / 1000
    late = is_excused(idle, flow.start_us * 1000, record.start_ns)
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
    # A transfer in progress at the end of the run stops writing; what it wrote still arrives.
    cut = end_us > flow.stop_us
    if flow.size_bytes is not None and record.complete and not cut and record.bytes_received != flow.size_bytes:
        message = f"{flow.title} moved {record.bytes_received} bytes instead of {flow.size_bytes}"
        return Check(name, ENGINE, False, message, flow.size_bytes, record.bytes_received, 0, "bytes")
    message = f"{flow.title} started on time and moved {record.bytes_received} bytes"
    return Check(name, ENGINE, True, message, flow.start_us, start_us, tolerance.clock_us, "us")


def _is_bulk(flow: Flow) -> bool:
    """Return whether the agent sends for the flow without pause until its end. Programs decide themselves what they
    send."""
    return flow.size_bytes is None and flow.group is None and flow.kind.single


def tc_not_asked(name: str) -> Check:
    """Return the check of ``tc`` output for a path that is not calibrated, where tc was not run."""
    return Check(name, ENGINE, None, "the plan asks for no calibration, so tc was not asked")


def placement(plan: Plan, agent: AgentRecord) -> Check:
    """Check that no host has a netem: there it interferes with TCP small queues and pacing, and is not the path's
    delay.

    This uses the dump that ``tc`` made of the actual network, not the plan.
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


_PAUSE = 0.05  # the largest idle share of a delay that a busy processor excuses
WHY = ", because the processor was busy without a pause"
Idle = Callable[[int, int], int]  # upper bound of idle ns between two instants in ns after the epoch


def idle_of(directory: RunDirectory, plan: Plan) -> Idle | None:
    """Return a function for the processor's idle time, or None if no exact account was kept: then no lateness is
    excused.

    Intervals count as a whole, so the result is an upper bound.
    """
    if not (plan.traits.finite_processor and plan.collect.cpu):
        return None
    try:
        ingested = read_json(directory.ingested)
        source = ingested["sources"]["cpu"]["counts"].get("source")
    except (OSError, ValueError, KeyError):
        return None
    if source != "counter":
        return None
    course = course_of(store.read(directory, "cpu"))
    idle_ns = np.maximum(course.duration_ns - course.busy_ns, 0)

    def idle(begin_ns: int, end_ns: int) -> int:
        if not course.begin_ns.size or begin_ns < course.begin_ns[0] or end_ns > course.end_ns[-1]:
            return end_ns - begin_ns  # outside the account
        within = (course.end_ns > begin_ns) & (course.begin_ns < end_ns)
        return int(min(idle_ns[within].sum(), end_ns - begin_ns))

    return idle


def is_excused(idle: Idle | None, due_ns: int, at_ns: int) -> bool:
    """Return whether something due at ``due_ns`` came late, at ``at_ns``, because the processor was busy meanwhile."""
    return idle is not None and at_ns > due_ns and idle(due_ns, at_ns) <= _PAUSE * (at_ns - due_ns)


_CHECK = "kernel log"
_MOST_CHARACTERS = 400


def kernel_log_checks(report: IngestReport, agent: AgentRecord | None) -> list[Check]:
    """Check the kernel's log. ``agent`` is agent.json, whose message counts must match the log.

    After a warning the kernel goes on, but its behaviour can no longer be trusted.
    """
    accounts = _accounts(agent or AgentRecord())
    found = report.sources.get(SOURCE)
    if not accounts:
        return [Check(_CHECK, ENGINE, None, "what the kernel said was not kept")]
    unread = [account.why for account in accounts if account.why]
    if unread:
        return [Check(_CHECK, ENGINE, None, f"nobody could read what the kernel said ({unread[0]})")]
    written = sum(account.records for account in accounts)
    counts = found.counts if found is not None else {}
    kept = int(counts.get("kept", 0))
    if kept != written:
        what = f"kernel.log has {kept} of the kernel's {written} messages: the others may tell that it was ill"
        return [Check(_CHECK, ENGINE, False, what, written, kept, 0, "messages")]
    total = int(counts["alarms_total"])
    if total:
        message = _alarm_text(decoded(KernelAlarm, counts["alarms"][0]), total, _own_modules(agent or AgentRecord()))
        return [Check(_CHECK, ENGINE, False, message, 0, total, 0, "alarms")]
    lost = sum(account.lost for account in accounts)
    if lost:
        what = f"{lost} messages of the kernel were overwritten before they were read; the other {kept} hold no alarm"
        return [Check(_CHECK, ENGINE, None, what, 0, None, 0, "alarms")]
    return [Check(_CHECK, ENGINE, True, f"the kernel's {kept} messages hold no alarm", 0, 0, 0, "alarms")]


def _accounts(agent: AgentRecord) -> list[KernelLogRecord]:
    machines = [kernel.kernel_log for kernel in (agent.machines or {}).values() if kernel.kernel_log]
    return machines or [account for account in [agent.kernel_log] if account]


def _own_modules(agent: AgentRecord) -> list[str]:
    """Return the profile's modules: only for these the agent records what they register."""
    return [name for name, value in (agent.modules or {}).items() if value and value.algorithms is not None]


def _alarm_text(alarm: KernelAlarm, total: int, own_modules: list[str]) -> str:
    where = f" on {alarm.machine}" if alarm.machine else ""
    more = f"; and {total - 1} more" if total > 1 else ""
    whose = "" if alarm.module else in_use(own_modules)
    return f"the kernel says{where}: {alarm.described[:_MOST_CHARACTERS]}{whose}{more}"


def own_module_checks(plan: Plan, agent: AgentRecord | None) -> list[Check]:
    """Return a check for each algorithm that must come from a module of the profile. ``agent`` is agent.json."""
    modules = (agent.modules if agent else None) or {}
    return [_check(name, module, modules.get(module) or ModuleRecord()) for name, module in plan.own_algorithms.items()]


def _check(name: str, module: str, record: ModuleRecord) -> Check:
    """Check that the module had more users while the flows ran than before, by the kernel's count; for BPF, users of
    its algorithm."""
    label = f"module of {name}"
    registered = record.algorithms
    before, most = record.uses_before, record.uses_most
    if registered is None or before is None or most is None:
        return Check(label, ENGINE, False, f"it was not checked whether the flows use the profile's module {module}")
    if name not in registered:
        found = ", ".join(registered) or "nothing"
        message = f"the algorithm {name} is not the profile's: its module {module} registered {found}"
        return Check(label, ENGINE, False, message, name, found)
    if most <= before:
        return Check(label, ENGINE, False, f"no connection used the profile's module {module}", before + 1, most)
    programs = record.programs
    what = f"{len(programs)} programs in BPF" if programs else f"srcversion {record.srcversion}"
    message = f"connections used the profile's module {module} for {name} ({what})"
    return Check(label, ENGINE, True, message, before + 1, most, None, "uses")
