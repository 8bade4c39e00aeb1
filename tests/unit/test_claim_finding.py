# SPDX-License-Identifier: Apache-2.0
"""How what was found at one point of a claim reads: its numbers, units and counts."""

from __future__ import annotations

import pytest

from howdah.claim.expectation import judge_point
from howdah.claim.finding import (
    left_out_text,
    metric_named,
    missing_text,
    number_text,
    numbers_text,
    shares,
    statistic_text,
    summary,
)
from howdah.claim.sample import Sample
from howdah.measure.statistics import statistic
from howdah.profile.claim import ExpectSection

SHARE = metric_named("utilisation")  # shown in per cent
COUNT = metric_named("exit_cwnd_packets")
RATIO = metric_named("exit_cwnd_bdp")


def of(*values: float | str, unit: str = "") -> Sample:
    return Sample(unit, dict(enumerate(values)), runs=[f"r{number}" for number in range(len(values))])


@pytest.mark.parametrize(
    ("values", "text"),
    [
        ([0.5], "50 %, n = 1"),
        ([0.5] * 3, "50 %, deterministic, n = 3"),
        ([0.4, 0.55, 0.55], "50 (40 … 55) %, n = 3"),
        # s² = 8 · 0.1² / 7, and t of 7 degrees of freedom is 2.3646: 2.3646 · √(0.08 / 7 / 8) = 0.0894.
        ([0.4, 0.6] * 4, "50 ± 8.9 %, n = 8"),
    ],
)
def test_a_statistic_is_in_the_unit_that_a_reader_sees(values: list[float], text: str) -> None:
    assert statistic_text(statistic(values), SHARE) == text


def test_what_cannot_be_negative_has_no_interval_below_zero() -> None:
    """One of eight is 0.8: mean 0.1, and 0.1 · 2.3646 is more than the mean."""
    assert statistic_text(statistic([0.0] * 7 + [0.8]), SHARE) == "10 (0 … 33.65) %, n = 8"


def test_numbers_and_their_units() -> None:
    assert [number_text(value, metric) for value, metric in ((0.956, SHARE), (67, COUNT), (2, RATIO))] == [
        "95.6 %",
        "67 packets",
        "2 BDP",
    ]
    assert numbers_text([2, 1, 1], COUNT) == "1 packets (2 times), 2 packets"
    assert numbers_text([5, 4, 3, 2, 1], COUNT) == "1 packets, 2 packets, 3 packets, 4 packets, 5 packets"
    assert numbers_text([6, 5, 4, 3, 2, 1], COUNT) == "1 packets to 6 packets"


def test_texts_are_counted_the_most_frequent_first() -> None:
    assert shares(["loss", "loss"]) == "loss"
    assert shares(["loss", "ack-train", "ack-train", "delay"]) == "ack-train 2, delay 1, loss 1"


def test_runs_without_a_value_are_counted_with_the_first_reason() -> None:
    found = Sample(values={0: 1.0}, missing={1: "no exit", 2: "no ACK", 3: "no exit"})
    assert missing_text(found) == "3 of 4 runs have none: no exit (and 1 more reasons)"
    assert missing_text(Sample(missing={1: "no exit"})) == "1 of 1 runs have none: no exit"
    assert missing_text(of(1.0)) == ""


def test_runs_that_do_not_count_are_counted_by_why() -> None:
    first = Sample(left_out={"a": "invalid", "b": "failed"}, runs=["a", "b", "c"])
    second = Sample(left_out={"d": "invalid"}, runs=["c", "d"])
    assert left_out_text([first, second]) == "3 of 4 runs left out: 2 invalid, 1 failed"
    assert left_out_text([of(1.0)]) == ""


def test_a_summary_has_text_mean_and_interval() -> None:
    found = summary(of(*[0.4, 0.6] * 4, unit="ratio"), SHARE)
    assert (found.text, found.n, found.unit) == ("50 ± 8.9 %, n = 8", 8, "ratio")
    assert (found.mean, found.low, found.high) == pytest.approx((0.5, 0.5 - 0.0894, 0.5 + 0.0894), abs=1e-4)
    nothing = {"mean": None, "low": None, "high": None}
    assert summary(of("loss", "loss", "delay"), SHARE).plain() == nothing | {
        "text": "loss 2, delay 1, n = 3",
        "n": 3,
        "unit": "",
        "counts": {"loss": 2, "delay": 1},
    }
    assert summary(Sample(), SHARE).plain() == nothing | {"text": "no value: no run counts", "n": 0, "unit": ""}
    missing = Sample(missing={0: "no exit"})
    assert summary(missing, SHARE).text == "no value: 1 of 1 runs have none: no exit"
    assert summary(missing, SHARE).missing == 1


@pytest.mark.parametrize("left_out", ["value", "than"])
def test_a_comparison_needs_half_of_the_runs_of_both_sides(left_out: str) -> None:
    whole, half = of(0.5, 0.5), Sample(left_out={"a": "invalid", "b": "failed"}, runs=["a", "b", "c"])
    value, than = (half, whole) if left_out == "value" else (whole, half)
    found = judge_point(
        ExpectSection.model_validate({"ratio": {"above": 1}}), SHARE, {"algorithm": "cubic"}, value, than
    )
    assert (found.verdict, found.note) == ("invalid", "2 of 5 runs left out: 1 invalid, 1 failed")
    assert (found.why, found.at, found.value, found.than) == (found.note, {"algorithm": "cubic"}, value, than)
