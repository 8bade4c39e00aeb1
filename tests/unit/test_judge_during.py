# SPDX-License-Identifier: Apache-2.0
"""Passive checks while the flows run, and the verdict as a whole."""

from __future__ import annotations

import dataclasses
import json
from pathlib import Path
from typing import Any

import pytest

from howdah.ingest.run import ingest
from howdah.judge.check import VIRTUAL
from howdah.judge.during import (
    backlogged_spans,
    dequeue_rate,
    during_checks,
    held_drop_bytes,
    minimum_rtt,
    peak_backlog,
)
from howdah.judge.limits import limit_checks, sending_checks
from howdah.judge.run import judge
from howdah.measure.sampled import Samples
from howdah.measure.trace import FlowTrace
from howdah.plan.path import Hop
from howdah.plan.plan import CalibrationTarget, Plan, Processor
from howdah.receiver import RECEIVERS
from howdah.record.directory import read_json
from howdah.record.verdict import Check, read_verdict
from tests.unit import path_factory
from tests.unit.plan_factory import collecting, make_plan, on_engine
from tests.unit.recorded_run import make_recorded_run, recorded_plan
from tests.unit.test_measure_run import plan_of_recording
from tests.unit.trace_factory import MS, make_flow, make_info, make_measured, make_queue, make_trace

RATE = 20_000_000


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
    check = dequeue_rate(make_measured([trace(40_000)], queue=queue), VIRTUAL)
    rate = step * 8 / 0.02
    message = f"the bottleneck's rate while it had a queue {words}: {rate:.10g} bit/s, expected 20000000 ± 3.228e+05"
    expected = Check("dequeue rate", "during", words == "is as configured", message, RATE, rate, 322_800.0, "bit/s")
    assert check == expected


def test_a_rate_that_was_not_measured_says_why() -> None:
    what = "the bottleneck's rate while it had a queue was not measured: "
    short = "the queue was never long enough to be sure that it did not run empty between two readings"
    for queue, why in ((make_queue([], []), "the queue was not read"), (make_queue([0, 20], [9, 9], [0, 10]), short)):
        check = dequeue_rate(make_measured([trace(40_000)], queue=queue), VIRTUAL)
        assert check == Check("dequeue rate", "during", None, what + why, RATE, None, 0, "bit/s")


@pytest.mark.parametrize(
    ("peak", "ok", "words"), [(101_514, True, ""), (101_515, False, ": the buffer is larger than configured")]
)
def test_a_buffer_holds_its_limit_and_a_frame(peak: int, ok: bool, words: str) -> None:
    message = f"the bottleneck held at most {peak} bytes; its limit is 100000{words}"
    check = peak_backlog(make_measured([trace(40_000)], queue=make_queue([0, 20], [peak, 0])))
    assert check == Check("peak backlog", "during", ok, message, 100_000, peak, 1514, "bytes")
    unread = Check("peak backlog", "during", None, "the queue was not read", 100_000, None, 1514, "bytes")
    assert peak_backlog(make_measured([trace(40_000)])) == unread


@pytest.mark.parametrize(
    ("queue", "frame_bytes"),
    [("fifo", 0), ("red", 0), ("pie", 0), ("codel", 1514), ("fq_codel", 1514), ("cake", 1514)],
)
def test_queues_that_drop_what_they_hold_are_known(queue: str, frame_bytes: int) -> None:
    plan = make_plan()
    assert held_drop_bytes(dataclasses.replace(plan, path=dataclasses.replace(plan.path, queue=queue))) == frame_bytes


def test_every_flow_and_the_queue_are_watched() -> None:
    traces = [trace(40_000), dataclasses.replace(trace(40_000), flow=make_flow(id=2))]
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


# The shortest RTT of a flow on a path of 20 Mbit/s and 40 ms, and what may be in it: to half a microsecond. A frame
# of 1514 bytes takes 605.6 us at 20 Mbit/s and 12.112 us at the sender's interface, and an ACK waits for two. The two
# delays together are exact to 24 us

FRAME_US, INTERFACE_US = 605.6, 12.112
HIGH = 24 + 2 * FRAME_US + 2 * INTERFACE_US
NAME = "minimum RTT flow 1"
TITLE = "flow 1 (bulk)"


def plan(more: dict[str, Any] | None = None, targets: list[CalibrationTarget] | None = None, **path: Any) -> Plan:
    base = make_plan()
    calibration = base.calibration if targets is None else dataclasses.replace(base.calibration, targets=targets)
    return dataclasses.replace(
        base, path=dataclasses.replace(base.path, **path), calibration=calibration, **(more or {})
    )


def trace(rtt_us: float, receiver: str = "linux", **changes: Any) -> FlowTrace:
    """Six ACKs, the first of which has the shortest RTT."""
    times = [rtt_us / 1000 + index for index in range(6)]
    flow = make_flow(receiver_behaviour=receiver)
    return make_trace(
        times, [2 * index for index in range(6)], [10 + 2 * index for index in range(6)], flow=flow, **changes
    )


def judged(of: Plan, found: FlowTrace, info: Samples | None = None, others: list[FlowTrace] | None = None) -> Check:
    return minimum_rtt(make_measured([found, *(others or [])], plan=of, info=info), found, VIRTUAL)


def processor(host: str, packet_ns: int, ack_ns: int) -> Processor:
    return Processor(host, f"{host}-eth0", "none", packet_ns, ack_ns, 0, "one-pass", 20, {})


def target(sender: str, **variation: int) -> CalibrationTarget:
    return CalibrationTarget(sender, "r1", "10.2.0.1", "10.4.0.1", 20_000, 20_000, **{"variation_us": 0, **variation})


@pytest.mark.parametrize(
    ("of", "receiver", "low", "high", "shortest"),
    [
        (plan(), "linux", 24, HIGH, 40_000),
        (plan(sender_interface_bits_per_second=None), "linux", 24, HIGH - 2 * INTERFACE_US, 40_000),
        (plan(reverse_rate_bits_per_second=1_000_000), "linux", 24, HIGH + 12_112, 40_000),
        # The lowest of the rates that the bottleneck ever has: 1211.2 us for a frame.
        (plan(rate_steps=[[1, 10_000_000], [2, 40_000_000]]), "linux", 24, HIGH + 2 * FRAME_US, 40_000),
        (
            plan(
                hops=[
                    Hop("left", "l1", 10_000_000, 9, "fifo", "before"),
                    Hop("left", "l2", 5_000_000, 9, "fifo", "after"),
                ]
            ),
            "linux",
            24,
            HIGH + 2 * 1211.2 + 2 * 2422.4,
            40_000,
        ),
        (plan(tick_us=1_000), "linux", 24, HIGH + 2_000, 40_000),
        (plan(early_us=500), "linux", 524, HIGH, 39_500),
        (plan(least_added_us=-1_000), "linux", 1_024, HIGH, 39_000),
        (
            plan(targets=[target("s2", variation_us=9), target("s1", variation_us=300, variation_reverse_us=200)]),
            "linux",
            24,
            HIGH + 500,
            40_000,
        ),
        (
            plan(
                {"processors": [processor("s1", 2_000, 1_000), processor("r1", 500, 0), processor("s2", 9_000, 9_000)]}
            ),
            "linux",
            24,
            HIGH + 2 * 3.5,
            40_000,
        ),
        # Eight segments for one ACK, or 40 ms.
        (plan(), "stretch-ack", 24, 24 + 8 * (FRAME_US + INTERFACE_US) + 40_000, 40_000),
    ],
)
def test_what_may_be_in_the_shortest_rtt(of: Plan, receiver: str, low: int, high: float, shortest: int) -> None:
    assert RECEIVERS["stretch-ack"].segments_per_ack == 8
    within = f"expected {shortest} to {40_000 + high:.0f} us"
    for least, ok in ((40_000 - low, True), (40_000 - low - 0.5, False)):
        check = judged(of, trace(least, receiver))
        words = f"a shortest RTT of {least:.10g} us, {within}"
        words = words if ok else f"an RTT of {least:.10g} us, shorter than the path's 40000 us"
        assert (check.ok, check.message) == (ok, f"{TITLE} saw {words}")
        assert (check.stage, check.expected, check.measured, check.unit) == ("during", 40_000, least, "us")
        assert check.tolerance == pytest.approx(high if ok else low)
    for least, ok in ((40_000 + high - 0.5, True), (40_000 + high + 0.5, False)):
        check = judged(of, trace(least, receiver))
        told = f"{check.measured:.10g} us"
        words = f"a shortest RTT of {told}, {within}" if ok else f"no RTT below {told}, {within}: something delays it"
        assert (check.ok, check.message) == (ok, f"{TITLE} saw {words}")
        assert (check.expected, check.unit) == (40_000, "us")
        assert check.measured == pytest.approx(least, abs=0.01)
        assert check.tolerance == pytest.approx(high)


def test_the_delay_of_the_flow_itself_counts() -> None:
    """60 ms: 20 us and a ten thousandth are 26 us."""
    flow = make_flow(rtt_us=60_000)
    for least, ok in ((59_974, True), (59_973, False)):
        found = dataclasses.replace(trace(least), flow=flow)
        assert (judged(plan(), found).ok, judged(plan(), found).expected) == (ok, 60_000)


def test_without_an_ack_there_is_no_rtt() -> None:
    message = f"{TITLE} has no RTT: no ACK of it can be matched"
    expected = Check(NAME, "during", None, message, 40_000, unit="us")
    assert judged(plan(), make_trace([], [], [])) == expected


@pytest.mark.parametrize(
    ("handshake_us", "ok"),
    [(39_976, True), (41_259, True), (41_260, False), (39_975, False)],  # 40 000 - 24 and + 1259.424 us
)
def test_a_handshake_may_take_as_long_as_any_other_round_trip(handshake_us: int, ok: bool) -> None:
    info = make_info([100.0], min_rtt_us=[handshake_us])
    check = judged(plan(), trace(95_000), info)
    if ok:
        message = f"{TITLE} saw a shortest RTT of {handshake_us} us, of its handshake, expected 40000 to 41259 us"
        assert (check.ok, check.message, check.measured) == (True, message, handshake_us)
    else:
        message = f"{TITLE} saw no RTT below 95000 us, expected 40000 to 41259 us: something delays it"
        assert (check.ok, check.message, check.measured) == (False, message, 95_000)
    assert (check.name, check.stage, check.expected, check.unit) == (NAME, "during", 40_000, "us")
    assert check.tolerance == pytest.approx(HIGH)


@pytest.mark.parametrize(("path", "least_us"), [({"early_us": 500}, 39_476), ({"least_added_us": -1_000}, 38_976)])
def test_a_handshake_may_be_as_short_as_any_other_round_trip(path: dict[str, Any], least_us: int) -> None:
    """What makes the path shorter counts once: 40 000 - 24 - 500 us, and - 1000 us."""
    for handshake_us, ok in ((least_us, True), (least_us - 1, False)):
        assert judged(plan(**path), trace(95_000), make_info([100.0], min_rtt_us=[handshake_us])).ok is ok


@pytest.mark.parametrize(
    ("least_us", "srtt_ms", "una", "ok"),
    [
        # A minimum of whole milliseconds, less than one below 39 976 us: the first record has the handshake's.
        (39_000, 40.01, 0, True),
        (38_000, 40.01, 0, False),
        (39_001, 40.01, 0, False),
        (39_000, 40.01, 1, False),  # a record after data were acknowledged
        (39_000, 0, 0, False),
        (40_000, 60, 0, True),  # the kernel's minimum is right
    ],
)
def test_a_minimum_by_timestamps_is_not_the_handshakes(least_us: int, srtt_ms: float, una: int, ok: bool) -> None:
    times = [95.0 + index for index in range(6)]
    found = make_trace(times, [una, *range(2, 12, 2)], [10 + 2 * index for index in range(6)], srtt_ms=srtt_ms)
    found.srtt_ns[1:] += MS
    check = judged(plan(), found, make_info([100.0], min_rtt_us=[least_us]))
    assert check.ok is ok
    assert check.measured == (95_000 if not ok else 40_010 if least_us == 39_000 else 40_000)


def test_of_a_model_the_handshake_is_the_time_to_connect() -> None:
    model = on_engine(plan(), "ns2")
    found = trace(95_000, start_ms=10, connected_ms=50.0019)
    check = judged(model, found)
    assert (check.ok, check.measured) == (True, 40_001), "whole microseconds, from the start"
    never = dataclasses.replace(found, connected_ns=None)
    assert (judged(model, never).ok, judged(model, never).measured) == (None, None), "without a start no RTT is known"


@pytest.mark.parametrize(
    ("start_ms", "stop_ms", "alone"), [(0, 501, False), (500, 900, False), (0, 500, True), (501, 900, True)]
)
def test_only_a_flow_that_starts_alone_meets_an_empty_queue(start_ms: int, stop_ms: int, alone: bool) -> None:
    """It starts at 500 ms, and its first ACK comes 95 ms later."""
    other = make_trace([], [], [], flow=make_flow(id=2), start_ms=start_ms, stop_ms=stop_ms)
    mine = dataclasses.replace(trace(595_000), start_ns=500 * MS, connected_ns=500 * MS)
    check = judged(plan(), mine, others=[other])
    least = check.measured
    assert check.ok is (False if alone else None)
    if not alone:
        message = f"{TITLE} started beside another one; its shortest RTT of {least:.10g} us may contain queueing"
        assert check.message == message
        assert (check.expected, check.unit) == (40_000, "us")
        assert check.tolerance == pytest.approx(HIGH)
