# SPDX-License-Identifier: Apache-2.0
"""Experiments side by side."""

from __future__ import annotations

import shutil
from pathlib import Path

import pytest

from howdah.command.main import main
from howdah.errors import HowdahError
from howdah.report.compare import compare
from tests.experiment_factory import Scenario, make_experiment


def scenario(name: str, kernel: str = "6.12.0") -> Scenario:
    return Scenario(name=name, kernel=kernel, duration_s=3.0, second_flow_s=1.0, repetitions=1)


def test_kernels_become_variants_and_the_algorithms_keep_theirs(tmp_path: Path) -> None:
    paths = [make_experiment(tmp_path, scenario(f"on-{kernel}", kernel)) for kernel in ("6.12.0", "7.0.0")]
    found = compare(paths, tmp_path / "compare.html", prometheus="off")
    for name in ("cubic · 6.12.0", "cubic · 7.0.0", "reno · 6.12.0", "reno · 7.0.0"):
        assert name in found.text
        assert name in found.page.read_text(encoding="utf-8")
    assert "on-6.12.0" not in found.text


def test_experiments_are_named_where_nothing_else_tells_them_apart(tmp_path: Path) -> None:
    paths = [make_experiment(tmp_path, scenario(name)) for name in ("before", "after")]
    found = compare(paths, tmp_path / "compare.html", prometheus="off")
    assert "cubic · before" in found.text
    assert "cubic · after" in found.text


def test_two_runs_of_one_experiment(tmp_path: Path) -> None:
    directory = make_experiment(tmp_path, scenario("one"))
    runs = sorted(directory.glob("*-r0-*"))
    # A colleague's results, looked at where there is no directory of experiments yet.
    found = compare(runs, tmp_path / "runs" / "compare.html", prometheus="off")
    assert found.page.is_file()
    words, table, differences = found.text.split("\n\n")
    assert differences.startswith("B = reno against A = cubic")
    assert "cubic left slow start" in words
    lines = table.splitlines()
    assert [line.split()[0] for line in lines if not line.startswith(" ")] == ["cubic", "reno"]


def test_a_side_whose_runs_were_not_made_is_named(tmp_path: Path) -> None:
    made = make_experiment(tmp_path, Scenario(name="made", algorithms=("cubic",), repetitions=1, flows=1))
    other = make_experiment(tmp_path, Scenario(name="other", algorithms=("cubic",), repetitions=1, flows=1))
    for run in other.glob("cubic-*"):
        shutil.rmtree(run)
    text = compare([made, other], tmp_path / "page.html", "off").text
    assert text.endswith("not made: 1 run of other")
    assert "not made" not in compare([made], tmp_path / "page.html", "off").text


def test_few_repetitions_stand_below_their_median(tmp_path: Path) -> None:
    experiment = make_experiment(tmp_path, Scenario(repetitions=2, duration_s=2.0, flows=1, algorithms=("reno",)))
    text = compare([experiment], tmp_path / "compare.html", "off").text
    lines = text.splitlines()
    (row,) = (number for number, line in enumerate(lines) if line.startswith("reno  "))
    assert "1.225" in lines[row]
    assert lines[row + 1].endswith(" 249 … 250")
    assert "1.2 … 1.25" in lines[row + 1]
    assert lines[-1] == "medians over n repetitions; below them, where they differ, least and largest"


def test_only_some_algorithms(tmp_path: Path) -> None:
    directory = make_experiment(tmp_path, scenario("one"))
    found = compare([directory], tmp_path / "compare.html", "off", algorithms=["reno"])
    assert "reno" in found.text
    assert "cubic" not in found.text
    with pytest.raises(HowdahError, match=r"'bbr'[\s\S]*cubic, reno"):
        compare([directory], tmp_path / "compare.html", "off", algorithms=["bbr"])


def test_two_experiments_of_one_name_are_told_apart_by_their_directories(tmp_path: Path) -> None:
    first = make_experiment(tmp_path / "before", scenario("one"))
    second = tmp_path / "after" / "one"
    shutil.copytree(first, second)
    comparison = compare([first, second], tmp_path / "compare.html", "off")
    assert {row.experiment for row in comparison.data.rows} == {"before/one", "after/one"}
    for name in ("before/one", "after/one"):
        assert name in comparison.text
        assert name in comparison.page.read_text(encoding="utf-8")


def test_the_directory_is_named_where_it_is_not_called_like_the_experiment(tmp_path: Path) -> None:
    first = make_experiment(tmp_path, scenario("one"))
    second = tmp_path / "yesterday"
    shutil.copytree(first, second)
    comparison = compare([first, second], tmp_path / "compare.html", "off")
    assert "one in yesterday" in comparison.text


def test_runs_of_no_experiment_beside_each_other_stay_two(tmp_path: Path) -> None:
    first = make_experiment(tmp_path, scenario("one"))
    run = next(path for path in sorted(first.iterdir()) if (path / "plan.json").exists())
    runs = [tmp_path / "reruns" / name for name in ("earlier", "later")]
    for each in runs:
        shutil.copytree(run, each)
    comparison = compare(runs, tmp_path / "compare.html", "off")
    assert comparison.data.experiments == ["earlier", "later"]


def test_nothing_to_compare(tmp_path: Path) -> None:
    with pytest.raises(HowdahError, match="nothing to compare"):
        compare([], tmp_path / "compare.html")


def test_runs_of_another_place_need_no_directory_of_runs(tmp_path: Path) -> None:
    theirs = make_experiment(tmp_path / "review", scenario("one"))
    arguments = ["compare", str(theirs), "--runs", str(tmp_path / "runs"), "--without-prometheus"]
    assert main(arguments) == 0
    assert (tmp_path / "runs" / "compare-one.html").is_file()
