# SPDX-License-Identifier: Apache-2.0
"""Ingest all sources of one run into tables; also what became of each flow of the plan (agent.json), and the kernels'
logs with their alarms."""

from __future__ import annotations

import dataclasses
import re

import pyarrow as pa
import pyarrow.compute as pc

from howdah.codec import encoded
from howdah.errors import HowdahError
from howdah.foreign import read_foreign
from howdah.ingest import quic
from howdah.ingest.capture import CAPTURES, ingest_captures
from howdah.ingest.cpu import ingest_cpu, ingest_finite_processor
from howdah.ingest.machines import ingest_machines
from howdah.ingest.ns2 import ingest_model
from howdah.ingest.qdisc import ingest_two_queues
from howdah.ingest.quic import add_quic
from howdah.ingest.segment import add_own_stacks, ingest_segments
from howdah.ingest.siftr import add_siftr
from howdah.ingest.source import Context, IngestReport, Made, SourceReport
from howdah.ingest.tracepoint import ingest_slow_start, ingest_tcp_probe
from howdah.linux.kernelmessage import KernelMessage, parse
from howdah.plan.plan import Flow, Plan
from howdah.record import table as store
from howdah.record.agent import AgentRecord, FlowRecord, KernelLogRecord
from howdah.record.clock import ClockRecord, read_clocks
from howdah.record.directory import RunDirectory, read_json, write_json
from howdah.record.kernel_log import SOURCE as KERNEL_LOG
from howdah.record.kernel_log import alarms, killed_for_memory
from howdah.record.model import checked
from howdah.record.raw import read_agent, read_raw_text
from howdah.record.schema import FLOW
from howdah.record.table import axes_of
from howdah.registered import Registered, collector_named

# There is a table of these in every run, empty where nothing was collected.
ALWAYS = ("tcp_info", "qdisc", "interface", "counters")


def ingest(directory: RunDirectory, plan: Plan | None = None) -> IngestReport:
    """Write all tables and tables/ingest.json; return the content of the latter. ``plan`` avoids reading the run's plan
    again, because one of a hundred thousand connections takes much memory.

    Truncated or corrupt raw files lose the affected rows and are reported as problems. Raise HowdahError if the plan or
    a kernel's description of its data cannot be read, or a table cannot be written.
    """
    report = IngestReport()
    context = _context(directory, report, plan)
    for name in killed_for_memory(directory.console):
        report.problems.append(f"the guest's memory was full, and its kernel killed {name} (console.log)")
    try:
        directory.tables.mkdir(exist_ok=True)
    except OSError as error:
        raise HowdahError(
            f"cannot make the directory of tables: {error.strerror}", where=str(directory.tables)
        ) from error
    clocks = _clocks(directory)
    sources = ingest_model if context.plan.traits.model else _sources
    made = sources(context) if clocks is None else ingest_machines(directory, context.plan, clocks, _sources)
    made["flow"] = ingest_flow(context)
    add_siftr(context, made)
    add_own_stacks(context, made)
    qlogs = add_quic(context, made)
    if qlogs is not None:
        report.sources[quic.NAME] = qlogs
    if context.plan.collect.cpu and context.plan.traits.finite_processor:
        made |= ingest_finite_processor(context)
    elif context.plan.collect.cpu:
        made["cpu"] = ingest_cpu(context)
    log = ingest_kernel_log(context)
    if log is not None:
        report.sources[KERNEL_LOG] = log
    axes = axes_of(context.plan, context.agent.kernel_release)
    for name, (table, source) in made.items():
        store.write(directory, name, table, axes)
        report.sources[name] = source
        if table.num_rows and "time_ns" in table.column_names:
            source.counts |= {"first_ns": pc.min(table["time_ns"]).as_py(), "last_ns": pc.max(table["time_ns"]).as_py()}
    if context.plan.collect.pcap:
        machines = [] if clocks is None else list(clocks.machines)
        report.sources[CAPTURES] = ingest_captures(directory.raw, machines, context.plan)
    write_json(directory.ingested, encoded(report))
    return report


def _sources(context: Context) -> Made:
    """The tables of one kernel's collectors."""
    made: Made = {"tcp_probe": ingest_tcp_probe(context), "slow_start": ingest_slow_start(context)}
    for name in dict.fromkeys((*ALWAYS, *context.plan.collect.intervals_us)):
        made |= _table_of(collector_named(name), context)
    return made | ingest_two_queues(context) | ingest_segments(context)


def _table_of(each: Registered, context: Context) -> Made:
    reader = each.reader
    if each.extension is None:
        return {reader.table or each.name: reader.read(context)}
    return {each.name: each.extension.guarded(reader.read, context)}


def _clocks(directory: RunDirectory) -> ClockRecord | None:
    try:
        return read_clocks(directory.raw)
    except ValueError as error:
        raise HowdahError(f"the record of clocks cannot be read: {error}", where=str(directory.raw)) from error


def read_report(directory: RunDirectory) -> IngestReport:
    """Read the report of an earlier ingest. Raise HowdahError if it is missing."""
    path = directory.ingested
    try:
        value = read_json(path)
        return checked(IngestReport, {name: value[name] for name in ("format", "sources", "problems")}, path)
    except (OSError, ValueError, KeyError, TypeError) as error:
        raise HowdahError(f"the report of ingest cannot be read: {error}", where=str(path)) from error


def _context(directory: RunDirectory, report: IngestReport, plan: Plan | None) -> Context:
    try:
        plan = plan or Plan.from_json(read_foreign(directory.plan).decode())
    except (OSError, ValueError, KeyError, TypeError, AttributeError) as error:
        raise HowdahError(f"the plan cannot be read: {error}", where=str(directory.plan)) from error
    agent = _agent(directory, report)
    epoch = agent.epoch_monotonic_ns
    if epoch is None:
        report.problems.append("agent.json gives no epoch; the plan's is used")
        epoch = plan.epoch_us * 1000
    return Context(directory, _with_ports(plan, agent), agent, epoch)


def _with_ports(plan: Plan, agent: AgentRecord) -> Plan:
    """The plan with the ports that programs really had, which the agent reports."""
    flows = []
    for flow in plan.flows:
        record = agent.flow(flow.id)
        source, destination = record.source_port, record.destination_port
        if flow.program is None or not source or not destination:
            flows.append(flow)
            continue
        flows.append(dataclasses.replace(flow, source_port=source, destination_port=destination))
    return dataclasses.replace(plan, flows=flows)


def _agent(directory: RunDirectory, report: IngestReport) -> AgentRecord:
    try:
        return read_agent(directory)
    except FileNotFoundError:
        report.problems.append("agent.json is missing: the guest did not finish")
    except HowdahError as error:
        report.problems.append(f"agent.json cannot be read: {error.what}")
    return AgentRecord()


def ingest_flow(context: Context) -> tuple[pa.Table, SourceReport]:
    """Make the table ``flow``: one row per flow of the plan, in its order. A flow that the agent did not report has
    null times and is not complete. Times in agent.json already count from the epoch.
    """
    report = SourceReport()
    columns: dict[str, list[object]] = {name: [] for name in FLOW.names}
    for flow in context.plan.flows:
        record = context.agent.flow(flow.id)
        if flow.id not in context.agent.by_id:
            report.problems.append(f"{flow.title} is not in agent.json")
        elif record.error:
            report.problems.append(f"{flow.title}: {record.error}")
        row = {
            "flow": flow.id,
            "flow_name": flow.name,
            "sender_node": flow.sender,
            "receiver_node": flow.receiver,
            "algorithm": flow.algorithm,
            "kernel_algorithm": flow.kernel_algorithm,
            "start_ns": record.connected_ns if _begins_connected(flow) else record.start_ns,
            "connected_ns": record.connected_ns,
            "end_ns": record.end_ns,
            "bytes_sent_bytes": record.bytes_sent,
            "bytes_received_bytes": record.bytes_received,
            "complete": record.complete and not _is_cut(flow, record),
        }
        for name, value in row.items():
            columns[name].append(value)
    table = store.table_of("flow", {name: pa.array(values, FLOW.field(name).type) for name, values in columns.items()})
    report.rows = table.num_rows
    return table, report


def _begins_connected(flow: Flow) -> bool:
    """Whether a transfer is already connected when it begins: iperf3's processes first use a control connection, and
    wait a round trip for the server's answer where other sources wait for the handshake."""
    return flow.kind.control_connection and flow.size_bytes is not None


def _is_cut(flow: Flow, record: FlowRecord) -> bool:
    """Whether the end of the run cut a transfer short: what had been written by then arrived, and nothing more."""
    return flow.size_bytes is not None and (record.bytes_received or 0) < flow.size_bytes


_FILE = "kernel.log"
_MOST_ALARMS = 20
_MOST_SAID = 40
_MOST_CHARACTERS = 300  # of a line
# What each kernel says of every run, or of each module that was not built with it.
_USUAL = re.compile(
    r"loading out-of-tree module taints kernel|module verification failed|module license .* taints kernel"
    r"|^netem: version|^GACT probability|^Mirror/redirect action on|quantum of class .* is (?:big|small)"
    r"|^random: |renamed from|entered (?:promiscuous|allmulticast) mode|left (?:promiscuous|allmulticast) mode"
    r"|link becomes ready|entered (?:blocking|forwarding|disabled|learning|listening) state|link is not ready"
    r"|^bridge: filtering|^Fair server disabled"
)


def ingest_kernel_log(context: Context) -> SourceReport | None:
    """Report on the kernel's log; None if the agent kept none. Missing messages concern the judge, who has the agent's
    account.

    ``counts`` has ``kept`` (messages in the files), ``alarms``, and the first unusual lines (``said``, of
    ``said_total``). With several kernels each has its ``machine``.
    """
    kept = _accounts(context.agent)
    if not kept:
        return None
    report = SourceReport(counts={"kept": 0, "alarms": [], "alarms_total": 0, "said": [], "said_total": 0})
    for machine, account in kept.items():
        place = {"machine": machine} if machine else {}
        path = context.directory.raw / machine / _FILE
        try:
            text = read_raw_text(path, errors="replace")
        except FileNotFoundError:
            continue
        except OSError as error:
            report.problems.append(f"{path.name} cannot be read: {error}")
            continue
        parsed = [parse(line) for line in text.splitlines()]
        messages = [message for message in parsed if message is not None]
        report.counts["kept"] += len(messages)
        first = account.first or 0
        _tell(report, [each for each in messages if each.number >= first], place)
    report.rows = report.counts["kept"]
    return report


def _accounts(agent: AgentRecord) -> dict[str, KernelLogRecord]:
    """The accounts of the log by machine; "" if there is only one."""
    kernels = agent.machines or {}
    found = {name: kernel.kernel_log for name, kernel in kernels.items() if kernel.kernel_log is not None}
    return found or ({"": agent.kernel_log} if agent.kernel_log else {})


def _tell(report: SourceReport, messages: list[KernelMessage], place: dict[str, str]) -> None:
    counts = report.counts
    found = [encoded(alarm) | place for alarm in alarms([(each.time_us, each.text) for each in messages])]
    counts["alarms_total"] += len(found)
    counts["alarms"] += found[: _MOST_ALARMS - len(counts["alarms"])]
    said = [each for each in messages if not _USUAL.search(each.text)]
    counts["said_total"] += len(said)
    for each in said[: _MOST_SAID - len(counts["said"])]:
        counts["said"].append({"time_us": each.time_us, "text": each.text[:_MOST_CHARACTERS], **place})
