# SPDX-License-Identifier: Apache-2.0
"""Checks of healthy inputs, and of inputs with one thing changed: every field, and what each says to a person."""

from __future__ import annotations

import dataclasses
import json
from collections.abc import Callable, Iterable, Mapping
from pathlib import Path
from typing import Any

from howdah.ingest.ns2 import read_links
from howdah.ingest.run import ingest
from howdah.judge.accounting import Snapshots, accounting_checks
from howdah.judge.calibration import calibration_checks
from howdah.judge.check import VIRTUAL
from howdah.judge.collection import collection_checks
from howdah.judge.engine import engine_checks
from howdah.judge.model import packet_checks
from howdah.judge.run import judge
from howdah.judge.settings import settings_checks
from howdah.plan.kernel import Part
from howdah.plan.plan import Host, Plan, RealTime
from howdah.record.directory import RunDirectory
from howdah.record.verdict import Check
from howdah.trait import traits
from tests.calibrated import calibrated
from tests.unit import path_factory
from tests.unit.plan_factory import collecting
from tests.unit.recorded_lines import compare, line_of
from tests.unit.recorded_run import make_recorded_run
from tests.unit.simulated_run import make_simulated_run, simulated_plan
from tests.unit.test_judge_settings import agent as settings_agent
from tests.unit.test_judge_settings import plan as settings_plan
from tests.unit.test_measure_run import plan_of_recording
from tests.unit.told_by_agent import agent_of

Doctor = Callable[[dict[str, Any]], object]


def listed(title: str, checks: Iterable[Check], healthy: Iterable[str] = ()) -> list[str]:
    """Those that the healthy input has, and the other has not, begin with a dash."""
    before, found = list(healthy)[1:], [f"{line_of(check)}\n  {check.message}" for check in checks]
    gone = [f"- {each.splitlines()[0]}" for each in before if each not in found]
    return [f"# {title}", *gone, *(each for each in found if each not in before)]


def all_of(cases: Mapping[str, Doctor], make: Callable[[], Any], judged: Callable[[Any], Iterable[Check]]) -> list[str]:
    """Of the healthy input all lines, of the others what is not as there."""
    healthy = listed("healthy", judged(make()))
    lines = list(healthy)
    for title, doctor in cases.items():
        found = make()
        doctor(found)
        lines += listed(title, judged(found), healthy)
    return lines


def lossy(plan: Plan) -> Plan:
    return dataclasses.replace(plan, path=dataclasses.replace(plan.path, loss_ratio=0.1))


def test_checks_of_a_calibration() -> None:
    plan = path_factory.path_plan()
    cases: dict[str, Doctor] = {
        "slow": lambda found: found.update(rate_bits_per_second=19_970_000),
        "no rate": lambda found: found.update(rate_bits_per_second=None),
        "short buffer": lambda found: found.update(buffer_bytes=99_160),
        "no buffer": lambda found: found.update(buffer_bytes=None, buffer_why="it cannot be filled"),
        "late": lambda found: found["targets"][0].update(forward_delay_ns=[20_000_000, 20_100_000]),
        "early": lambda found: found["targets"][0].update(reverse_delay_ns=[19_900_000, 20_000_000]),
        "early and late": lambda found: found["targets"][0].update(reverse_delay_ns=[19_900_000, 20_500_000]),
        "no probe": lambda found: found["targets"][0].update(reverse_delay_ns=None),
        "no targets": lambda found: found.update(targets=[]),
        "one lost": lambda found: found.update(loss={"sent": 94, "received": 93}),
        "loss unknown": lambda found: found.pop("loss"),
        "noisy": lambda found: found.update(silent=False),
        "earlier format": lambda found: found.update(format=1),
    }
    lines = all_of(
        cases,
        path_factory.calibration,
        lambda found: calibration_checks(plan, "before", calibrated(found), VIRTUAL),
    )
    lost = path_factory.calibration() | {"loss": {"sent": 1000, "received": 900}}
    lines += listed("random loss", calibration_checks(lossy(plan), "after", calibrated(lost), VIRTUAL))
    lines += listed("missing", calibration_checks(plan, "after", None, VIRTUAL))
    compare("checks/calibration.txt", lines)


def _interface(node: str, interface: str, **changes: int) -> Doctor:
    return lambda found: found["after"]["nodes"][node]["interfaces"][interface].update(changes)


def _queue(node: str, number: int, **changes: int) -> Doctor:
    return lambda found: found["after"]["nodes"][node]["qdiscs"][number].update(changes)


def _counter(node: str, **changes: int) -> Doctor:
    return lambda found: found["after"]["netstat"][node].update(changes)


def test_checks_of_the_accounting() -> None:
    cases: dict[str, Doctor] = {
        "50 lost": _interface("r1", "r1-eth0", rx_packets=1042),
        "1 too many": _interface("r1", "r1-eth0", rx_packets=1093),
        "3 ACKs lost": _interface("s1", "s1-eth0", rx_packets=547),
        "an interface's drops": _interface("right", "right-eth0", rx_dropped=5),
        "an interface's errors": _interface("right", "right-eth0", rx_errors=5),
        "backlog too small": lambda found: found["after"]["softnet"].update(dropped=1958),
        "netem too small": _queue("right", 0, drops=12),
        "a host's queue": _queue("s1", 0, drops=4),
        "still queued": _queue("right", 0, backlog_packets=3),
        "memory": _counter("s1", TcpExtTCPMemoryPressures=2),
        "pruned": _counter("r1", TcpExtPruneCalled=1),
        "receive queue": _counter("r1", TcpExtTCPRcvQDrop=1),
        "socket backlog": _counter("r1", TcpExtTCPBacklogDrop=3),
        "a node is missing": lambda found: found["after"]["nodes"].pop("right"),
        "softnet is missing": lambda found: found["after"].pop("softnet"),
        "netstat is missing": lambda found: found["after"].pop("netstat"),
    }
    plan = path_factory.path_plan()
    lines = all_of(cases, path_factory.accounting, lambda found: accounting_checks(plan, Snapshots(**found), VIRTUAL))
    lines += listed("random loss", accounting_checks(lossy(plan), Snapshots(**path_factory.accounting()), VIRTUAL))
    lines += listed("missing", accounting_checks(plan, None, VIRTUAL))
    compare("checks/accounting.txt", lines)


def _phase(number: int, end_ns: int) -> Doctor:
    return lambda found: found["phases"][number].update(end_ns=end_ns)


def _flow(**changes: Any) -> Doctor:
    return lambda found: found["flows"][0].update(changes)


def test_checks_of_the_guest() -> None:
    cases: dict[str, Doctor] = {
        "stopped": lambda found: found.update(status="error", error={"operation": "qdisc 12", "message": "no device"}),
        "flows late": _phase(2, 7_200 * 10**9),
        "flows short": _phase(2, 10**9),
        "set-up late": _phase(0, -2 * 10**9),
        "calibration late": _phase(4, 3_600 * 10**9),
        "no quiet": lambda found: found["phases"].pop(3),
        "other epoch": lambda found: found.update(epoch_monotonic_ns=5_000_000_001),
        "no flow": lambda found: found.update(flows=[]),
        "refused": _flow(error="connection refused"),
        "not connected": _flow(connected_ns=None),
        "started late": _flow(start_ns=50_000_000),
        "no data": _flow(bytes_received=0),
        "another control": _flow(kernel_algorithm="reno"),
        "ended early": _flow(end_ns=10**9),
        "netem on a host": lambda found: found["qdiscs"]["s1"]["qdiscs"].append({"kind": "netem", "dev": "s1-eth0"}),
        "no dump": lambda found: found.pop("qdiscs"),
    }
    plan = path_factory.path_plan()
    fixed = dataclasses.replace(plan, flows=[dataclasses.replace(plan.flows[0], size_bytes=4_000_001)])
    lines = all_of(cases, path_factory.agent, lambda found: engine_checks(plan, agent_of(found), VIRTUAL))
    lines += listed("a byte is missing", engine_checks(fixed, agent_of(path_factory.agent()), VIRTUAL))
    lines += listed("missing", engine_checks(plan, None, VIRTUAL))
    compare("checks/engine.txt", lines)


def _without(name: str) -> Doctor:
    return lambda found: found.update({name: None})


def test_checks_of_the_settings() -> None:
    plan = settings_plan()
    cases: dict[str, Doctor] = {f"{name} not read": _without(name) for name in settings_agent()}
    lines = all_of(cases, settings_agent, lambda found: settings_checks(plan, agent_of(found)))
    wrong = settings_plan(
        ("sysctl", {"node": "s1", "name": "a", "value": "2"}),
        ("mtu", {"node": "s1", "interface": "s1-eth0", "mtu_bytes": 9000}),
        (
            "route",
            {
                "node": "s1",
                "destination": "default",
                "via": "10.0.0.1",
                "interface": "s1-eth0",
                "initial_window_packets": 20,
            },
        ),
    )
    lines += listed("other values", settings_checks(wrong, agent_of(settings_agent(qdiscs={"right": {"qdiscs": []}}))))
    compare("checks/settings.txt", lines)


def _source(name: str, **counts: int) -> Doctor:
    return lambda found: found["report"].sources[name].counts.update(counts)


def _trace(**counts: int) -> Doctor:
    return lambda found: found.update(trace=dataclasses.replace(found["trace"], **counts))


def test_checks_of_what_was_collected() -> None:
    cases: dict[str, Doctor] = {
        "overrun": _trace(overrun=7),
        "dropped": _trace(dropped_events=6),
        "unread": _trace(unread=2),
        "one too many": _trace(entries=501),
        "lost": _source("tcp_probe", lost_events=9),
        "gaps": _source("tcp_probe", gaps_of_unknown_size=1),
        "stranger": _source("tcp_probe", unknown_rows=3),
        "damaged": lambda found: found["report"].sources["qdisc"].problems.append("qdisc.bin at byte 12: cut off"),
        "nothing": lambda found: setattr(found["report"].sources["tcp_info"], "rows", 0),
        "missing": lambda found: found.update(trace=None),
    }
    plan = path_factory.path_plan()
    lines = all_of(
        cases,
        lambda: {"trace": path_factory.trace(), "report": path_factory.report()},
        lambda found: collection_checks(plan, found["report"], found["trace"]),
    )
    compare("checks/collection.txt", lines)


def verdict(run: RunDirectory, plan: Plan) -> list[Check]:
    ingest(run)
    return judged(run, plan)


def judged(run: RunDirectory, plan: Plan) -> list[Check]:
    """Paths of files begin at the run's directory."""
    checks = judge(run, plan).checks
    return [dataclasses.replace(each, message=each.message.replace(f"{run.path}/", "")) for each in checks]


def test_checks_of_a_recorded_run(tmp_path: Path) -> None:
    """Which was made without an agent or a calibration: what they would tell fails."""
    run = make_recorded_run(tmp_path, plan_of_recording())
    lines = first = listed("as it is", verdict(run, plan_of_recording()))
    agent = json.loads((run.raw / "agent.json").read_text())
    agent["flows"][0] |= {"start_ns": 60_000_000, "connected_ns": 100_868_000, "end_ns": 550_000_000}
    (run.raw / "agent.json").write_text(json.dumps(agent))
    lines = first + listed("in time", verdict(run, plan_of_recording()), first)
    compare("checks/recorded.txt", lines)


def _whole_run(parent: Path, **changes: Any) -> tuple[RunDirectory, Plan]:
    """The recording as one of path_factory's path, with every file that an engine may leave."""
    base = plan_of_recording()
    network = path_factory.path_plan()
    host = {"s": "s1", "r": "left", "d": "r1"}
    plan = dataclasses.replace(
        base,
        hosts=[*(dataclasses.replace(each, name=host[each.name]) for each in base.hosts), Host("right", "router")],
        operations=network.operations,
        flows=[dataclasses.replace(base.flows[0], sender="s1", receiver="r1")],
        calibration=dataclasses.replace(base.calibration, bottleneck_node="left"),
        **changes,
    )
    run = make_recorded_run(parent, plan)
    counters = (run.raw / "counters.jsonl").read_text()
    (run.raw / "counters.jsonl").write_text(counters.replace('"node": "s"', '"node": "s1"'))
    trips = [{"sender": "s1", "receiver": "r1", "round_trip_ns": [40_000_000, 41_000_000]}]
    before = path_factory.calibration() | {"rate_bits_per_second": 9_999_000, "round_trips": trips}
    after = path_factory.calibration() | {"rate_bits_per_second": 8_000_000, "round_trips": []}
    accounting = path_factory.accounting()
    accounting["after"]["netstat"]["s1"]["TcpInSegs"] = 7
    agent = json.loads((run.raw / "agent.json").read_text())
    agent |= {name: path_factory.agent()[name] for name in ("phases", "qdiscs")}
    agent |= {"processor": {"wakeups": 10, "missed": 0, "late": [], "late_worst_ns": 5, "steal": 0.5}}
    agent |= {"machines": {"near": {"processor": agent["processor"]}}, "modules": {"mine": {"srcversion": "A"}}}
    agent |= {"kernel_log": {"records": 1, "first": 0, "lost": 0, "left_out": 0, "why": None}}
    wire = {"wire": 2, "arrives": True, "left_frames": 9, "left_bytes": 0, "arrived_frames": 8, "arrived_bytes": 0}
    wire |= {"lost_frames": 0, "late_frames": 1, "latest_ns": 3000}
    files = {
        "calibration-before": before,
        "calibration-after": after,
        "accounting": accounting,
        "agent": agent,
        "wire": {"format": 1, "parts": {"main": [wire]}},
        "slow_start": {"entries": 3, "overrun": 2},
    }
    for name, content in files.items():
        (run.raw / f"{name}.json").write_text(json.dumps(content))
    (run.raw / "kernel.log").write_text("6,0,5;boot\n")
    ingest(run)  # which would ask for the clock of each machine
    clocks = {"format": 1, "machines": {"near": {"uncertainty_ns": 5000, "gain": 0.5}}}
    (run.raw / "clock.json").write_text(json.dumps(clocks))
    return run, plan


def test_each_file_of_a_run_reaches_its_check(tmp_path: Path) -> None:
    engines: dict[str, dict[str, Any]] = {
        "one kernel": {},
        "several kernels": {"parts": [Part(name="receivers", kernel="debian-6.12", hosts=["r1"])]},
        "several machines": {"engine": "machines", "traits": traits("machines")},
        "a virtual machine in real time": {
            "engine": "vm",
            "traits": traits("vm", real_time=True),
            "real_time": RealTime("tcg"),
        },
    }
    lines: list[str] = []
    healthy: list[str] = []
    for title, changes in engines.items():
        run, plan = _whole_run(tmp_path / title, own_algorithms={"mine": "mine"}, **changes)
        found = listed(title, judged(run, plan), healthy)
        healthy = healthy or found
        lines += found
    compare("checks/whole.txt", lines)


def test_checks_of_a_simulated_run(tmp_path: Path) -> None:
    plan, run = simulated_plan(), make_simulated_run(tmp_path / "run")
    healthy = listed("healthy", verdict(run, plan))
    links = read_links(run.raw)
    links["r1,in"]["departures"] -= 4
    links["s1,out"]["drops"] = 2
    links["forward"]["left"] = 1
    lines = healthy + listed("lost, dropped and left", packet_checks(plan, links, VIRTUAL))
    lines += listed("random loss", packet_checks(simulated_plan("path.loss=1 %"), read_links(run.raw), VIRTUAL))
    unread = dataclasses.replace(
        plan, collect=collecting(plan.collect, qdisc_us=None, tcp_info_us=None, tcp_probe=False)
    )
    lines += listed("nothing was collected", judged(run, unread), healthy)
    lines += listed(
        "the second reading comes after the end", judged(run, dataclasses.replace(plan, duration_us=4_999)), healthy
    )
    agent = json.loads((run.raw / "agent.json").read_text())
    (run.raw / "agent.json").write_text(json.dumps(agent | {"kernel_release": "another"}))
    lines += listed("another model", verdict(run, plan), healthy)
    (run.raw / "agent.json").unlink()
    lines += listed("no agent.json", verdict(run, plan), healthy)
    (run.raw / "links.tsv").unlink()
    lines += listed("no links.tsv", verdict(run, plan), healthy)
    compare("checks/simulated.txt", lines)
