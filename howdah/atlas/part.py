# SPDX-License-Identifier: Apache-2.0
"""A part of the atlas for each of several machines: whole profiles, so that each part can be judged and published."""

from __future__ import annotations

import re
from collections.abc import Mapping
from dataclasses import dataclass

from howdah.atlas.chapter import Chapter
from howdah.errors import HowdahError
from howdah.plan.compile import compile_plan
from howdah.work.cost import expected_core_s

_WRITTEN = re.compile(r"([0-9]{1,4})/([0-9]{1,4})")


@dataclass(frozen=True)
class Part:
    """The ``number``-th (from 1) of ``of`` parts."""

    number: int
    of: int


def read_part(text: str) -> Part:
    """``2/4``. Raises HowdahError for anything else."""
    match = _WRITTEN.fullmatch(text.strip())
    part = Part(int(match[1]), int(match[2])) if match else None
    if part is None or not 1 <= part.number <= part.of:
        hint = "Write K/N, the K-th of N parts: --part 1/4 on the first of four machines, --part 4/4 on the last."
        raise HowdahError(f"{text!r} is no part", hint=hint)
    return part


def chapters_of(part: Part, chapters: list[Chapter]) -> list[Chapter]:
    """The chapters of one part, in their order.

    Every machine finds the same parts: they follow from the plans alone. Raises HowdahError where there are more parts
    than chapters.
    """
    if part.of > len(chapters):
        raise HowdahError(
            f"{len(chapters)} profiles cannot be divided into {part.of} parts",
            hint="A profile is one part at least, so that its claims can be judged where its runs were made.",
        )
    expected = {chapter.name: _expected_core_s(chapter) for chapter in chapters}
    own = set(divide(expected, part.of)[part.number - 1])
    return [chapter for chapter in chapters if chapter.name in own]


def _expected_core_s(chapter: Chapter) -> float:
    return sum(expected_core_s(compile_plan(cell, engine=None, kernel=None)) for cell in chapter.profile.cells())


def divide(costs: Mapping[str, float], parts: int) -> list[list[str]]:
    """Names in ``parts`` groups of about the same cost: the dearest first, each to the group that has least.

    The dearest group is at most 4/3 of what the best division has (Graham 1969, Bounds on Multiprocessing Timing
    Anomalies).
    """
    groups: list[list[str]] = [[] for _ in range(parts)]
    sums = [0.0] * parts
    for name in sorted(costs, key=lambda name: (-costs[name], name)):
        least = min(range(parts), key=lambda number: (sums[number], len(groups[number]), number))
        groups[least].append(name)
        sums[least] += costs[name]
    return groups
