# SPDX-License-Identifier: Apache-2.0
"""Samples of tables, runs as OpenMetrics text, and names of metrics that the documentation lists."""

from __future__ import annotations

import dataclasses
import re
import subprocess
from pathlib import Path

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq
import pytest

from howdah.publish.metric import INFO, PATH, SERIES, MetricSamples
from howdah.publish.openmetrics import families, openmetrics, run_labels, start_ms, summary_metric
from howdah.publish.server import matchers
from howdah.record.delivery import carried_bytes
from howdah.record.result import Experiment, Run, load_experiment
from howdah.record.sample import Float64, Series, _groups, sample_run, step_ms
from howdah.record.schema import TABLES
from tests.experiment_factory import Scenario, make_experiment
from tests.prometheus_fixture import exposition, prometheus_or_skip

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


_SAMPLE = re.compile(r"^(?P<name>[a-z0-9_]+)\{(?P<labels>.*)\} (?P<value>\S+) (?P<time>\d+\.\d{3})$")


@pytest.fixture(scope="module")
def experiment(tmp_path_factory: pytest.TempPathFactory) -> Experiment:
    scenario = Scenario(duration_s=3.0, second_flow_s=1.0, invalid=(("reno", 1),), failed=(("cubic", 1),))
    return load_experiment(make_experiment(tmp_path_factory.mktemp("runs"), scenario))


def test_every_line_is_a_comment_or_a_sample_and_the_end_is_marked(experiment: Experiment) -> None:
    lines = "".join(openmetrics(families(experiment.runs))).splitlines()
    assert lines[-1] == "# EOF"
    for line in lines[:-1]:
        assert line.startswith(("# HELP ", "# TYPE ", "# UNIT ")) or _SAMPLE.match(line), line


def test_times_are_host_start_plus_virtual_offset(experiment: Experiment) -> None:
    run = experiment.runs[0]
    assert run.plan is not None
    found = {metric.name: samples for metric, samples in families([run]).items()}
    cwnd = next(s for s in found["howdah_flow_cwnd_packets"] if s.labels["flow"] == "flow2")
    assert cwnd.labels["number"] == "2"
    start = start_ms(run)
    assert start == 1_748_779_200_000
    assert cwnd.time_ms[0] >= start + 1000 + run.plan.path.rtt_us / 1000
    assert cwnd.time_ms[-1] <= start + 3000
    assert {b - a for a, b in zip(cwnd.time_ms, cwnd.time_ms[1:], strict=False)} == {10}


def test_label_sets_are_unique_and_hold_no_addresses_or_ports(experiment: Experiment) -> None:
    for metric, samples in families(experiment.runs).items():
        sets = [tuple(sorted(each.labels.items())) for each in samples]
        assert len(sets) == len(set(sets)), metric.name
        for each in samples:
            assert not {"address", "port", "saddr", "daddr", "sport", "dport"} & set(each.labels)
            assert not any(value.startswith("10.") for value in each.labels.values())
            assert len(each.labels) <= 13


def test_the_name_of_a_run_is_a_label_of_summaries_only(experiment: Experiment) -> None:
    for metric, samples in families(experiment.runs).items():
        single = all(len(each.time_ms) == 1 for each in samples)
        assert all(("run" in each.labels) == single for each in samples), metric.name


def test_a_failed_run_is_published_with_its_status_and_nothing_else(experiment: Experiment) -> None:
    failed = next(run for run in experiment.runs if run.status == "failed")
    found = families([failed])
    (info,) = (samples for metric, samples in found.items() if metric.name == "howdah_run_info")
    assert info[0].labels["verdict"] == "failed"
    assert not any(metric.name.startswith("howdah_flow_") for metric in found)


def test_hostile_label_values_are_escaped() -> None:
    metric = next(iter(families([]) or {}), None)
    assert metric is None
    from howdah.publish.metric import INFO

    nasty = 'a"b\\c\nd} 1 2\n# EOF'
    text = "".join(openmetrics({INFO[0]: [MetricSamples({"run": nasty}, [0], [1.0])]}))
    assert 'run="a\\"b\\\\c\\nd} 1 2\\n# EOF"' in text
    assert text.count("\n# EOF") == 1


def test_sweep_points_tell_runs_apart(tmp_path: Path) -> None:
    axes = ({"path.rate": 10_000_000}, {"path.rate": 20_000_000})
    scenario = Scenario(algorithms=("reno",), repetitions=1, duration_s=1.0, flows=1, axes=axes)
    runs = load_experiment(make_experiment(tmp_path, scenario)).runs
    assert [run_labels(run)["point"] for run in runs] == ["path.rate=10000000", "path.rate=20000000"]


def test_promtool_finds_nothing_wrong_with_the_names(experiment: Experiment) -> None:
    prometheus = prometheus_or_skip()
    text = "".join(exposition(families(experiment.runs)))
    done = subprocess.run(
        [str(prometheus.promtool), "check", "metrics"], input=text, capture_output=True, text=True, check=False
    )
    assert (done.returncode, done.stdout + done.stderr) == (0, "")


ROOT = Path(__file__).resolve().parents[2]


@pytest.mark.parametrize(
    ("measure", "unit", "name", "factor"),
    [
        ("exit_time_s", "s", "howdah_exit_time_seconds", 1.0),
        ("exit_cwnd_packets", "packets", "howdah_exit_cwnd_packets", 1.0),
        ("exit_cwnd_bdp", "ratio", "howdah_exit_cwnd_bdp_ratio", 1.0),
        ("min_rtt_us", "us", "howdah_min_rtt_seconds", 1e-6),
        ("goodput_bits_per_second", "bit/s", "howdah_goodput_bytes_per_second", 0.125),
        ("utilisation", "ratio", "howdah_utilisation_ratio", 1.0),
        ("queue_peak_bytes", "bytes", "howdah_queue_peak_bytes", 1.0),
        ("time_to_90_percent_s", "s", "howdah_time_to_90_percent_seconds", 1.0),
        ('bad" name{}_count', "", "howdah_bad_name_count_value", 1.0),
    ],
)
def test_measures_become_metrics_in_base_units(measure: str, unit: str, name: str, factor: float) -> None:
    metric, found = summary_metric(measure, unit)
    assert (metric.name, found) == (name, factor)


def test_families_drop_the_suffix_that_openmetrics_adds() -> None:
    by_name = {metric.name: metric for metric in (*SERIES, *INFO)}
    assert by_name["howdah_flow_acked_bytes_total"].family == "howdah_flow_acked_bytes"
    assert by_name["howdah_run_info"].family == "howdah_run"
    assert by_name["howdah_flow_cwnd_packets"].family == "howdah_flow_cwnd_packets"


def test_counters_and_facts_are_named_so() -> None:
    for metric in (*SERIES, *PATH, *INFO):
        assert metric.name.endswith("_total") == (metric.kind == "counter")
        assert metric.name.endswith("_info") == (metric.kind == "info")


def test_documentation_lists_every_metric_with_kind_and_help() -> None:
    text = (ROOT / "docs" / "prometheus.md").read_text(encoding="utf-8")
    for metric in (*SERIES, *PATH, *INFO):
        assert f"| `{metric.name}` | {metric.kind} | {metric.help} |" in text


@pytest.mark.parametrize(
    ("unit", "name", "factor"),
    [
        ("us", "howdah_exit_quantity_seconds", 1e-6),
        ("packets", "howdah_exit_quantity_packets", 1.0),
        ("bit/s", "howdah_exit_quantity_bytes_per_second", 1 / 8),
        ("ratio", "howdah_exit_quantity_ratio", 1.0),
        ("rounds", "howdah_exit_quantity_rounds", 1.0),
    ],
)
def test_a_measure_whose_unit_is_that_of_its_row_has_it_in_its_name(unit: str, name: str, factor: float) -> None:
    metric, found = summary_metric("exit_quantity", unit)
    assert (metric.name, found) == (name, factor)
    assert metric.help.startswith("The number that decided")


def test_a_label_of_any_text_is_one_string_in_a_query() -> None:
    """PromQL's strings follow Go's: a backslash before a quote, a backslash and instead of a line's end."""
    labels = {"profile": 'a "b"', "algorithm": "back\\slash", "note": "two\nlines", "both": '\\"'}
    expected = r'algorithm="back\\slash",both="\\\"",note="two\nlines",profile="a \"b\""'
    assert matchers(labels) == expected
