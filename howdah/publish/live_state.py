# SPDX-License-Identifier: Apache-2.0
"""Writes what the live page shows of experiments and runs, as one JSON file beside it, at every scrape."""

from __future__ import annotations

import json
import math
import time
from collections.abc import Iterator
from dataclasses import asdict
from pathlib import Path
from typing import Any

from howdah.errors import HowdahError
from howdah.measure.trace import Reals
from howdah.plan.path import Path as PlannedPath
from howdah.publish.acktrace import AckTrace, FlowSoFar, GroupSoFar
from howdah.publish.phase import PHASES, held_experiments
from howdah.publish.underway import LiveRun, Watch
from howdah.publish.waiting import Queue, Queues
from howdah.record.directory import PARTIAL, RunDirectory, write_whole
from howdah.record.metrics import MetricRow
from howdah.work.results import read_results

FILE = "runs.json"
_MOST_FINISHED = 24
_DONE = "completion_time_s"


class LiveState:
    """The state of all runs in progress below ``runs``, and of the runs that ended since the server began."""

    def __init__(self, runs: Path, cache: Path, watch: Watch) -> None:
        self._runs, self._cache, self._watch = runs, cache, watch
        self._began_s = time.time()
        self._finished: dict[Path, dict[str, Any]] = {}
        self._queues = Queues()

    def write(self, directory: Path) -> None:
        write_whole(directory / FILE, json.dumps(self.state(), allow_nan=False))

    def state(self) -> dict[str, Any]:
        """``underway`` as the watch saw it at its last look; ``finished`` newest first."""
        self._look_for_finished()
        held = held_experiments(self._runs, self._cache)
        return {
            "phases": PHASES,
            "experiments": [
                {"name": each.path.name, "made": each.made, "of": each.of, "building": each.building}
                | {"queue": _queue(self._queues.of(each.path))}
                for each in held
            ],
            "underway": [_underway(live) for live in self._watch.underway],
            "finished": [shown for shown in self._finished.values() if shown][::-1],
        }

    def _look_for_finished(self) -> None:
        """Find the runs whose run.json was last written since the server began; skip those that cannot be read."""
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
            self._finished[run] = {}  # known, and no longer shown
        self._finished = {run: shown for run, shown in self._finished.items() if run.exists()}

    def _records_of_changed(self) -> Iterator[Path]:
        """Records of experiments in which a run ended since the server began; others may have thousands of runs."""
        for experiment in self._runs.glob("*/"):
            try:
                if experiment.is_symlink() or experiment.stat().st_mtime < self._began_s:
                    continue
            except OSError:
                continue
            yield from experiment.glob("*/run.json")


def _queue(queue: Queue | None) -> dict[str, Any] | None:
    return None if queue is None else asdict(queue)


def _underway(live: LiveRun) -> dict[str, Any]:
    where, path = live.position(), live.plan.path
    return {
        "experiment": live.run.experiment,
        "run": live.run.name,
        "algorithm": live.run.algorithm,
        "engine": live.plan.engine,
        "virtual": live.trace is not None,
        "phase": where.phase,
        "time_s": where.time_us / 1e6,
        "of_s": where.of_us / 1e6,
        "duration_s": live.plan.duration_us / 1e6,
        "bdp_packets": path.bdp_packets,
        "bdp_and_buffer_packets": path.full_packets,
        "acks_per_s": live.trace.acks_per_second if live.trace else None,
        "flows": [_flow(each, live.trace, path) for each in live.trace.flows] if live.trace else [],
        "groups": [_group(each, live.trace) for each in live.trace.groups] if live.trace else [],
    }


def _flow(each: FlowSoFar, trace: AckTrace, path: PlannedPath) -> dict[str, Any]:
    step_s = trace.step_ns / 1e9
    exit_ = each.exit
    return {
        "name": each.flow.name,
        "acks": each.acks,
        "cwnd_packets": each.cwnd_packets if each.acks else None,
        "srtt_ms": each.srtt_us / 1e3 if each.acks else None,
        "exit": exit_
        and {
            "after_start_s": exit_.after_start_s,
            "time_s": exit_.after_start_s + each.flow.start_us / 1e6,
            "cwnd_packets": exit_.cwnd_packets,
            "share": exit_.cwnd_packets / each.flow.bdp_packets(path),
        },
        "step_s": step_s,
        "cwnd": _until_now(each.cwnd, each, trace),
        "srtt": _until_now(each.srtt_ms, each, trace),
        "acks_per_s": _until_now(each.acks_per_second(trace.step_ns), each, trace),
    }


def _group(each: GroupSoFar, trace: AckTrace) -> dict[str, Any]:
    return {
        "name": each.name,
        "acks": each.acks,
        "begun": len(each.begun),
        "connections": len(each.members),
        "step_s": trace.step_ns / 1e9,
        "acks_per_s": _until_now(each.acks_per_second(trace.step_ns), each, trace),
    }


def _until_now(course: Reals, each: FlowSoFar | GroupSoFar, trace: AckTrace) -> list[float | None]:
    """The steps up to the newest ACK."""
    reached = min(len(course), each.time_ns // trace.step_ns + 1) if each.acks else 0
    return [None if math.isnan(value) else round(float(value), 3) for value in course[:reached]]


def _finished(directory: RunDirectory) -> dict[str, Any]:
    """A run that ended: its verdict, transfers and exits, as the analysis has them."""
    (run,) = read_results(directory.path, lambda _text: None).runs
    rows = {(row.flow, row.metric): row.value for row in run.metrics}
    exits = []
    for flow in run.plan.flows if run.plan else []:
        after = rows.get((flow.id, "exit_time_s"))
        if flow.group is None and after is not None:
            cwnd, share = (rows.get((flow.id, name)) for name in ("exit_cwnd_packets", "exit_cwnd_bdp"))
            cause = rows.get((flow.id, "exit_cause"))
            exits.append(
                {"flow": flow.name, "after_start_s": after, "cwnd_packets": cwnd, "share": share, "cause": cause}
            )
    experiment = directory.path.parent.name
    transfers = [
        *(
            {"name": flow.name, "share": 1.0, "median_s": rows[flow.id, _DONE], "p95_s": None}
            for flow in (run.plan.flows if run.plan else [])
            if flow.group is None and rows.get((flow.id, _DONE)) is not None
        ),
        *group_transfers(run.metrics),
    ]
    return {
        "experiment": experiment,
        "run": run.name,
        "verdict": run.verdict_name,
        "exits": exits,
        "transfers": transfers,
    }


def group_transfers(metrics: list[MetricRow]) -> list[dict[str, Any]]:
    """How many connections of each group are complete, and how long they took."""
    rows = {(row.group, row.metric): row.value for row in metrics if row.flow is None}
    return [
        {
            "name": group,
            "share": share,
            "median_s": rows.get((group, "completion_time_median_s")),
            "p95_s": rows.get((group, "completion_time_p95_s")),
        }
        for (group, metric), share in rows.items()
        if group is not None and metric == "completed_share" and share is not None
    ]
