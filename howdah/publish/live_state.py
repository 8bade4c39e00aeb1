# SPDX-License-Identifier: Apache-2.0
"""Writes the state of experiments and runs for the live page, as one JSON file beside it, at every scrape."""

from __future__ import annotations

import json
import math
import time
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path

from howdah.codec import encoded
from howdah.errors import HowdahError
from howdah.measure.trace import Reals
from howdah.plan.path import Path as PlannedPath
from howdah.publish.acktrace import AckTrace, FlowSoFar, GroupSoFar
from howdah.publish.phase import PHASES, Queue, Queues, held_experiments
from howdah.publish.underway import LiveRun, Watch
from howdah.record.directory import PARTIAL, RunDirectory, write_whole
from howdah.record.metrics import MetricRow
from howdah.work.results import read_results

FILE = "runs.json"
Value = int | float | str | None  # as metrics.json has it
_MOST_FINISHED = 24
_DONE = "completion_time_s"
_OF_EXIT = ("exit_cwnd_packets", "exit_cwnd_bdp", "exit_cause")


@dataclass(frozen=True)
class StateOfExperiment:
    name: str
    made: int
    of: int
    building: tuple[str, ...]
    queue: Queue | None


@dataclass(frozen=True)
class ExitState:
    after_start_s: float
    time_s: float
    cwnd_packets: float
    share: float


@dataclass(frozen=True)
class FlowState:
    name: str
    acks: int
    cwnd_packets: float | None
    srtt_ms: float | None
    exit: ExitState | None
    step_s: float
    cwnd: list[float | None]
    srtt: list[float | None]
    acks_per_s: list[float | None]


@dataclass(frozen=True)
class GroupState:
    name: str
    acks: int
    begun: int
    connections: int
    step_s: float
    acks_per_s: list[float | None]


@dataclass(frozen=True)
class RunUnderway:
    experiment: str
    run: str
    algorithm: str
    engine: str
    virtual: bool
    phase: str
    time_s: float
    of_s: float
    duration_s: float
    bdp_packets: float
    bdp_and_buffer_packets: float
    acks_per_s: float | None
    flows: list[FlowState]
    groups: list[GroupState]


@dataclass(frozen=True)
class FinishedExit:
    flow: str
    after_start_s: Value
    cwnd_packets: Value
    share: Value
    cause: Value


@dataclass(frozen=True)
class Transfers:
    """How many connections of a flow or a group are complete, and how long they took."""

    name: str
    share: Value
    median_s: Value
    p95_s: Value


@dataclass(frozen=True)
class FinishedRun:
    experiment: str
    run: str
    verdict: str
    exits: list[FinishedExit]
    transfers: list[Transfers]


@dataclass(frozen=True)
class State:
    """The contents of ``runs.json``."""

    phases: tuple[str, ...]
    experiments: list[StateOfExperiment]
    underway: list[RunUnderway]
    finished: list[FinishedRun]


class LiveState:
    """The state of all runs in progress below ``runs``, and of the runs that ended since the server began."""

    def __init__(self, runs: Path, cache: Path, watch: Watch) -> None:
        self._runs, self._cache, self._watch = runs, cache, watch
        self._began_s = time.time()
        self._finished: dict[Path, FinishedRun | None] = {}
        self._queues = Queues()

    def write(self, directory: Path) -> None:
        write_whole(directory / FILE, json.dumps(encoded(self.state()), allow_nan=False))

    def state(self) -> State:
        """The current state; ``underway`` is as of the watch's last look, ``finished`` has the newest first."""
        self._look_for_finished()
        held = held_experiments(self._runs, self._cache)
        return State(
            PHASES,
            [
                StateOfExperiment(each.path.name, each.made, each.of, each.building, self._queues.of(each.path))
                for each in held
            ],
            [_underway(live) for live in self._watch.underway],
            [shown for shown in self._finished.values() if shown][::-1],
        )

    def _look_for_finished(self) -> None:
        """Find the runs whose run.json was written since the server began; skip unreadable ones."""
        found = []
        for file in self._records_of_changed():
            run = file.parent
            if run in self._finished or run.name.startswith(PARTIAL):
                continue
            try:
                written_s = file.stat().st_mtime
            except OSError:
                continue
            if written_s >= self._began_s:
                found.append((written_s, run))
        for _written_s, run in sorted(found):
            try:
                self._finished[run] = _finished(RunDirectory(run))
            except (HowdahError, OSError, KeyError):
                continue
        for run in list(self._finished)[: max(0, len(self._finished) - _MOST_FINISHED)]:
            self._finished[run] = None  # known, and no longer shown
        self._finished = {run: shown for run, shown in self._finished.items() if run.exists()}

    def _records_of_changed(self) -> Iterator[Path]:
        """Yield the run.json files of experiments that changed since the server began; others may have thousands of
        runs."""
        for experiment in self._runs.glob("*/"):
            try:
                if experiment.is_symlink() or experiment.stat().st_mtime < self._began_s:
                    continue
            except OSError:
                continue
            yield from experiment.glob("*/run.json")


def _underway(live: LiveRun) -> RunUnderway:
    where, path = live.position(), live.plan.path
    return RunUnderway(
        live.run.experiment,
        live.run.name,
        live.run.algorithm,
        live.plan.engine,
        live.trace is not None,
        where.phase,
        where.time_us / 1e6,
        where.of_us / 1e6,
        live.plan.duration_us / 1e6,
        path.bdp_packets,
        path.full_packets,
        live.trace.acks_per_second if live.trace else None,
        [_flow(each, live.trace, path) for each in live.trace.flows] if live.trace else [],
        [_group(each, live.trace) for each in live.trace.groups] if live.trace else [],
    )


def _flow(each: FlowSoFar, trace: AckTrace, path: PlannedPath) -> FlowState:
    left = each.exit
    return FlowState(
        each.flow.name,
        each.acks,
        each.cwnd_packets if each.acks else None,
        each.srtt_us / 1e3 if each.acks else None,
        ExitState(
            left.after_start_s,
            left.after_start_s + each.flow.start_us / 1e6,
            left.cwnd_packets,
            left.cwnd_packets / each.flow.bdp_packets(path),
        )
        if left
        else None,
        trace.step_ns / 1e9,
        _until_now(each.cwnd, each, trace),
        _until_now(each.srtt_ms, each, trace),
        _until_now(each.acks_per_second(trace.step_ns), each, trace),
    )


def _group(each: GroupSoFar, trace: AckTrace) -> GroupState:
    course = _until_now(each.acks_per_second(trace.step_ns), each, trace)
    return GroupState(each.name, each.acks, len(each.begun), len(each.members), trace.step_ns / 1e9, course)


def _until_now(course: Reals, each: FlowSoFar | GroupSoFar, trace: AckTrace) -> list[float | None]:
    """The steps up to the newest ACK."""
    reached = min(len(course), each.time_ns // trace.step_ns + 1) if each.acks else 0
    return [None if math.isnan(value) else round(float(value), 3) for value in course[:reached]]


def _finished(directory: RunDirectory) -> FinishedRun:
    """A finished run, as analysed."""
    (run,) = read_results(directory.path, lambda _text: None).runs
    rows = {(row.flow, row.metric): row.value for row in run.metrics}
    alone = [flow for flow in (run.plan.flows if run.plan else []) if flow.group is None]
    exits = [
        FinishedExit(flow.name, after, *(rows.get((flow.id, name)) for name in _OF_EXIT))
        for flow in alone
        if (after := rows.get((flow.id, "exit_time_s"))) is not None
    ]
    transfers = [
        Transfers(flow.name, 1.0, done, None) for flow in alone if (done := rows.get((flow.id, _DONE))) is not None
    ]
    transfers += group_transfers(run.metrics)
    return FinishedRun(directory.path.parent.name, run.name, run.verdict_name, exits, transfers)


def group_transfers(metrics: list[MetricRow]) -> list[Transfers]:
    rows = {(row.group, row.metric): row.value for row in metrics if row.flow is None}
    return [
        Transfers(group, share, *(rows.get((group, f"completion_time_{each}_s")) for each in ("median", "p95")))
        for (group, metric), share in rows.items()
        if group is not None and metric == "completed_share" and share is not None
    ]
