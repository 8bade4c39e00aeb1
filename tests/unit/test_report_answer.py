# SPDX-License-Identifier: Apache-2.0
"""The first screen: what is compared at each point, in numbers computed here, and the run behind each dot."""

from __future__ import annotations

import re
from dataclasses import replace
from types import SimpleNamespace
from typing import Any, cast

import pytest

from howdah.report.contrast import Contrast, contrasts, headline_measures
from howdah.report.dotplot import MOST_ROWS, _number, dot_plot
from howdah.report.ending import results
from howdah.report.section import Claims, answer
from howdah.report.source import TableSource
from howdah.report.subject import Subject, subjects_of
from tests.claim_rows import claim_row
from tests.experiment_factory import Scenario
from tests.unit.test_report_found import EXIT, LOST, made

RATES = (20_000_000, 40_000_000)


def numbers(row: dict[str, Any]) -> object:
    """reno loses 2, 3 and 4 times as much as cubic at 20 Mbit/s, and nothing that cubic has none of at 40."""
    reno, slow = row["algorithm"] == "reno", row["axes"]["path.rate"] == RATES[0]
    repetition = row["repetition"]
    values = {
        EXIT: 0.5 + 0.1 * repetition,
        LOST: (10 * (2 + repetition if reno else 1)) if slow else (7 if reno else 0),
    }
    return values.get(row["metric"])


@pytest.fixture(scope="module")
def said(tmp_path_factory: pytest.TempPathFactory) -> list[Subject]:
    scenario = Scenario(
        name="answer",
        algorithms=("cubic", "reno"),
        repetitions=3,
        axes=tuple({"path.rate": rate} for rate in RATES),
    )
    experiment = made(tmp_path_factory.mktemp("answer"), scenario, numbers)
    return subjects_of(results([experiment], TableSource()))


def test_each_point_has_its_difference_and_ratio(said: list[Subject]) -> None:
    shown, _ = headline_measures(said)
    slow, fast = contrasts(shown, [LOST])
    assert slow.of.differences.values == (10.0, 20.0, 30.0)
    assert slow.of.ratios is not None and slow.of.ratios.values == (2.0, 3.0, 4.0)
    assert slow.better == "cubic"
    assert re.fullmatch(r".*reno.*", slow.run), "the run of the side that is compared"
    assert fast.of.ratios is None  # nothing is no measure of something
    assert fast.of.differences.values == (7.0, 7.0, 7.0)


def test_the_run_behind_a_dot_is_the_middle_one(said: list[Subject]) -> None:
    slow = contrasts(headline_measures(said)[0], [LOST])[0]
    mine = next(each for each in headline_measures(said)[0] if (each.side, each.place) == (slow.side, slow.place))
    middle = next(repetition for repetition, value in mine.of.numbers[LOST].items() if value == 30.0)
    assert slow.run == mine.of.runs[middle]


def test_equal_sides_have_no_better_one(said: list[Subject]) -> None:
    assert {each.better for each in contrasts(headline_measures(said)[0], [EXIT])} == {""}
    assert all(each.of.is_alike for each in contrasts(headline_measures(said)[0], [EXIT]))


def test_a_dot_is_drawn_for_each_ratio_and_numbers_where_there_is_none(said: list[Subject]) -> None:
    run = contrasts(headline_measures(said)[0], [LOST])[0].run
    plot = dot_plot(said, frozenset([run]))
    assert plot is not None
    assert plot.title == "reno against cubic at each of 2 sweep points"
    assert ">3 (2 … 4)<" in plot.wide
    assert ">7 against 0<" in plot.wide
    assert "← reno better" in plot.wide
    assert "cubic better →" in plot.wide
    linked = re.findall(r'data-run="([^"]+)"', plot.wide)
    assert linked and set(linked) == {run}
    assert plot.wide.count('class="mark"') == 1 + 2 + 2  # losses at one point; exits and time to 90 % at both


def test_of_several_sides_numbers_stand_where_one_has_no_ratio(said: list[Subject]) -> None:
    """One mark at 1 for a side that lost nothing, and none for those that lost packets, reads as no difference."""
    third = [replace(each, side="bbr") for each in said if each.side == "reno"]
    plot = dot_plot([*said, *third], frozenset())
    assert plot is not None
    assert plot.title == "Each against cubic at each of 2 sweep points"
    for drawing in (plot.wide, "".join(plot.narrow)):
        assert drawing.count(">7 against 0<") == 2
    assert plot.wide.count('class="mark"') == 2 * (2 + 2 + 2), "a mark for each side, with a dot or numbers"
    assert "both numbers stand beside the line" in plot.note


def test_a_measure_that_the_first_side_has_none_of_is_shown(said: list[Subject]) -> None:
    fast = [each for each in said if each.place == said[-1].place]
    plot = dot_plot(fast, frozenset())
    assert plot is not None
    assert "Retransmissions, ratio" in plot.wide
    assert ">7 against 0<" in plot.wide


def test_sides_have_the_colours_of_the_report(said: list[Subject]) -> None:
    named = [replace(each, side=f"{each.side} · quick", variant=f"{each.side} · quick") for each in said]
    plain, longer = dot_plot(said, frozenset()), dot_plot(named, frozenset())
    assert plain is not None
    assert longer is not None
    assert re.findall(r"--on-light:[^;]+", longer.wide) == re.findall(r"--on-light:[^;]+", plain.wide)


def test_a_spread_has_as_many_digits_as_its_ratio() -> None:
    """``0.984 (0.93 … 1)`` stood below a sentence that ended at 1.03."""
    around = SimpleNamespace(low=0.9341766757596366, high=1.0331450673691644)
    of = SimpleNamespace(ratios=SimpleNamespace(median=0.9836608715644005), is_alike=False, around=around)
    assert _number(cast(Contrast, SimpleNamespace(of=of, has_ratio=True))) == "0.984 (0.934 … 1.03)"


def test_many_points_are_thinned_and_say_so(said: list[Subject]) -> None:
    many = [
        replace(each, place=f"point {number}")
        for number in range(MOST_ROWS + 5)
        for each in said
        if each.place == said[0].place
    ]
    plot = dot_plot(many, frozenset())
    assert plot is not None
    assert "5 more points are in the table." in plot.note
    assert f">point {MOST_ROWS + 4}<" in plot.wide


def test_one_side_alone_has_no_picture(said: list[Subject]) -> None:
    assert dot_plot([each for each in said if each.side == "cubic"], frozenset()) is None


def _claims(*verdicts: str) -> list[Claims]:
    return [Claims("", "", [claim_row(verdict=each, says=f"It is so {each}.") for each in verdicts])]


def test_the_claims_are_answered_first() -> None:
    assert answer(_claims("pass", "pass")) == ["All 2 claims hold."]
    assert answer(_claims("pass", "fail")) == ["1 of 2 claims hold; not: It is so fail (fail)."]
    assert answer(_claims("fail")) == ["The claim does not hold: It is so fail (fail)."]
    assert answer(_claims("pass")) == ["The claim holds: It is so pass."]
    assert answer([]) == []
