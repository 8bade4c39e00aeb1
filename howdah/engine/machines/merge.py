# SPDX-License-Identifier: Apache-2.0
"""Merges raw/MACHINE/ of every machine into the files of raw/ that describe the whole run.

Data about single hosts are put side by side, event counts of kernels are added up, and the two halves of a flow, each
reported by one agent, are joined. Binary records stay in place: ingest reads them machine by machine.
"""

from __future__ import annotations

import json
import shutil
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import fields, replace
from pathlib import Path
from typing import TypeVar, cast

from howdah.codec import encoded
from howdah.errors import RecordError, RunFailedError
from howdah.plan.plan import Plan
from howdah.record.account import Accounting, CounterState, TraceAccount
from howdah.record.agent import AgentRecord, FlowRecord, KernelRecord, MemoryRecord, Phase
from howdah.record.calibration import CalibrationRecord, EchoRecord
from howdah.record.clock import ClockRecord, Correction
from howdah.record.directory import write_json
from howdah.record.model import checked

_Kind = TypeVar("_Kind")
_Item = TypeVar("_Item")


def merge(raw: Path, plan: Plan, clocks: ClockRecord) -> AgentRecord:
    """Write agent.json, accounting.json, calibration-*.json and the accounts of tracepoints; return the first.

    Raises RunFailedError if a machine left no record.
    """
    machines = clocks.machines
    agents = {name: read_part(AgentRecord, raw / name / "agent.json") for name in machines}
    corrections = {name: entry.correction for name, entry in machines.items()}
    agent = merge_agents(plan, agents, corrections, clocks.epoch_ns)
    write_json(raw / "agent.json", encoded(agent))
    states = [read_accounting(raw / name) for name in machines]
    write_json(raw / "accounting.json", merge_accounting(states))
    for stage in ("before", "after"):
        measured = found_parts(CalibrationRecord, raw, machines, f"calibration-{stage}.json")
        if measured:
            trips = found_parts(EchoRecord, raw, machines, f"echo-{stage}.json")
            together = replace(measured[0], round_trips=[trip for part in trips for trip in part.round_trips])
            write_json(raw / f"calibration-{stage}.json", encoded(together))
    merge_accounts(raw, machines)
    for name, correction in corrections.items():
        merge_texts(raw, name, machines[name].epoch_monotonic_ns, clocks.epoch_ns, correction)
    return agent


def read_accounting(part: Path) -> Accounting:
    """Read the accounting of one part of a run. Raises RunFailedError if it is missing."""
    return cast("Accounting", _read(part / "accounting.json"))


def read_part(kind: type[_Kind], path: Path) -> _Kind:
    """Read a record of one part of a run. Raises RunFailedError if it is missing or malformed."""
    try:
        return checked(kind, _read(path), path)
    except RecordError as error:
        raise RunFailedError(f"is not a record: {error.what}", where=str(path)) from error


def _read(path: Path) -> object:
    try:
        return json.loads(path.read_text(encoding="utf-8"))
    except (OSError, ValueError) as error:
        raise RunFailedError(f"cannot be read: {error}", where=str(path)) from error


def found_parts(kind: type[_Kind], raw: Path, names: Iterable[str], file: str) -> list[_Kind]:
    """Read a record from each part that has ``file``."""
    return [read_part(kind, path) for name in names if (path := raw / name / file).exists()]


def merge_agents(
    plan: Plan, agents: Mapping[str, AgentRecord], corrections: Mapping[str, Correction], epoch_ns: int
) -> AgentRecord:
    """Merge the agents' records. Facts about a kernel are the first sender's; ``machines`` has every machine's."""
    first = _machine_of(agents, plan.flows[0].sender if plan.flows else plan.hosts[0].name)
    main, every = agents[first], list(agents.values())
    return AgentRecord(
        format=main.format,
        status="ok" if all(agent.status == "ok" for agent in every) else "error",
        error=next((agent.error for agent in every if agent.error), None),
        kernel_release=main.kernel_release,
        kernel_version=main.kernel_version,
        hertz=main.hertz,
        available_algorithms=main.available_algorithms,
        run=main.run,
        seed=main.seed,
        boot_parameters=main.boot_parameters,
        epoch_monotonic_ns=epoch_ns,
        phases=_phases(agents, corrections),
        flows=[_flow(flow.id, flow.size_bytes, agents, corrections) for flow in plan.flows],
        operations_wall_us=max(agent.operations_wall_us or 0 for agent in every),
        tools=_merged_by_name(every, lambda agent: agent.tools),
        sysctls=_sysctls(agents, first),
        qdiscs=_merged_by_name(every, lambda agent: agent.qdiscs),
        links=_merged_by_name(every, lambda agent: agent.links),
        routes=_merged_by_name(every, lambda agent: agent.routes),
        modules=_merged_by_name([*every, main], lambda agent: agent.modules),
        algorithms=_merged_by_name([*every, main], lambda agent: agent.algorithms),
        memory=_memory(every),
        machines={name: _machine(agent) for name, agent in agents.items()},
    )


def _machine_of(agents: Mapping[str, AgentRecord], node: str) -> str:
    return next(name for name, agent in agents.items() if node in (agent.part or ()))


def _machine(agent: AgentRecord) -> KernelRecord:
    return KernelRecord(**{field.name: getattr(agent, field.name) for field in fields(KernelRecord)})


def _merged_by_name(
    agents: Iterable[AgentRecord], told: Callable[[AgentRecord], Mapping[str, _Item] | None]
) -> dict[str, _Item]:
    """Merge the agents' mappings; for a name that several have, the last one wins."""
    return {name: item for agent in agents for name, item in (told(agent) or {}).items()}


def _phases(agents: Mapping[str, AgentRecord], corrections: Mapping[str, Correction]) -> list[Phase]:
    """Return each phase from its earliest begin to its latest end on any machine."""
    found: dict[str, Phase] = {}
    for name, agent in agents.items():
        for phase in agent.phases:
            begin, end = (corrections[name].apply(at) for at in (phase.start_ns, phase.end_ns))
            known = found.get(phase.phase) or replace(phase, start_ns=begin, end_ns=end)
            found[phase.phase] = replace(
                known,
                start_ns=min(known.start_ns, begin),
                end_ns=max(known.end_ns, end),
                wall_us=max(known.wall_us or 0, phase.wall_us or 0),
            )
    return list(found.values())


def _flow(
    flow: int,
    size_bytes: int | None,
    agents: Mapping[str, AgentRecord],
    corrections: Mapping[str, Correction],
) -> FlowRecord:
    """Return the record of a whole flow; a machine that holds both ends has reported it alone."""
    ends: dict[str, FlowRecord] = {}
    for name, agent in agents.items():
        for record in agent.flows:
            if record.id == flow:
                ends[record.end or "both"] = _on_experiment_clock(record, corrections[name])
    if "both" in ends:
        return ends["both"]
    if ends.keys() != {"sender", "receiver"}:
        told = ", ".join(ends) or "neither end"
        raise RunFailedError(f"flow {flow}: of its two ends only {told} left a record")
    return join_ends(ends["sender"], ends["receiver"], size_bytes)


def _on_experiment_clock(record: FlowRecord, correction: Correction) -> FlowRecord:

    def moved(time_ns: int | None) -> int | None:
        return None if time_ns is None else correction.apply(time_ns)

    times = moved(record.start_ns), moved(record.connected_ns), moved(record.end_ns)
    return replace(record, start_ns=times[0], connected_ns=times[1], end_ns=times[2])


def join_ends(sender: FlowRecord, receiver: FlowRecord, size_bytes: int | None) -> FlowRecord:
    """Join the records of a flow's ends (howdah/agent/traffic/half.py), given in one clock.

    The flow is complete if the receiver read its end and got all bytes requested or, without a size, all bytes sent.
    """
    if sender.end_ns is not None and sender.error is None:  # iperf3's client reports both ends
        return replace(sender, end=None)
    error = sender.error or receiver.error
    # A receiver that was never reached reports the same error as the sender, with less detail.
    whole = receiver.bytes_received == (size_bytes or sender.bytes_sent)
    return replace(
        sender,
        end=None,
        receiver_cookie=receiver.receiver_cookie,
        end_ns=receiver.end_ns,
        bytes_received=receiver.bytes_received,
        error=error,
        complete=receiver.complete and error is None and whole,
    )


def _sysctls(agents: Mapping[str, AgentRecord], first: str) -> dict[str, dict[str, str]]:
    """Merge sysctls by node; ``*`` is the first sender's kernel, ``*MACHINE`` that of any other machine."""
    found = {}
    for name, agent in agents.items():
        for node, values in (agent.sysctls or {}).items():
            found[node if node != "*" else "*" if name == first else f"*{name}"] = values
    return found


def _memory(agents: Iterable[AgentRecord]) -> MemoryRecord:
    """Return the memory record of the machine with the least memory left."""
    known = [agent.memory for agent in agents if agent.memory]
    return min(known, key=lambda memory: memory.available_bytes_least or 0)


def merge_accounting(states: list[Accounting]) -> Accounting:
    """Merge the accountings: every node's counters, and the sums of what the kernels' receive paths counted."""
    return {
        "silent": all(state["silent"] for state in states),
        "before": _merged([state["before"] for state in states]),
        "after": _merged([state["after"] for state in states]),
    }


def _merged(parts: list[CounterState]) -> CounterState:
    return {
        "time_ns": max(part["time_ns"] for part in parts),
        "nodes": {node: value for part in parts for node, value in part["nodes"].items()},
        "softnet": sum_of([part["softnet"] for part in parts]),
        "netstat": {node: value for part in parts for node, value in part["netstat"].items()},
    }


def sum_of(counters: Sequence[Mapping[str, int]]) -> dict[str, int]:
    """Add up counters by name; kernels of different releases may have different ones."""
    names = dict.fromkeys(name for part in counters for name in part)
    return {name: sum(int(part.get(name, 0)) for part in counters) for name in names}


def merge_accounts(raw: Path, names: Iterable[str]) -> None:
    """Write trace.json and slow_start.json of several machines. The files that they name are below raw/MACHINE/."""
    for file in ("trace.json", "slow_start.json"):
        if found := found_parts(TraceAccount, raw, names, file):
            write_json(raw / file, encoded(add_accounts(found)))


def add_accounts(accounts: list[TraceAccount]) -> TraceAccount:
    return replace(
        accounts[0],
        entries=sum(each.entries or 0 for each in accounts),
        unread=sum(each.unread for each in accounts),
        overrun=sum(each.overrun for each in accounts),
        dropped_events=sum(each.dropped_events for each in accounts),
        commit_overrun=sum(each.commit_overrun for each in accounts),
        bytes_lost=sum(each.bytes_lost for each in accounts),
        cpus=[],
    )


def merge_texts(raw: Path, machine: str, own_epoch_ns: int, epoch_ns: int, correction: Correction) -> None:
    """Copy texts of other programs to raw/, where readers expect them; those of ss with the experiment's time."""
    for name in ("ss-begin.txt", "ss-end.txt"):
        source = raw / machine / name
        if not source.exists():
            continue
        lines = []
        for line in source.read_text(encoding="utf-8").splitlines(keepends=True):
            if line.startswith("# "):
                _, host, time_ns = line.split()
                line = f"# {host} {epoch_ns + correction.apply(int(time_ns) - own_epoch_ns)}\n"
            lines.append(line)
        with (raw / name).open("a", encoding="utf-8") as file:
            file.writelines(lines)
    for source in sorted((raw / machine / "iperf3").glob("*.json")):
        if source.stat().st_size:
            (raw / "iperf3").mkdir(exist_ok=True)
            shutil.copyfile(source, raw / "iperf3" / source.name)
