# SPDX-License-Identifier: Apache-2.0
"""Colours and dashes of algorithms: the same algorithm looks the same in every report."""

from __future__ import annotations

from dataclasses import dataclass

from howdah.assets import data


@dataclass(frozen=True)
class Colour:
    """``#rrggbb`` on the light and on the dark page, and the number of the dashes that go with it."""

    light: str
    dark: str
    dashes: int = 0


def colours(variants: list[tuple[str, str]]) -> dict[str, Colour]:
    """A colour for each variant, given as (key, algorithm).

    The first variant of an algorithm has the algorithm's colour; the next ones, and unknown algorithms, take the
    spare colours in turn.
    """
    palette = data("palette.yaml")
    known = {name: Colour(**value) for name, value in palette["algorithms"].items()}
    spare = [Colour(**value) for value in palette["others"]]
    spare += [colour for name, colour in known.items() if name not in {algorithm for _, algorithm in variants}]
    chosen: dict[str, Colour] = {}
    taken = 0
    used: set[str] = set()
    for key, algorithm in variants:
        if algorithm in known and algorithm not in used:
            chosen[key] = known[algorithm]
            used.add(algorithm)
        else:
            chosen[key] = spare[taken % len(spare)]
            taken += 1
    return chosen


def dashes() -> list[list[int]]:
    """Dash patterns: the first is solid."""
    found: list[list[int]] = data("palette.yaml")["dashes"]
    return found
