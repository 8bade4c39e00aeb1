# SPDX-License-Identifier: Apache-2.0
"""What a report and the end of a command say in words, and the exits drawn by every axis on one scale."""

from __future__ import annotations

import json
import re
from collections.abc import Callable, Mapping
from dataclasses import replace
from itertools import pairwise
from pathlib import Path
from typing import Any

import pytest

from howdah.profile.figure import FigureSection
from howdah.record.result import Experiment, load_experiment
from howdah.report.axis import axes
from howdah.report.build import report
from howdah.report.compare import compare
from howdah.report.ending import ending, results
from howdah.report.exitstrip import arrangements, exit_strip, scale_of, strip_ends
from howdah.report.findings import findings
from howdah.report.paper.strip import rows_of as paper_rows
from howdah.report.plot.draw import title_of
from howdah.report.plot.scale import Scale
from howdah.report.source import TableSource
from howdah.report.template import whole
from howdah.report.variant import Variants
from tests.experiment_factory import Scenario, make_experiment

EXIT, LOST = "exit_cwnd_bdp", "retransmitted_packets"


MORE = ("startup_left", "startup_gain", "growth_end_bdp", "held_back_by", "held_back_share")


def made(tmp_path: Path, scenario: Scenario, numbers: Callable[[dict[str, Any]], object] | None = None) -> Experiment:
    """An experiment whose rows of the first flow have the values of ``numbers`` where that is not None."""
    scenario.duration_s, scenario.second_flow_s = 2.0, 1.0
    directory = make_experiment(tmp_path, scenario)
    for file in directory.glob("*/metrics.json"):
        metrics = json.loads(file.read_text())
        first = next(row for row in metrics["rows"] if row["flow"] == 1)
        there = {row["metric"] for row in metrics["rows"] if row["flow"] == 1}
        more = [
            {**first, "metric": name, "unit": "ratio", "value": None, "why": ""} for name in MORE if name not in there
        ]
        metrics["rows"] += [row for row in more if numbers and numbers(row) is not None]
        for row in metrics["rows"]:
            value = numbers(row) if numbers and row["flow"] == 1 else None
            if value is not None:
                row["value"] = None if value == "none" else value
        file.write_text(json.dumps(metrics))
    return load_experiment(directory)


def words(*experiments: Experiment) -> list[str]:
    return findings(results(list(experiments), TableSource()))


def of(**by_algorithm: Mapping[str, object]) -> Callable[[dict[str, Any]], object]:
    """Values by algorithm (with _ for -) and metric; a list has one a repetition."""

    def value(row: dict[str, Any]) -> object:
        value = by_algorithm.get(row["algorithm"].replace("-", "_"), {}).get(row["metric"])
        return value[row["repetition"]] if isinstance(value, list) else value

    return value


CUBIC = {EXIT: 1.148, LOST: 907, "exit_cause": "ack-train", "time_to_90_percent_s": 2.88}
WITHOUT = {EXIT: 4.0, LOST: 22595, "exit_cause": "loss"}


def test_two_algorithms_side_by_side(tmp_path: Path) -> None:
    scenario = Scenario(algorithms=("cubic", "cubic-no-hystart"), repetitions=1, flows=1)
    assert words(made(tmp_path, scenario, of(cubic=CUBIC, cubic_no_hystart=WITHOUT))) == [
        "cubic left slow start at 1.15 BDP by ACK train and retransmitted 907 packets; "
        "cubic-no-hystart at 4 BDP by loss, and 22\u202f595.",
        "cubic-no-hystart leaves at 3.48 times the window of cubic "
        "and retransmits 24.9 times as many packets as cubic.",
    ]


def test_one_algorithm_alone(tmp_path: Path) -> None:
    scenario = Scenario(algorithms=("cubic",), repetitions=1, flows=1)
    assert words(made(tmp_path, scenario, of(cubic=CUBIC))) == [
        "cubic left slow start at 1.15 BDP by ACK train, retransmitted 907 packets and reached 90 % of the capacity "
        "after 2.88 s."
    ]


def test_bbr_leaves_a_start_up_and_a_flow_may_not_leave_at_all(tmp_path: Path) -> None:
    scenario = Scenario(algorithms=("bbr", "reno"), repetitions=1, flows=1)
    numbers = of(
        bbr={EXIT: 2.5, LOST: 1, "exit_cause": "bbr-drain", "startup_gain": 2.89},
        reno={EXIT: "none", "exit_cwnd_packets": "none", "exit_cause": "none", LOST: 0},
    )
    assert words(made(tmp_path, scenario, numbers)) == [
        "bbr left start-up at 2.5 BDP by BBR drain and retransmitted 1 packet; "
        "reno did not leave slow start and retransmitted nothing."
    ]


def test_nothing_is_said_of_an_exit_that_nobody_can_see(tmp_path: Path) -> None:
    """A rate-based control, or a fixed window: its threshold stayed infinite. What is known is where growth ended."""
    scenario = Scenario(algorithms=("mine", "other"), repetitions=1, flows=1)
    none = ("exit_time_s", EXIT, "exit_cwnd_packets", "exit_cause", "startup_left")
    unseen = {LOST: 0, **dict.fromkeys(none, "none")}
    numbers = of(mine={**unseen, "growth_end_bdp": 0.5}, other={**unseen, "growth_end_bdp": "none"})
    said = words(made(tmp_path, scenario, numbers))
    assert said[0] == (
        "mine grew to 0.5 BDP in flight and retransmitted nothing; "
        "other has no known end of its start-up (ssthresh stayed infinite) and retransmitted nothing."
    )


def test_a_flow_that_stayed_is_said_to_have_stayed_wherever_its_growth_ended(tmp_path: Path) -> None:
    """The receive window stopped its growth, and not its slow start."""
    scenario = Scenario(algorithms=("cubic",), repetitions=1, flows=1)
    none = ("exit_time_s", EXIT, "exit_cwnd_packets", "exit_cause")
    stays = {"startup_left": 0, "growth_end_bdp": 0.02, **dict.fromkeys(none, "none")}
    (text,) = words(made(tmp_path, scenario, of(cubic=stays)))
    assert text.startswith("cubic did not leave slow start")


def test_few_repetitions_are_bracketed_by_their_least_and_largest(tmp_path: Path) -> None:
    scenario = Scenario(algorithms=("cubic",), repetitions=3, flows=1)
    text, brackets = words(made(tmp_path, scenario, of(cubic={**CUBIC, LOST: [905, 44_205, 912]})))
    assert "retransmitted 912 packets (905 … 44\u202f205)" in text
    assert "1.15 BDP by" in text, "what is the same in all repetitions has no brackets"
    assert brackets == "In brackets: least and largest."


def test_a_flow_that_is_called_first_is_not_called_so_twice(tmp_path: Path) -> None:
    scenario = Scenario(algorithms=("cubic",), repetitions=1, flow_names=("first", "second"))
    (text,) = words(made(tmp_path, scenario, of(cubic={EXIT: 1.15})))
    assert text.startswith("The first flow: cubic")


def test_many_algorithms_are_told_by_their_extremes_and_several_flows_by_the_first(tmp_path: Path) -> None:
    names = ("cubic", "reno", "bbr", "search", "limited")
    places = {name: {EXIT: 0.5 + place, LOST: 100 - place} for place, name in enumerate(names)}
    text = words(made(tmp_path, Scenario(algorithms=names, repetitions=1), of(**places)))[0]
    assert text.startswith("The first flow, flow1: cubic left slow start earliest, at 0.5 BDP")
    assert "and limited latest, at 4.5 BDP" in text
    assert text.endswith("limited retransmitted least (96 packets), cubic most, 100 packets.")


def test_a_sweep_is_told_by_its_ranges(tmp_path: Path) -> None:
    scenario = Scenario(
        algorithms=("cubic",), repetitions=1, flows=1, axes=tuple({"path.rate": rate} for rate in (10**7, 2 * 10**7))
    )

    def numbers(row: dict[str, Any]) -> object:
        slow = row["axes"]["path.rate"] == 10**7
        return {EXIT: 0.6 if slow else 1.1, LOST: 0 if slow else 907}.get(row["metric"])

    assert words(made(tmp_path, scenario, numbers)) == [
        "Over 2 sweep points cubic left slow start at 0.6 BDP (bottleneck rate 10000000) to 1.1 BDP (bottleneck rate "
        "20000000) and retransmitted 0 to 907 packets."
    ]


@pytest.mark.parametrize(
    ("exits", "said"),
    [
        ((1.15, 1.15), "left slow start at 1.15 BDP"),
        ((1.15, "none"), "left slow start at 1.15 BDP (bottleneck rate 10000000), has no exit at 1 of them"),
        (("none", 1.15), "left slow start at 1.15 BDP (bottleneck rate 20000000), has no exit at 1 of them"),
    ],
)
def test_what_one_point_of_a_sweep_has_is_told_of_it(tmp_path: Path, exits: tuple[object, ...], said: str) -> None:
    """Also where nothing was lost: that is no word on the exits."""
    rates = (10**7, 2 * 10**7)
    axes = tuple({"path.rate": rate} for rate in rates)
    scenario = Scenario(algorithms=("cubic",), repetitions=1, flows=1, axes=axes)

    def numbers(row: dict[str, Any]) -> object:
        found = exits[rates.index(row["axes"]["path.rate"])]
        others = dict.fromkeys(("exit_time_s", "exit_cwnd_packets", "exit_cause"), "none" if found == "none" else None)
        return {**others, EXIT: found, LOST: 0}.get(row["metric"])

    text = words(made(tmp_path, scenario, numbers))[0]
    assert text == f"Over 2 sweep points cubic {said} and retransmitted nothing."


def test_the_check_of_the_generator_is_no_sweep_point(tmp_path: Path) -> None:
    scenario = Scenario(algorithms=("cubic",), repetitions=1, flows=1, axes=({}, {"traffic": "iperf3"}))
    (text,) = words(made(tmp_path, scenario, of(cubic=CUBIC)))
    assert text.startswith("cubic left slow start at 1.15 BDP by ACK train,")


def test_runs_that_do_not_count_are_counted_and_none_that_counts_is_said(tmp_path: Path) -> None:
    scenario = Scenario(flows=1, invalid=(("cubic", 0), ("reno", 1)), failed=(("reno", 0),))
    text, left_out = words(made(tmp_path / "some", scenario))
    assert text.startswith("cubic left slow start")
    assert "reno" not in text
    assert left_out == "3 of 4 runs do not count: 2 invalid and 1 failed (bottleneck rate and others)."
    scenario = Scenario(algorithms=("cubic",), repetitions=1, flows=1, invalid=(("cubic", 0),))
    assert words(made(tmp_path / "none", scenario)) == [
        "No run counts, so nothing is said of the algorithms: 1 invalid (bottleneck rate)."
    ]


def test_page_run_and_compare_begin_with_the_same_words(tmp_path: Path) -> None:
    experiment = made(tmp_path, Scenario(repetitions=1, flows=1))
    sentences = words(experiment)
    text = " ".join(sentences)
    page = report(experiment.path, prometheus="off").read_text(encoding="utf-8")
    body = page[page.index("<body>") :]
    assert f"<p>{'</p><p>'.join(map(whole, sentences))}</p>" in body
    order = [body.index(mark) for mark in ('class="found"', 'id="exits"', 'id="path"', 'id="results"', 'id="figures"')]
    assert order == sorted(order)
    compared = compare([experiment.path], tmp_path / "compare.html", "off")
    assert compared.data.found == sentences
    for end in (compared.text, ending(results([experiment], TableSource()))):
        assert " ".join(end.split("\n\n")[0].split()) == " ".join(text.split())


SWEPT = tuple({"path.rate": rate, "receiver": name} for rate in (10**7, 2 * 10**7) for name in ("linux", "freebsd"))


def test_every_axis_can_have_the_rows_and_all_strips_have_one_scale(tmp_path: Path) -> None:
    experiments = [made(tmp_path, Scenario(repetitions=1, flows=1, axes=SWEPT))]
    variants = Variants(experiments)
    across = axes(experiments, variants)
    assert [(axis.name, len(axis.values)) for axis in across] == [("algorithm", 2), ("path.rate", 2), ("receiver", 2)]
    ways = arrangements(experiments, variants, across)
    assert [way.label for way in ways] == ["algorithm", "bottleneck rate", "receiver", "all in one"]
    assert [len(way.strips) for way in ways] == [4, 4, 4, 1]
    assert [row.label for row in ways[2].strips[0].rows] == ["linux", "freebsd"]
    assert ways[2].strips[0].title == "cubic, bottleneck rate 10000000"
    for way in ways:
        marks = [mark for strip in way.strips for row in strip.rows for mark in row.marks]
        assert len({mark.run for mark in marks}) == len(marks) == 8
    scale = scale_of(ways)
    limits = set()
    for way in ways:
        for strip in way.strips:
            drawing = exit_strip(strip, scale, narrow=False)
            limits.add(re.findall(r'<path d="M([\d.]+) [\d.]+L\1 [\d.]+" class="limit"', drawing)[0])
    assert len(limits) == 1, "the BDP is at the same place in every strip"
    bare = replace(strip, rows=[replace(row, marks=[], without="no exit seen") for row in strip.rows])
    narrow = re.findall(r">([^<>]*no exit seen)<", exit_strip(bare, scale, narrow=True))
    assert narrow == [f"{row.label}: no exit seen" for row in bare.rows], "on a phone no text lies on a row's name"


@pytest.mark.parametrize(
    ("failed", "said"),
    [
        ((), "no exit seen"),
        ((0,), "no exit seen; 1 of 2 runs failed"),
        ((0, 1), "all 2 runs failed"),
    ],
)
def test_a_row_without_exits_says_which_runs_failed(tmp_path: Path, failed: tuple[int, ...], said: str) -> None:
    scenario = Scenario(algorithms=("cubic", "reno"), failed=tuple(("reno", number) for number in failed))

    def numbers(row: dict[str, Any]) -> object:
        return "none" if row["algorithm"] == "reno" and row["metric"].startswith("exit_") else None

    experiments = [made(tmp_path, replace(scenario, flows=1), numbers)]
    variants = Variants(experiments)
    (way,) = arrangements(experiments, variants, axes(experiments, variants))
    (strip,) = way.strips
    for narrow in (False, True):
        drawing = exit_strip(strip, scale_of([way]), narrow=narrow)
        assert [text for text in re.findall(">([^<>]+)</text>", drawing) if text.endswith(said)] == [
            f"reno: {said}" if narrow else said
        ]


def test_a_run_that_failed_alone_is_said_to_have_failed(tmp_path: Path) -> None:
    experiments = [made(tmp_path, Scenario(repetitions=1, failed=(("reno", 0),)))]
    variants = Variants(experiments)
    (way,) = arrangements(experiments, variants, axes(experiments, variants))
    assert [row.without for row in way.strips[0].rows] == ["", "the run failed"]


@pytest.mark.parametrize(
    ("shares", "full", "logarithmic"),
    [([0.5, 1.2], 2.0, False), ([0.01, 0.03], 2.0, True), ([0.3, 40.0], 2.0, True), ([], 2.0, False)],
)
def test_an_axis_of_exits_fits_them_and_the_buffer(shares: list[float], full: float, logarithmic: bool) -> None:
    """Exits at a hundredth of the BDP would all lie on the edge of an axis from 0 to 2."""
    least, most, is_logarithmic = strip_ends(shares, full)
    assert is_logarithmic == logarithmic
    assert most > max([full, *shares])
    assert least < min([1.0, *shares])
    scale = Scale(least, most, 0.0, 1000.0, logarithmic)
    places = [scale.at(share) for share in sorted(shares)]
    assert all(after - before > 100 for before, after in pairwise(places))


def test_an_axis_that_says_the_same_again_is_left_out(tmp_path: Path) -> None:
    names = ("6.12", "7.0")
    experiments = [
        made(tmp_path, Scenario(name=f"on-{kernel}", kernel=kernel, repetitions=1, flows=1, axes=({"kernel": kernel},)))
        for kernel in names
    ]
    found = axes(experiments, Variants(experiments))
    assert [(axis.name, axis.values) for axis in found] == [("algorithm", ["cubic", "reno"]), ("kernel", list(names))]


@pytest.mark.parametrize("length", [2.0, 5.0])
def test_a_title_has_the_duration_of_the_runs_not_of_the_profile(tmp_path: Path, length: float) -> None:
    directory = make_experiment(tmp_path, Scenario(algorithms=("reno",), repetitions=1, flows=1, duration_s=length))
    figure = {"id": "used", "kind": "bars", "x": "algorithm", "y": "utilisation", "lines": "receiver"}
    section = FigureSection.model_validate({**figure, "title": "Used in {duration}, window {window}"})
    text = title_of(section, load_experiment(directory))
    assert text == f"Used in {length:g} s, window {length:g} s"
    with pytest.raises(ValueError, match=r"not \{length\}"):
        FigureSection.model_validate({**figure, "title": "Used in {length}"})


def test_a_mark_stands_where_the_table_says(tmp_path: Path) -> None:
    """On a short path a BDP in whole packets is several per cent off."""
    scenario = Scenario(algorithms=("cubic",), repetitions=2, flows=1)
    experiment = made(tmp_path, scenario, of(cubic={EXIT: [2.726, 2.738]}))
    variants = Variants([experiment])
    (arranged, *_) = arrangements([experiment], variants, axes([experiment], variants))
    drawn = [mark.share for strip in arranged.strips for row in strip.rows for mark in row.marks]
    printed = [mark.share for row in paper_rows(experiment.runs, variants) for mark in row.marks]
    assert sorted(drawn) == sorted(printed) == [2.726, 2.738]


NONE = ("exit_time_s", EXIT, "exit_cwnd_packets", "exit_cause")
STAYS = {
    "startup_left": 0,
    "held_back_by": "send-buffer",
    "time_to_90_percent_s": "none",
    **dict.fromkeys(NONE, "none"),
}


def test_what_held_flows_back_is_said_over_a_sweep_where_it_did_most(tmp_path: Path) -> None:
    rates = (10**7, 2 * 10**7, 3 * 10**7)
    scenario = Scenario(
        algorithms=("cubic",), repetitions=1, flows=1, axes=tuple({"path.rate": rate} for rate in rates)
    )
    shares = dict(zip(rates, (0.6, 0.9, 0.02), strict=True))

    def numbers(row: dict[str, Any]) -> object:
        return {**STAYS, LOST: 0, "held_back_share": shares[row["axes"]["path.rate"]]}.get(row["metric"])

    said = words(made(tmp_path, scenario, numbers))
    assert said[1:] == [
        "The send buffer held it back for 90 % of the time (bottleneck rate 20000000; 60 % or more in 2 of 3 cases)."
    ]


def test_sides_over_a_sweep_are_named_with_what_held_them_back(tmp_path: Path) -> None:
    scenario = Scenario(
        algorithms=("cubic", "reno"), repetitions=1, flows=1, axes=({"path.rate": 10**7}, {"path.rate": 2 * 10**7})
    )

    def numbers(row: dict[str, Any]) -> object:
        held = row["algorithm"] == "reno" and row["axes"]["path.rate"] == 10**7
        return {**CUBIC, "held_back_by": "recovery", "held_back_share": 0.31 if held else 0.01}.get(row["metric"])

    said = words(made(tmp_path, scenario, numbers))
    assert "The repair of losses held it back for 31 % of the time (reno; bottleneck rate 10000000)." in said


def test_the_reason_of_a_flow_that_stayed_stands_behind_what_it_lost(tmp_path: Path) -> None:
    """Else the loss reads as a part of the reason; and a number of losses has its verb where no exit comes before."""
    scenario = Scenario(algorithms=("cubic", "bbr"), repetitions=1, flows=1)
    (text, *_) = words(made(tmp_path, scenario, of(cubic=CUBIC, bbr={**STAYS, LOST: 7, "held_back_share": 0.5})))
    assert text.endswith(
        "bbr did not leave start-up and retransmitted 7 packets (the send buffer held it back for 50 % of the time)."
    )
    alone = Scenario(name="alone", algorithms=("cubic",), repetitions=1, flows=1)
    (text,) = words(made(tmp_path, alone, of(cubic={**STAYS, LOST: 0, "held_back_share": 0.5})))
    assert text.startswith(
        "cubic did not leave slow start and retransmitted nothing: the send buffer held it back for 50 % of the time"
    )
