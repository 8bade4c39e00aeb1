# SPDX-License-Identifier: Apache-2.0
"""Colours: readable on their surface, told apart without full colour vision, stable across reports."""

from __future__ import annotations

from itertools import combinations

import pytest

from howdah.assets import data
from howdah.report.palette import colours

PALETTE = data("palette.yaml")
DEFAULT = ("cubic-no-hystart", "cubic", "reno", "bbr")
# Machado, Oliveira, Fernandes 2009, severity 1.0: linear RGB as seen without one kind of cone.
VISIONS = {
    "normal": ((1, 0, 0), (0, 1, 0), (0, 0, 1)),
    "protanopia": ((0.152286, 1.052583, -0.204868), (0.114503, 0.786281, 0.099216), (-0.003882, -0.048116, 1.051998)),
    "deuteranopia": ((0.367322, 0.860646, -0.227968), (0.280085, 0.672501, 0.047413), (-0.01182, 0.04294, 0.968881)),
    "tritanopia": ((1.255528, -0.076749, -0.178779), (-0.078411, 0.930809, 0.147602), (0.004733, 0.691367, 0.3039)),
}


def linear(colour: str) -> tuple[float, float, float]:
    def channel(at: int) -> float:
        value = int(colour[at : at + 2], 16) / 255
        return value / 12.92 if value <= 0.04045 else ((value + 0.055) / 1.055) ** 2.4

    return channel(1), channel(3), channel(5)


def luminance(colour: str) -> float:
    red, green, blue = linear(colour)
    return 0.2126 * red + 0.7152 * green + 0.0722 * blue


def contrast(one: str, other: str) -> float:
    high, low = sorted((luminance(one), luminance(other)), reverse=True)
    return (high + 0.05) / (low + 0.05)


def seen(colour: str, vision: str) -> tuple[float, float, float]:
    """CIE L*a*b* of a colour as seen."""
    rgb = linear(colour)
    red, green, blue = (
        max(0.0, min(1.0, sum(a * b for a, b in zip(row, rgb, strict=True)))) for row in VISIONS[vision]
    )
    x = (0.4124 * red + 0.3576 * green + 0.1805 * blue) / 0.9505
    y = 0.2126 * red + 0.7152 * green + 0.0722 * blue
    z = (0.0193 * red + 0.1192 * green + 0.9505 * blue) / 1.089
    fx, fy, fz = (v ** (1 / 3) if v > 0.008856 else 7.787 * v + 16 / 116 for v in (x, y, z))
    return 116 * fy - 16, 500 * (fx - fy), 200 * (fy - fz)


@pytest.mark.parametrize("theme", ["light", "dark"])
def test_every_colour_stands_out_from_its_surface(theme: str) -> None:
    for entry in [*PALETTE["algorithms"].values(), *PALETTE["others"]]:
        assert contrast(entry[theme], PALETTE["surfaces"][theme]) >= 4.5, entry


def apart(one: str, other: str) -> float:
    """Least distance in CIE L*a*b* over every way of seeing."""
    pairs = ((seen(one, vision), seen(other, vision)) for vision in VISIONS)
    return float(min(sum((x - y) ** 2 for x, y in zip(a, b, strict=True)) ** 0.5 for a, b in pairs))


@pytest.mark.parametrize("theme", ["light", "dark"])
def test_the_default_algorithms_are_told_apart_by_colour_alone(theme: str) -> None:
    for one, other in combinations(DEFAULT, 2):
        distance = apart(*(PALETTE["algorithms"][name][theme] for name in (one, other)))
        assert distance >= 20, (one, other, distance)


@pytest.mark.parametrize("theme", ["light", "dark"])
def test_any_two_looks_differ_in_colour_or_in_dashes_for_every_reader(theme: str) -> None:
    looks = [*PALETTE["algorithms"].items(), *enumerate(PALETTE["others"])]
    for (one, a), (other, b) in combinations(looks, 2):
        assert a["dashes"] != b["dashes"] or apart(a[theme], b[theme]) >= 20, (one, other)


def test_patterns_of_dashes_differ_and_the_first_is_solid() -> None:
    patterns = [tuple(pattern) for pattern in PALETTE["dashes"]]
    assert patterns[0] == ()
    assert len(set(patterns)) == len(patterns)
    assert all(0 <= each["dashes"] < len(patterns) for each in [*PALETTE["algorithms"].values(), *PALETTE["others"]])


def test_an_algorithm_keeps_its_colour_whatever_it_is_compared_with() -> None:
    alone = colours([("reno", "reno")])
    crowd = colours([(name, name) for name in ("mine", "cubic", "reno", "bbr")])
    assert alone["reno"] == crowd["reno"]
    assert len(set(crowd.values())) == 4


def test_many_variants_of_one_algorithm_differ() -> None:
    chosen = colours([(f"cubic {kernel}", "cubic") for kernel in range(12)])
    assert len(set(chosen.values())) == 12
