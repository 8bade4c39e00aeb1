# SPDX-License-Identifier: Apache-2.0
"""Numbers for people."""

from __future__ import annotations

import pytest

from howdah.number import delay, duration, rate, significant, size


@pytest.mark.parametrize(
    ("value", "text"),
    [
        (0, "0"),
        (9430.0, "9430"),
        (15893, "15\u202f893"),
        (1234567.8, "1\u202f234\u202f568"),
        (3.21456, "3.215"),
        (0.99996, "1"),
        (0.00012345, "0.0001234"),
        (-2.5, "\u22122.5"),
        (-0.0000000001, "\u22121.000e\u221210"),
        (1000.0, "1000"),
        (100.04, "100"),
        (float("nan"), "—"),
        (float("inf"), "∞"),
    ],
)
def test_four_significant_digits(value: float, text: str) -> None:
    assert significant(value) == text


def test_quantities_choose_their_unit() -> None:
    assert rate(400_000_000) == "400 Mbit/s"
    assert rate(10_000_000_000) == "10 Gbit/s"
    assert size(12_000_000) == "12 MB"
    assert size(250_000) == "250 kB"
    assert size(600) == "600 B"
    assert delay(240_000) == "240 ms"
    assert duration(62_000_000) == "62 s"
    assert duration(240_000) == "240 ms"
