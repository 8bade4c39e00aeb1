# SPDX-License-Identifier: Apache-2.0
"""What the live page is told of runs in virtual time, from files that grow as the guest writes them."""

from __future__ import annotations

import dataclasses
import fcntl
import json
import os
from pathlib import Path

import pytest

from howdah.ingest.run import ingest
from howdah.measure.run import measure
from howdah.publish.acktrace import AckTrace
from howdah.publish.live_state import FILE, LiveState, Transfers, group_transfers
from howdah.publish.phase import PHASES, Queues, locked_experiments, position
from howdah.publish.underway import Watch
from howdah.record import table as store
from howdah.record.directory import RunDirectory, read_json, write_json
from howdah.record.metrics import MetricRow
from howdah.record.reading import read_plan_file
from tests.unit.recorded_run import (
    EPOCH_NS,
    make_recorded_experiment,
    make_recorded_run,
    record_experiment,
)
from tests.unit.underway_run import Underway, make_virtual, underway_plan


@pytest.fixture
def underway(tmp_path: Path) -> Underway:
    return make_virtual(tmp_path)


def read_on(trace: AckTrace) -> AckTrace:
    trace.look()
    return trace


def new_trace(underway: Underway) -> AckTrace:
    return AckTrace(underway.directory / "raw", read_plan_file(underway.directory / "plan.json"))


def test_what_is_seen_is_what_the_tables_and_metrics_will_have(tmp_path: Path) -> None:
    underway = make_virtual(tmp_path)
    underway.write(1)
    flow = read_on(new_trace(underway)).flows[0]
    run = make_recorded_run(tmp_path / "done", read_plan_file(underway.directory / "plan.json"))
    ingest(run)
    rows = [row for row in store.read(run, "tcp_probe").to_pylist() if row["flow"] == flow.flow.id]
    assert flow.acks == len(rows) == int(flow.acks_of_step.sum())
    assert (flow.cwnd_packets, flow.srtt_us) == (rows[-1]["cwnd_packets"], rows[-1]["srtt_us"])
    assert flow.time_ns == rows[-1]["time_ns"]
    measure(run, read_plan_file(run.plan))
    metrics = {row["metric"]: row["value"] for row in read_json(run.metrics)["rows"] if row["flow"] == flow.flow.id}
    assert flow.exit is not None
    assert flow.exit.after_start_s == pytest.approx(metrics["exit_time_s"])
    assert flow.exit.cwnd_packets == metrics["exit_cwnd_packets"]


def test_the_trace_is_read_on_and_each_record_once(underway: Underway) -> None:
    trace, seen = new_trace(underway), []
    for share in (0.0, 0.3, 0.3, 0.6, 1.0):
        underway.write(share, torn_bytes=0 if share == 1 else 100)  # a sub-buffer that is not whole waits
        seen.append(read_on(trace).flows[0].acks)
    assert seen[0] == 0
    assert seen[1] == seen[2]
    assert seen == sorted(seen)
    whole = read_on(new_trace(underway)).flows[0]
    assert trace.flows[0].acks == whole.acks > 300
    assert trace.flows[0].exit == whole.exit
    assert trace.flows[0].acks_of_step.tolist() == whole.acks_of_step.tolist()


def test_an_exit_is_told_as_soon_as_its_record_is_there(underway: Underway) -> None:
    trace, first = new_trace(underway), None
    count = len(underway.frames["tcp_probe"])
    for number in range(count + 1):
        underway.write(number / count)
        if read_on(trace).flows[0].exit is not None:
            first = number
            break
    assert first is not None
    assert 0 < first < count


def test_the_rate_of_acks_is_by_the_run_s_own_clock(underway: Underway) -> None:
    underway.write(1)
    trace = read_on(new_trace(underway))
    flow = trace.flows[0]
    # 10 Mbit/s is 826 frames of 1514 bytes in a second; most segments have an ACK of their own.
    assert trace.acks_per_second is not None
    assert 300 < trace.acks_per_second < 900
    course = flow.acks_per_second(trace.step_ns)
    assert 600 < course.max() < 1100
    # A mean over a round trip: the same number of ACKs, each told once a step for as long as it lasts.
    steps = round(flow.flow.rtt_us * 1000 / trace.step_ns)
    assert course[: len(course) - steps].sum() * trace.step_ns / 1e9 == pytest.approx(flow.acks, rel=0.05)


def test_a_trace_that_is_not_there_yet_or_damaged_shows_nothing(underway: Underway) -> None:
    raw = underway.directory / "raw"
    (raw / "tcp_probe.bin").unlink()
    assert read_on(new_trace(underway)).flows[0].acks == 0
    (raw / "tcp_probe.bin").write_bytes(b"\xff" * 8192)
    assert read_on(new_trace(underway)).flows[0].acks == 0
    (raw / "header_page").write_text("nothing of use\n")
    assert read_on(new_trace(underway)).acks_per_second is None


def test_phases_follow_from_what_lies_there(tmp_path: Path) -> None:
    run = RunDirectory(tmp_path)
    run.raw.mkdir()
    run.tables.mkdir()
    seen = [position(run).phase]
    run.console.touch()
    seen.append(position(run).phase)
    for phase in ("setup", "calibrate-before", "flows", "quiesce", "calibrate-after", "collect", "done"):
        write_json(run.raw / "progress.json", {"phase": phase, "time_us": 2, "of_us": 8})
        seen.append(position(run).phase)
    assert position(run).share == 0.25
    for left in (run.tables / "ingest.json", run.metrics, run.verdict):
        left.touch()
        seen.append(position(run).phase)
    assert tuple(seen) == PHASES


def test_phases_are_those_that_a_run_records() -> None:
    """The agent's phases and the stages of the analysis, by the names they have there."""
    agent = Path("howdah/agent/run.py").read_text(encoding="utf-8")
    analysis = Path("howdah/work/analysis.py").read_text(encoding="utf-8")
    for phase in PHASES[2:8]:
        assert f'_phase("{phase}")' in agent
    for phase in PHASES[8:11]:
        assert f'timed("{phase}")' in analysis


def test_an_experiment_that_is_held_is_seen_with_what_is_built_for_it(tmp_path: Path) -> None:
    runs, cache = tmp_path / "runs", tmp_path / "cache"
    (runs / "mine").mkdir(parents=True)
    cells = [{"run": "a-1"}, {"run": "b-1"}]
    write_json(runs / "mine" / "experiment.json", {"cells": cells})
    (runs / "mine" / "a-1").mkdir()
    (runs / "mine" / "a-1" / "run.json").touch()
    with (runs / "mine" / ".lock").open("w") as lock:
        assert locked_experiments(runs, cache) == []
        fcntl.flock(lock, fcntl.LOCK_EX)
        (held,) = locked_experiments(runs, cache)
        assert (held.path.name, held.made, held.of, held.building) == ("mine", 1, 2, ())
        for kind in ("tree", "kernel"):
            (cache / kind / f".partial-0123-{os.getpid()}").mkdir(parents=True)
        (cache / "tool" / ".partial-0123-1").mkdir(parents=True)  # another process's
        assert locked_experiments(runs, cache)[0].building == ("kernel", "tree")
        fcntl.flock(lock, fcntl.LOCK_UN)
        assert locked_experiments(runs, cache) == []


def test_the_queue_is_what_the_disk_says(tmp_path: Path) -> None:
    """Two algorithms, three repetitions each: two are made, one has failed, one is in progress, two are to come."""
    cells = [
        {"run": f"{name}-r{number}-00000000", "algorithm": name, "axes": {"repetition": number}}
        for name in ("cubic", "reno")
        for number in range(3)
    ]
    queues = Queues()
    assert queues.of(tmp_path) is None, "nothing is listed yet"
    write_json(tmp_path / "experiment.json", {"cells": cells})
    queue = queues.of(tmp_path)
    assert queue is not None
    assert (queue.verdicts, queue.in_progress, queue.waiting, queue.left_s) == ({}, 0, 6, None)
    for name, verdict, wall_s in (("cubic-r0", "pass", 10.0), ("cubic-r1", "invalid", 14.0), ("reno-r0", None, 2.0)):
        run = tmp_path / f"{name}-00000000"
        run.mkdir()
        write_json(run / "run.json", {"status": "finished" if verdict else "failed", "wall_s": wall_s})
        if verdict:
            write_json(run / "verdict.json", {"verdict": verdict})
    (tmp_path / f".partial-cubic-r2-00000000-{os.getpid()}").mkdir()
    queue = queues.of(tmp_path)
    assert queue is not None
    assert queue.verdicts == {"pass": 1, "invalid": 1, "failed": 1}
    assert (queue.in_progress, queue.waiting) == (1, 2)
    assert queue.to_come == ["reno-r1-00000000", "reno-r2-00000000"]
    assert queue.left_s == 2 + 2 + 12 / 2
    write_json(tmp_path / "reno-r0-00000000" / "run.json", {"status": "finished", "wall_s": 2.0})
    write_json(tmp_path / "reno-r0-00000000" / "verdict.json", {"verdict": "pass"})
    queue = queues.of(tmp_path)
    assert queue is not None
    assert queue.verdicts == {"pass": 2, "invalid": 1}, "a run that was made again"


def test_the_page_is_told_of_a_run_while_it_is_made_and_when_it_has_ended(tmp_path: Path) -> None:
    runs = tmp_path / "runs"
    underway = make_virtual(runs)
    watch = Watch(runs)
    board = LiveState(runs, tmp_path / "cache", watch)
    underway.write(1)
    watch.families()
    board.write(tmp_path)
    state = json.loads((tmp_path / FILE).read_text())
    (run,) = state["underway"]
    assert (run["run"], run["phase"], run["virtual"]) == ("recorded", "flows", True)
    (flow,) = run["flows"]
    plan = underway_plan("uml")
    path, sender = plan.path, plan.flows[0]
    bdp_packets = path.rate_bits_per_second * sender.rtt_us / 8_000_000 / path.frame_bytes
    assert bdp_packets % 1, "whole packets would hide a BDP that was rounded"
    assert flow["exit"]["share"] == pytest.approx(flow["exit"]["cwnd_packets"] / bdp_packets)
    assert len(flow["cwnd"]) == len(flow["acks_per_s"])
    assert flow["cwnd"][-1] == flow["cwnd_packets"]
    assert state["finished"] == []
    made = record_experiment(runs / "recorded")
    underway.directory.rename(tmp_path / "away")
    watch.families()
    state = board.state()
    assert state.underway == []
    (ended,) = state.finished
    metrics = {row["metric"]: row["value"] for row in read_json(made.metrics)["rows"] if row["flow"] is not None}
    assert ended.verdict == read_json(made.verdict)["verdict"]
    assert ended.exits[0].cwnd_packets == metrics["exit_cwnd_packets"]
    assert ended.exits[0].cause == metrics["exit_cause"]


def test_runs_that_ended_before_are_no_news(tmp_path: Path) -> None:
    make_recorded_experiment(tmp_path / "recorded")
    board = LiveState(tmp_path, tmp_path / "cache", Watch(tmp_path))
    assert board.state().finished == []


def test_the_connections_of_a_group_are_told_together(tmp_path: Path) -> None:
    """Two connections of the recording as one group: what is counted are its records, and both senders' ports."""
    whole = make_virtual(tmp_path / "flows")
    plan = underway_plan("uml", epoch_us=EPOCH_NS // 1000)
    whole.write(1)
    alone = AckTrace(whole.directory / "raw", plan)
    alone.look()
    grouped = dataclasses.replace(plan, flows=[dataclasses.replace(each, group="web") for each in plan.flows])
    trace = AckTrace(whole.directory / "raw", grouped)
    trace.look()
    assert trace.flows == []
    (group,) = trace.groups
    assert group.acks == sum(each.acks for each in alone.flows) > 0
    assert len(group.begun) == sum(each.acks > 0 for each in alone.flows)
    assert group.acks_of_step.sum() == group.acks
    assert trace.acks_per_second == alone.acks_per_second


def test_a_group_is_told_by_its_own_rows_and_not_by_those_of_its_connections() -> None:
    def row(metric: str, value: float | None, flow: int | None = None, group: str | None = None) -> MetricRow:
        return MetricRow(flow, metric, value, None, group)

    rows = [
        row("completed_share", 0.75, group="web"),
        row("completion_time_median_s", 1.25, group="web"),
        row("completion_time_p95_s", None, group="web"),  # too few connections
        row("completion_time_s", 9.0, flow=1, group="web"),
        row("completed_share", None, group="lasting"),  # without a size
        row("completed_share", 0.5),  # of all groups together
    ]
    assert group_transfers(rows) == [Transfers("web", 0.75, 1.25, None)]
