# SPDX-License-Identifier: Apache-2.0
"""Passive checks while the flows run, and the verdict as a whole."""

from __future__ import annotations

import dataclasses
import json
from pathlib import Path

import pytest

from howdah.ingest.run import ingest
from howdah.judge.check import VIRTUAL
from howdah.judge.during import backlogged_spans, dequeue_rate, dropping, during_checks, minimum_rtt, peak_backlog
from howdah.judge.limits import limit_checks, sending_checks
from howdah.judge.run import judge
from howdah.measure.sampled import MISSING
from howdah.measure.trace import FlowTrace
from howdah.plan.step import Operation
from howdah.record.directory import read_json
from howdah.record.verdict import Check, read_verdict
from tests.unit import path_factory
from tests.unit.plan_factory import collecting, make_plan
from tests.unit.recorded_run import make_recorded_run, recorded_plan
from tests.unit.test_measure_run import plan_of_recording
from tests.unit.trace_factory import make_flow, make_info, make_measured, make_queue, make_trace

RATE = 20_000_000
FULL = RATE // 8 // 50  # bytes in 20 ms


def trace(rtt_ms: float = 40, **changes: float) -> FlowTrace:
    times = [rtt_ms + index for index in range(6)]
    return make_trace(times, [2 * index for index in range(6)], [10 + 2 * index for index in range(6)], **changes)  # type: ignore[arg-type]


def test_a_span_is_what_the_queue_cannot_have_run_empty_in() -> None:
    # Held 60000, sent 50000: never empty. Held exactly what it sent: it may have stood still in between.
    queue = make_queue(
        [0, 20, 40, 60, 80], [60_000, 60_000, 50_000, 60_000, 0], sent=[0, 50_000, 100_000, 150_000, 200_000]
    )
    assert backlogged_spans(queue) == [(0, 2), (3, 4)]
    assert backlogged_spans(make_queue([0, 20], [60_000, 60_000], sent=[0, 0])) == []


@pytest.mark.parametrize(("share", "ok"), [(1.0, True), (1.0008, True), (0.99, False), (1.01, False)])
def test_the_rate_is_judged_while_the_queue_is_not_empty(share: float, ok: bool) -> None:
    steps = 200
    sent = [int(index * FULL * share) for index in range(steps)]
    queue = make_queue([20.0 * index for index in range(steps)], [90_000] * steps, sent=sent)
    check = dequeue_rate(make_measured([trace()], queue=queue), VIRTUAL)
    assert check.ok is ok
    # An idle link says nothing about its rate.
    idle = make_queue([20.0 * index for index in range(steps)], [0] * steps, sent=[value // 2 for value in sent])
    assert dequeue_rate(make_measured([trace()], queue=idle), VIRTUAL).ok is None
    assert dequeue_rate(make_measured([trace()]), VIRTUAL).ok is None


def test_the_backlog_stays_within_the_limit_and_one_frame() -> None:
    for peak, ok in ((100_000, True), (101_514, True), (101_515, False)):
        check = peak_backlog(make_measured([trace()], queue=make_queue([0, 20], [0, peak])))
        assert check.ok is ok
        assert str(peak) in check.message
    assert peak_backlog(make_measured([trace()])).ok is None


@pytest.mark.parametrize(("rtt_ms", "ok"), [(40, True), (41.2, True), (39.9, False), (41.5, False), (60, False)])
def test_the_shortest_rtt_is_the_configured_one(rtt_ms: float, ok: bool) -> None:
    check = minimum_rtt(make_measured([trace(rtt_ms)]), trace(rtt_ms), VIRTUAL)
    assert check.ok is ok


def test_a_flow_beside_another_need_not_meet_an_empty_queue() -> None:
    first = trace(40)
    beside = dataclasses.replace(trace(600), flow=make_flow(id=2), start_ns=500_000_000, connected_ns=540_000_000)
    check = minimum_rtt(make_measured([first, beside]), beside, VIRTUAL)
    assert check.ok is None
    assert "may contain queueing" in check.message


@pytest.mark.parametrize(("handshake_us", "ok"), [(40_010, True), (60_000, False), (39_000, False)])
def test_a_flow_that_overfills_the_path_at_once_is_judged_by_its_handshake(handshake_us: int, ok: bool) -> None:
    info = make_info([100.0], min_rtt_us=[handshake_us])
    queued = trace(95, srtt_ms=0)
    check = minimum_rtt(make_measured([queued], info=info), queued, VIRTUAL)
    assert check.ok is ok
    assert ("handshake" in check.message) is ok


def test_a_handshake_that_lasts_longer_than_an_interval_of_readings_is_known() -> None:
    info = make_info([0.0, 30.0, 60.0], min_rtt_us=[MISSING, MISSING, 40_010])
    queued = trace(95, srtt_ms=0)
    check = minimum_rtt(make_measured([queued], info=info), queued, VIRTUAL)
    assert check.ok is True
    assert "of its handshake" in check.message
    never = make_info([0.0, 30.0], min_rtt_us=[MISSING, MISSING])
    assert minimum_rtt(make_measured([queued], info=never), queued, VIRTUAL).ok is False


@pytest.mark.parametrize(("handshake_ms", "ok"), [(40.01, True), (60, False), (39, False)])
def test_the_handshake_is_known_where_timestamps_make_the_kernels_minimum_too_short(
    handshake_ms: float, ok: bool
) -> None:
    """A retransmission's RTT comes from timestamps of whole milliseconds: 39 for a path of 39.9."""
    info = make_info([100.0], min_rtt_us=[39_000])
    queued = trace(95, srtt_ms=handshake_ms)
    check = minimum_rtt(make_measured([queued], info=info), queued, VIRTUAL)
    assert check.ok is ok
    assert ("handshake" in check.message) is ok
    for no_timestamp_us in (38_000, 39_001):
        shorter = make_info([100.0], min_rtt_us=[no_timestamp_us])
        assert minimum_rtt(make_measured([queued], info=shorter), queued, VIRTUAL).ok is False


def test_a_flow_without_acks_has_no_rtt_to_judge() -> None:
    empty = make_trace([], [], [])
    assert minimum_rtt(make_measured([empty]), empty, VIRTUAL).ok is None


def test_a_window_nobody_asked_for_makes_the_run_invalid() -> None:
    info = make_info([0, 1000], busy_time_us=[0, 1_000_000], rwnd_limited_us=[0, 200_000], sndbuf_limited_us=[0, 0])
    checks = {check.name: check for check in limit_checks(make_measured([trace()], info=info), VIRTUAL)}
    assert checks["receive window flow 1"].ok is False
    assert "20.0%" in checks["receive window flow 1"].message
    assert checks["send buffer flow 1"].ok is True


def test_a_window_that_the_profile_makes_small_is_a_finding() -> None:
    info = make_info([0, 1000], busy_time_us=[0, 1_000_000], rwnd_limited_us=[0, 900_000], sndbuf_limited_us=[0, 0])
    plan = path_factory.path_plan()
    small = Operation("sysctl", {"node": "r1", "name": "net.ipv4.tcp_rmem", "value": "4096 65536 65536"})
    large = Operation("sysctl", {"node": "r1", "name": "net.ipv4.tcp_rmem", "value": "4096 131072 268435456"})
    for operation, ok in ((small, True), (large, False)):
        asked = dataclasses.replace(plan, operations=[*plan.operations, operation])
        checks = limit_checks(make_measured([trace()], plan=asked, info=info), VIRTUAL)
        assert checks[0].ok is ok


def test_limits_that_were_not_read_are_not_judged() -> None:
    assert [check.ok for check in limit_checks(make_measured([trace()]), VIRTUAL)] == [None, None]


def test_limits_of_a_group_that_were_not_read_are_not_judged() -> None:
    plan = make_plan()
    grouped = dataclasses.replace(plan, flows=[dataclasses.replace(flow, group="web") for flow in plan.flows])
    checks = limit_checks(make_measured([], plan=grouped), VIRTUAL)
    assert [(check.name, check.ok) for check in checks] == [
        ("receive window group web", None),
        ("send buffer group web", None),
    ]


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
