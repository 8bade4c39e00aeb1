# SPDX-License-Identifier: Apache-2.0
"""A validation for people (text, Markdown) and for programs (JSON)."""

from __future__ import annotations

from collections.abc import Sequence

from howdah.record.model import FilePart
from howdah.validate.comparison import TOLERANCES, ComparedMeasure, ComparedRun, Value

FORMAT = 1
_LABELS = {tolerance.metric: tolerance.label for tolerance in TOLERANCES}
_HEAD = ("path", "algorithm", "flow", "measure", "{first}", "{second}", "difference", "")


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
    profile: str, engines: Sequence[str], planted: Sequence[str], points: Sequence[ComparedRun]
) -> Validation:
    return Validation(
        profile=profile,
        engines=list(engines),
        planted=list(planted),
        format=FORMAT,
        agrees=agree(points),
        tolerances={item.metric: Allowed(share=item.share, absolute=item.absolute) for item in TOLERANCES},
        points=list(points),
    )


def agree(points: Sequence[ComparedRun]) -> bool:
    return bool(points) and all(point.agrees for point in points)


def rows(points: Sequence[ComparedRun]) -> list[tuple[str, ...]]:
    """A head and a row for each measure; what repeats from one row to the next is left out."""
    first, second = (side.engine for side in points[0].sides)
    table = [tuple(title.format(first=first, second=second) for title in _HEAD)]
    shown: tuple[str, ...] = ()
    for point in points:
        for measure in point.measures:
            place = (point.path, point.algorithm, measure.flow)
            same = [old == new for old, new in zip(shown, place, strict=False)]
            left = ["" if all(same[: number + 1]) and shown else word for number, word in enumerate(place)]
            table.append((*left, *_row(measure)))
            shown = place
    return table


def _row(measure: ComparedMeasure) -> tuple[str, ...]:
    said = "" if measure.agrees else "differs"
    return (_LABELS[measure.metric], *map(_text, measure.values), _difference(measure), said)


def _text(value: Value) -> str:
    if value is None:
        return "–"
    return value if isinstance(value, str) else f"{value:,.0f}".replace(",", " ")


def _difference(measure: ComparedMeasure) -> str:
    if measure.difference is None:
        return "" if measure.agrees else "≠"
    return "0" if measure.difference == 0 else f"{measure.difference:+.2%}"


def times(points: Sequence[ComparedRun]) -> list[str]:
    """A line for each run: verdicts, kernel and wall time of both sides."""
    lines = []
    for point in points:
        said = ", ".join(f"{side.engine} {side.verdict} in {side.wall_s:.1f} s" for side in point.sides)
        lines.append(f"{point.run}: Linux {point.sides[0].kernel or '?'}; {said}")
        lines += [f"  ! {problem}" for problem in point.problems]
    return lines


def markdown(points: Sequence[ComparedRun]) -> str:
    head, *body = rows(points)
    lines = [_line(head), _line(["---"] * len(head)), *map(_line, body), ""]
    lines += [f"- {line.strip()}" for line in times(points)]
    tolerances = ", ".join(f"{item.label} {item.text}" for item in TOLERANCES)
    return "\n".join([*lines, "", f"Agreement asks for: {tolerances}.", ""])


def _line(cells: Sequence[str]) -> str:
    return f"| {' | '.join(cells)} |"
