# SPDX-License-Identifier: Apache-2.0
"""Pages of many runs: statistics, and every run by request."""

from __future__ import annotations

import json
import re
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from howdah.command.main import main
from howdah.record.result import Experiment, brief
from howdah.report import results as many
from howdah.report.build import MANY, report
from howdah.report.compare import compare
from howdah.report.ending import ending, results
from howdah.report.findings import findings
from howdah.report.results import read_shown
from howdah.report.source import TableSource
from howdah.report.tidy import result_data
from howdah.work.results import read_results
from tests.experiment_factory import Scenario, make_experiment

_RATES = (5_000_000, 10_000_000, 20_000_000)


@pytest.fixture(scope="module")
def root(tmp_path_factory: pytest.TempPathFactory) -> Path:
    axes = tuple({"path.rate": rate} for rate in _RATES)
    scenario = Scenario(duration_s=3.0, second_flow_s=1.0, axes=axes, invalid=(("reno", 1),), failed=(("cubic", 1),))
    return make_experiment(tmp_path_factory.mktemp("many"), scenario)


@pytest.fixture(autouse=True)
def few_are_many(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(many, "MOST_RUNS", 5)
    monkeypatch.setattr(many, "MOST_DRAWN", 3)


def _script(page: str, name: str) -> Any:
    found = re.search(rf'<script type="application/json" id="{name}">(.*?)</script>', page, re.S)
    assert found is not None
    return json.loads(found[1])


@pytest.fixture(scope="module")
def whole(root: Path) -> Experiment:
    return read_results(root)


def test_every_run_and_flow_is_a_row_with_its_axes_and_measures(root: Path, whole: Experiment) -> None:
    data = _script(report(root).read_text(encoding="utf-8"), "rows")
    rows, axes = data["rows"], {axis["name"]: axis for axis in data["axes"]}
    assert [axis["name"] for axis in data["axes"]] == ["algorithm", "flow", "path.rate", "repetition"]
    found = {}
    names = [measure["name"] for measure in data["measures"]]
    for number, run in enumerate(rows["run"]):
        flow = axes["flow"]["values"][axes["flow"]["at"][number]]
        found[run, flow] = {name: values[number] for name, values in zip(names, rows["values"], strict=True)}
        mine = next(each for each in whole.runs if each.name == run)
        assert axes["path.rate"]["at"][number] == _RATES.index(mine.axes["path.rate"])
        assert axes["algorithm"]["values"][axes["algorithm"]["at"][number]] == mine.algorithm
        assert bool(rows["counts"][number]) == mine.counts
        assert data["verdicts"][rows["verdict"][number]] == mine.verdict_name
        assert bool(data["whys"][rows["why"][number]]) == (not mine.counts)
    measured = [run for run in whole.runs if run.metrics]
    assert {run.name for run in whole.runs} == {run for run, _ in found}
    for run in measured:
        for row in run.metrics:
            if row.flow is not None and row.metric == "exit_time_s" and row.value is not None:
                assert run.plan is not None
                flow = next(flow.name for flow in run.plan.flows if flow.id == row.flow)
                assert found[run.name, flow]["exit_time_s"] == pytest.approx(row.value, rel=1e-4)


def test_statistics_are_those_of_the_runs_that_count(root: Path, whole: Experiment) -> None:
    page = report(root).read_text(encoding="utf-8")
    values = [
        float(row.value or 0)
        for run in whole.runs
        for row in run.metrics
        if run.counts and run.algorithm == "reno" and row.flow == 1 and row.metric == "exit_time_s"
    ]
    assert len(values) == 3
    cells = re.findall(
        r"<tr>\s*<th scope=\"row\"><span class=\"swatch variant-\d\"></span>reno</th>(.*?)</tr>", page, re.S
    )
    assert "n=3" in cells[0]
    shown = re.search(r'<td class="flow">flow1</td>\s*<td>([\d.]+)', cells[0])
    assert shown is not None
    assert float(shown[1]) == pytest.approx(float(np.median(values)), rel=1e-3)
    left_out = page.split("Left out of the statistics")[1].split("</div>")[0]
    assert sum(int(count) for count in re.findall(r": (\d+) runs?</li>", left_out)) == 6


def test_curves_are_those_of_some_runs_from_first_to_last(root: Path) -> None:
    page = report(root).read_text(encoding="utf-8")
    drawn = _script(page, "data")["runs"]
    assert [run["repetition"] for run in drawn] == [0, 0, 0]
    assert len({run["name"] for run in drawn}) == 3
    assert f"Curves of 3 of {2 * 2 * len(_RATES)} runs" in page
    assert MANY in page
    assert 'class="run"' not in page.split('id="checks"')[1]


def test_fewer_runs_have_all_of_it_in_the_page(root: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(many, "MOST_RUNS", 2 * 2 * len(_RATES))
    page = report(root, prometheus="off").read_text(encoding="utf-8")
    assert 'id="rows"' not in page
    assert len(_script(page, "data")["runs"]) > 3


def test_a_brief_run_says_the_same_of_everything_that_pages_show(root: Path, whole: Experiment) -> None:
    for run in whole.runs:
        short = brief(run)
        assert (short.verdict_name, short.counts, short.kernel, short.point) == (
            run.verdict_name,
            run.counts,
            run.kernel,
            run.point,
        )
        assert short.metrics == run.metrics
        assert short.plan is None or not short.plan.operations
        assert [check for check in short.ordered_checks() if not check.ok] == [
            check for check in run.ordered_checks() if not check.ok
        ]
        if run.plan is not None and run.directory.table("tcp_probe").exists():
            assert short.table("tcp_probe") == run.table("tcp_probe")
    assert {run.name for run in read_shown(root).runs} == {run.name for run in whole.runs}


def test_a_command_ends_with_words_alone(whole: Experiment, monkeypatch: pytest.MonkeyPatch) -> None:
    text = ending(results([whole], TableSource()))
    assert "each run by request" in text
    assert "[bottleneck rate " not in text
    monkeypatch.setattr(many, "MOST_RUNS", 100)
    full = ending(results([whole], TableSource()))
    assert full.startswith(text.splitlines()[0])
    assert "[bottleneck rate " in full


def test_comparison_and_json_have_the_results_of_whole_runs_and_no_whole_run(
    root: Path, whole: Experiment, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    kept: list[object] = []

    def seen(path: Path, **named: Any) -> Experiment:
        kept.append(named["kept"])
        return read_results(path, **named)

    monkeypatch.setattr("howdah.report.results.read_results", seen)
    wanted = result_data([whole])
    assert wanted.left_out
    assert compare([root], tmp_path / "page.html", "off").data == wanted
    assert main(["report", str(root), "--json", "--without-prometheus"]) == 0
    answer = json.loads(capsys.readouterr().out)
    assert {name: answer[name] for name in wanted.plain()} == wanted.plain()
    assert kept == [brief] * 2, "each command reads them once"


def test_many_runs_are_told_as_few_are(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """What held a flow back and whether a detector acted are no main measures, and sentences need them."""
    scenario = Scenario(algorithms=("cubic", "cubic-no-hystart"), repetitions=3, duration_s=2.0, flows=1)
    root = make_experiment(tmp_path, scenario)
    for file in root.glob("*/metrics.json"):
        metrics = json.loads(file.read_text())
        (flow, *_) = [row for row in metrics["rows"] if row["flow"] == 1]
        more = {"held_back_by": "send-buffer", "held_back_share": 0.4, "exit_cause": "loss", "detector_exits": 0}
        metrics["rows"] = [row for row in metrics["rows"] if row["metric"] not in more]
        for name, value in more.items():
            metrics["rows"].append({**flow, "metric": name, "value": value, "unit": ""})
        metrics["rows"][-1]["flow"] = None
        file.write_text(json.dumps(metrics))
    experiment = read_shown(root)
    told = findings(results([experiment], TableSource()))
    monkeypatch.setattr(many, "MOST_RUNS", 500)
    assert told == findings(results([experiment], TableSource()))
    assert any("send buffer held it back for 40 %" in each for each in told)
    assert any("HyStart ended no start-up" in each for each in told)
