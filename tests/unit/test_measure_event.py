# SPDX-License-Identifier: Apache-2.0
"""What a module reported: the exit that counts, its comparison with the trace, start-ups that a detector ended."""

from __future__ import annotations

import dataclasses
import math
from dataclasses import replace
from typing import Any

import pyarrow as pa
import pytest

from howdah.measure.event import SlowStartEvent, count, reported_cause, reported_exit
from howdah.measure.exit_rows import detector_rows, exit_rows, find_startup
from howdah.measure.measured import Measured
from howdah.measure.row import Sheet
from howdah.measure.sampled import Counters, Samples
from howdah.measure.trace import FlowTrace
from howdah.plan.plan import Flow
from howdah.record.metrics import CrossCheck, MetricRow
from howdah.record.schema import REASONS, reason
from tests.experiment_factory import Scenario, make_plan
from tests.unit.event_factory import told
from tests.unit.trace_factory import make_flow, make_measured, make_trace

INF = math.inf
FLOW = make_flow(kernel_algorithm="hystartpp_reno")


def trace_of(cwnd: list[int], ssthresh: list[float]) -> FlowTrace:
    """Records at 40, 41, 42 … ms."""
    count_ = len(cwnd)
    return make_trace(
        [40.0 + number for number in range(count_)],
        una=[10 * number for number in range(count_)],
        nxt=[10 * number + 20 for number in range(count_)],
        cwnd=cwnd,
        ssthresh=ssthresh,
        flow=FLOW,
    )


NONE = trace_of([], [])
DELAY = trace_of([10, 14, 16, 17, 17], [INF, INF, INF, 16, 16])  # the ACK at 42 ms


def sheet_of(events: list[SlowStartEvent], trace: FlowTrace = DELAY) -> Sheet:
    data = make_measured([trace], events={1: events})
    data = dataclasses.replace(data, plan=dataclasses.replace(data.plan, required_modules=["ss_hystartpp"]))
    sheet = Sheet({})
    exit_rows(sheet, data, trace, find_startup(data, trace))
    return sheet


def values(sheet: Sheet) -> dict[str, Any]:
    return {row.metric: row.value for row in sheet.rows}


def check(sheet: Sheet, metric: str) -> CrossCheck:
    (found,) = [item for item in sheet.cross_checks if item.metric == metric]
    return found


def test_the_first_exit_counts() -> None:
    first, second = told(42, "exit", "delay"), told(900, "exit", "initial-ssthresh")
    assert reported_exit([told(41, "phase", "delay"), first, second], NONE) is first
    assert reported_exit([told(41, "phase", "delay")], NONE) is None


def test_an_estimate_that_raises_the_threshold_takes_an_exit_back() -> None:
    early = told(42, "exit", "initial-ssthresh", 32)
    raised = told(43, "estimate", "rate-estimate", 33, ssthresh_packets=60)
    last = told(50, "exit", "initial-ssthresh", 60)
    assert reported_exit([early, raised, last], NONE) is last
    same = told(43, "estimate", "rate-estimate", 33, ssthresh_packets=32)
    assert reported_exit([early, same, last], NONE) is early


def test_the_last_raise_that_the_window_reached_ends_a_startup_whose_exit_is_told_once() -> None:
    first = told(41, "exit", "rate-estimate", 32)
    raises = [told(42, "estimate", "rate-estimate", 33, ssthresh_packets=50), told(44, "estimate", "rate-estimate", 60)]
    reached = trace_of([20, 32, 33, 50, 60, 60], [32, 32, 50, 50, 60, 60])
    assert reported_exit([first, *raises], reached) is raises[1]
    below = trace_of([20, 32, 33, 50, 51, 52], [32, 32, 50, 50, 99, 99])
    assert reported_exit([first, *raises], below) is None


def test_a_threshold_raised_below_the_window_changes_nothing() -> None:
    """Over cubic the window has left the threshold behind; the estimate goes on rising."""
    first = told(41, "exit", "rate-estimate", 32)
    below = told(44, "estimate", "rate-estimate", 60, ssthresh_packets=50)
    assert reported_exit([first, below], NONE) is first


def test_an_exit_before_the_first_record_agrees_with_it() -> None:
    """A large initial window that ends slow start when the connection is made."""
    sheet = sheet_of([told(1, "exit", "initial-ssthresh", 44)], trace_of([44, 45, 45], [44, 44, 44]))
    assert check(sheet, "exit_time_s").agree
    assert check(sheet, "exit_cwnd_packets").agree


def test_what_is_estimated_after_the_window_was_cut_is_no_startup() -> None:
    first = told(41, "exit", "rate-estimate", 32)
    again = told(44, "estimate", "rate-estimate", 30, ssthresh_packets=90)
    cut = trace_of([20, 32, 33, 20, 30, 60], [32, 32, 32, 16, 90, 90])
    assert reported_exit([first, again], cut) is first


def test_an_estimate_does_not_undo_a_loss() -> None:
    loss = told(42, "exit", "loss", 80, ssthresh_packets=40)
    assert reported_exit([loss, told(60, "estimate", "rate-estimate", 40, ssthresh_packets=70)], NONE) is loss


def test_a_spurious_loss_is_taken_back_when_the_trace_shows_slow_start_again() -> None:
    loss = told(41, "exit", "rto", 40, ssthresh_packets=20)
    undone = told(42, "resume", "spurious", 40, ssthresh_packets=20)
    last = told(44, "exit", "delay", 60)
    again = trace_of([40, 40, 1, 40, 50, 60], [INF, INF, 20, INF, INF, 60])
    assert reported_exit([loss, undone, last], again) is last
    # Undone in congestion avoidance, much later: the window is above its threshold before and after.
    after = trace_of([40, 40, 1, 40, 41, 42], [INF, INF, 20, 20, 30, 30])
    assert reported_exit([loss, undone], after) is loss


def test_css_that_resumes_is_no_exit() -> None:
    events = [told(41, "phase", "delay"), told(42, "resume", "delay"), told(43, "exit", "css-rounds")]
    assert reported_exit(events, DELAY) is events[2]
    assert (count(events, "phase"), count(events, "resume")) == (1, 1)


def test_a_threshold_from_an_estimate_has_the_estimates_cause() -> None:
    pair = told(40, "estimate", "packet-pair", 12, ssthresh_packets=64)
    reached = told(45, "exit", "initial-ssthresh", 64)
    assert reported_cause([pair, reached], reached) == "packet-pair"
    assert reported_cause([reached], reached) == "initial-ssthresh"
    other = dataclasses.replace(pair, ssthresh_packets=50)
    assert reported_cause([other, reached], reached) == "initial-ssthresh"


def test_the_modules_exit_is_the_measure_and_the_trace_agrees() -> None:
    sheet = sheet_of([told(41, "phase", "delay"), told(42, "exit", "css-rounds", 17, quantity=5, threshold=5)])
    found = values(sheet)
    assert (found["exit_time_s"], found["exit_cwnd_packets"], found["exit_cause"]) == (0.042, 17, "css-rounds")
    assert (found["exit_quantity"], found["exit_threshold"]) == (5, 5)
    assert (found["exits"], found["phases"], found["resumes"], found["estimates"]) == (1, 1, 0, 0)
    assert check(sheet, "exit_time_s").agree
    assert check(sheet, "exit_cwnd_packets").agree


@pytest.mark.parametrize(
    ("event", "metric", "words"),
    [
        (told(50, "exit", "delay", 17), "exit_time_s", "another ACK"),
        (told(42, "exit", "delay", 90), "exit_cwnd_packets", "not between"),
        (told(42, "exit", "loss", 17), "exit_cause", "different causes"),
        (told(41, "phase", "delay", 17), "exit_time_s", "only one"),
    ],
)
def test_a_module_that_says_otherwise_is_reported(event: SlowStartEvent, metric: str, words: str) -> None:
    found = check(sheet_of([event]), metric)
    assert not found.agree
    assert words in found.message


def test_an_exit_the_trace_does_not_show_is_reported() -> None:
    sheet = sheet_of([told(42, "exit", "delay", 16)], trace_of([10, 14, 16], [INF, INF, INF]))
    assert check(sheet, "exit_time_s").sources == {"module": 0.042, "tcp_probe": None}
    assert not check(sheet, "exit_time_s").agree


def test_a_module_that_tells_nothing_leaves_the_exit_to_the_trace() -> None:
    sheet = sheet_of([])
    found = values(sheet)
    assert (found["exit_time_s"], found["exits"], found["exit_quantity"]) == (0.042, 0, None)
    assert [row.why for row in sheet.rows if row.metric == "exit_quantity"] == ["the module reported no exit"]
    assert not check(sheet, "exit_time_s").agree


def test_without_any_trace_the_modules_word_is_all_there_is() -> None:
    found = values(sheet_of([told(42, "exit", "delay", 16, round=7)], NONE))
    assert (found["exit_time_s"], found["exit_cwnd_packets"], found["exit_round"]) == (0.042, 16, 7)


def test_a_flow_without_a_plug_in_has_no_rows_of_events() -> None:
    trace = dataclasses.replace(DELAY, flow=make_flow(kernel_algorithm="cubic"))
    sheet = Sheet({})
    data = make_measured([trace])
    exit_rows(sheet, data, trace, find_startup(data, trace))
    assert not {"exits", "exit_quantity"} & set(values(sheet))
    assert sheet.cross_checks == []


def test_numbers_have_the_units_of_their_reason() -> None:
    assert reason("delivery-rate").quantity(347) == 0.347
    assert (reason("queue-estimate").quantity(1500), reason("queue-estimate").unit) == (1.5, "packets")
    pair = reason("packet-pair")
    assert (pair.quantity(98_000), pair.unit, pair.threshold(3), pair.threshold_unit) == (98e6, "bit/s", 3, "samples")
    assert reason("loss").threshold(0) is None
    assert (reason("unknown-40").quantity(7), reason("unknown-40").threshold(8)) == (7, 8)
    assert all(reason(name).words not in ("", name) for name in REASONS)


TRAIN, DELAY_DETECTOR = "TcpExtTCPHystartTrainDetect", "TcpExtTCPHystartDelayDetect"


def counters(**grown: int) -> Counters:
    """``s1_train=2``: the counter of the host grows from 5 to 7."""
    names = {"train": TRAIN, "delay": DELAY_DETECTOR}
    rows: list[dict[str, Any]] = []
    for key, value in grown.items():
        host, name = key.split("_")
        row = {"node": host, "source": "nstat", "name": names[name]}
        rows += [{**row, "time_ns": 0, "value": 5}, {**row, "time_ns": 10**9, "value": 5 + value}]
    columns = {name: [row[name] for row in rows] for name in ("node", "source", "name", "time_ns", "value")}
    kinds = {"time_ns": pa.int64(), "value": pa.int64()}
    return Counters(pa.table({name: pa.array(each, kinds.get(name, pa.string())) for name, each in columns.items()}))


def row_of(
    algorithm: str, found: Counters, events: dict[int, list[Any]] | None = None, **changes: Any
) -> MetricRow | None:
    plan = make_plan(Scenario(flows=2), algorithm, 0, {})
    flows: list[Flow] = [plan.flows[0], replace(plan.flows[1], **changes)]
    plan = replace(plan, flows=flows)
    none = Samples.__new__(Samples)
    data = Measured(plan, [], {}, {}, none, found, pa.table({}), events=events or {})
    sheet = Sheet({})
    detector_rows(sheet, data)
    return sheet.rows[0] if sheet.rows else None


def test_counters_of_every_sender_are_added() -> None:
    row = row_of("cubic", counters(s1_train=2, s1_delay=0, s2_train=0, s2_delay=1))
    assert row is not None
    assert row.value == 3


def test_the_hosts_of_background_flows_are_not_counted() -> None:
    row = row_of("cubic", counters(s1_train=0, s1_delay=0, s2_train=4, s2_delay=0), role="background")
    assert row is not None
    assert row.value == 0


def test_a_kernel_without_the_counters_says_so() -> None:
    row = row_of("cubic", counters())
    assert row is not None
    assert row.value is None
    assert "counters" in str(row.why)


@pytest.mark.parametrize("algorithm", ["reno", "cubic-no-hystart", "bbr", "mine"])
def test_what_has_no_detector_has_no_row(algorithm: str) -> None:
    assert row_of(algorithm, counters(s1_train=2, s1_delay=0)) is None


def test_a_plug_in_counts_by_the_flows_that_its_reason_ended() -> None:
    events = {1: [told(10, "phase", "delivery-rate"), told(20, "exit", "loss")], 2: [told(20, "exit", "loss")]}
    row = row_of("search", counters(), events)
    assert row is not None
    assert row.value == 1, "SEARCH decided, whatever ended its drain"
