# SPDX-License-Identifier: Apache-2.0
"""A run directory around the recording tests/golden/raw/plain: one CUBIC flow over 10 Mbit/s and 40 ms, no agent.

Also an experiment of this one run, with a claim, analysed and sealed.
"""

from __future__ import annotations

import dataclasses
import gzip
import json
import shutil
import threading
from collections.abc import Iterator
from contextlib import contextmanager
from functools import cache
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Any
from unittest import mock

from howdah.claim.claims import judge_claims
from howdah.plan.plan import Host, Plan
from howdah.record.directory import RunDirectory, read_json, write_json
from howdah.record.provenance import first_record, sha256_text
from howdah.record.run import write_record
from howdah.work.stage import refresh
from tests.unit.plan_factory import make_plan

GOLDEN = Path(__file__).parent.parent / "golden" / "raw" / "plain"
EPOCH_NS = 50_000_000
PROFILE = """\
howdah: 1
name: recorded
path: {rate: 10 Mbit/s, rtt: 40 ms, buffer: 1 bdp}
algorithm: cubic
duration: 2 s
repetitions: 1
claims:
  - id: used
    says: The path is used.
    value: {metric: exit_cwnd_packets, flow: 1}
    expect: {above: 1}
"""


def recorded_plan() -> Plan:
    base = make_plan()
    flow = dataclasses.replace(
        base.flows[0],
        sender="s",
        receiver="d",
        source_address="10.0.1.1",
        source_port=40000,
        destination_address="10.0.2.1",
        destination_port=5201,
    )
    return dataclasses.replace(
        base,
        hosts=[Host("s", "sender", "10.0.1.1"), Host("r", "router"), Host("d", "receiver", "10.0.2.1")],
        flows=[flow],
    )


@contextmanager
def recorded_compiler() -> Iterator[None]:
    """The recording has a network of its own, which no profile gives: its plan is what the compiler is said to make.

    ``tests/liars/plans.py`` has the compiler's own plans.
    """
    with mock.patch("howdah.verify.compiled.compile_plan", lambda *_arguments: recorded_plan()):
        yield


def make_recorded_run(parent: Path, plan: Plan | None = None) -> RunDirectory:
    """Write the recording as raw/ of a run in ``parent``."""
    directory = RunDirectory(parent / "recorded")
    directory.raw.mkdir(parents=True)
    directory.share.mkdir()
    for place in (directory.path, directory.share):
        (place / "plan.json").write_text((plan or recorded_plan()).to_json())
    for name in ("header_page", "header_event", "tcp_probe.format"):
        (directory.raw / name).write_text((GOLDEN / name).read_text())
    for name in ("tcp_probe", "tcp_info", "qdisc", "interface"):
        (directory.raw / f"{name}.bin").write_bytes(gzip.decompress((GOLDEN / f"{name}.bin.gz").read_bytes()))
    trace = {
        "subbuffer_bytes": 4096,
        "clock": "mono",
        "entries": 918,
        "overrun": 0,
        "dropped_events": 0,
        "commit_overrun": 0,
        "bytes_lost": 0,
        "cpus": [{"cpu": 0, "file": "tcp_probe.bin", "bytes": (directory.raw / "tcp_probe.bin").stat().st_size}],
    }
    (directory.raw / "trace.json").write_text(json.dumps(trace))
    # What nstat printed after the recording; before it, all were zero.
    after = {
        "TcpRetransSegs": 23,
        "TcpExtTCPTimeouts": 0,
        "TcpExtTCPHystartTrainDetect": 1,
        "TcpExtTCPHystartTrainCwnd": 67,
        "TcpExtTCPHystartDelayDetect": 0,
        "TcpExtTCPHystartDelayCwnd": 0,
    }
    readings: list[dict[str, Any]] = [
        {"time_ns": EPOCH_NS, "node": "s", "source": "netstat", "values": dict.fromkeys(after, 0)},
        {"time_ns": EPOCH_NS, "node": None, "source": "softnet", "values": {"dropped": 0}},
        {"time_ns": 10**9, "node": "s", "source": "netstat", "values": after},
    ]
    (directory.raw / "counters.jsonl").write_text("".join(json.dumps(reading) + "\n" for reading in readings))
    record: dict[str, Any] = {
        "id": 1,
        "source_port": 40000,
        "start_ns": 0,
        "connected_ns": 60_868_000,
        "end_ns": 600_000_000,
    }
    record |= {"bytes_sent": 600_000, "bytes_received": 600_000, "complete": True, "error": None}
    agent = {"format": 1, "status": "ok", "epoch_monotonic_ns": EPOCH_NS, "flows": [record]}
    (directory.raw / "agent.json").write_text(json.dumps(agent))
    return directory


def make_recorded_experiment(path: Path) -> RunDirectory:
    """An experiment of the recorded run in the new directory ``path``; the run, as an analysis leaves it.

    It is made once a process, and copied: its runs ended before.
    """
    with _MAKING:  # of two templates one would go while it is copied
        template = _template()
    shutil.copytree(Path(template.name) / "made", path, copy_function=shutil.copyfile)
    return RunDirectory(path / "recorded")


_MAKING = threading.Lock()


@cache
def _template() -> TemporaryDirectory[str]:
    place = TemporaryDirectory(prefix="howdah-recorded-")
    record_experiment(Path(place.name) / "made")
    return place


def record_experiment(path: Path) -> RunDirectory:
    """The same, made now."""
    path.mkdir()
    run = make_recorded_run(path)
    text = run.plan.read_text()
    write_record(run, first_record(text, "a" * 64).replaced(status="finished"))
    refresh(run)
    plan = json.loads(text)
    cell = {name: plan[name] for name in ("axes", "algorithm", "repetition")}
    cell |= {"run": run.name, "status": "finished", "verdict": read_json(run.verdict)["verdict"]}
    (path / "profile.yaml").write_text(PROFILE)
    profile = {"file": "recorded.yaml", "sha256": sha256_text(PROFILE)}
    write_json(path / "experiment.json", {"format": 1, "name": "recorded", "profile": profile, "cells": [cell]})
    judge_claims(path)
    return run
