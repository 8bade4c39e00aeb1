# SPDX-License-Identifier: Apache-2.0
"""Curves and summaries: the same from PromQL as from the tables, and right."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq
import pytest

from howdah.record.result import Experiment, Run, load_experiment
from howdah.record.schema import TABLES
from howdah.report.build import source_for
from howdah.report.source import COUNTED, PROVED, Group, TableSource, goodput_words
from tests.experiment_factory import Scenario, make_experiment
from tests.prometheus_fixture import prometheus_or_skip


@pytest.fixture(scope="module")
def experiment(tmp_path_factory: pytest.TempPathFactory) -> Experiment:
    scenario = Scenario(repetitions=3, invalid=(("reno", 2),), failed=(("cubic", 1),))
    return load_experiment(make_experiment(tmp_path_factory.mktemp("runs"), scenario))


def test_promql_and_tables_agree(experiment: Experiment) -> None:
    prometheus_or_skip()
    tables = TableSource()
    with source_for([experiment], "auto") as (server, note):
        assert server.name.startswith("Prometheus ")
        assert "PromQL" in note
        for run in experiment.runs:
            expected, found = tables.curves(run), server.curves(run)
            assert {name: set(flows) for name, flows in found.items()} == {
                name: set(flows) for name, flows in expected.items()
            }
            for name, flows in expected.items():
                for flow, curve in flows.items():
                    common = np.intersect1d(curve.time_ms, found[name][flow].time_ms)
                    assert len(common) >= 0.99 * len(curve.time_ms)
                    ours = curve.value[np.isin(curve.time_ms, common)]
                    theirs = found[name][flow].value[np.isin(found[name][flow].time_ms, common)]
                    tolerance = 0.01 * np.abs(ours).max() if name == "goodput" else 1e-6
                    assert np.abs(ours - theirs).max() <= tolerance, (run.name, name, flow)
        ours_summary, theirs_summary = tables.summary(experiment), server.summary(experiment)
    assert ours_summary.causes == theirs_summary.causes
    assert ours_summary.absent == theirs_summary.absent
    assert ours_summary.statistics.keys() == theirs_summary.statistics.keys()
    for key, statistic in ours_summary.statistics.items():
        other = theirs_summary.statistics[key]
        assert other.count == statistic.count, key
        assert other.median == pytest.approx(statistic.median), key
        assert (other.half_width is None) == (statistic.half_width is None), key
        if statistic.half_width is not None:
            assert other.half_width == pytest.approx(statistic.half_width), key


def test_runs_that_do_not_count_enter_no_summary(experiment: Experiment) -> None:
    summary = TableSource().summary(experiment)
    counts = {
        algorithm: summary.statistics[
            Group(experiment.name, "6.12.0-synthetic", "", algorithm, "1"), "retransmitted_packets"
        ].count
        for algorithm in ("cubic", "reno")
    }
    assert counts == {"cubic": 2, "reno": 2}


@pytest.fixture
def run(tmp_path: Path) -> Run:
    scenario = Scenario(algorithms=("cubic-no-hystart",), repetitions=1, flows=1, duration_s=6.0)
    return load_experiment(make_experiment(tmp_path, scenario)).runs[0]


def _capacity(run: Run) -> float:
    assert run.plan is not None
    return run.plan.path.capacity_goodput_bits_per_second / 1e6


def test_goodput_is_what_arrived_in_a_window_of_one_round_trip(run: Run) -> None:
    goodput = TableSource().curves(run)["goodput"]["1"]
    late = goodput.value[goodput.time_ms > 4000]
    assert np.median(late) == pytest.approx(_capacity(run), rel=0.02)
    assert goodput_words([run]) == COUNTED


def _held_back(run: Run, table: str, column: str, *, counted: bool = True) -> None:
    """A hole from 3 to 4 s: until it is filled, nothing behind it is passed on or acknowledged."""
    file = run.directory.table(table)
    rows = pq.read_table(file).to_pylist()
    before = max(row[column] for row in rows if row["time_ns"] <= 3_000_000_000)
    for row in rows:
        if 3_000_000_000 < row["time_ns"] <= 4_000_000_000:
            row[column] = before
        if not counted:
            row["data_segs_in_packets"] = None
    pq.write_table(pa.Table.from_pylist(rows, schema=TABLES[table]), file)


@pytest.mark.parametrize("counted", [True, False], ids=["counted", "proved"])
def test_goodput_after_a_repaired_hole_is_not_above_what_the_path_carries(run: Run, counted: bool) -> None:
    _held_back(run, "tcp_probe", "snd_una_bytes")
    _held_back(run, "tcp_info", "bytes_received_bytes", counted=counted)
    _held_back(run, "tcp_info", "bytes_acked_bytes", counted=counted)
    goodput = TableSource().curves(run)["goodput"]["1"]
    assert goodput.value.max() <= _capacity(run) * 1.000001
    inside = goodput.value[(goodput.time_ms > 3300) & (goodput.time_ms < 3900)]
    if counted:
        assert inside.min() > 0.9 * _capacity(run)
    assert goodput_words([run]) == (COUNTED if counted else PROVED)


def test_of_some_runs_the_words_name_those_whose_receivers_do_not_count(run: Run, experiment: Experiment) -> None:
    others = experiment.runs[:2]
    _held_back(run, "tcp_info", "bytes_received_bytes", counted=False)
    assert goodput_words([*others, run]) == (
        f"{COUNTED[:-1]}; of {run.name} what ACKs prove to have arrived, at most what the path carries."
    )
    run.directory.table("tcp_info").unlink()
    assert run.name in goodput_words([*others, run])


def test_an_unknown_source_is_refused(experiment: Experiment) -> None:
    with pytest.raises(ValueError, match="'auto' or 'off'"), source_for([experiment], "perhaps"):
        pass
