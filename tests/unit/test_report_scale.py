# SPDX-License-Identifier: Apache-2.0
"""Scales of declared figures: ticks, values of an axis, and units."""

from __future__ import annotations

import itertools
import math

import pytest

from howdah.report.plot.scale import Scale, Tick, bounds, label_at, measure_of, printed_number, thinned, ticks
from howdah.report.plot.swept import swept


@pytest.mark.parametrize("logarithmic", [False, True])
@pytest.mark.parametrize(("low", "high"), [(0.01, 0.012), (1, 9), (3, 70_000), (0.5, 0.50001), (1e-6, 1e6)])
def test_ticks_are_round_and_within(low: float, high: float, logarithmic: bool) -> None:
    least, most = bounds([low, high], logarithmic=logarithmic, zero=False)
    scale = Scale(least, most, 0, 500, logarithmic)
    found = [tick for tick in ticks(scale, 5) if tick.text]
    assert 2 <= len(found) <= 12
    assert all(least <= tick.value <= most for tick in found)
    assert len({tick.text for tick in found}) == len(found), "two ticks say the same"
    pixels = [scale.at(tick.value) for tick in found]
    assert pixels == sorted(pixels)


def test_texts_of_ticks_do_not_run_into_each_other() -> None:
    scale, width = Scale(1, 1000, 0, 300), 302.0
    marks = [Tick(value, str(value)) for value in (1, 2, 3, 5, 100, 990, 1000)]
    kept = [tick for tick in thinned(marks, scale, width) if tick.text]
    assert [tick.value for tick in kept][-1] == 1000
    for before, after in itertools.pairwise(kept):
        distance = label_at(after, scale, width) - label_at(before, scale, width)
        assert distance >= (len(before.text) + len(after.text)) / 2 * 6


@pytest.mark.parametrize(
    ("values", "label", "positions"),
    [
        (["20 ms", "0.1 s"], "round-trip time (ms)", [20, 100]),
        (["1 s", "2500 ms"], "round-trip time (s)", [1, 2.5]),
        (["10 Mbit/s", "1 Gbit/s"], "round-trip time (Mbit/s)", [10, 1000]),
        (["0.1 %", "2 %"], "round-trip time (%)", [0.1, 2]),
        (["1 bdp", "0.5 bdp"], "round-trip time (BDP)", [1, 0.5]),
        (["100 kB", "2 MB"], "round-trip time (kB)", [100, 2000]),
        (["8", "16"], "round-trip time", [8, 16]),
    ],
)
def test_swept_values_stand_at_their_numbers(values: list[str], label: str, positions: list[float]) -> None:
    found = swept("path.rtt", values)
    assert found.numeric
    assert found.label == label
    assert [found.position[value] for value in values] == pytest.approx(positions)


def test_values_in_units_that_differ_are_categories() -> None:
    found = swept("path.buffer", ["1 bdp", "100 packets"])
    assert not found.numeric
    assert [found.position[value] for value in ("1 bdp", "100 packets")] == [0, 1]


def test_printed_numbers_are_read_in_the_unit_of_the_measure() -> None:
    assert printed_number("12.9 Mbit/s", "goodput_bits_per_second") == pytest.approx(12.9e6)
    assert printed_number("20 s", "exit_time_s") == pytest.approx(20)
    assert printed_number("95.6 %", "utilisation") == pytest.approx(0.956)
    measure = measure_of("goodput_bits_per_second", "bit/s", [5e3, 2e9])
    assert (measure.unit, measure.factor) == ("Gbit/s", 1e-9)
    assert math.isclose(measure_of("queue_peak_bytes", "bytes", [2e6]).factor, 1e-6)
