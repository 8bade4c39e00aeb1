# SPDX-License-Identifier: Apache-2.0
"""Completion times by size: classes, percentiles with intervals, and slowdowns, against numbers by hand."""

from __future__ import annotations

import json
import re
from collections.abc import Sequence
from dataclasses import replace
from pathlib import Path

import numpy as np
import pytest

from howdah.command.main import main
from howdah.library import load
from howdah.measure.statistics import quantile
from howdah.plan.traffic import Exchange
from howdah.profile import load as load_profile
from howdah.record.connections import Connections, RowsOfConnections, write_connections
from howdah.record.metrics import MetricRow
from howdah.record.result import Experiment, Run, load_experiment
from howdah.report.page import render
from howdah.report.source import TableSource
from howdah.report.tabular import text
from howdah.report.transfer import completion_data, completion_table, ideal_s, size_classes
from howdah.work.compiled import compile_plans
from tests.experiment_factory import Scenario, make_experiment

PROFILE = """\
howdah: 1
name: transfers
path: {rate: 10 Mbit/s, one_way_delay: {forward: 30 ms, reverse: 10 ms}, buffer: 1 bdp}
duration: 5 s
flows: []
groups: [{name: web, connections: 60, start: 0 s, interval: 50 ms, sizes: {listed: [LISTED]}}]
"""


def test_an_interval_has_the_true_value_as_often_as_it_says() -> None:
    draws = np.random.default_rng(1)
    for count, share in ((20, 0.5), (100, 0.9), (1000, 0.99)):
        true = -np.log(1 - share)
        found = [quantile(np.sort(draws.exponential(size=count)).tolist(), share) for _ in range(1000)]
        ends = [(each.low, each.high) for each in found if each.low is not None and each.high is not None]
        assert len(ends) == len(found)
        assert 0.94 <= np.mean([low <= true <= high for low, high in ends]) <= 0.995


def test_what_so_few_values_do_not_say_is_not_said() -> None:
    assert quantile([], 0.5).value is None
    assert quantile([1.0], 0.5).value == 1.0
    assert quantile([1.0] * 99, 0.99).value is None
    thousand = quantile([float(each) for each in range(1000)], 0.999)
    assert thousand.value == pytest.approx(998.001)
    assert thousand.low is not None
    assert thousand.high is None, "the largest of a thousand does not bound it"


def _experiment(place: Path, *listed: str, groups: Sequence[str | None] = ("web",)) -> Experiment:
    """One run, whose plan has the groups in turn; a connection takes a second and a hundredth of its number."""
    profile = place / "transfers.yaml"
    profile.write_text(PROFILE.replace("LISTED", ", ".join(f"{{size: {size}}}" for size in listed)), encoding="utf-8")
    plan = next(iter(compile_plans(load_profile(profile))))
    plan = replace(plan, flows=[replace(flow, group=groups[flow.id % len(groups)]) for flow in plan.flows])
    experiment = load_experiment(make_experiment(place / "runs", Scenario(name="transfers", algorithms=("cubic",))))

    def with_times(run: Run) -> Run:
        rows, single = RowsOfConnections(), []
        metric, unit, algorithm = "completion_time_s", "s", plan.algorithm
        for flow in plan.flows:
            value = None if flow.id == plan.flows[-1].id else 1 + flow.id / 100
            if flow.group is None:
                single.append(MetricRow(flow.id, metric, value, unit, algorithm=algorithm))
            else:
                words = {"group": flow.group, "receiver": None, "why": None}
                rows.add(flow.id, value, metric=metric, unit=unit, algorithm=algorithm, **words)
        write_connections(run.directory, Connections(rows.table()))
        return replace(run, plan=plan, metrics=single)

    return replace(experiment, runs=[with_times(run) for run in experiment.runs[:1]])


def test_few_sizes_are_a_class_each_and_all_stands_below(tmp_path: Path) -> None:
    found = size_classes([_experiment(tmp_path, "10 kB", "1 MB")])
    assert [each.words for each in found] == ["10 kB", "1 MB", "all"]
    small, large, every = found
    assert small.count + large.count == every.count == 60
    assert len(every.times_s) == 59, "one was not completed"
    assert every.times_s == sorted(small.times_s + large.times_s)


def test_several_groups_are_also_told_together(tmp_path: Path) -> None:
    """A mix of paths and receivers has percentiles of its own; a flow of no group is not in it."""
    made = _experiment(tmp_path, "10 kB", "1 MB", groups=("near", "far", None))
    plan = made.runs[0].plan
    assert plan is not None
    found = size_classes([made])
    groups = list(dict.fromkeys(each.group for each in found))
    assert groups[-1] == "all groups"
    assert {"near", "far"} < set(groups)
    mix = [each for each in found if each.group == "all groups"]
    assert [each.words for each in mix] == ["10 kB", "1 MB", "all"]
    for size in mix:
        parts = [each for each in found if each.group in ("near", "far") and each.words == size.words]
        assert size.times_s == sorted(time for each in parts for time in each.times_s)
    assert mix[-1].count == sum(flow.group is not None for flow in plan.flows)


def test_points_and_algorithms_have_the_order_of_the_runs(tmp_path: Path) -> None:
    """By letters bbr came before cubic, and 100 ms before 50 ms."""
    made = _experiment(tmp_path, "10 kB", "1 MB")
    order = [(rtt, algorithm) for rtt in ("50 ms", "100 ms") for algorithm in ("cubic", "bbr")]
    runs = [
        replace(made.runs[0], axes={"path.rtt": rtt}, algorithm=algorithm)
        for algorithm in ("cubic", "bbr")
        for rtt in ("50 ms", "100 ms")
    ]
    found = size_classes([replace(made, runs=runs)])
    assert [(each.point["path.rtt"], each.algorithm) for each in found[::3]] == order
    assert [each.words for each in found] == ["10 kB", "1 MB", "all"] * 4


def test_many_sizes_are_put_together_by_powers_of_ten(tmp_path: Path) -> None:
    listed = [f"{number} kB" for number in (5, 7, 9, 20, 30, 40, 50, 60, 70, 800)]
    found = size_classes([_experiment(tmp_path, *listed)])
    assert [each.words for each in found] == ["1 kB … 10 kB", "10 kB … 100 kB", "100 kB … 1 MB", "all"]
    assert (found[1].least_bytes, found[1].most_bytes) == (10_000, 99_999)


def test_the_ideal_time_is_that_of_the_empty_path(tmp_path: Path) -> None:
    experiment = _experiment(tmp_path, "14480 B")  # ten full segments
    plan = experiment.runs[0].plan
    assert plan is not None
    flow = plan.flows[0]
    # A handshake of 40 ms, 30 ms to the receiver, and ten frames of 1514 bytes at 10 Mbit/s.
    assert ideal_s(flow, plan.path) == pytest.approx(0.040 + 0.030 + 10 * 1514 * 8 / 10e6)
    (only,) = size_classes([experiment])
    assert only.slowdowns[0] == pytest.approx(only.times_s[0] / (0.070 + 0.012112))
    assert ideal_s(flow, replace(plan.path, rate_steps=[[0, 5_000_000]])) is None
    assert ideal_s(replace(flow, direction="reverse"), plan.path) is None, "the way back has no rate"


def test_data_table_and_page_have_the_same_numbers(tmp_path: Path) -> None:
    experiment = _experiment(tmp_path, "10 kB", "1 MB")
    rows = completion_data([experiment])
    (median,) = (row for row in rows if row.sizes == "all" and row.percentile == "p50")
    times = sorted(1 + number / 100 for number in range(1, 60))
    assert (median.transfers, median.completed) == (60, 59)
    assert median.time_s == pytest.approx(times[29])
    assert [median.time_low_s, median.time_high_s] == pytest.approx([times[21], times[37]])
    assert {row.percentile: row.time_s for row in rows if row.sizes == "all"}["p99.9"] is None
    table = completion_table([experiment]).used()
    row = dict(zip(table.columns, table.rows[-1], strict=True))
    assert (row["sizes"], row["n"], row["completed"], row["p50 (s)"]) == ("all", "60", "59", "1.3")
    whole = text(table)
    for width in (80, 40):
        narrow = text(table, width)
        assert max(map(len, narrow.splitlines())) <= width
        assert set(narrow.replace(",", " ").split()) == set(whole.replace(",", " ").split()), "nothing is left out"
    page = render("transfers", "", [experiment], TableSource(), "")
    assert "Completion times by size" in page
    assert "<td>1.3<small>1.22 … 1.38</small></td>" in page
    groups = page[page.index('<section id="groups"') :]
    assert '<span class="swatch variant-0"></span>cubic<' in groups[: groups.index("<svg")], "whose line it is"
    wide = re.search(r'viewBox="0 0 (\d+)', groups)
    assert wide and wide[1] == "1232", "as wide as the page: its letters would be larger than the text's"


def test_the_command_the_library_and_json_have_it(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    root = make_experiment(tmp_path / "runs", Scenario(name="none", algorithms=("cubic",), repetitions=1))
    assert main(["table", str(root), "--of", "completion"]) == 1
    assert "no measured flow of a fixed size" in capsys.readouterr().err
    assert len(load(root).completion) == 0
    assert main(["report", str(root), "--json", "--without-prometheus"]) == 0
    assert json.loads(capsys.readouterr().out)["completion"] == []


def test_limits_make_classes_of_ones_own(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    """A size that is a limit begins the next class."""
    made = _experiment(tmp_path, "10 kB", "99 kB", "100 kB", "3 MB", "5 MB")
    by_size = {each.words: each for each in size_classes([made])}
    found = {each.words: each for each in size_classes([made], [1_000_000, 100_000])}
    assert list(found) == ["below 100 kB", "100 kB … 1 MB", "from 1 MB", "all"]
    assert (found["from 1 MB"].least_bytes, found["from 1 MB"].most_bytes) == (1_000_000, 5_000_000)
    small = sorted(by_size["10 kB"].times_s + by_size["99 kB"].times_s)
    assert found["below 100 kB"].times_s == small
    assert found["100 kB … 1 MB"].times_s == by_size["100 kB"].times_s
    assert main(["table", "transfers", "--of", "completion", "--limits", "1 parsec", "--runs", str(tmp_path)]) == 2
    assert main(["table", "transfers", "--of", "completion", "--limits", "1 kB,1 kB", "--runs", str(tmp_path)]) == 2
    assert main(["table", "transfers", "--limits", "1 kB", "--runs", str(tmp_path)]) == 2
    said = capsys.readouterr().err
    assert "--limits 1 parsec: expected a size" in said
    assert "expected different sizes above 0" in said
    assert "--limits applies to completion times" in said


def test_requests_of_a_closed_loop_are_transfers_of_their_own(tmp_path: Path) -> None:
    """Think time is in no time, and a connection's requests have the size of an answer, not of all together."""
    made = _experiment(tmp_path, "30 kB")
    (run,) = made.runs
    assert run.plan is not None
    asking = [replace(run.plan.flows[0], exchange=Exchange(10_000, 300, 3, 500_000))]
    second = 1_000_000_000
    done = [
        {"start_ns": 0, "end_ns": second, "bytes": 10_000},
        {"start_ns": 5 * second, "end_ns": 7 * second, "bytes": 10_000},
    ]
    record = {"flows": [{"id": asking[0].id, "transactions": done}]}
    run.directory.raw.mkdir(exist_ok=True)
    (run.directory.raw / "agent.json").write_text(json.dumps(record), encoding="utf-8")
    write_connections(run.directory, Connections(run.connections().table.slice(0, 1)))
    looped = replace(run, plan=replace(run.plan, flows=asking))
    (only,) = size_classes([replace(made, runs=[looped])])
    assert (only.words, only.count, only.times_s) == ("10 kB", 3, [1, 2])
    frames_s = (10_000 + 7 * (1514 - 1448)) * 8 / 10e6
    assert only.slowdowns == sorted([1 / (0.070 + frames_s), 2 / (0.040 + frames_s)])
