# SPDX-License-Identifier: Apache-2.0
"""Colours: readable on their surface, told apart without full colour vision, stable across reports."""

from __future__ import annotations

from itertools import combinations
from math import atan2, cos, degrees, exp, hypot, radians, sin, sqrt

import pytest

from howdah.assets import data
from howdah.report.variant import colours

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


def ciede2000(one: tuple[float, float, float], other: tuple[float, float, float]) -> float:
    """How far two colours in CIE L*a*b* are apart: Sharma, Wu, Dalal 2005, equations 2 to 22."""
    (l1, a1, b1), (l2, a2, b2) = one, other
    chroma = ((hypot(a1, b1) + hypot(a2, b2)) / 2) ** 7
    grey = 1.5 - 0.5 * sqrt(chroma / (chroma + 25**7))
    c1, c2 = hypot(a1 * grey, b1), hypot(a2 * grey, b2)
    h1, h2 = (degrees(atan2(b, a * grey)) % 360 for a, b in ((a1, b1), (a2, b2)))
    turn = (h2 - h1 + 180) % 360 - 180 if c1 * c2 else 0.0
    hue = (h1 + turn / 2) % 360 if c1 * c2 else h1 + h2
    lightness, mean = (l1 + l2) / 2, (c1 + c2) / 2
    waves = ((-0.17, 1, -30), (0.24, 2, 0), (0.32, 3, 6), (-0.2, 4, -63))
    weight = 1 + sum(size * cos(radians(times * hue + shift)) for size, times, shift in waves)
    in_lightness = (l2 - l1) / (1 + 0.015 * (lightness - 50) ** 2 / sqrt(20 + (lightness - 50) ** 2))
    in_chroma = (c2 - c1) / (1 + 0.045 * mean)
    in_hue = 2 * sqrt(c1 * c2) * sin(radians(turn / 2)) / (1 + 0.015 * mean * weight)
    blue = -2 * sqrt(mean**7 / (mean**7 + 25**7)) * sin(radians(60 * exp(-(((hue - 275) / 25) ** 2))))
    return sqrt(in_lightness**2 + in_chroma**2 + in_hue**2 + blue * in_chroma * in_hue)


@pytest.mark.parametrize(
    ("one", "other", "distance"),
    [
        ((50, 2.6772, -79.7751), (50, 0, -82.7485), 2.0425),
        ((50, -1, 2), (50, 0, 0), 2.3669),
        ((50, 2.49, -0.001), (50, -2.49, 0.0011), 7.2195),
        ((50, 2.5, 0), (73, 25, -18), 27.1492),
        ((50, 2.5, 0), (58, 24, 15), 19.4535),
        ((60.2574, -34.0099, 36.2677), (60.4626, -34.1751, 39.4387), 1.2644),
        ((22.7233, 20.0904, -46.694), (23.0331, 14.973, -42.5619), 2.0373),
        ((2.0776, 0.0795, -1.135), (0.9033, -0.0636, -0.5514), 0.9082),
    ],
)
def test_the_distance_is_that_of_the_publication(
    one: tuple[float, float, float], other: tuple[float, float, float], distance: float
) -> None:
    """Of table 1 there."""
    assert ciede2000(one, other) == pytest.approx(distance, abs=5e-5)
    assert ciede2000(other, one) == pytest.approx(distance, abs=5e-5)


def apart(one: str, other: str) -> float:
    """Least distance over every way of seeing."""
    return min(ciede2000(seen(one, vision), seen(other, vision)) for vision in VISIONS)


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


@pytest.mark.parametrize("theme", ["light", "dark"])
def test_no_two_colours_are_alike(theme: str) -> None:
    every = [*PALETTE["algorithms"].values(), *PALETTE["others"]]
    for one, other in combinations(every, 2):
        assert ciede2000(seen(one[theme], "normal"), seen(other[theme], "normal")) >= 20, (one, other)
