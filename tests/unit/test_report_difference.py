# SPDX-License-Identifier: Apache-2.0
"""The difference view: B − A and B / A in pairs of repetitions, as text, on the page, as JSON, in Python, as tables."""

from __future__ import annotations

import csv
import io
import json
from pathlib import Path
from typing import Any

import pytest

from howdah.command.main import main
from howdah.library import load
from howdah.record.result import Experiment
from howdah.report.difference import PairedRow, difference_data, difference_rows, difference_text, differences
from howdah.report.ending import results
from howdah.report.page import render
from howdah.report.source import TableSource
from howdah.report.subject import subjects_of
from howdah.report.tabular import FORMS, Tabular
from tests.experiment_factory import Scenario, make_experiment
from tests.unit.test_report_found import EXIT, LOST, made

RATES = (20_000_000, 40_000_000)


def numbers(row: dict[str, Any]) -> object:
    """reno loses 2, 3 and 4 times as much as cubic at 20 Mbit/s, and 7 where cubic has none at 40."""
    reno, slow = row["algorithm"] == "reno", row["axes"]["path.rate"] == RATES[0]
    values = {EXIT: 0.5, LOST: (10 * (2 + row["repetition"] if reno else 1)) if slow else (7 if reno else 0)}
    return values.get(row["metric"])


@pytest.fixture(scope="module")
def experiment(tmp_path_factory: pytest.TempPathFactory) -> Experiment:
    axes = tuple({"path.rate": rate} for rate in RATES)
    scenario = Scenario(name="paired", algorithms=("cubic", "reno"), repetitions=3, flows=1, axes=axes)
    return made(tmp_path_factory.mktemp("paired"), scenario, numbers)


def of_losses(experiment: Experiment) -> list[PairedRow]:
    rows = difference_data(subjects_of(results([experiment], TableSource())))
    return [row for row in rows if row.metric == LOST]


def test_data_have_every_point_in_the_units_of_metrics_json(experiment: Experiment) -> None:
    slow, fast = of_losses(experiment)
    assert (slow.side, slow.other, slow.pairs) == ("reno", "cubic", 3)
    assert (slow.mine, slow.others) == (30.0, 10.0)
    assert (slow.difference, slow.difference_low, slow.difference_high) == (20.0, 10.0, 30.0)
    assert (slow.ratio, slow.ratio_low, slow.ratio_high) == (3.0, 2.0, 4.0)
    assert slow.better == "cubic"
    assert (fast.difference, fast.ratio, fast.difference_low) == (7.0, None, None)


def test_text_and_page_have_the_same_cells(experiment: Experiment) -> None:
    said = subjects_of(results([experiment], TableSource()))
    text = difference_text(said)
    assert "B = reno against A = cubic" in text
    assert "+20 (10 … 30)  3 (2 … 4)" in text
    for width in (80, 60, 45):
        narrow = difference_text(said, width)
        assert max(map(len, narrow.splitlines())) <= width
        assert set(narrow.split()) == set(text.split()), "nothing is left out"
    page = render("paired", "", [experiment], TableSource(), "")
    assert "<td>+20<small>10 … 30</small></td>" in page
    assert "<td>3<small>2 … 4</small></td>" in page


def test_sides_that_are_alike_differ_by_nothing(experiment: Experiment) -> None:
    said = subjects_of(results([experiment], TableSource()))
    rows = [row for row in difference_rows(differences(said)) if row.of.metric.name == EXIT]
    assert {(row.difference, row.ratio, row.ratio_spread) for row in rows} == {("0", "1", "")}


def test_one_side_alone_has_no_difference(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    make_experiment(tmp_path, Scenario(name="alone", algorithms=("cubic",), repetitions=1, flows=1))
    assert load("alone", runs=tmp_path).differences.to_pylist() == []
    assert main(["table", "alone", "--of", "differences", "--runs", str(tmp_path)]) != 0
    assert "nothing to compare" in capsys.readouterr().err


def test_command_json_and_python_say_the_same(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    make_experiment(tmp_path, Scenario(name="both", algorithms=("cubic", "reno"), repetitions=2, flows=1))
    words = ["compare", "both", "--runs", str(tmp_path), "--without-prometheus", "--output", str(tmp_path / "c.html")]
    assert main([*words, "--json"]) == 0
    printed = json.loads(capsys.readouterr().out)["differences"]
    assert printed and printed == load("both", runs=tmp_path).differences.to_pylist()
    assert main(words) == 0
    assert "B = reno against A = cubic" in capsys.readouterr().out
    assert main(["table", "both", "--of", "differences", "--format", "csv", "--runs", str(tmp_path)]) == 0
    rows = list(csv.reader(io.StringIO(capsys.readouterr().out)))
    assert len(rows) == 1 + len(printed)
    assert len(set(rows[0])) == len(rows[0]), "each column has a name of its own"
    assert "" not in rows[0]


def test_a_table_has_the_measures_asked_for(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    make_experiment(tmp_path, Scenario(name="both", algorithms=("cubic", "reno"), repetitions=2, flows=1))
    asked = ["--measure", LOST, "--measure", EXIT, "--format", "csv", "--runs", str(tmp_path)]
    assert main(["table", "both", *asked]) == 0
    (header, *rows) = csv.reader(io.StringIO(capsys.readouterr().out))
    measures = [each for each in header if "spread" not in each]
    assert measures == ["algorithm", "n", "flow", "retrans. (packets)", "exit cwnd (BDP)"]
    assert len(rows) == 2
    assert main(["table", "both", "--of", "differences", *asked]) == 0
    (header, *rows) = csv.reader(io.StringIO(capsys.readouterr().out))
    assert {row[header.index("measure")] for row in rows} <= {"retransmissions", "window at the exit"}
    assert rows
    wrong = (
        (["--measure", "exit_cwnd"], "did you mean exit_cwnd_"),
        (["--measure", LOST, "--of", "completion"], "--measure applies to results and differences"),
        (["--measure", "exit_cause", "--of", "differences"], "its values are words"),
    )
    for options, what in wrong:
        assert main(["table", "both", *options, "--runs", str(tmp_path)]) == 2
        assert what in capsys.readouterr().err
    assert main(["table", "both", "--measure", "think_time_s", "--runs", str(tmp_path)]) == 1
    assert "no run that counts has a value of think_time_s" in capsys.readouterr().err


def test_one_pair_of_several_repetitions_has_no_spread_and_no_winner(tmp_path: Path) -> None:
    """Of what one repetition alone reached nobody knows how far it varies."""

    def one(row: dict[str, Any]) -> object:
        lacks = row["algorithm"] == "cubic" and row["repetition"]
        return "none" if row["metric"] == LOST and lacks else numbers(row)

    axes = ({"path.rate": RATES[0]},)
    scenario = Scenario(name="one", algorithms=("cubic", "reno"), repetitions=3, flows=1, axes=axes)
    said = subjects_of(results([made(tmp_path, scenario, one)], TableSource()))
    (row,) = (row for row in difference_rows(differences(said)) if row.of.metric.name == LOST)
    assert (row.difference, row.difference_spread, row.better) == ("+10", "one pair", "")
    assert "+10 (one pair)" in difference_text(said)


def test_only_some_tables_are_exported(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    make_experiment(tmp_path, Scenario(name="both", algorithms=("cubic", "reno"), repetitions=1, flows=1))
    words = ["export", "both", "--runs", str(tmp_path), "--output", str(tmp_path / "out")]
    assert main([*words, "--format", "csv", "--only", "metrics", "--only", "differences"]) == 0
    assert {file.name for file in (tmp_path / "out").iterdir()} == {"metrics.csv", "differences.csv"}
    assert main([*words, "--format", "csv", "--only", "metric"]) == 2
    assert "metrics" in capsys.readouterr().err
    assert main([*words, "--format", "flent", "--only", "metrics"]) == 2
    other = tmp_path / "other"
    assert main([*words[:-1], str(other), "--only", "metrics"]) == 0, "what has tables is meant"
    assert [file.name for file in other.iterdir()] == ["metrics.csv"]


TABLE = Tabular("a & b", ["who", "n", "none"], [["50 % of_x", "−1\u2009234.5", ""], ["b|c", "+2", ""]])


def test_forms_of_a_table() -> None:
    used = TABLE.used()
    tex = FORMS["latex"](used)
    assert r"\begin{tabular}{lr}" in tex and r"\toprule" in tex and r"\bottomrule" in tex
    assert r"50 \% of\_x & $-$1\,234.5 \\" in tex
    assert r"| b\|c | +2 |" in FORMS["markdown"](used)
    assert "| --- | ---: |" in FORMS["markdown"](used)
    spread = Tabular("times", ["who", "p50 (s)", ""], [["a", "1", "0 … 2"]])
    assert "| who | p50 (s) | p50 (s), interval |" in FORMS["markdown"](spread)
    assert FORMS["csv"](spread).splitlines()[0] == 'who,p50 (s),"p50 (s), interval"'
    assert list(csv.reader(io.StringIO(FORMS["csv"](used)))) == [["who", "n"], ["50 % of_x", "-1234.5"], ["b|c", "+2"]]


def test_two_experiments_of_the_same_algorithms_are_compared_algorithm_by_algorithm(tmp_path: Path) -> None:
    def losses(factor: int) -> Any:
        def of(row: dict[str, Any]) -> object:
            return {EXIT: 0.5, LOST: factor * (10 if row["algorithm"] == "reno" else 3)}.get(row["metric"])

        return of

    before, after = (
        made(tmp_path / name, Scenario(name=name, algorithms=("cubic", "reno"), repetitions=2, flows=1), losses(factor))
        for name, factor in (("before", 1), ("after", 2))
    )
    rows = difference_data(subjects_of(results([before, after], TableSource())))
    of_losses = [(row.place, row.side, row.other, row.others, row.mine) for row in rows if row.metric == LOST]
    assert of_losses == [("cubic", "after", "before", 3.0, 6.0), ("reno", "after", "before", 10.0, 20.0)]
    alone = made(tmp_path / "alone", Scenario(name="after", algorithms=("cubic",), repetitions=2, flows=1), losses(2))
    rows = difference_data(subjects_of(results([before, alone], TableSource())))
    assert {row.other for row in rows} == {"cubic · before"}, "an algorithm without a counterpart is a side"
