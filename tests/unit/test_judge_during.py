# SPDX-License-Identifier: Apache-2.0
"""Passive checks while the flows run, and the verdict as a whole."""

from __future__ import annotations

import dataclasses
import json
from pathlib import Path

import pytest

from howdah.ingest.run import ingest
from howdah.judge.during import backlogged_spans, dequeue_rate, dropping, during_checks, peak_backlog
from howdah.judge.limits import limit_checks
from howdah.judge.run import judge
from howdah.judge.sending import sending_checks
from howdah.judge.tolerance import VIRTUAL
from howdah.measure.trace import FlowTrace
from howdah.record.directory import read_json
from howdah.record.verdict import Check, read_verdict
from tests.unit import path_factory
from tests.unit.plan_factory import collecting, make_plan
from tests.unit.recorded_run import make_recorded_run, recorded_plan
from tests.unit.test_measure_run import plan_of_recording
from tests.unit.trace_factory import make_flow, make_measured, make_queue, make_trace

RATE = 20_000_000


def trace() -> FlowTrace:
    """Six ACKs, the first of which comes after the path's 40 ms."""
    times = [40.0 + index for index in range(6)]
    return make_trace(times, [2 * index for index in range(6)], [10 + 2 * index for index in range(6)])


def test_a_span_is_what_the_queue_cannot_have_run_empty_in() -> None:
    # Held 60000, sent 50000: never empty. Held exactly what it sent: it may have stood still in between.
    queue = make_queue(
        [0, 20, 40, 60, 80], [60_000, 60_000, 50_000, 60_000, 0], sent=[0, 50_000, 100_000, 150_000, 200_000]
    )
    assert backlogged_spans(queue) == [(0, 2), (3, 4)]
    assert backlogged_spans(make_queue([0, 20], [60_000, 60_000], sent=[0, 0])) == []


def test_what_only_tcp_tells_is_asked_of_no_other_flow() -> None:
    plan = make_plan()
    datagrams = [dataclasses.replace(flow, datagram_bytes=1200) for flow in plan.flows]
    data = make_measured([], plan=dataclasses.replace(plan, flows=datagrams))
    assert limit_checks(data, VIRTUAL) == sending_checks(data, VIRTUAL) == []


def test_one_failed_check_makes_the_run_invalid(tmp_path: Path) -> None:
    run = make_recorded_run(tmp_path)
    (run.raw / "calibration-before.json").write_text(json.dumps(path_factory.calibration()))
    ingest(run)
    verdict = judge(run, recorded_plan())
    assert verdict == read_verdict(run)
    assert verdict.verdict == "invalid"
    names = {check.name: check for check in verdict.broken}
    assert "accounting" in names
    assert names["calibration"].stage == "after"
    columns = {"name", "stage", "ok", "expected", "measured", "tolerance", "unit", "message"}
    assert all(set(check) == columns and check["message"] for check in read_json(run.verdict)["checks"])


@pytest.mark.parametrize(
    ("step", "words"),
    [
        (50_000, "is as configured"),
        (50_807, "is as configured"),
        (50_808, "is too high"),
        (49_193, "is as configured"),
        (49_192, "is too low"),
    ],
)
def test_a_span_of_a_queue_is_known_to_a_frame_at_either_end(step: int, words: str) -> None:
    """Two spans of 80 ms: a frame at each of four ends is 4 * 1514 * 8 / 0.16 = 302 800 bit/s, and 0.1 % are 20 000.

    That is 807 bytes in 20 ms.
    """
    held, sent = [], [0]
    for index in range(10):
        held.append(0 if index in (4, 9) else 200_000)
        sent.append(sent[-1] + (0 if index == 4 else step))
    queue = make_queue([20.0 * index for index in range(10)], held, sent=sent[:-1])
    check = dequeue_rate(make_measured([trace()], queue=queue), VIRTUAL)
    rate = step * 8 / 0.02
    message = f"the bottleneck's rate while it had a queue {words}: {rate:.10g} bit/s, expected 20000000 ± 3.228e+05"
    expected = Check("dequeue rate", "during", words == "is as configured", message, RATE, rate, 322_800.0, "bit/s")
    assert check == expected


def test_a_rate_that_was_not_measured_says_why() -> None:
    what = "the bottleneck's rate while it had a queue was not measured: "
    short = "the queue was never long enough to be sure that it did not run empty between two readings"
    for queue, why in ((make_queue([], []), "the queue was not read"), (make_queue([0, 20], [9, 9], [0, 10]), short)):
        check = dequeue_rate(make_measured([trace()], queue=queue), VIRTUAL)
        assert check == Check("dequeue rate", "during", None, what + why, RATE, None, 0, "bit/s")


@pytest.mark.parametrize(
    ("peak", "ok", "words"), [(101_514, True, ""), (101_515, False, ": the buffer is larger than configured")]
)
def test_a_buffer_holds_its_limit_and_a_frame(peak: int, ok: bool, words: str) -> None:
    message = f"the bottleneck held at most {peak} bytes; its limit is 100000{words}"
    check = peak_backlog(make_measured([trace()], queue=make_queue([0, 20], [peak, 0])))
    assert check == Check("peak backlog", "during", ok, message, 100_000, peak, 1514, "bytes")
    unread = Check("peak backlog", "during", None, "the queue was not read", 100_000, None, 1514, "bytes")
    assert peak_backlog(make_measured([trace()])) == unread


@pytest.mark.parametrize(
    ("queue", "frame_bytes"),
    [("fifo", 0), ("red", 0), ("pie", 0), ("codel", 1514), ("fq_codel", 1514), ("cake", 1514)],
)
def test_queues_that_drop_what_they_hold_are_known(queue: str, frame_bytes: int) -> None:
    plan = make_plan()
    assert dropping(dataclasses.replace(plan, path=dataclasses.replace(plan.path, queue=queue))) == frame_bytes


def test_every_flow_and_the_queue_are_watched() -> None:
    traces = [trace(), dataclasses.replace(trace(), flow=make_flow(id=2))]
    names = ["dequeue rate", "peak backlog", "minimum RTT flow 1", "minimum RTT flow 2"]
    assert [check.name for check in during_checks(make_measured(traces), VIRTUAL)] == names
    plan = make_plan()
    varying = dataclasses.replace(plan, path=dataclasses.replace(plan.path, rate_steps=[[1, 2]]))
    found = during_checks(make_measured([], plan=varying), VIRTUAL)
    assert [check.name for check in found] == ["rate schedule", "peak backlog"]


@pytest.mark.parametrize(("idle_ns", "ok"), [(0, True), (10**9, False)])
def test_readings_that_are_late_are_excused_by_a_busy_processor(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, idle_ns: int, ok: bool
) -> None:
    """They came each 100 ms, and 10 ms were asked for."""
    monkeypatch.setattr("howdah.judge.run.idle_of", lambda *_: lambda _begin, _end: idle_ns)
    plan = plan_of_recording()
    plan = dataclasses.replace(plan, collect=collecting(plan.collect, qdisc_us=10_000))
    run = make_recorded_run(tmp_path, plan)
    ingest(run)
    checks = {check.name: check.ok for check in judge(run, plan).checks}
    assert checks["the bottleneck's queue readings"] is ok
