# SPDX-License-Identifier: Apache-2.0
"""raw/MACHINE/ of every machine to the files of raw/ that report the whole run.

What is of one host alone is simply put side by side; what counts events of a kernel is added up; flows, whose two ends
two agents reported, are joined. Binary records stay where they are: ingest reads them machine by machine.
"""

from __future__ import annotations

import json
import shutil
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any, cast

from howdah.errors import RunFailedError
from howdah.linux.accounting import Accounting, CounterState
from howdah.plan.plan import Plan
from howdah.record.clock import Correction, correction_of
from howdah.record.directory import write_json

_TIMES = ("start_ns", "connected_ns", "end_ns")
_FROM_RECEIVER = ("receiver_cookie", "end_ns", "bytes_received")
_ACCOUNT = ("entries", "unread", "overrun", "dropped_events", "commit_overrun", "bytes_lost")


def merge(raw: Path, plan: Plan, clocks: dict[str, Any]) -> dict[str, Any]:
    """Write agent.json, accounting.json, calibration-*.json and the accounts of tracepoints; return the first.

    ``clocks`` is clock.json. Raises RunFailedError where a machine left no record.
    """
    machines = clocks["machines"]
    agents = {name: read_part(raw / name / "agent.json") for name in machines}
    corrections = {name: correction_of(entry) for name, entry in machines.items()}
    agent = merge_agents(plan, agents, corrections, int(clocks["epoch_ns"]))
    write_json(raw / "agent.json", agent)
    states = [read_accounting(raw / name) for name in machines]
    write_json(raw / "accounting.json", merge_accounting(states))
    for stage in ("before", "after"):
        measured = [read_part(path) for name in machines if (path := raw / name / f"calibration-{stage}.json").exists()]
        trips = [read_part(path) for name in machines if (path := raw / name / f"echo-{stage}.json").exists()]
        if measured:
            write_json(raw / f"calibration-{stage}.json", merge_calibration(measured[0], trips))
    for account in ("trace.json", "slow_start.json"):
        found = [read_part(path) for name in machines if (path := raw / name / account).exists()]
        if found:
            write_json(raw / account, merge_accounts(found))
    for name, correction in corrections.items():
        bring_up(raw, name, machines[name]["epoch_monotonic_ns"], int(clocks["epoch_ns"]), correction)
    return agent


def read_accounting(part: Path) -> Accounting:
    """Raises RunFailedError where a part left none."""
    return cast("Accounting", read_part(part / "accounting.json"))


def read_part(path: Path) -> dict[str, Any]:
    """A record of one part of a run. Raises RunFailedError where it cannot be read or is none."""
    try:
        value = json.loads(path.read_text(encoding="utf-8"))
    except (OSError, ValueError) as error:
        raise RunFailedError(f"cannot be read: {error}", where=str(path)) from error
    if not isinstance(value, dict):
        raise RunFailedError("is not a record", where=str(path))
    return value


def merge_agents(
    plan: Plan, agents: Mapping[str, dict[str, Any]], corrections: Mapping[str, Correction], epoch_ns: int
) -> dict[str, Any]:
    """One agent.json; what is of a kernel is of the first sender's, and of every machine below ``machines``."""
    first = _machine_of(agents, plan.flows[0].sender if plan.flows else plan.hosts[0].name)
    main = agents[first]
    return {
        "format": main["format"],
        "status": "ok" if all(agent["status"] == "ok" for agent in agents.values()) else "error",
        "error": next((agent["error"] for agent in agents.values() if agent["error"]), None),
        **{name: main.get(name) for name in ("kernel_release", "kernel_version", "hertz", "available_algorithms")},
        **{name: main[name] for name in ("run", "seed", "boot_parameters") if name in main},
        "epoch_monotonic_ns": epoch_ns,
        "phases": _phases(agents, corrections),
        "flows": [_flow(flow.id, flow.size_bytes, agents, corrections) for flow in plan.flows],
        "operations_wall_us": max(int(agent.get("operations_wall_us", 0)) for agent in agents.values()),
        "tools": {name: text for agent in agents.values() for name, text in (agent.get("tools") or {}).items()},
        "sysctls": _sysctls(agents, first),
        "qdiscs": _by_node(agents, "qdiscs"),
        "links": _by_node(agents, "links"),
        "routes": _by_node(agents, "routes"),
        "modules": {name: value for agent in [*agents.values(), main] for name, value in agent["modules"].items()},
        "algorithms": {
            name: value for agent in [*agents.values(), main] for name, value in (agent.get("algorithms") or {}).items()
        },
        "memory": _memory(agents),
        "machines": {name: _machine(agent) for name, agent in agents.items()},
    }


def _machine_of(agents: Mapping[str, dict[str, Any]], node: str) -> str:
    return next(name for name, agent in agents.items() if node in agent["part"])


def _machine(agent: dict[str, Any]) -> dict[str, Any]:
    names = ("kernel_release", "kernel_version", "part", "modules", "memory", "processor", "kernel_log")
    boot = {name: agent[name] for name in ("boot_parameters",) if name in agent}
    return {name: agent.get(name) for name in names} | boot


def _phases(agents: Mapping[str, dict[str, Any]], corrections: Mapping[str, Correction]) -> list[dict[str, str | int]]:
    """From when the first machine began a phase to when the last one ended it."""
    found: dict[str, dict[str, Any]] = {}
    for name, agent in agents.items():
        for phase in agent["phases"]:
            begin, end = (corrections[name].apply(int(phase[at])) for at in ("start_ns", "end_ns"))
            known = found.setdefault(phase["phase"], {**phase, "start_ns": begin, "end_ns": end})
            known["start_ns"], known["end_ns"] = min(known["start_ns"], begin), max(known["end_ns"], end)
            known["wall_us"] = max(known["wall_us"], phase["wall_us"])
    return list(found.values())


def _flow(
    flow: int,
    size_bytes: int | None,
    agents: Mapping[str, dict[str, Any]],
    corrections: Mapping[str, Correction],
) -> dict[str, Any]:
    """Of a whole flow; a machine with both of its ends reported it alone."""
    ends: dict[str, dict[str, Any]] = {}
    for name, agent in agents.items():
        for record in agent["flows"]:
            if record["id"] == flow:
                times = {at: corrections[name].apply(int(record[at])) for at in _TIMES if record.get(at) is not None}
                ends[record.get("end", "both")] = {**record, **times}
    if "both" in ends:
        return ends["both"]
    if ends.keys() != {"sender", "receiver"}:
        told = ", ".join(ends) or "neither end"
        raise RunFailedError(f"flow {flow}: of its two ends only {told} left a record")
    return join_ends(ends["sender"], ends["receiver"], size_bytes)


def join_ends(sender: dict[str, Any], receiver: dict[str, Any], size_bytes: int | None) -> dict[str, Any]:
    """The record of a flow from those of its ends (howdah/agent/traffic/half.py), in one clock.

    It is complete if the receiver read its end and got what was asked for or, without a size, all that was sent.
    """
    joined = {name: value for name, value in sender.items() if name != "end"}
    if "segments_sent" not in sender:  # iperf3's client tells of both ends
        return joined
    joined |= {name: receiver[name] for name in _FROM_RECEIVER}
    error = sender["error"] or receiver["error"]
    # A receiver that was never reached says the same as the sender, and less.
    whole = receiver["bytes_received"] == (size_bytes or sender["bytes_sent"])
    return {**joined, "error": error, "complete": bool(receiver["complete"]) and error is None and whole}


def _sysctls(agents: Mapping[str, dict[str, Any]], first: str) -> dict[str, dict[str, str]]:
    """``*`` is the first sender's kernel, ``*MACHINE`` that of each other."""
    found = {}
    for name, agent in agents.items():
        for node, values in agent["sysctls"].items():
            found[node if node != "*" else "*" if name == first else f"*{name}"] = values
    return found


def _by_node(agents: Mapping[str, dict[str, Any]], key: str) -> dict[str, Any]:
    return {node: value for agent in agents.values() for node, value in agent.get(key, {}).items()}


def _memory(agents: Mapping[str, dict[str, Any]]) -> dict[str, int | None]:
    """Of the machine that had least left."""
    known = [agent["memory"] for agent in agents.values() if agent.get("memory")]
    least: dict[str, int | None] = min(known, key=lambda memory: memory["available_bytes_least"] or 0)
    return least


def merge_accounting(states: list[Accounting]) -> Accounting:
    """Of all: every node's counters, and what the kernels' receive paths counted together."""
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
    """Kernels of other releases count other things, too."""
    names = dict.fromkeys(name for part in counters for name in part)
    return {name: sum(int(part.get(name, 0)) for part in counters) for name in names}


def merge_calibration(measured: dict[str, Any], trips: list[dict[str, Any]]) -> dict[str, Any]:
    """The emulator's measurements, with the round trips of the hosts on the other machines."""
    return {**measured, "round_trips": [trip for part in trips for trip in part["round_trips"]]}


def merge_accounts(accounts: list[dict[str, Any]]) -> dict[str, Any]:
    """Of a tracepoint on several machines. The files it names are below raw/MACHINE/."""
    return {
        "subbuffer_bytes": accounts[0]["subbuffer_bytes"],
        "clock": accounts[0]["clock"],
        **{name: sum(int(account[name]) for account in accounts) for name in _ACCOUNT},
        "cpus": [],
    }


def bring_up(raw: Path, machine: str, own_epoch_ns: int, epoch_ns: int, correction: Correction) -> None:
    """Texts of other programs, which are looked for in raw/: those of ss with the time of the experiment's clock."""
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
