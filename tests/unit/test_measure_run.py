# SPDX-License-Identifier: Apache-2.0
"""metrics.json of the recorded run, of runs in which something is missing, and ss and iperf3 against tcp_info."""

from __future__ import annotations

import dataclasses
import json
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow as pa
import pytest

from howdah.ingest.run import ingest
from howdah.measure.outside import compare, iperf3_retransmitted, ss_retransmitted
from howdah.measure.row import Sheet
from howdah.measure.run import _rtt_rows, measure
from howdah.measure.sampled import Samples
from howdah.plan.plan import Plan
from howdah.record import table as store
from howdah.record.directory import RunDirectory, read_json
from tests.unit.plan_factory import make_plan
from tests.unit.recorded_run import make_recorded_run, recorded_plan
from tests.unit.trace_factory import make_info, make_trace

RATE = 10_000_000  # what the recording's bottleneck was
BUFFER = 20_000


def metrics_of(run: RunDirectory, plan: Plan) -> Any:
    """metrics.json, made now."""
    measure(run, plan)
    return read_json(run.metrics)


def plan_of_recording(**changes: Any) -> Plan:
    plan = recorded_plan()
    bdp = RATE * 40_000 // 8_000_000
    path = dataclasses.replace(
        plan.path,
        rate_bits_per_second=RATE,
        buffer_bytes=BUFFER,
        bdp_bytes=bdp,
        bdp_packets=bdp // 1514,
        capacity_goodput_bits_per_second=RATE * 1448 / 1514,
    )
    calibration = dataclasses.replace(
        plan.calibration, rate_bits_per_second=RATE, buffer_bytes=BUFFER, bottleneck_node="r", bottleneck_interface="r1"
    )
    flow = dataclasses.replace(plan.flows[0], start_us=60_000, stop_us=550_000, traffic="python")
    plan = dataclasses.replace(plan, path=path, calibration=calibration, flows=[flow], measure_window_us=(0, 550_000))
    return dataclasses.replace(plan, **changes)


def measured(run: RunDirectory, plan: Plan) -> dict[str, dict[str, Any]]:
    ingest(run)
    result = metrics_of(run, plan)
    return {row["metric"]: row for row in result["rows"]}


@pytest.fixture
def run(tmp_path: Path) -> RunDirectory:
    directory = make_recorded_run(tmp_path, plan_of_recording())
    agent = json.loads((directory.raw / "agent.json").read_text())
    # The connection was made at 60.868 ms after the epoch of the recording.
    agent["flows"][0] |= {"start_ns": 60_000_000, "connected_ns": 100_868_000, "end_ns": 700_000_000}
    (directory.raw / "agent.json").write_text(json.dumps(agent))
    return directory


def test_the_recorded_flow_leaves_slow_start_where_the_kernels_text_says(run: RunDirectory) -> None:
    rows = measured(run, plan_of_recording())
    # The sender's first finite ssthresh in trace.txt is 67, at 0.273502 s; the record before is at 0.272291 s.
    assert rows["exit_cwnd_packets"]["value"] == 67
    assert rows["exit_cause"]["value"] == "ack-train"
    assert rows["exit_time_s"]["value"] == pytest.approx(0.272291 - 0.05 - 0.06, abs=1e-6)
    assert rows["min_rtt_us"]["value"] == pytest.approx(40_000, abs=2)
    assert 40_000 < rows["max_rtt_us"]["value"] < 40_000 + BUFFER * 8e6 / RATE + 3000
    assert 0.5 < rows["goodput_bits_per_second"]["value"] / RATE < 1
    assert rows["retransmitted_packets"]["value"] == 23
    assert rows["queue_peak_bytes"]["value"] <= BUFFER


def test_every_row_has_the_columns_of_the_format(run: RunDirectory) -> None:
    names = {
        "run",
        "engine",
        "kernel",
        "algorithm",
        "receiver",
        "flow",
        "repetition",
        "axes",
        "metric",
        "value",
        "unit",
    }
    for row in measured(run, plan_of_recording()).values():
        assert set(row) - {"why"} == names
        assert (row["value"] is None) == ("why" in row)


def test_a_flow_that_never_started_has_reasons_instead_of_values(tmp_path: Path) -> None:
    plan = plan_of_recording()
    ghost = dataclasses.replace(plan.flows[0], id=2, source_port=9, name="ghost", size_bytes=1000)
    plan = dataclasses.replace(plan, flows=[plan.flows[0], ghost])
    rows = [row for row in _rows(make_recorded_run(tmp_path, plan), plan) if row["flow"] == 2]
    values = {row["metric"]: row["value"] for row in rows}
    assert values.pop("retransmitted_packets") is None
    assert set(values.values()) == {None}
    assert {"exit_time_s", "exit_cause", "overshoot_packets", "completion_time_s", "blackout_s"} <= set(values)
    assert any("no ACK" in row["why"] for row in rows)


def _rows(run: RunDirectory, plan: Plan) -> list[dict[str, Any]]:
    ingest(run)
    rows: list[dict[str, Any]] = metrics_of(run, plan)["rows"]
    return rows


def test_without_any_raw_data_there_are_still_rows(tmp_path: Path) -> None:
    run = make_recorded_run(tmp_path, plan_of_recording())
    for path in run.raw.iterdir():
        path.unlink()
    rows = _rows(run, plan_of_recording())
    assert {row["metric"] for row in rows} >= {"exit_time_s", "utilisation", "queue_peak_bytes"}
    assert all(row["value"] is not None or row["why"] for row in rows)


def test_sources_that_disagree_are_reported(run: RunDirectory) -> None:
    path = run.raw / "counters.jsonl"
    path.write_text(path.read_text().replace('"TcpRetransSegs": 23', '"TcpRetransSegs": 3'))
    ingest(run)
    checks = {item["metric"]: item for item in metrics_of(run, plan_of_recording())["cross_checks"]}
    assert not checks["retransmitted_packets"]["agree"]
    assert "more retransmissions than the host" in checks["retransmitted_packets"]["message"]


@pytest.mark.parametrize(
    ("read_ms", "kernel_us", "agree"),
    [
        ((100, 500, 1100), (60_000, 60_000, 40_000), True),  # the queue drains behind the flow's time, and both see it
        ((100, 500, 1100), (60_000, 60_000, 60_000), False),
        ((100, 500, 1300), (60_000, 60_000, 20_000), True),  # behind the last record the path is another one
        ((100, 500), (60_000, 60_000), True),  # nobody asked the kernel again when the queue had drained
    ],
)
def test_the_shortest_rtts_are_those_of_the_same_time(
    read_ms: tuple[float, ...], kernel_us: tuple[int, ...], agree: bool
) -> None:
    """A sender that goes on behind its time, as iperf3 does: RTTs of 60 ms, and of 40 ms from 1 s on."""
    plan = plan_of_recording()
    flow = dataclasses.replace(plan.flows[0], start_us=0, stop_us=600_000)
    times = [0.0, 60, 120, 180, 1000, 1040, 1080, 1120]
    segments = list(range(0, 10 * len(times), 10))
    trace = make_trace(times, segments, [each + 10 for each in segments], flow=flow, stop_ms=600)
    sheet = Sheet({})
    _rtt_rows(sheet, trace, make_info(list(read_ms), min_rtt_us=list(kernel_us)), early_us=0)
    assert [check.agree for check in sheet.cross_checks] == [agree]


def test_marks_are_those_of_the_run_alone(run: RunDirectory) -> None:
    """The queue had marked 5 packets before the first reading; each reading after it finds two more."""
    plan = plan_of_recording()
    marking = dataclasses.replace(plan, path=dataclasses.replace(plan.path, ecn=True))
    ingest(run)
    table = store.read(run, "qdisc")
    column = table.schema.get_field_index("marks_packets")
    marks = pa.array([5 + 2 * place for place in range(len(table))], pa.int64())
    store.write(run, "qdisc", table.set_column(column, table.schema.field(column), marks))
    rows = {row["metric"]: row["value"] for row in metrics_of(run, marking)["rows"]}
    bottleneck = ("r", "r1", plan.calibration.bottleneck_handle)
    readings = [(row["node"], row["interface"], row["handle"]) for row in table.to_pylist()]
    places = [place for place, reading in enumerate(readings) if reading == bottleneck]
    assert rows["bottleneck_marks_packets"] == 2 * (places[-1] - places[0])
    assert "bottleneck_marks_packets" not in measured(run, plan)


@pytest.mark.parametrize(("role", "fair"), [("measured", 0.5), ("background", None)])
def test_fairness_is_that_of_the_measured_flows(run: RunDirectory, role: str, fair: float | None) -> None:
    """The second flow moves nothing: two that are compared share as badly as can be; background is not compared."""
    plan = plan_of_recording()
    other = dataclasses.replace(plan.flows[0], id=2, source_port=9, name="other", role=role)
    row = measured(run, dataclasses.replace(plan, flows=[plan.flows[0], other])).get("jain_index")
    assert (row and row["value"]) == fair


def test_a_transfer_takes_the_time_after_its_handshake(run: RunDirectory) -> None:
    plan = plan_of_recording()
    sized = dataclasses.replace(plan, flows=[dataclasses.replace(plan.flows[0], size_bytes=600_000)])
    rows = measured(run, sized)
    assert rows["completion_time_s"]["value"] == pytest.approx(0.7 - 0.06)
    assert rows["transfer_time_s"]["value"] == pytest.approx(0.7 - 0.100868)
    # iperf3's client waits for its server's word, and nothing says when that came.
    rows = measured(run, dataclasses.replace(sized, flows=[dataclasses.replace(sized.flows[0], traffic="iperf3")]))
    assert (rows["transfer_time_s"]["value"], rows["transfer_time_s"]["why"]) == (
        None,
        "when the flow could send is not known",
    )


def test_a_row_without_value_needs_a_reason() -> None:
    with pytest.raises(ValueError, match="neither a value nor a reason"):
        Sheet({}).add(None, "utilisation", None)


FLOW = make_plan().flows[0]
SS = """\
# left 5000000000
State Recv-Q Send-Q Local Address:Port Peer Address:Port
# s1 7000000000
State Recv-Q Send-Q Local Address:Port Peer Address:Port
ESTAB 0 0 10.1.0.1:40009 10.3.0.1:5001 cubic retrans:0/99 rcv_space:14480
ESTAB 0 272224 10.1.0.1:40001 10.3.0.1:5001 cubic unacked:102 retrans:0/8 rcv_space:14480
# r1 7000000000
ESTAB 0 0 10.3.0.1:5001 10.1.0.1:40001 cubic cwnd:10
"""


def _info(*total: int) -> Samples:
    """One reading a second from the epoch on."""
    times = np.arange(len(total), dtype=np.int64) * 1_000_000_000
    return Samples(times, {"total_retrans_packets": np.array(total, dtype=np.int64)})


@pytest.fixture
def directory(tmp_path: Path) -> RunDirectory:
    directory = RunDirectory(tmp_path)
    directory.raw.mkdir()
    (directory.raw / "ss-end.txt").write_text(SS)
    return directory


def test_the_sender_of_the_flow_is_found(directory: RunDirectory) -> None:
    assert ss_retransmitted(directory.raw / "ss-end.txt", FLOW) == (7_000_000_000, 8)


def test_nothing_printed_is_zero(tmp_path: Path) -> None:
    file = tmp_path / "ss.txt"
    file.write_text(SS.replace("retrans:0/8 ", ""))
    assert ss_retransmitted(file, FLOW) == (7_000_000_000, 0)


@pytest.mark.parametrize(
    ("total", "agree"), [((0, 5, 8, 9), True), ((0, 5, 9, 9), True), ((0, 9, 9, 9), False), ((0, 5, 6, 7), False)]
)
def test_ss_lies_between_the_readings_around_it(directory: RunDirectory, total: tuple[int, ...], agree: bool) -> None:
    sheet = Sheet({})
    compare(sheet, directory, FLOW, _info(*total), epoch_ns=5_000_000_000)
    assert [check.agree for check in sheet.cross_checks] == [agree]
    assert sheet.cross_checks[0].sources["ss"] == 8
    assert bool(sheet.cross_checks[0].message) is not agree


@pytest.mark.parametrize(("counted", "agree"), [(100, True), (102, True), (110, False)])
def test_iperf3_counts_the_same(directory: RunDirectory, counted: int, agree: bool) -> None:
    (directory.raw / "ss-end.txt").unlink()
    (directory.raw / "iperf3").mkdir()
    text = json.dumps({"end": {"sum_sent": {"retransmits": counted}}})
    (directory.raw / "iperf3" / "1-client.json").write_text(text)
    sheet = Sheet({})
    compare(sheet, directory, FLOW, _info(0, 100), epoch_ns=0)
    assert [check.agree for check in sheet.cross_checks] == [agree]


def test_what_cannot_be_read_makes_no_comparison(tmp_path: Path) -> None:
    broken = tmp_path / "1-client.json"
    broken.write_text('{"error": "unable to connect"}')
    assert iperf3_retransmitted(broken) is None
    assert iperf3_retransmitted(tmp_path / "nothing.json") is None
    assert ss_retransmitted(tmp_path / "nothing.txt", FLOW) is None
