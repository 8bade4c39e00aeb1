# SPDX-License-Identifier: Apache-2.0
"""Shapes of results: rows, differences and completion times, as ``compare`` and ``report`` print them."""

from __future__ import annotations

from typing import Any

from pydantic import Field

from howdah.command.shape import Shape

Scalar = str | int | float | bool | None


class ResultRow(Shape):
    """One measure of one variant over its repetitions; ``flow`` is null for a measure of whole runs."""

    experiment: str
    kernel: str
    algorithm: str
    point: dict[str, Scalar] = Field(description="the swept fields that tell this row from others, without algorithm")
    flow: str | None = Field(description="name of the flow or of the group")
    metric: str = Field(description="docs/measures.md")
    unit: str | None = Field(description="as in metrics.json")
    n: int = Field(description="repetitions that have a value")
    median: float | None = Field(description="null for a measure in words")
    mean: float | None
    low: float | None = Field(description="95 % interval of the mean; null for one value or equal values")
    high: float | None
    counts: dict[str, int] | None = Field(description="how often each word came up; null for a number")


class PairedShape(Shape):
    """One measure of one side against the first, over pairs of equal repetitions, in the unit of metrics.json."""

    side: str
    other: str = Field(description="the first side, which the others are compared with")
    place: str = Field(description="the sweep point in words")
    flow: str | None = Field(description="name of the flow or of the group; null for a measure of whole runs")
    metric: str = Field(description="docs/measures.md")
    unit: str | None
    mine: float = Field(description="median of the side")
    others: float = Field(description="median of the other")
    difference: float = Field(description="median of the pairs' differences, side - other")
    difference_low: float | None = Field(
        description="least of fewer than six pairs, else the median's 95 % interval begins here; null for equal pairs"
    )
    difference_high: float | None
    ratio: float | None = Field(description="median of side / other; null where one side alone is 0")
    ratio_low: float | None
    ratio_high: float | None
    pairs: int = Field(description="0: no repetition is on both sides, so medians are compared")
    better: str | None = Field(description="the side that is better beyond the spread")
    run: str | None = Field(description="the run of the side with the median pair")


class CompletionShape(Shape):
    experiment: str
    algorithm: str
    kernel: str
    point: dict[str, Scalar]
    group: str = Field(description="name of the group, or of the flow")
    sizes: str = Field(description="the class of size in words; all: every one of them")
    least_bytes: int
    most_bytes: int
    transfers: int = Field(description="of all repetitions that count")
    completed: int
    percentile: str
    time_s: float | None = Field(description="null where fewer than one transfer is beyond it")
    time_low_s: float | None = Field(description="95 % interval of order statistics; null where it has no bound")
    time_high_s: float | None
    slowdown: float | None = Field(description="time over the ideal one; null where the path has no one rate")
    slowdown_low: float | None
    slowdown_high: float | None


class LeftOut(Shape):
    run: str
    verdict: str
    why: str


class Compare(Shape):
    report: str = Field(description="path of the page")
    experiments: list[str]
    found: list[str] = Field(description="what was found, in sentences, as the page begins with")
    rows: list[ResultRow]
    differences: list[PairedShape] = Field(description="each side against the first, at each point")
    completion: list[CompletionShape] = Field(description="how long transfers took, by their size")
    left_out: list[LeftOut] = Field(description="runs that enter no row")


class ReportShape(Compare):
    experiment: str
    claims: list[dict[str, Any]] = Field(description="as in claims.json (docs/data-format.md)")
