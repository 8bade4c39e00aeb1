# SPDX-License-Identifier: Apache-2.0
"""Samples of tables: which instant sees which record."""

from __future__ import annotations

import dataclasses
from pathlib import Path

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq
import pytest

from howdah.record.delivery import carried_bytes
from howdah.record.result import Run, load_experiment
from howdah.record.sample import Float64, Series, _groups, sample_run, step_ms
from howdah.record.schema import TABLES
from tests.experiment_factory import Scenario, make_experiment

MSS = 1448
CAPACITY = Scenario().rate_bits_per_second * MSS / 1514 / 8000  # bytes in a millisecond


@pytest.fixture
def run(tmp_path: Path) -> Run:
    scenario = Scenario(algorithms=("reno",), repetitions=1, flows=1, duration_s=1.0)
    return load_experiment(make_experiment(tmp_path, scenario)).runs[0]


def replace_table(run: Run, name: str, rows: list[dict[str, object]]) -> None:
    pq.write_table(pa.Table.from_pylist(rows, schema=TABLES[name]), run.directory.table(name))


def series(run: Run, metric: str) -> list[Series]:
    return [each for each in sample_run(run) if each.metric == metric]


def probe(time_ms: float, cwnd: int, ssthresh: int | None, una: int) -> dict[str, object]:
    return {
        "flow": 1,
        "time_ns": int(time_ms * 1e6),
        "snd_nxt_bytes": una + 1448 * cwnd,
        "snd_una_bytes": una,
        "cwnd_packets": cwnd,
        "ssthresh_packets": ssthresh,
        "srtt_us": 100_000,
    }


def reading(time_ms: int, flow: int | None, min_rtt_us: int) -> dict[str, object]:
    return {"flow": flow, "end": "sender", "time_ns": time_ms * 1_000_000, "min_rtt_us": min_rtt_us}


def test_of_very_many_flows_those_are_sampled_that_pages_show(run: Run, monkeypatch: pytest.MonkeyPatch) -> None:
    """The first three connections of a group; where there are few flows, all."""
    assert run.plan is not None
    flows = [dataclasses.replace(run.plan.flows[0], id=number, group="web") for number in range(1, 7)]
    many = dataclasses.replace(run, plan=dataclasses.replace(run.plan, flows=flows))
    rows = [{**probe(100 + 10 * step, 10, None, 1448 * step), "flow": flow.id} for step in range(3) for flow in flows]
    replace_table(run, "tcp_probe", rows)
    replace_table(run, "tcp_info", [])

    def sampled() -> list[str]:
        return sorted(each.label("flow") for each in series(many, "howdah_flow_cwnd_packets"))

    assert sampled() == ["1", "2", "3", "4", "5", "6"]
    monkeypatch.setattr("howdah.record.sample.MANY_FLOWS", 5)
    assert sampled() == ["1", "2", "3"]


def test_flows_are_told_apart_whatever_the_order_and_the_pieces_of_their_rows() -> None:
    """As tables of many flows have them: by time, and in several pieces."""
    times = ((100, 200), (300, 250))
    rows = [[reading(ms, flow, 10 * flow + ms) for ms in some for flow in (12, 3)] for some in times]
    rows[1].append(reading(260, None, 1))
    pieces = [pa.Table.from_pylist(some, schema=TABLES["tcp_info"]) for some in rows]
    whole = pa.concat_tables(pieces)
    assert whole.column("end").num_chunks == 2
    found = dict(_groups(whole, ["flow", "end"]))
    assert list(found) == [("12", "sender"), ("3", "sender")], "in the order of the texts"
    for (flow, _), part in found.items():
        assert part["time_ns"].to_pylist() == [ms * 1_000_000 for ms in (100, 200, 250, 300)]
        assert part["min_rtt_us"].to_pylist() == [10 * int(flow) + ms for ms in (100, 200, 250, 300)]
    assert list(_groups(whole.slice(0, 0), ["flow", "end"])) == []
    assert list(_groups(pieces[1].slice(4), ["flow", "end"])) == [], "rows without a flow belong to none"


def test_an_instant_sees_the_state_after_the_last_ack_which_is_in_the_next_record(run: Run) -> None:
    replace_table(run, "tcp_probe", [probe(95, 10, None, 0), probe(105, 11, None, 1448), probe(125, 12, 12, 2896)])
    (cwnd,) = series(run, "howdah_flow_cwnd_packets")
    assert cwnd.time_ms.tolist() == [100, 110, 120]
    assert cwnd.value.tolist() == [11, 12, 12]
    (ssthresh,) = series(run, "howdah_flow_ssthresh_packets")
    assert (ssthresh.time_ms.tolist(), ssthresh.value.tolist()) == ([110, 120], [12, 12])
    (acked,) = series(run, "howdah_flow_acked_bytes_total")
    assert acked.value.tolist() == [1448, 2896, 2896]


def info(time_ms: float, acked: int, sacked: int | None) -> dict[str, object]:
    reading = {"bytes_acked_bytes": acked, "sacked_packets": sacked, "cwnd_packets": 10, "rtt_us": 100_000}
    return {"flow": 1, "end": "sender", "time_ns": int(time_ms * 1e6), **reading}


def at_receiver(time_ms: float, segments: int | None, in_order: int) -> dict[str, object]:
    reading = {"data_segs_in_packets": segments, "bytes_received_bytes": in_order * MSS}
    return {"flow": 1, "end": "receiver", "time_ns": int(time_ms * 1e6), **reading}


def rates(delivered: Series) -> Float64:
    """In shares of what the path carries."""
    return np.diff(delivered.value) / np.diff(delivered.time_ms) / CAPACITY


def test_segments_behind_a_hole_are_delivered_when_they_arrive(run: Run) -> None:
    """100 segments arrive beyond a hole in 500 ms; the segment that fills it lets all be passed on and acknowledged."""
    una = [0, MSS, MSS, 102 * MSS, 102 * MSS]
    replace_table(
        run, "tcp_probe", [probe(at, 10, None, each) for at, each in zip([0, 10, 520, 560, 600], una, strict=True)]
    )
    readings = [at_receiver(0, 1, 1), at_receiver(500, 101, 1), at_receiver(510, 102, 102), at_receiver(610, 102, 102)]
    replace_table(run, "tcp_info", readings)
    (acked,) = series(run, "howdah_flow_acked_bytes_total")
    (delivered,) = series(run, "howdah_flow_delivered_bytes_total")
    assert max(rates(acked)) > 6
    assert delivered.label("role") == "receiver"
    assert max(rates(delivered)) <= 1 + 1e-9
    assert delivered.value[delivered.time_ms == 250] / MSS == pytest.approx([51], abs=1)
    assert delivered.value[-1] == 102 * MSS


def test_a_segment_that_comes_twice_is_delivered_once(run: Run) -> None:
    replace_table(run, "tcp_probe", [])
    readings = [at_receiver(0, 0, 0), at_receiver(100, 30, 30), at_receiver(200, 50, 30), at_receiver(300, 80, 60)]
    replace_table(run, "tcp_info", readings)
    (delivered,) = series(run, "howdah_flow_delivered_bytes_total")
    assert delivered.value[delivered.time_ms == 200] == 30 * MSS
    assert delivered.value[-1] == 60 * MSS


@pytest.mark.parametrize("sacked", [0, None, 60], ids=["none", "unknown", "some"])
def test_where_no_receiver_counts_what_an_ack_proves_came_no_faster_than_the_path_carries(
    run: Run, sacked: int | None
) -> None:
    una = [0, MSS, MSS, 102 * MSS, 103 * MSS]
    replace_table(
        run, "tcp_probe", [probe(at, 10, None, each) for at, each in zip([0, 10, 520, 700, 800], una, strict=True)]
    )
    replace_table(run, "tcp_info", [info(0, MSS, 0), info(400, MSS, sacked), info(800, 103 * MSS, 0)])
    (delivered,) = series(run, "howdah_flow_delivered_bytes_total")
    assert max(rates(delivered)) <= 1 + 1e-9
    assert delivered.value[-1] == 103 * MSS
    assert delivered.value[delivered.time_ms == 520] == 102 * MSS
    if sacked:
        assert delivered.value[delivered.time_ms == 400] >= (1 + sacked) * MSS


def test_more_arrives_where_the_schedule_raises_the_rate(run: Run) -> None:
    assert run.plan is not None
    (flow,) = run.plan.flows
    rate = run.plan.path.rate_bits_per_second
    path = dataclasses.replace(run.plan.path, rate_steps=[[500_000, 3 * rate]])
    carried = carried_bytes(dataclasses.replace(run.plan, path=path), flow, np.array([0, 400, 600, 700]))
    assert (np.diff(carried) / CAPACITY).tolist() == pytest.approx([400, 100 + 300, 300])


def test_a_flow_that_only_tcp_info_saw_has_a_delivery_too(run: Run) -> None:
    replace_table(run, "tcp_probe", [])
    replace_table(run, "tcp_info", [info(0, 0, 0), info(100, MSS, 9), info(200, MSS, 19)])
    (delivered,) = series(run, "howdah_flow_delivered_bytes_total")
    assert delivered.value[[0, 10, 20]].tolist() == [0, 10 * MSS, 20 * MSS]


def test_records_of_the_calibration_before_time_zero_are_not_published(run: Run) -> None:
    replace_table(run, "tcp_probe", [probe(-50, 10, None, 0), probe(5, 11, None, 0), probe(25, 12, None, 0)])
    (cwnd,) = series(run, "howdah_flow_cwnd_packets")
    assert cwnd.time_ms.tolist() == [0, 10, 20]


def test_a_queue_keeps_its_last_reading_but_not_for_ever(run: Run) -> None:
    rows = [
        {
            "node": "left",
            "interface": "left-eth0",
            "handle": "10:",
            "kind": "bfifo",
            "time_ns": int(time * 1e6),
            "backlog_bytes": backlog,
        }
        for time, backlog in ((0, 1), (10, 2), (20, 3), (200, 4))
    ]
    replace_table(run, "qdisc", rows)
    (backlog,) = series(run, "howdah_queue_backlog_bytes")
    assert backlog.label("role") == "bottleneck"
    assert backlog.time_ms.tolist() == [0, 10, 20, 30, 40, 200]
    assert backlog.value.tolist() == [1, 2, 3, 3, 3, 4]


def test_without_tcp_probe_the_windows_come_from_tcp_info(run: Run) -> None:
    run.directory.table("tcp_probe").unlink()
    (cwnd,) = series(run, "howdah_flow_cwnd_packets")
    assert np.unique(np.diff(cwnd.time_ms)).tolist() == [100]


def test_a_run_without_tables_has_no_series(run: Run) -> None:
    for name in TABLES:
        run.directory.table(name).unlink()
    assert list(sample_run(run)) == []


@pytest.mark.parametrize(("seconds", "step"), [(5, 10), (62, 20), (300, 100), (3600, 2000)])
def test_the_interval_grows_with_the_run(run: Run, seconds: int, step: int) -> None:
    assert run.plan is not None
    assert step_ms(dataclasses.replace(run.plan, duration_us=seconds * 1_000_000)) == step


def test_an_unlimited_pacing_rate_is_no_value(run: Run) -> None:
    rows = [
        {"flow": 1, "end": "sender", "time_ns": at * 100_000_000, "pacing_rate_bytes_per_second": rate}
        for at, rate in enumerate((2**63 - 1, 1_000_000, 2**63 - 1))
    ]
    replace_table(run, "tcp_info", rows)
    (pacing,) = series(run, "howdah_flow_pacing_rate_bytes_per_second")
    assert (pacing.time_ms.tolist(), pacing.value.tolist()) == ([100], [1_000_000])
