# SPDX-License-Identifier: Apache-2.0
"""A night as KTAP and as a mail: every cell once, what fails is not ok, and two nights differ only where results do."""

from __future__ import annotations

import difflib
import email
import json
import math
import re
import statistics
from pathlib import Path

import pytest

from howdah.command import nightly as command
from howdah.command.main import main
from howdah.nightly.change import Comparison, change_text
from howdah.nightly.night import Night
from howdah.nightly.output import ktap, mail, regression_lines
from howdah.nightly.sheet import NightSheet, Value
from howdah.nightly.work import MadeSheets
from howdah.record.result import load_experiment
from howdah.report.ending import results
from howdah.report.findings import findings
from howdah.report.source import TableSource
from tests.experiment_factory import Scenario, make_experiment
from tests.ktap_reader import read_ktap
from tests.nightly_factory import changed, night, sheet, usual, write_suite

NAME = "test-made-debian-6.12"


def _red(directory: Path, more: float = 0.0) -> Night:
    def tonight(slug: str, number: int) -> dict[str, Value]:
        return changed(slug, number, retransmitted_packets__1=40.0 + more + number, exit_cause__1="loss # \x1b[31m\n")

    return night(directory, sheet(NAME, usual), sheet(NAME, tonight))


def _lost(packets: float) -> str:
    """Effect, interval and p: losses of ten repetitions are the whole numbers around ``packets``, none before."""
    half = 2.262157 * statistics.stdev(range(10)) / math.sqrt(10)  # Student's t of nine degrees of freedom
    interval = f"{packets - half:+.4g} to {packets + half:+.4g}"
    return (
        f"retransmitted_packets of flow 1: 0 to {packets:g} packets, {packets:+g} (95 %: {interval}), "
        "p = 1.9e-05 corrected  regression"
    )


def test_ktap_has_a_line_for_each_finding_and_one_for_all_that_is_not_proven(tmp_path: Path) -> None:
    def before(slug: str, number: int) -> dict[str, Value]:
        return changed(slug, number, **{f"other_{each}_s": 0.5 for each in range(30)})

    def tonight(slug: str, number: int) -> dict[str, Value]:
        others = {f"other_{each}_s": 0.5 + 4.0 * (number % 2) for each in range(30)}
        return changed(slug, number, retransmitted_packets__1=40.0 + number, utilisation=0.5, **others)

    made = night(tmp_path, sheet(NAME, before), sheet(NAME, tonight))
    cell = made.cells[0]
    assert len(cell.of("unproven")) == 30
    (subtest,) = read_ktap(ktap(made))
    diagnostics = subtest.cases[0].diagnostics
    together = [line for line in diagnostics if "other_" in line]
    assert together == [f"{cell.slug}: {cell.hints[-1]}"]
    assert "30 other measures changed, not proven: other_0_s, " in together[0]
    proven = cell.of("regression")
    assert len(proven) == 2
    for each in proven:
        assert sum(f"{each.name}: " in line for line in diagnostics) == 1
    assert len(diagnostics) == len(proven) + len(together) + len(("kernels and paths", "again", "state", "duration_ms"))


def test_mail_and_ktap_have_the_kernel_that_ran_and_its_path(tmp_path: Path) -> None:
    made = _red(tmp_path)
    made.runs = tmp_path / "runs"
    made.runs.mkdir()
    path = make_experiment(made.runs, Scenario(name=NAME, repetitions=1, flows=1, duration_s=2.0))
    plan = next(run.plan for run in load_experiment(path).runs if run.plan)
    line = next(line for line in mail(made).splitlines() if line.startswith(f"{NAME}  debian-6.12; "))
    assert plan.kernel in line or "6.12.0-synthetic" in line
    assert f"{plan.path.rate_bits_per_second / 1e6:g} Mbit/s, {plan.path.rtt_us / 1e3:g} ms, buffer " in line
    assert f"  # kernels and paths: {line.removeprefix(f'{NAME}  ')}" in ktap(made).splitlines()
    read_ktap(ktap(made))


def test_the_path_of_a_point_stands_once_with_what_repetitions_make_of_it(tmp_path: Path) -> None:
    made = _red(tmp_path)
    made.runs = tmp_path / "runs"
    made.runs.mkdir()
    path = make_experiment(made.runs, Scenario(name=NAME, repetitions=3, flows=1, duration_s=2.0))
    for file in path.glob("*/plan.json"):
        plan = json.loads(file.read_text())
        plan["path"]["rtt_us"] += 250 * plan["repetition"]
        file.write_text(json.dumps(plan))
    line = next(line for line in mail(made).splitlines() if line.startswith(f"{NAME}  debian-6.12; "))
    assert line.count("Mbit/s") == 1
    assert "100 ms … 100.5 ms, buffer 250 kB" in line


def test_the_mail_says_that_the_settings_are_others(tmp_path: Path) -> None:
    after = sheet(NAME, lambda slug, n: changed(slug, n, utilisation=0.5))
    for number, each in after.cells["cubic"].repetitions.items():
        each.plan = f"another {number}"
    told = mail(night(tmp_path, sheet(NAME, usual), after))
    assert f"{NAME}/cubic  note: the plan differs from the baseline's" in told


def test_a_line_names_few_of_many_measures(tmp_path: Path) -> None:
    def tonight(slug: str, number: int) -> dict[str, Value]:
        others = {f"other_{each}_s": 0.5 + 4.0 * (number % 2) for each in range(30)}
        return changed(slug, number, **others)

    def before(slug: str, number: int) -> dict[str, Value]:
        return changed(slug, number, **{f"other_{each}_s": 0.5 for each in range(30)})

    made = night(tmp_path, sheet(NAME, before, repetitions=3), sheet(NAME, tonight, repetitions=3))
    (told,) = [each for each in made.cells[0].hints if each.startswith("for information")]
    assert len(told) < 300
    assert "other_3_s" in told
    assert told.endswith(" more")


def test_the_mail_has_the_differences_at_each_point_of_the_sweep(tmp_path: Path) -> None:
    """The numbers are those of metrics.json, of each point for itself."""
    made = _red(tmp_path)
    made.runs = tmp_path / "runs"
    made.runs.mkdir()
    axes = ({"path.rate": 5_000_000}, {"path.rate": 20_000_000})
    scenario = Scenario(name=NAME, algorithms=("cubic", "reno"), repetitions=2, flows=1, duration_s=3.0, axes=axes)
    runs = load_experiment(make_experiment(made.runs, scenario)).runs
    told = mail(made)
    section = told.partition(f"B − A in {NAME}\n")[2].partition("\n\n")[0].splitlines()
    assert section[1] == "B = reno against A = cubic"
    starts = [number for number, line in enumerate(section) if line.startswith("[")]
    assert len(starts) == 2
    for start, rate in zip(starts, (5_000_000, 20_000_000), strict=True):
        assert f"{rate // 1_000_000}" in section[start]
        line = next(line for line in section[start:] if line.startswith("time to 90 %"))
        both = [
            statistics.median(
                float(row.value or 0)
                for run in runs
                if run.algorithm == algorithm and str(run.axes["path.rate"]) == str(rate)
                for row in run.metrics
                if row.metric == "time_to_90_percent_s"
            )
            for algorithm in ("reno", "cubic")
        ]
        assert [float(word) for word in re.split(r"\s{2,}", line)[1:3]] == pytest.approx(both, rel=1e-3)


def test_ktap_has_a_case_for_each_cell_with_what_it_took(tmp_path: Path) -> None:
    (subtest,) = read_ktap(ktap(_red(tmp_path)))
    assert (subtest.name, subtest.ok, subtest.directive) == (NAME, False, "")
    assert [(case.name, case.ok, case.directive) for case in subtest.cases] == [
        ("cubic", False, ""),
        ("reno", True, ""),
    ]
    cubic, reno = (case.diagnostics for case in subtest.cases)
    assert "cubic: state: regression" in cubic
    assert "cubic: duration_ms: 15000" in cubic, "ten runs of a second and a half"
    assert any(line.startswith("cubic: again: howdah nightly") for line in cubic)
    assert any("retransmitted_packets of flow 1: 0 to 44.5 packets" in line for line in cubic)
    assert reno == ["reno: state: equal", "reno: duration_ms: 15000"]


def test_ktap_skips_what_has_nothing_to_be_compared_with(tmp_path: Path) -> None:
    part = sheet(NAME, usual)
    del part.cells["reno"]
    (subtest,) = read_ktap(ktap(night(tmp_path, part, sheet(NAME, usual))))
    assert subtest.ok
    assert [case.directive for case in subtest.cases] == ["", "SKIP new"]
    (required,) = read_ktap(ktap(night(tmp_path, part, sheet(NAME, usual), require_baseline=True)))
    assert [case.ok for case in required.cases] == [True, False]
    broken = NightSheet(NAME, "made", "debian-6.12", "", {}, problem="no such option")
    both = night(tmp_path, broken, broken)
    (unbuilt,) = read_ktap(ktap(both))
    assert [case.ok for case in unbuilt.cases] == [False, False], "nothing at all was compared"


def test_the_mail_names_regressions_cells_and_commands(tmp_path: Path) -> None:
    made = _red(tmp_path)
    message = email.message_from_string(mail(made))
    assert message["Subject"] == "[howdah] test: 1 of 2 cells fails: regression"
    text = str(message.get_payload())
    assert f"{NAME}/cubic  {_lost(44.5)}" in text.splitlines()
    assert f" {NAME}/cubic |   2 of 6 --" in text.splitlines()
    assert " 2 cells, 12 comparisons, 2 worse (-), 0 not proven (?), 0 better (+)" in text.splitlines()
    assert f"{NAME}  debian-6.12" in text.splitlines()
    assert f"fails  regression  {NAME}/cubic" in text.splitlines()
    assert f"       equal       {NAME}/reno" in text.splitlines()
    assert f"  {made.command(made.cells[0])}" in text.splitlines()
    assert "\x1b" not in text


def test_the_mail_says_of_what_fails_what_its_report_says(tmp_path: Path) -> None:
    made = _red(tmp_path)
    made.runs = tmp_path / "runs"
    made.runs.mkdir()
    path = make_experiment(made.runs, Scenario(name=NAME, repetitions=1, flows=1, duration_s=2.0))
    sentences = findings(results([load_experiment(path)], TableSource()))
    lines = mail(made).splitlines()
    begin = lines.index(f"Findings in {NAME}") + 2
    assert lines[begin : begin + len(sentences)] == sentences
    made.runs = tmp_path / "nowhere"
    assert f"Findings in {NAME}" not in mail(made)


def test_the_summary_tells_what_is_worse_from_what_is_not_proven(tmp_path: Path) -> None:
    def tonight(slug: str, number: int) -> dict[str, Value]:
        return changed(slug, number, retransmitted_packets__1=40.0, exit_time_s__1=0.5 + 4.0 * (number % 2))

    made = night(tmp_path, sheet(NAME, usual), sheet(NAME, tonight))
    worse, unproven = len(made.cells[0].of("regression")), len(made.cells[0].of("unproven"))
    assert worse
    assert unproven
    (line,) = [line for line in mail(made).splitlines() if line.startswith(f" {NAME}/cubic |")]
    assert line.endswith(" " + "-" * worse + "?" * unproven)
    assert f"{worse} worse (-), {unproven} not proven (?), 0 better (+)" in mail(made)


@pytest.mark.parametrize(
    ("size", "said"), [(1_823_000.0, "1823000"), (2e-5, "0.00002"), (0.0, "0"), (75.1667, "75.17")]
)
def test_numbers_of_a_change_have_no_exponent(size: float, said: str) -> None:
    each = Comparison("receive_window_peak_bytes", "1", "bytes", 6, size, 2 * size, size, -size, 3 * size)
    first, _, rest = change_text(each).partition(": ")[2].partition(" to ")
    assert first == said
    assert "e" not in rest.replace("bytes", "")


def test_a_green_mail_has_no_regressions(tmp_path: Path) -> None:
    green = night(tmp_path, sheet(NAME, usual), sheet(NAME, usual))
    assert regression_lines(green) == []
    assert "Regressions" not in mail(green)
    assert mail(green).startswith("Subject: [howdah] test: none of 2 cells fails\n\n")


def test_two_nights_differ_only_where_their_results_do(tmp_path: Path) -> None:
    first, second = _red(tmp_path), _red(tmp_path)
    second.started, second.ended, second.wall_s = "2026-11-23T01:00:00+00:00", "2026-11-23T02:00:00+00:00", 1.0
    for cell in second.cells:
        cell.wall_s += 1
    second.cells.reverse()
    assert mail(first) == mail(second), "neither times nor the order of the cells are in it"
    other = _red(tmp_path, more=1.0)
    changes = [
        line
        for line in difflib.unified_diff(mail(first).splitlines(), mail(other).splitlines(), lineterm="", n=0)
        if re.match(r"[-+][^-+]", line)
    ]
    assert changes == [
        f"-{NAME}/cubic  {_lost(44.5)}",
        f"+{NAME}/cubic  {_lost(45.5)}",
    ]


def test_the_night_leaves_both_and_copies_them_where_they_are_wanted(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    made = MadeSheets({NAME: sheet(NAME, usual)}, 20, 0, [])
    made.sheets["test-made-debian-6.1"] = sheet("test-made-debian-6.1", usual, kernel="debian-6.1")
    monkeypatch.setattr(command, "make", lambda *_: made)
    words = ["nightly", str(write_suite(tmp_path)), "--runs", str(tmp_path / "runs")]
    words += ["--baseline", str(tmp_path / "base")]
    assert main([*words, "--ktap", str(tmp_path / "n.ktap"), "--mail", str(tmp_path / "n.txt")]) == 7
    left = tmp_path / "runs" / "test.nights" / "latest"
    assert (left / "night.ktap").read_text() == (tmp_path / "n.ktap").read_text()
    assert (left / "mail.txt").read_text() == (tmp_path / "n.txt").read_text()
    assert len(read_ktap((tmp_path / "n.ktap").read_text())) == 2
    capsys.readouterr()
    assert main([*words, "--ktap", str(tmp_path / "absent" / "n.ktap")]) == 1
    assert "absent/n.ktap" in capsys.readouterr().err
