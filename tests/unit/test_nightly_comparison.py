# SPDX-License-Identifier: Apache-2.0
"""Nights against baselines: what is a regression, what is told, and what chance may do."""

from __future__ import annotations

import random
from pathlib import Path

import pytest

from howdah.errors import HowdahError
from howdah.nightly.baseline import Baseline
from howdah.nightly.comparison import CellResult
from howdah.nightly.night import Night
from howdah.nightly.sheet import Repetition, Sheet, Value
from tests.nightly_factory import changed, night, sheet, usual

NAME = "test-made-debian-6.12"


def _cell(made: Night, slug: str = "cubic") -> CellResult:
    return next(cell for cell in made.cells if cell.slug == slug)


def test_equal_nights_are_equal(tmp_path: Path) -> None:
    made = night(tmp_path, sheet(NAME, usual), sheet(NAME, usual))
    assert not made.failing
    assert made.states == {"equal": 2}
    assert all(each.outcome == "equal" for cell in made.cells for each in cell.comparisons)


@pytest.mark.parametrize(
    ("measure", "value", "outcome"),
    [
        ("retransmitted_packets@1", 40.0, "regression"),
        ("utilisation", 0.7, "regression"),
        ("utilisation", 0.99, "improvement"),
        ("exit_time_s@1", 2.0, "regression"),  # earlier or later: nobody meant it
        ("exit_time_s@1", 0.5, "regression"),
        ("exit_cause@1", "loss", "regression"),
        ("exit_round@1", 8.0, "regression"),
        ("exit_round@1", None, "vanished"),
        ("exit_cause@1", None, "vanished"),
    ],
)
def test_a_change_in_one_measure_is_found(tmp_path: Path, measure: str, value: Value, outcome: str) -> None:
    def tonight(slug: str, number: int) -> dict[str, Value]:
        shifted = value + 0.001 * (number % 4) if isinstance(value, float) and measure != "exit_round@1" else value
        return changed(slug, number, **{measure.replace("@", "__"): shifted})

    made = night(tmp_path, sheet(NAME, usual), sheet(NAME, tonight))
    (found,) = [each for each in _cell(made).comparisons if each.outcome != "equal"]
    assert (f"{found.metric}@{found.flow}".rstrip("@"), found.outcome) == (measure, outcome)
    assert [cell.slug for cell in made.failing] == ([] if outcome == "improvement" else ["cubic"])
    assert _cell(made, "reno").state == "equal"


def test_what_is_smaller_than_matters_is_no_regression_however_sure(tmp_path: Path) -> None:
    made = night(
        tmp_path, sheet(NAME, usual), sheet(NAME, lambda slug, n: changed(slug, n, retransmitted_packets__1=2.0))
    )
    assert not made.failing
    assert _cell(made).state == "unchanged"


def test_what_may_be_chance_is_no_regression_however_large(tmp_path: Path) -> None:
    values = [0, 900, 0, 0, 0, 0, 850, 0, 0, 0]  # a loss episode in two repetitions
    made = night(
        tmp_path,
        sheet(NAME, usual),
        sheet(NAME, lambda slug, n: changed(slug, n, retransmitted_packets__1=float(values[n]))),
    )
    assert not made.failing


def test_a_measure_that_appears_is_told(tmp_path: Path) -> None:
    before = sheet(NAME, lambda slug, n: {**usual(slug, n), "exit_round@1": None})
    made = night(tmp_path, before, sheet(NAME, usual))
    assert not made.failing
    assert len(_cell(made).of("appeared")) == 1


def test_losses_that_are_gone_are_no_regression_and_those_that_appear_are_one(tmp_path: Path) -> None:
    with_losses = sheet(NAME, lambda slug, n: {**usual(slug, n), "recovery_s@1": 0.2 + n / 1000})
    without = sheet(NAME, lambda slug, n: {**usual(slug, n), "recovery_s@1": None})
    better = night(tmp_path, with_losses, without)
    assert not better.failing
    assert [each.metric for each in _cell(better).of("improvement")] == ["recovery_s"]
    worse = night(tmp_path, without, with_losses)
    assert _cell(worse).regressions == [
        f"recovery_s of flow 1: in 0 of 10 to in 10 of 10, p = {worse.tests * 2 / 4**10:.2g} corrected"
    ]


@pytest.mark.parametrize("verdict", ["invalid", "failed"])
def test_a_run_that_does_not_count_any_more_is_a_regression(tmp_path: Path, verdict: str) -> None:
    after = sheet(NAME, usual)
    after.cells["cubic"].repetitions[4] = Repetition(verdict, 1, {}, "the buffer was 3 packets deep")
    made = night(tmp_path, sheet(NAME, usual), after)
    assert _cell(made).regressions == [f"repetition 4 is {verdict}: the buffer was 3 packets deep"]
    assert "buffer was 3 packets" in made.text()
    back = night(tmp_path, after, sheet(NAME, usual))
    assert not back.failing, "one that was invalid already, and counts now, is none"


def test_a_run_that_is_not_there_is_a_regression(tmp_path: Path) -> None:
    after = sheet(NAME, usual)
    del after.cells["reno"].repetitions[9]
    assert _cell(night(tmp_path, sheet(NAME, usual), after), "reno").broken == ["repetition 9 was not made"]


def test_a_kernel_that_does_not_build(tmp_path: Path) -> None:
    broken = sheet(NAME, usual)
    broken.cells, broken.problem = {}, "tcp_cubic.c:57: error"
    made = night(tmp_path, sheet(NAME, usual), broken)
    assert made.states == {"regression": 2}
    assert "cannot be run: tcp_cubic.c:57: error" in made.text()
    before = night(tmp_path, broken, broken)
    assert before.states == {"not built": 2}
    assert not before.failing
    assert night(tmp_path, broken, sheet(NAME, usual)).states == {"new": 2}


def test_what_has_no_baseline_is_new(tmp_path: Path) -> None:
    made = night(tmp_path, None, sheet(NAME, usual))
    assert made.states == {"new": 2}
    assert not made.failing


def test_repetitions_with_another_seed_are_no_pairs(tmp_path: Path) -> None:
    after = sheet(NAME, lambda slug, n: changed(slug, n, retransmitted_packets__1=500.0))
    for each in after.cells["cubic"].repetitions.values():
        each.seed = 2
    made = night(tmp_path, sheet(NAME, usual), after)
    assert not _cell(made).comparisons
    assert "only 0 repetitions are in both nights" in _cell(made).notes[0]


def test_other_settings_are_compared_and_told(tmp_path: Path) -> None:
    after = sheet(NAME, lambda slug, n: changed(slug, n, utilisation=0.5))
    after.cells["cubic"].plan = "another"
    cell = _cell(night(tmp_path, sheet(NAME, usual), after))
    assert cell.state == "regression"
    assert "the plan is not that of the baseline" in cell.notes[0]


def test_the_reproducing_command_names_the_cell(tmp_path: Path) -> None:
    made = night(tmp_path, sheet(NAME, usual), sheet(NAME, lambda slug, n: changed(slug, n, utilisation=0.5)))
    command = made.command(_cell(made))
    assert command.startswith(f"howdah nightly {tmp_path / 'suite.yaml'} --only {NAME}/cubic --again --baseline ")
    assert command in made.text()
    assert made.to_json()["cells"][0]["reproduce"] == command
    assert "--kernel debian-6.12" in made.look(_cell(made))


def _noisy(rng: random.Random) -> Sheet:
    def measures(_slug: str, _number: int) -> dict[str, Value]:
        found: dict[str, Value] = {f"measure_{index}_s": rng.gauss(10, 3) for index in range(30)}
        found |= {f"count_{index}": float(rng.randrange(3)) for index in range(20)}
        found |= {f"text_{index}": rng.choice(["delay", "loss"]) for index in range(10)}
        return found

    made = sheet(NAME, measures)
    made.units = {f"measure_{index}_s": "s" for index in range(30)}
    return made


def test_nights_that_differ_by_chance_alone_are_green(tmp_path: Path) -> None:
    """120 comparisons a night, 60 nights: without a correction each night would have six alarms."""
    rng = random.Random(7)
    nights = [night(tmp_path, _noisy(rng), _noisy(rng)) for _ in range(60)]
    assert all(made.tests == 120 for made in nights)
    assert sum(any(each.p is not None and each.p < 0.05 for c in made.cells for each in c.comparisons)
               for made in nights) > 30  # fmt: skip
    assert sum(bool(made.failing) for made in nights) <= 7  # 60 x 5 % and two and a half deviations


def test_a_planted_change_is_found_among_noise(tmp_path: Path) -> None:
    rng = random.Random(8)
    before, after = _noisy(rng), _noisy(rng)
    for number, each in after.cells["reno"].repetitions.items():
        value = before.cells["reno"].repetitions[number].metrics["measure_3_s"]
        assert isinstance(value, float)
        each.metrics["measure_3_s"] = value + 5 + rng.gauss(0, 0.5)
    made = night(tmp_path, before, after)
    assert [cell.slug for cell in made.failing] == ["reno"]
    assert [each.metric for each in _cell(made, "reno").of("regression")] == ["measure_3_s"]


def test_a_baseline_is_stored_and_read_back(tmp_path: Path) -> None:
    baseline = Baseline(tmp_path / "baseline")
    assert baseline.read(NAME) is None
    baseline.accept(sheet(NAME, usual))
    assert baseline.read(NAME) == sheet(NAME, usual)
    assert baseline.experiments() == [NAME]
    part = sheet(NAME, lambda slug, n: changed(slug, n, utilisation=0.5))
    del part.cells["reno"]
    baseline.accept(part, part=True)
    both = baseline.read(NAME)
    assert both is not None
    assert both.cells["cubic"].repetitions[0].metrics["utilisation"] == 0.5
    assert "reno" in both.cells
    whole = sheet(NAME, usual)
    del whole.cells["reno"]
    baseline.accept(whole)
    found = baseline.read(NAME)
    assert found is not None
    assert list(found.cells) == ["cubic"]


@pytest.mark.parametrize("text", ["", "[]", '{"format": 99}', '{"format": 1}', '{"format": 1, "cells": 3}'])
def test_a_damaged_baseline_is_told(tmp_path: Path, text: str) -> None:
    baseline = Baseline(tmp_path)
    baseline.file(NAME).write_text(text)
    with pytest.raises(HowdahError, match="not a baseline that can be read") as caught:
        baseline.read(NAME)
    assert f"{NAME}.json" in str(caught.value)
