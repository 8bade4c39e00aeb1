# SPDX-License-Identifier: Apache-2.0
"""The honest runs that liars start from: small ones in a guest, each made once a session."""

from __future__ import annotations

import json
import shutil
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass, replace
from functools import cached_property
from pathlib import Path
from typing import Any

from howdah.engine.uml.engine import UmlEngine
from howdah.ingest.run import ingest
from howdah.judge.run import judge
from howdah.measure.run import measure
from howdah.plan.plan import Plan
from howdah.record.directory import RunDirectory
from howdah.record.verdict import AFTER, BEFORE, Verdict
from howdah.trait import traits
from tests.guest import guest_run
from tests.guest.remembered_run import key_of, recall, remember
from tests.unit.simulated_run import make_simulated_run, simulated_plan

SMALL = (
    "path.rate=10 Mbit/s",
    "path.rtt=20 ms",
    "path.buffer=2 bdp",
    "duration=1500 ms",
    "collect.qdisc=5 ms",
    "collect.tcp_info=10 ms",
)
GROUP = """\
howdah: 1
name: liars
description: Five short connections
path: {rate: 10 Mbit/s, rtt: 20 ms, buffer: 2 bdp}
groups:
- {name: short, connections: 5, interval: 200 ms, size: 50 kB}
duration: 1500 ms
collect: {qdisc: 5 ms, tcp_info: 10 ms}
"""
TRANSFER = """\
howdah: 1
name: liars
description: One transfer of a fixed size
path: {rate: 10 Mbit/s, rtt: 20 ms, buffer: 2 bdp}
flows:
- {size: 500 kB}
duration: 1500 ms
collect: {qdisc: 5 ms, tcp_info: 10 ms}
"""
LINK = """\
howdah: 1
name: liars
description: A link that follows a trace of 2 s
path: {like: paths/stalling}
algorithm: cubic
duration: 2500 ms
collect: {qdisc: 5 ms, tcp_info: 10 ms, opportunities: 5 ms}
"""
# Names of honest runs, and the profile and overrides that make them.
GUEST_RUNS: dict[str, tuple[str | None, tuple[str, ...]]] = {
    "plain": (None, (*SMALL, "algorithm=cubic")),
    "events": (None, (*SMALL, "algorithm=hystart-plus-plus")),
    "rate-schedule": (None, (*SMALL, "algorithm=cubic", "path.schedule=[{at: 700 ms, rate: 5 Mbit/s}]")),
    "loss-schedule": (None, (*SMALL, "algorithm=cubic", "path.schedule=[{at: 700 ms, loss: 5 %}]")),
    "both-ways": (
        None,
        (
            *(*SMALL, "algorithm=cubic", "path.reverse_rate=300 kbit/s", "path.reverse_buffer=30 kB"),
            *("path.reverse_loss=5 %", "path.schedule=[{at: 700 ms, reverse_rate: 100 kbit/s}]"),
        ),
    ),
    "drawn-delays": (
        None,
        (
            *(*SMALL, "algorithm=cubic"),
            "path.delay_variation={distribution: exponential, order: broken, standard_deviation: 2 ms, source: test}",
        ),
    ),
    "varied-delay": (
        None,
        (
            *(*SMALL, "algorithm=cubic"),
            "path.delay_variation={distribution: uniform, amplitude: 4 ms, correlation_time: 50 ms, source: test}",
        ),
    ),
    "little-room": (None, (*SMALL, "algorithm=cubic", "path.delay_limit=5", "collect.qdisc=1 ms")),
    "host-queue": (
        None,
        (
            *(*SMALL, "algorithm=cubic", "path.sender_interface=20 Mbit/s", "collect.qdisc=1 ms"),
            *("flows=[{initial_window: 30}]", "sender.queue={kind: pfifo_fast, limit: 1}"),
        ),
    ),
    "host-fq": (None, (*SMALL, "algorithm=cubic", "path.sender_interface=20 Mbit/s", "sender.queue=fq")),
    "tunnel": (None, (*SMALL, "algorithm=cubic", "path.middlebox={overhead: wireguard}")),
    "tick": (None, (*SMALL, "algorithm=cubic", "path.tick=5 ms")),
    "small-hop": (None, (*SMALL, "algorithm=cubic", "path.middlebox={mtu: 1400}")),
    "black-hole": (
        None,
        (
            *SMALL,
            "algorithm=cubic",
            "path.middlebox={mtu: 1400, icmp: false}",
            "path.rate=4 Mbit/s",
            "duration=6 s",
            "host.sysctls={net.ipv4.tcp_mtu_probing: '1'}",
        ),
    ),
    "few-options": (
        None,
        (
            *SMALL,
            "algorithm=cubic-no-hystart",
            "path.loss=2 %",
            "path.middlebox={strip: [sack, window-scale, timestamps]}",
        ),
    ),
    "no-ecn": (
        None,
        (*SMALL, "algorithm=cubic", "path.queue=codel", "path.ecn=true", "path.middlebox={clear_ecn: true}"),
    ),
    "rough-hop": (
        None,
        (
            *SMALL,
            "algorithm=bbr",
            "path.rate=50 Mbit/s",
            "path.middlebox={lose: [20, 30-32], duplicate: 3 %, corrupt: 2 %}",
        ),
    ),
    "lossy": (None, (*SMALL, "algorithm=cubic", "path.loss=2 %")),
    "bursty": (
        None,
        (*SMALL, "algorithm=bbr", "path.rate=50 Mbit/s", "duration=3 s", "path.loss=2 %", "path.loss_burst=5"),
    ),
    "deep": (None, (*SMALL, "algorithm=cubic", "path.rate=500 kbit/s", "path.buffer=2000 packets")),
    "way-back": (None, (*SMALL, "algorithm=cubic", "path.reverse_rate=1 Mbit/s", "path.reverse_buffer=50 packets")),
    "ack-filter": (
        None,
        (
            *(*SMALL, "algorithm=cubic", "path.reverse_rate=200 kbit/s", "path.reverse_buffer=30 kB"),
            "path.reverse_queue={kind: cake, ack_filter: aggressive}",
        ),
    ),
    "choke": (None, (*SMALL, "algorithm=cubic-no-hystart", "path.queue=choke", "path.buffer=4 bdp")),
    "marking": (None, (*SMALL, "algorithm=cubic", "path.queue=codel", "path.ecn=true")),
    "dualpi2": (
        None,
        (
            *SMALL,
            "algorithm=cubic-no-hystart",
            "path.queue=dualpi2",
            "path.buffer=4 bdp",
            guest_run.NEWEST,
        ),
    ),
    "gred": (None, (*SMALL, "algorithm=cubic-no-hystart", "path.queue=gred", "path.buffer=4 bdp")),
    "policed": (None, (*SMALL, "algorithm=cubic", "path.policer={rate: 5 Mbit/s, burst: 30 kB}")),
    "codel": (None, (*SMALL, "algorithm=cubic", "path.queue=codel")),
    "unlimited": (None, ("algorithm=cubic", "path.sender_interface=unlimited")),
    "fast": (None, ("path.rate=400 Mbit/s", "path.rtt=100 ms", "duration=3 s", "algorithm=cubic")),
    "capture": (None, (*SMALL, "algorithm=cubic", "collect.pcap=['r1:r1-eth0']")),
    "kernels": (None, (*SMALL, "algorithm=cubic", "split=true")),
    "processor": (
        None,
        (
            *SMALL,
            "algorithm=cubic-no-hystart",
            "sender.processor={model: of-2007, searched: 200 us, queue: 3}",
            "collect.processor=5 ms",
        ),
    ),
    "quic": (None, (*SMALL, "algorithm=cubic", "traffic.quic=ngtcp2")),
    "link": (LINK, ()),
    "group": (GROUP, ()),
    "transfer": (TRANSFER, ()),
}


@dataclass(frozen=True)
class Honest:
    """A run as it is, the plan it followed, and what the judge says of it."""

    plan: Plan
    directory: RunDirectory
    verdict: Verdict

    @property
    def checks(self) -> dict[tuple[str, str], bool | None]:
        return {(each.stage, each.name): each.ok for each in self.verdict.checks}


class Bench:
    """``root`` holds the honest runs."""

    def __init__(self, root: Path) -> None:
        self.root = root
        self._made: dict[str, Honest] = {}
        self._new: dict[Path, tuple[str, Plan]] = {}  # of guests that ran now: key, and what they followed

    @cached_property
    def engine(self) -> UmlEngine:
        """Everything built; skips the test where this machine cannot run a guest."""
        return guest_run.require_engine()

    def honest(self, name: str) -> Honest:
        if name not in self._made:
            derived = {"machines": self._machines, "own": self._own_module, "model": self._model}
            self._made[name] = derived[name]() if name in derived else self._in_guest(name)
        return self._made[name]

    def plan(self, name: str) -> Plan:
        """Of an honest run, without making it."""
        text, overrides = GUEST_RUNS[name]
        if text is None:
            return guest_run.plan_of(*overrides)
        profile = self.root / f"{name}.yaml"
        profile.write_text(text, encoding="utf-8")
        return guest_run.plan_of(*overrides, profile=profile)

    def copy(self, name: str, path: Path) -> tuple[RunDirectory, Plan]:
        """An honest run for a liar to doctor."""
        found = self.honest(name)
        shutil.copytree(found.directory.path, path, ignore=shutil.ignore_patterns("share"))
        return RunDirectory(path), found.plan

    def carry_out(self, plan: Plan, broken: Plan, path: Path, *, recalled: bool = False) -> RunDirectory:
        """A run in a guest that follows ``broken``, of which everything later believes that it followed ``plan``.

        With ``recalled`` the guest may have run in an earlier session; a new one is kept by ``keep``.
        """
        if guest_run.NEWEST.endswith(broken.kernel):
            guest_run.require_newest()
        key = key_of(self.engine, broken)
        directory = RunDirectory(path)
        if not (recalled and recall(key, path)):
            guest_run.boot(self.engine, broken, path)
            if recalled:
                self._new[path] = key, broken
        directory.plan.write_text(plan.to_json(), encoding="utf-8")
        ingest(directory)
        measure(directory, plan)
        return directory

    def keep(self, directory: RunDirectory, plan: Plan) -> None:
        """What a guest wrote now is what was expected of it: later sessions need not run it."""
        if directory.path in self._new:
            key, broken = self._new.pop(directory.path)
            directory.plan.write_text(broken.to_json(), encoding="utf-8")
            remember(key, directory)
            directory.plan.write_text(plan.to_json(), encoding="utf-8")

    def _in_guest(self, name: str) -> Honest:
        plan = self.plan(name)
        directory = self.carry_out(plan, plan, self.root / name, recalled=True)
        verdict = judge(directory, plan)
        if verdict.verdict == "pass":
            self.keep(directory, plan)
        return Honest(plan, directory, verdict)

    def _own_module(self) -> Honest:
        """The plain run as if the profile had brought CUBIC as a module of its own."""
        directory, plain = self.copy("plain", self.root / "own")
        plan = replace(plain, own_algorithms={"cubic": "tcp_cubic"})
        directory.plan.write_text(plan.to_json(), encoding="utf-8")
        with edited(directory, "agent.json") as agent:
            record = {"srcversion": "ABC", "algorithms": ["cubic"], "uses_before": 1, "uses_most": 3}
            agent["modules"]["tcp_cubic"] = {**agent["modules"].get("tcp_cubic", {}), **record}
        return Honest(plan, directory, judge(directory, plan))

    def _model(self) -> Honest:
        """A simulation, as it was recorded."""
        plan = simulated_plan()
        directory = make_simulated_run(self.root / "model", plan)
        ingest(directory)
        measure(directory, plan)
        return Honest(plan, directory, judge(directory, plan))

    def _machines(self) -> Honest:
        """The plain run as if two machines had made it: the same records, and those of clocks and processors beside."""
        directory, plain = self.copy("plain", self.root / "machines")
        plan = replace(plain, engine="machines", traits=traits("machines"))
        directory.plan.write_text(plan.to_json(), encoding="utf-8")
        processor = {"wakeups": 1000, "missed": 0, "late": [], "late_worst_ns": 300_000, "steal": 0.0}
        machines = ("alpha", "beta")
        with edited(directory, "agent.json") as agent:
            agent["machines"] = {name: {"processor": dict(processor)} for name in machines}
        clock = {"uncertainty_ns": 100_000, "gain": 2e-6}
        clocks = {"format": 1, "reference": "alpha", "machines": {name: dict(clock) for name in machines}}
        (directory.raw / "clock.json").write_text(json.dumps(clocks), encoding="utf-8")
        for stage in (BEFORE, AFTER):
            with edited(directory, f"calibration-{stage}.json") as found:
                trip = {"sender": "s1", "receiver": "r1", "round_trip_ns": [20_050_000, 20_100_000, 20_400_000]}
                found["round_trips"] = [trip]
        return Honest(plan, directory, judge(directory, plan))


@contextmanager
def edited(directory: RunDirectory, name: str) -> Iterator[dict[str, Any]]:
    """A JSON file of raw/ to change."""
    path = directory.raw / name
    value = json.loads(path.read_text(encoding="utf-8"))
    yield value
    path.write_text(json.dumps(value), encoding="utf-8")
