# SPDX-License-Identifier: Apache-2.0
"""Repetitions taken together: intervals, determinism, texts."""

from __future__ import annotations

import math
from typing import Any

import pytest

from howdah.measure.statistics import statistic, student_quantile, summarise


def row(value: Any, repetition: int = 0, **changes: Any) -> dict[str, Any]:
    return {
        "run": "r",
        "engine": "uml",
        "kernel": "6.12",
        "algorithm": "cubic",
        "receiver": "linux",
        "flow": 0,
        "repetition": repetition,
        "axes": {"algorithm": "cubic", "path.rate": 400},
        "metric": "exit_cwnd_packets",
        "value": value,
        "unit": "packets",
        **changes,
    }


def test_the_interval_is_students() -> None:
    found = statistic([1.0, 2.0, 3.0])
    assert (found.mean, found.median, found.count) == (2.0, 2.0, 3)
    assert found.half_width == pytest.approx(4.303 / math.sqrt(3), rel=1e-4)
    assert found.interval == pytest.approx((2 - 2.4844, 2 + 2.4844), rel=1e-3)
    assert found.text() == "2.000 ± 2.5, n=3"


def test_one_value_is_n_1_and_never_plus_or_minus_zero() -> None:
    found = statistic([2358.0])
    assert found.interval is None
    assert not found.deterministic
    assert found.text() == "2358, n=1"


def test_equal_values_are_deterministic() -> None:
    found = statistic([2358.0] * 3)
    assert found.deterministic
    assert found.text() == "2358, deterministic, n=3"


def test_zeros_are_deterministic_too() -> None:
    assert statistic([0.0, 0.0]).text() == "0, deterministic, n=2"


def test_an_even_number_of_values_has_the_mean_of_the_middle_as_median() -> None:
    assert statistic([4.0, 1.0, 3.0, 100.0]).median == 3.5


@pytest.mark.parametrize(("degrees", "quantile"), [(1, 12.706), (2, 4.303), (30, 2.042), (60, 2.0003), (1000, 1.9623)])
def test_students_quantiles(degrees: int, quantile: float) -> None:
    assert student_quantile(degrees) == pytest.approx(quantile, abs=1e-3)


def test_no_values_have_no_statistic() -> None:
    with pytest.raises(ValueError, match="no values"):
        statistic([])
    with pytest.raises(ValueError, match="two values"):
        student_quantile(0)


def test_repetitions_are_taken_together_and_points_are_not() -> None:
    rows = [row(10, 0), row(12, 1), row(50, 0, axes={"algorithm": "cubic", "path.rate": 100}), row(7, 0, flow=1)]
    found = summarise(rows)
    assert [(item.group.flow, item.number.mean if item.number else None) for item in found] == [
        (0, 11),
        (0, 50),
        (1, 7),
    ]
    assert found[0].group.axes == '{"path.rate": 400}'


def test_texts_are_counted() -> None:
    rows = [row("ack-train", index, metric="exit_cause", unit="") for index in range(2)]
    assert summarise(rows)[0].text() == "ack-train"
    mixed = summarise([*rows, row("loss", 2, metric="exit_cause", unit="")])[0]
    assert mixed.texts == {"ack-train": 2, "loss": 1}
    assert mixed.text() == "ack-train 2, loss 1"


def test_what_does_not_exist_keeps_its_reason() -> None:
    missing = row(None, why="the flow did not leave slow start")
    assert summarise([missing])[0].text() == "– (the flow did not leave slow start)"
    both = summarise([row(10), row(None, 1, why="no exit")])[0]
    assert both.missing == 1
    assert both.text() == "10.00, n=1, 1 without"
