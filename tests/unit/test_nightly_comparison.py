# SPDX-License-Identifier: Apache-2.0
"""Nights against baselines: what is a regression, what is told, and what chance may do."""

from __future__ import annotations

import random
from pathlib import Path

import pytest

from howdah.errors import HowdahError
from howdah.nightly.change import CellResult
from howdah.nightly.comparison import compare_sheets
from howdah.nightly.night import Night
from howdah.nightly.sheet import Baseline, NightSheet, Repetition, Value
from howdah.nightly.significance import Measures
from tests.nightly_factory import as_stored, changed, night, sheet, usual

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


def test_what_may_be_chance_is_not_proven_however_large_and_never_unchanged(tmp_path: Path) -> None:
    values = [0, 900, 0, 0, 0, 0, 850, 0, 0, 0]  # a loss episode in two repetitions
    after = sheet(NAME, lambda slug, n: changed(slug, n, retransmitted_packets__1=float(values[n])))
    made = night(tmp_path, sheet(NAME, usual), after)
    assert _cell(made).state == "unproven"
    assert [cell.slug for cell in made.failing] == ["cubic"]
    (found,) = _cell(made).of("unproven")
    assert found.needed is not None
    assert found.needed > 10
    assert f": changed, too few repetitions (about {found.needed} would decide)" in made.text()
    allowed = night(tmp_path, sheet(NAME, usual), after, allow_unproven=True)
    assert not allowed.failing
    assert _cell(allowed).state == "unproven", "it is let pass, and not called anything else"
    assert "changed, too few repetitions" in allowed.text()


def test_an_unproven_change_for_the_better_is_told_as_well(tmp_path: Path) -> None:
    before = sheet(NAME, lambda slug, n: changed(slug, n, retransmitted_packets__1=900.0 if n in (1, 6) else 0.0))
    assert _cell(night(tmp_path, before, sheet(NAME, usual))).state == "unproven"


def test_an_unproven_change_of_another_measure_is_for_information(tmp_path: Path) -> None:
    after = sheet(NAME, lambda slug, n: changed(slug, n, exit_round__1=9.0 if n < 3 else 7.0))
    made = night(tmp_path, sheet(NAME, usual), after)
    assert not made.failing
    assert _cell(made).hints == ["for information: 1 other measure changed, not proven: exit_round of flow 1"]


def test_other_measures_do_not_take_from_the_primary_ones(tmp_path: Path) -> None:
    """Five repetitions prove a change among 24 comparisons of primary measures, and not among 2000 of all."""

    def before(slug: str, number: int) -> dict[str, Value]:
        return {**usual(slug, number), **{f"measure_{index}": float(number) for index in range(1000)}}

    def after(slug: str, number: int) -> dict[str, Value]:
        return {**before(slug, number), "utilisation": 0.7}

    made = night(tmp_path, sheet(NAME, before, repetitions=5), sheet(NAME, after, repetitions=5))
    assert made.tests > 2000
    assert [each.metric for each in _cell(made).of("regression")] == ["utilisation"]


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
    p = (worse.tests - worse.primary_tests) * 2 / 4**10
    assert _cell(worse).regressions == [f"recovery_s of flow 1: in 0 of 10 to in 10 of 10, p = {p:.2g} corrected"]


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
    assert len(before.failing) == 2, "nothing at all was compared"
    assert night(tmp_path, broken, sheet(NAME, usual)).states == {"new": 2}


def test_a_kernel_that_never_built_fails_no_night_on_which_others_are_compared(tmp_path: Path) -> None:
    broken = sheet("test-made-debian-6.1", usual)
    broken.cells, broken.problem = {}, "no such option"
    made = night(tmp_path, sheet(NAME, usual), sheet(NAME, usual))
    made.cells += compare_sheets(broken, broken, ["cubic", "reno"])
    made.settle()
    assert made.states == {"equal": 2, "not built": 2}
    assert not made.failing


def test_what_has_no_baseline_is_new(tmp_path: Path) -> None:
    made = night(tmp_path, None, sheet(NAME, usual))
    assert made.states == {"new": 2}
    assert len(made.failing) == 2, "a night that compares nothing is no success"
    assert made.lacks_only_baselines
    part = sheet(NAME, usual)
    del part.cells["reno"]
    some = night(tmp_path, part, sheet(NAME, usual))
    assert some.states == {"equal": 1, "new": 1}
    assert not some.failing
    required = night(tmp_path, part, sheet(NAME, usual), require_baseline=True)
    assert [cell.slug for cell in required.failing] == ["reno"]
    assert required.lacks_only_baselines


def test_repetitions_with_another_seed_are_no_pairs(tmp_path: Path) -> None:
    after = sheet(NAME, lambda slug, n: changed(slug, n, retransmitted_packets__1=500.0))
    for each in after.cells["cubic"].repetitions.values():
        each.seed = 2
    made = night(tmp_path, sheet(NAME, usual), after)
    assert not _cell(made).comparisons
    assert _cell(made).state == "cannot tell"
    assert made.failing
    assert "only 0 repetitions are in both nights" in _cell(made).reasons[0]


def test_other_settings_are_compared_and_told(tmp_path: Path) -> None:
    after = sheet(NAME, lambda slug, n: changed(slug, n, utilisation=0.5))
    for number, each in after.cells["cubic"].repetitions.items():
        each.plan = f"another {number}"
    cell = _cell(night(tmp_path, sheet(NAME, usual), after))
    assert cell.state == "regression"
    assert "the plan differs from the baseline's" in cell.notes[0]


def test_the_reproducing_command_names_the_cell(tmp_path: Path) -> None:
    made = night(tmp_path, sheet(NAME, usual), sheet(NAME, lambda slug, n: changed(slug, n, utilisation=0.5)))
    command = made.command(_cell(made))
    assert command.startswith(f"howdah nightly {tmp_path / 'suite.yaml'} --only {NAME}/cubic --again --baseline ")
    assert command in made.text()
    assert made.file().cells[0].reproduce == command
    assert "--kernel debian-6.12" in made.look(_cell(made))


def _noisy(rng: random.Random) -> NightSheet:
    def measures(_slug: str, _number: int) -> dict[str, Value]:
        found: dict[str, Value] = {f"measure_{index}_s": rng.gauss(10, 3) for index in range(30)}
        found |= {f"count_{index}": float(rng.randrange(3)) for index in range(20)}
        found |= {f"text_{index}": rng.choice(["delay", "loss"]) for index in range(10)}
        found |= {f"now_and_then_{index}": rng.choice([None, 1.0]) for index in range(10)}
        return found

    made = sheet(NAME, measures)
    made.units = {f"measure_{index}_s": "s" for index in range(30)}
    return made


HALF = Measures(frozenset(f"{kind}_{index}{'_s' * (kind == 'measure')}" for kind in ("measure", "count", "text")
                          for index in range(0, 30, 2)))  # fmt: skip


def test_nights_that_differ_by_chance_alone_have_no_regression(tmp_path: Path) -> None:
    """140 measures a night, 60 nights: without a correction each night would have six false regressions."""
    rng = random.Random(7)
    nights = [night(tmp_path, _noisy(rng), _noisy(rng), measures=HALF) for _ in range(60)]
    assert all(made.primary_tests == 60 for made in nights)
    assert all(made.tests > 140 for made in nights)
    assert sum(any(each.p is not None and each.p < 0.05 for c in made.cells for each in c.comparisons)
               for made in nights) > 30  # fmt: skip
    assert sum(bool(made.states["regression"]) for made in nights) <= 7  # 60 x 5 % and two and a half deviations
    assert all(made.states["unproven"] for made in nights), "what scatters so much needs more repetitions"


def test_a_planted_change_is_found_among_noise(tmp_path: Path) -> None:
    rng = random.Random(8)
    before, after = _noisy(rng), _noisy(rng)
    for name in ("measure_3_s", "measure_4_s"):  # of both families
        for number, each in after.cells["reno"].repetitions.items():
            value = before.cells["reno"].repetitions[number].metrics[name]
            assert isinstance(value, float)
            each.metrics[name] = value + 5 + rng.gauss(0, 0.5)
    made = night(tmp_path, before, after, measures=HALF)
    assert made.states["regression"] == 1
    assert [each.metric for each in _cell(made, "reno").of("regression")] == ["measure_3_s", "measure_4_s"]


def test_a_baseline_is_stored_and_read_back(tmp_path: Path) -> None:
    baseline = Baseline(tmp_path / "baseline")
    assert baseline.read(NAME) is None
    baseline.accept(sheet(NAME, usual))
    assert baseline.read(NAME) == as_stored(sheet(NAME, usual))
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
    with pytest.raises(HowdahError, match="this baseline cannot be read") as caught:
        baseline.read(NAME)
    assert f"{NAME}.json" in str(caught.value)


def test_an_edited_baseline_is_refused(tmp_path: Path) -> None:
    baseline = Baseline(tmp_path)
    baseline.accept(sheet(NAME, usual))
    file = baseline.file(NAME)
    text = file.read_text()
    assert text.count("0.909") == 2
    file.write_text(text.replace("0.909", "0.919", 1))
    with pytest.raises(HowdahError, match="somebody edited or merged it"):
        baseline.read(NAME)
