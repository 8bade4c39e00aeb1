# SPDX-License-Identifier: Apache-2.0
"""Scores: each by a trace made by hand, thresholds and their conditions, and what the command answers."""

from __future__ import annotations

import dataclasses
import json
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from howdah.claim import score as module
from howdah.claim.score import THRESHOLDS, Score, is_shallow, read_thresholds, run_scores, scores_of
from howdah.command.main import main
from howdah.errors import ProfileError
from howdah.record.result import Run, load_experiment
from howdah.record.sample import Series
from tests.experiment_factory import Scenario, make_experiment

MSS = 1448


@pytest.fixture(scope="module")
def runs(tmp_path_factory: pytest.TempPathFactory) -> list[Run]:
    return load_experiment(make_experiment(tmp_path_factory.mktemp("runs"), Scenario(duration_s=8.0))).runs


def _row(metric: str, value: float | None, flow: int | None = None) -> dict[str, Any]:
    return {"flow": flow, "metric": metric, "value": value, "unit": ""}


def _made(run: Run, monkeypatch: pytest.MonkeyPatch, rates: dict[int, list[float]], *rows: dict[str, Any]) -> Run:
    """A run whose flows delivered so many bytes in each second; the round-trip time is 0.1 s, a fifth of it 0.2 s."""
    assert run.plan is not None
    flows = [dataclasses.replace(flow, start_us=0, stop_us=8_000_000) for flow in run.plan.flows]
    plan = dataclasses.replace(run.plan, flows=[flow for flow in flows if flow.id in rates])
    series = []
    for flow, amounts in rates.items():
        labels = (("flow", str(flow)), ("role", "sender"))
        seconds = np.arange(len(amounts) + 1) * 1000
        series.append(Series("howdah_flow_acked_bytes_total", labels, seconds, np.cumsum([0.0, *amounts])))
        series.append(Series("howdah_flow_srtt_seconds", labels, np.arange(5), np.array([0.1, 0.2, 0.2, 0.2, 0.1])))
    monkeypatch.setattr(module, "sample_run", lambda _run: iter(series))
    return dataclasses.replace(run, plan=plan, metrics=list(rows))


def test_each_score_is_what_its_trace_says(runs: list[Run], monkeypatch: pytest.MonkeyPatch) -> None:
    steady = [100.0 * MSS] * 8
    uneven = [100.0 * MSS] * 6 + [300.0 * MSS] * 2
    run = _made(
        *(runs[0], monkeypatch, {1: steady, 2: uneven}),
        _row("utilisation", 0.85),
        *(_row("min_rtt_us", 100_000, 1), _row("min_rtt_us", 50_000, 2)),
        *(_row("exit_delivery_share", 0.45, 1), _row("exit_delivery_share", 0.2, 2)),
        *(_row("retransmitted_packets", 200, 1), _row("retransmitted_packets", 0, 2)),
    )
    found = run_scores(run, 4)
    assert found["tput"] == pytest.approx(85)
    assert found["rtt_med"] == pytest.approx(25), "50 ms over 200 ms, the worse of the two flows"
    assert found["lock_on_bw"] == pytest.approx(40), "a fifth of the path, of which the half is fair"
    assert found["loss_avoid"] == pytest.approx(80), "800 segments arrived, and 200 were sent again"
    jain = 16 / (2 * (1 + 9))
    assert found["convergence_fairness"] == pytest.approx(100 * jain)
    assert found["fairness"] == pytest.approx(100 * (1 + 1 + jain + jain) / 4), "of the seconds from 4 to 8"


def test_a_flow_alone_is_fair_and_a_flow_without_data_hides_its_score(
    runs: list[Run], monkeypatch: pytest.MonkeyPatch
) -> None:
    alone = run_scores(_made(runs[0], monkeypatch, {1: [1e6] * 8}, _row("retransmitted_packets", 0, 1)), 4)
    assert (alone["fairness"], alone["convergence_fairness"], alone["loss_avoid"]) == (100, 100, 100)
    assert "tput" not in alone
    both = _made(runs[0], monkeypatch, {1: [1e6] * 8, 2: [1e6] * 8}, _row("exit_delivery_share", 0.9, 1))
    assert "lock_on_bw" not in run_scores(both, 4), "the other flow's may be the worse"
    assert "fairness" not in run_scores(both, 8), "there is no second after convergence"


def test_thresholds_are_those_of_the_flows_and_the_buffer(runs: list[Run]) -> None:
    plan = runs[0].plan
    assert plan is not None
    found = {str(section.score): section for section in read_thresholds().scores}
    one = dataclasses.replace(plan, flows=plan.flows[:1])
    shallow = dataclasses.replace(plan, path=dataclasses.replace(plan.path, buffer_bytes=plan.path.bdp_bytes // 11))
    assert not is_shallow(plan)
    assert is_shallow(shallow)

    def least(name: str, of: Any) -> float | None:
        threshold = found[name].threshold(of)
        return threshold.least if threshold else None

    # transperf's default_target_score
    assert [least("tput", each) for each in (one, plan, shallow)] == [80, 80, 80]
    assert [least("rtt_med", each) for each in (one, plan, shallow)] == [30, 30, 30]
    assert [least("lock_on_bw", each) for each in (one, plan, shallow)] == [80, 35, 35]
    assert [least("loss_avoid", each) for each in (one, plan, shallow)] == [100, 96, 96]
    assert [least("fairness", each) for each in (one, plan, shallow)] == [100, 96, 80]
    assert [least("convergence_fairness", each) for each in (one, plan, shallow)] == [100, 90, 70]
    assert read_thresholds().convergence_s == 4


def test_a_variant_has_the_median_of_the_runs_that_count(tmp_path: Path) -> None:
    scenario = Scenario(duration_s=8.0, repetitions=3, algorithms=("reno",), invalid=(("reno", 2),))
    experiment = load_experiment(make_experiment(tmp_path, scenario))
    found = {each.score: each for each in scores_of(experiment, read_thresholds())}
    tput = found["tput"]
    assert tput.values == [pytest.approx(93), pytest.approx(92)]
    assert tput.value == pytest.approx(92.5)
    assert (tput.least, tput.verdict) == (80, "pass")
    assert found["lock_on_bw"].verdict == "unknown", "the synthetic runs have no exit_delivery_share"
    assert found["lock_on_bw"].why == "the runs have no data for it"
    assert 0 < (found["rtt_med"].value or 0) <= 100


def test_the_command_prints_a_table_or_json_and_ends_as_the_scores_do(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    runs = tmp_path / "runs"
    make_experiment(runs, Scenario(name="good", duration_s=6.0, repetitions=2, algorithms=("reno",), flows=1))
    make_experiment(
        runs, Scenario(name="none", duration_s=6.0, repetitions=1, algorithms=("reno",), invalid=(("reno", 0),))
    )
    mine = tmp_path / "mine.yaml"
    text = "convergence_s: 1\nscores:\n- {score: tput, meaning: use, thresholds: [{least: %s, source: me}]}\n"
    words = ["score", "good", "--runs", str(runs), "--thresholds", str(mine)]
    mine.write_text(text % 90)
    assert main(words) == 0
    said = capsys.readouterr().out
    assert "✓ tput" in said
    assert "92.5" in said
    assert "least 90" in said
    assert max(map(len, said.splitlines())) <= 80
    mine.write_text(text % 95)
    assert main([*words, "--json"]) == 6
    answer = json.loads(capsys.readouterr().out)
    (row,) = [Score(**each) for each in answer["scores"]]
    assert (row.experiment, row.algorithm, row.verdict, row.source) == ("good", "reno", "fail", "me")
    assert main(["score", "none", "--runs", str(runs)]) == 5
    assert "none of 1 runs counts" in capsys.readouterr().out
    assert main(["score", "good", "--runs", str(runs), "--json"]) in (0, 6)
    assert {each["score"] for each in json.loads(capsys.readouterr().out)["scores"]} == {
        section.score for section in read_thresholds().scores
    }


@pytest.mark.parametrize(
    ("text", "line"),
    [
        ("convergence_s: 4\nscores:\n- {score: speed, meaning: m, thresholds: [{least: 1, source: s}]}\n", 3),
        ("convergence_s: 4\nscores:\n- {score: tput, meaning: m, thresholds: [{least: 101, source: s}]}\n", 3),
        ("convergence_s: 4\nscores:\n- {score: tput, meaning: m, thresholds: [{least: 1}]}\n", 3),
        ("convergence_s: soon\nscores: []\n", 1),
    ],
)
def test_wrong_thresholds_are_refused_with_their_line(tmp_path: Path, text: str, line: int) -> None:
    file = tmp_path / "scores.yaml"
    file.write_text(text)
    with pytest.raises(ProfileError) as caught:
        read_thresholds(file)
    assert str(caught.value.where).startswith(f"{file}:{line}")


def test_every_shipped_threshold_has_a_source() -> None:
    sections = read_thresholds(THRESHOLDS).scores
    assert len(sections) == 6
    assert all("transperf" in each.source for section in sections for each in section.thresholds)


def test_one_second_after_convergence_is_enough_for_fairness(runs: list[Run], monkeypatch: pytest.MonkeyPatch) -> None:
    """Two edges are one second: Jain's index of it is the score."""
    made = _made(runs[0], monkeypatch, {1: [1e6] * 5, 2: [1e6] * 4 + [3e6]})
    assert run_scores(made, 4)["fairness"] == pytest.approx(100 * 16 / (2 * (1 + 9)))
