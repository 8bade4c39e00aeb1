# SPDX-License-Identifier: Apache-2.0
"""Write verdict.json: was the path what the plan says, and was everything recorded?"""

from __future__ import annotations

from pathlib import Path
from typing import TypeVar

from howdah.errors import HowdahError
from howdah.extension import extensions
from howdah.hooks import CheckRun
from howdah.ingest.run import read_report
from howdah.judge.accounting import accounting_checks, read_snapshots
from howdah.judge.active_queue import active_queue_checks
from howdah.judge.agreement import agreement_checks
from howdah.judge.calibration import calibration_checks
from howdah.judge.check import Tolerance, tolerance_of
from howdah.judge.collection import collection_checks, coverage_checks, reading_gaps
from howdah.judge.connections import connection_checks
from howdah.judge.during import during_checks, tick_checks
from howdah.judge.engine import Idle, engine_checks, idle_of, kernel_log_checks, own_module_checks
from howdah.judge.host_processor import processor_checks
from howdah.judge.jitter import jitter_checks, order_checks
from howdah.judge.limits import limit_checks, sending_checks
from howdah.judge.link import link_checks
from howdah.judge.loss import burst_checks, loss_schedule_checks
from howdah.judge.machines import machine_checks, processor, round_trip_checks, wire_checks
from howdah.judge.middlebox import middlebox_checks
from howdah.judge.model import model_checks
from howdah.judge.policer import bucket_check, train_checks
from howdah.judge.room import delay_limit_checks, host_queue_checks
from howdah.judge.settings import settings_checks
from howdah.measure.measured import Measured, load
from howdah.plan.plan import Plan
from howdah.record.account import TraceAccount
from howdah.record.agent import AgentRecord
from howdah.record.calibration import CalibrationRecord
from howdah.record.clock import CLOCK_FILE, ClockRecord
from howdah.record.directory import RunDirectory
from howdah.record.model import checked
from howdah.record.raw import read_agent, read_calibration, read_raw_json
from howdah.record.verdict import AFTER, BEFORE, Check, Verdict, write_verdict
from howdah.record.wire import WIRE_FILE, WireRecord

_Kind = TypeVar("_Kind")


def judge(directory: RunDirectory, plan: Plan, data: Measured | None = None) -> Verdict:
    """Make every check and write verdict.json. A failed check makes the run *invalid*.

    A check that could not be made (``ok`` null) does not: its message says why. A check whose data are missing although
    they should exist fails. ``data`` are the tables if they were read already. Raise HowdahError if there are no
    tables.
    """
    tolerance = tolerance_of(plan)
    data = data or load(directory, plan)
    agent = _agent(directory)
    if plan.traits.model:
        checks = model_checks(directory, data, read_report(directory), agent, tolerance)
    else:
        checks = _kernel_checks(directory, data, agent, tolerance)
    checks += extension_checks(directory, data)
    return write_verdict(directory, checks)


def _kernel_checks(
    directory: RunDirectory, data: Measured, agent: AgentRecord | None, tolerance: Tolerance
) -> list[Check]:
    """Return the checks of a run on real kernels. ``agent`` is agent.json, None if it is missing."""
    plan, raw = data.plan, directory.raw
    before, after = (read_calibration(raw / f"calibration-{stage}.json") for stage in ("before", "after"))
    trace, events = (_read(TraceAccount, raw / name) for name in ("trace.json", "slow_start.json"))
    report, idle, state = read_report(directory), idle_of(directory, plan), read_snapshots(raw)
    several, real_time = plan.traits.several_machines, plan.real_time is not None
    watched = agent.processor if agent else None
    return [
        *engine_checks(plan, agent, tolerance, idle),
        *settings_checks(plan, agent),
        *own_module_checks(plan, agent),
        *kernel_log_checks(report, agent),
        *(machine_checks(plan, _read(ClockRecord, raw / CLOCK_FILE), agent, tolerance) if several else ()),
        *(round_trip_checks(plan, BEFORE, before, tolerance) if several else ()),
        *wire_checks(plan, _read(WireRecord, raw / WIRE_FILE), tolerance),
        *(processor(plan, "the virtual machine", watched, tolerance) if real_time else ()),
        *_path_checks(plan, BEFORE, before, tolerance),
        # while the flows ran
        *during_checks(data, tolerance),
        *link_checks(directory, data, tolerance),
        *bucket_check(data, tolerance),
        *loss_schedule_checks(directory, plan, tolerance),
        *burst_checks(directory, plan, tolerance),
        *delay_limit_checks(directory, plan),
        *tick_checks(data),
        *limit_checks(data, tolerance),
        *sending_checks(data, tolerance),
        # accounts of segments, packets and connections
        *processor_checks(directory, data, state, tolerance),
        *accounting_checks(plan, state, tolerance),
        *host_queue_checks(data, state),
        *active_queue_checks(plan, state),
        *connection_checks(plan, data.flows["flow"].to_pylist(), agent, state),
        *middlebox_checks(directory, data, state, tolerance),
        *order_checks(plan, state),
        # records
        *collection_checks(plan, report, trace, events),
        *coverage_checks(plan, report, data, raw, state),
        *agreement_checks(data),
        *_gaps(plan, data, idle),
        *_path_checks(plan, AFTER, after, tolerance),
        *(round_trip_checks(plan, AFTER, after, tolerance) if several else ()),
    ]


def _path_checks(plan: Plan, stage: str, found: CalibrationRecord | None, tolerance: Tolerance) -> list[Check]:
    checks = (calibration_checks, train_checks, jitter_checks)
    return [each for check in checks for each in check(plan, stage, found, tolerance)]


def _gaps(plan: Plan, data: Measured, idle: Idle | None) -> list[Check]:
    """Check the readings of the bottleneck's queue; the same loop drives the other collectors."""
    if plan.collect.qdisc_us is None:
        return []
    times = data.bottleneck.time_ns
    return [reading_gaps("the bottleneck's queue", plan.collect.qdisc_us, times[times >= 0].tolist(), idle)]


def _agent(directory: RunDirectory) -> AgentRecord | None:
    """Read agent.json. Return None if it is missing or unreadable, which the report of ingest explains."""
    try:
        return read_agent(directory)
    except (OSError, HowdahError):
        return None


def _read(kind: type[_Kind], path: Path) -> _Kind | None:
    try:
        return checked(kind, read_raw_json(path), path)
    except (OSError, ValueError):
        return None


def extension_checks(directory: RunDirectory, data: Measured) -> list[Check]:
    """Return the checks of packages. Raise HowdahError, naming the package, if a check does not work."""
    checks: list[Check] = []
    for each in extensions("checks").values():
        check: CheckRun = each.load()
        checks += each.guarded(_run_check, check, directory, data)
    return checks


def _run_check(check: CheckRun, directory: RunDirectory, data: Measured) -> list[Check]:
    return list(check(directory, data))
