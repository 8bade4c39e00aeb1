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
from howdah.claim.score import (
    THRESHOLDS,
    Score,
    ThresholdFile,
    ThresholdSection,
    is_shallow,
    measured_flows,
    read_thresholds,
    run_scores,
    scores_of,
)
from howdah.command.main import main
from howdah.errors import ProfileError
from howdah.record.directory import RunDirectory
from howdah.record.metrics import MetricRow
from howdah.record.result import Run, load_experiment
from howdah.record.run import RunRecord
from howdah.record.sample import Series
from howdah.record.verdict import Verdict
from tests.experiment_factory import Scenario, make_experiment

MSS = 1448


@pytest.fixture(scope="module")
def runs(tmp_path_factory: pytest.TempPathFactory) -> list[Run]:
    return load_experiment(make_experiment(tmp_path_factory.mktemp("runs"), Scenario(duration_s=8.0))).runs


def _row(metric: str, value: float | None, flow: int | None = None) -> MetricRow:
    return MetricRow(flow, metric, value, "")


def _made(run: Run, monkeypatch: pytest.MonkeyPatch, rates: dict[int, list[float]], *rows: MetricRow) -> Run:
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


def _score(*said: object) -> Score:
    """By its fields in their order; ``why`` may be left out."""
    return Score.model_validate(dict(zip(Score.model_fields, (*said, ""), strict=False)))


def test_a_score_of_a_variant_is_judged_by_the_last_threshold_that_holds(
    runs: list[Run], monkeypatch: pytest.MonkeyPatch
) -> None:
    """Of CUBIC 70 and 90 are 80 in the median, which is enough for 80; a control, and a run without a plan, are none
    of its runs. Of two flows the second threshold holds."""
    thresholds = ThresholdFile.model_validate(
        {
            "convergence_s": 1.5,
            "scores": [
                {
                    "score": "tput",
                    "meaning": "use",
                    "thresholds": [
                        {"least": 95, "source": "a"},
                        {"least": 80, "source": "b", "flows": "several"},
                        {"least": 0, "source": "c", "buffer": "shallow"},
                    ],
                },
                {"score": "rtt_med", "meaning": "x", "thresholds": [{"least": 1, "source": "d", "buffer": "shallow"}]},
                {"score": "fairness", "meaning": "x", "thresholds": [{"least": 50, "source": "e"}]},
            ],
        }
    )
    asked = []

    def made(name: str, score: float, **more: Any) -> Run:
        run = dataclasses.replace(runs[0], directory=RunDirectory(Path(name)), metrics=[_row("score", score)])
        return dataclasses.replace(run, **{"verdict": Verdict(verdict="pass"), "algorithm": "cubic", **more})

    def scored(run: Run, convergence_s: float) -> dict[str, float]:
        asked.append((run.name, convergence_s))
        return {"tput": float(run.metrics[0].value or 0), "rtt_med": 7.0}

    monkeypatch.setattr(module, "run_scores", scored)
    far = {"axes": {"path.rtt": "1 s"}}
    experiment = dataclasses.replace(
        load_experiment(runs[0].directory.path.parent),
        name="e",
        runs=[
            made("a", 70),
            made("b", 79, algorithm="reno"),
            made("c", 90),
            made("d", 1, verdict=Verdict(verdict="invalid")),
            made("e", 2, axes={"control": "off"}),
            made("f", 3, plan=None),
            made("g", 80 - 1e-7, **far),
            made("h", 80 - 1e-11, likely_kernel="other", provenance=RunRecord(status="finished")),
            made("i", 4, algorithm="bbr", status="failed"),
        ],
    )
    kernel = runs[0].kernel
    of = {
        "a": ("e", kernel, "cubic", ""),
        "b": ("e", kernel, "reno", ""),
        "g": ("e", kernel, "cubic", "path.rtt=1 s"),
        "h": ("e", "other", "cubic", ""),
        "i": ("e", kernel, "bbr", ""),
    }
    none, no_data, no_threshold = "none of 1 runs counts", "the runs have no data for it", "it has no threshold here"
    found = scores_of(experiment, thresholds)
    assert [each for each in found if each.score == "tput"] == [
        _score(*of["a"], "tput", 80, [70, 90], 80, "b", "pass"),
        _score(*of["b"], "tput", 79, [79], 80, "b", "fail"),
        _score(*of["g"], "tput", 80 - 1e-7, [80 - 1e-7], 80, "b", "fail"),
        _score(*of["h"], "tput", 80 - 1e-11, [80 - 1e-11], 80, "b", "pass"),
        _score(*of["i"], "tput", None, [], 80, "b", "unknown", none),
    ]
    assert [each.score for each in found] == ["tput", "rtt_med", "fairness"] * 5
    assert found[1] == _score(*of["a"], "rtt_med", 7, [7, 7], None, "", "unknown", no_threshold)
    assert found[2] == _score(*of["a"], "fairness", None, [], 50, "e", "unknown", no_data)
    assert found[-2:] == [
        _score(*of["i"], "rtt_med", None, [], None, "", "unknown", none),
        _score(*of["i"], "fairness", None, [], 50, "e", "unknown", none),
    ]
    assert asked == [(name, 1.5) for name in "acbgh"]


def test_the_rows_and_series_that_a_score_is_made_of(runs: list[Run], monkeypatch: pytest.MonkeyPatch) -> None:
    assert run_scores(dataclasses.replace(runs[0], plan=None), 4) == {}
    one = {1: [50.0 * MSS] * 4}
    rows = (
        dataclasses.replace(_row("utilisation", 0.1), group="web"),
        _row("utilisation", 0.2, 1),
        _row("utilisation", 1),
        _row("retransmitted_packets", 9, 2),
        _row("retransmitted_packets", 50, 1),
        _row("exit_delivery_share", 0.5),
        _row("exit_delivery_share", 0.25, 1),
    )
    # 200 segments arrived and 50 were sent again; without min_rtt_us the least of the series: 0.1 s over 0.2 s.
    found = run_scores(_made(runs[0], monkeypatch, one, *rows), 4)
    assert found == {"tput": 100, "rtt_med": 50, "lock_on_bw": 25, "loss_avoid": 80}
    for value in (None, "text"):
        wrong = [dataclasses.replace(_row("utilisation", None), value=value), _row("retransmitted_packets", None, 1)]
        assert run_scores(_made(runs[0], monkeypatch, one, *wrong), 4) == {"rtt_med": 50}
    nothing = _made(
        runs[0], monkeypatch, {1: [0.0] * 4}, _row("retransmitted_packets", 1, 1), _row("min_rtt_us", 3e5, 1)
    )
    assert run_scores(nothing, 4) == {"rtt_med": 100, "loss_avoid": 0}, "no score is above 100"
    # Of two flows that deliver nothing in a second it has no index: (1 + 16 / 20) / 2 of the others from 1 s to 4 s.
    both = _made(runs[0], monkeypatch, {1: [1.0, 0, 5, 1], 2: [9.0, 0, 5, 3]}, _row("exit_delivery_share", 0.4, 1))
    found = run_scores(both, 1)
    assert found == {"rtt_med": 50, "fairness": 90, "convergence_fairness": 80}


def test_fairness_is_of_the_seconds_in_which_all_flows_are_active(
    runs: list[Run], monkeypatch: pytest.MonkeyPatch
) -> None:
    """From 1.5 s after the later start at 1 s, which is 2.5 s, to the earlier stop at 4.5 s: two whole seconds."""
    made = _made(runs[0], monkeypatch, {1: [1e3] * 8, 2: [1e3, 1e3, 1e3, 3e3, 3e3, 0, 0, 0]})
    assert made.plan is not None
    first, second = made.plan.flows
    flows = [dataclasses.replace(first, stop_us=4_500_000), dataclasses.replace(second, start_us=1_000_000)]
    made = dataclasses.replace(made, plan=dataclasses.replace(made.plan, flows=flows))
    found = run_scores(made, 1.5)
    # 1 and 2 kB from 2.5 to 3.5 s, 1 and 3 kB from 3.5 to 4.5 s.
    assert found["fairness"] == pytest.approx(100 * (9 / 10 + 16 / 20) / 2)
    assert found["convergence_fairness"] == pytest.approx(80)
    assert "fairness" not in run_scores(made, 3)


def test_a_buffer_is_shallow_below_three_packets_and_a_tenth_of_the_bdp(runs: list[Run]) -> None:
    plan = runs[0].plan
    assert plan is not None

    def shallow(buffer: int, bdp: int) -> bool:
        path = dataclasses.replace(plan.path, buffer_bytes=buffer, bdp_bytes=bdp, frame_bytes=1514)
        return is_shallow(dataclasses.replace(plan, path=path))

    assert [shallow(buffer, 1000) for buffer in (4541, 4542)] == [True, False]
    assert [shallow(buffer, 100_000) for buffer in (9999, 10_000)] == [True, False]


def test_the_flows_that_count_are_those_that_are_measured_alone(runs: list[Run]) -> None:
    plan = runs[0].plan
    assert plan is not None
    flow = plan.flows[0]
    others = [dataclasses.replace(flow, id=3, role="background"), dataclasses.replace(flow, id=4, group="web")]
    several = ThresholdSection(least=1, source="s", flows="several")
    assert measured_flows(dataclasses.replace(plan, flows=[flow, *others])) == [flow]
    assert not several.holds(dataclasses.replace(plan, flows=[flow, *others]))
    assert several.holds(dataclasses.replace(plan, flows=[*plan.flows, *others]))


def test_what_is_no_file_of_thresholds_says_what_is_wrong(tmp_path: Path) -> None:
    file = tmp_path / "scores.yaml"
    with pytest.raises(ProfileError) as missing:
        read_thresholds(file)
    assert str(missing.value) == f"{file}: there is no such file of thresholds"
    for text, said in (
        ("[]\n", f"{file}: input should be a valid dictionary or instance of thresholdfile"),
        ("convergence_s: 4\n", f"{file}: scores: field required"),
        ("convergence_s: 4\nscores:\n- {score: tput, thresholds: []}\n", f"{file}:3: scores.0.meaning: field required"),
        ("convergence_s: -1\nscores: []\n", f"{file}:1: convergence_s: input should be greater than or equal to 0"),
    ):
        file.write_text(text)
        with pytest.raises(ProfileError) as refused:
            read_thresholds(file)
        assert str(refused.value) == said


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
