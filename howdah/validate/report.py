# SPDX-License-Identifier: Apache-2.0
"""A validation for people (text, Markdown) and for programs (JSON)."""

from __future__ import annotations

import math
from collections.abc import Sequence

from howdah.record.model import FilePart
from howdah.validate.comparison import TOLERANCES, ComparedPoint, Pair, Value

FORMAT = 1
_LABELS = {tolerance.metric: tolerance.label for tolerance in TOLERANCES}
_HEAD = ("path", "algorithm", "flow", "measure", "{first}", "{second}", "difference", "")


class ComparedSide(FilePart):
    engine: str
    verdict: str | None
    kernel: str | None
    wall_s: float


class ComparedMeasure(FilePart):
    metric: str
    flow: str
    values: list[Value]
    difference: float | None
    agrees: bool


class ComparedRun(FilePart):
    run: str
    algorithm: str
    path: str
    agrees: bool
    problems: list[str]
    sides: list[ComparedSide]
    measures: list[ComparedMeasure]


class Allowed(FilePart):
    share: float
    absolute: float


class Validation(FilePart):
    """The table of the validation (docs/validate.md). ``agrees`` is the answer."""

    profile: str
    engines: list[str]
    planted: list[str]
    format: int
    agrees: bool
    tolerances: dict[str, Allowed]
    points: list[ComparedRun]


def validation(
    profile: str, engines: Sequence[str], planted: Sequence[str], points: Sequence[ComparedPoint]
) -> Validation:
    return Validation(
        profile=profile,
        engines=list(engines),
        planted=list(planted),
        format=FORMAT,
        agrees=agree(points),
        tolerances={item.metric: Allowed(share=item.share, absolute=item.absolute) for item in TOLERANCES},
        points=[_point(point) for point in points],
    )


def agree(points: Sequence[ComparedPoint]) -> bool:
    return bool(points) and all(point.agrees for point in points)


def _point(point: ComparedPoint) -> ComparedRun:
    return ComparedRun(
        run=point.name,
        algorithm=point.algorithm,
        path=point.path,
        agrees=point.agrees,
        problems=list(point.problems),
        sides=[
            ComparedSide(engine=side.engine, verdict=side.verdict, kernel=side.kernel, wall_s=round(side.wall_s, 1))
            for side in point.sides
        ],
        measures=[
            ComparedMeasure(
                metric=pair.metric,
                flow=pair.flow,
                values=[pair.first, pair.second],
                difference=pair.difference if pair.difference != math.inf else None,
                agrees=pair.agrees,
            )
            for pair in point.pairs
        ],
    )


def rows(points: Sequence[ComparedPoint]) -> list[tuple[str, ...]]:
    """A head and a row for each measure; what repeats from one row to the next is left out."""
    first, second = (side.engine for side in points[0].sides)
    table = [tuple(title.format(first=first, second=second) for title in _HEAD)]
    shown: tuple[str, ...] = ()
    for point in points:
        for pair in point.pairs:
            place = (point.path, point.algorithm, pair.flow)
            same = [old == new for old, new in zip(shown, place, strict=False)]
            left = ["" if all(same[: number + 1]) and shown else word for number, word in enumerate(place)]
            table.append((*left, *_row(pair)))
            shown = place
    return table


def _row(pair: Pair) -> tuple[str, ...]:
    return (
        _LABELS[pair.metric],
        _text(pair.first),
        _text(pair.second),
        _difference(pair),
        "" if pair.agrees else "differs",
    )


def _text(value: Value) -> str:
    if value is None:
        return "–"
    return value if isinstance(value, str) else f"{value:,.0f}".replace(",", " ")


def _difference(pair: Pair) -> str:
    if pair.difference is None:
        return "" if pair.agrees else "≠"
    return "0" if pair.difference == 0 else f"{pair.difference:+.2%}"


def times(points: Sequence[ComparedPoint]) -> list[str]:
    """A line for each run: verdicts, kernel and wall time of both sides."""
    lines = []
    for point in points:
        said = ", ".join(f"{side.engine} {side.verdict} in {side.wall_s:.1f} s" for side in point.sides)
        lines.append(f"{point.name}: Linux {point.sides[0].kernel or '?'}; {said}")
        lines += [f"  ! {problem}" for problem in point.problems]
    return lines


def markdown(points: Sequence[ComparedPoint]) -> str:
    head, *body = rows(points)
    lines = [_line(head), _line(["---"] * len(head)), *map(_line, body), ""]
    lines += [f"- {line.strip()}" for line in times(points)]
    tolerances = ", ".join(f"{item.label} {item.text}" for item in TOLERANCES)
    return "\n".join([*lines, "", f"Agreement asks for: {tolerances}.", ""])


def _line(cells: Sequence[str]) -> str:
    return f"| {' | '.join(cells)} |"
