# SPDX-License-Identifier: Apache-2.0
"""Numbers in sentences, by reference to claims that measured them: ``{profile/claim}``, ``{profile/claim.ratio}``."""

from __future__ import annotations

import re
from collections.abc import Callable, Mapping

from howdah.number import significant
from howdah.record.claims import ClaimRow, PointRow, SampleRow

_REFERENCE = re.compile(r"\{([^{}]*)\}")
_FORM = re.compile(r"([a-z0-9-]+/[a-z0-9-]+)(?:\.([a-z]+))?")
# What a sample says beside its value: its spread, number, axes and the points that it is of.
_BESIDE = re.compile(
    r" ± [^ ,]+|, deterministic|, n = \d+|, rank correlation [-−\d.]+| at \d+ points| at [\w.]+ = .*"
    r"| \([^()]*\)| \[[^\[\]]*\]|^(?:means )?from "
)
_TWICE = re.compile(r"^(.+) to \1$")
_TYPED = re.compile(r"\d[\d.,]*\s*(?:%|times\b|BDPs?\b)")


class QuoteError(ValueError):
    """A reference that is none, or a number that is not there."""


def references(text: str) -> list[tuple[str, str]]:
    """Claims and fields that a sentence refers to. Raises QuoteError, also where a result is typed."""
    found = []
    for inside in _REFERENCE.findall(text):
        form = _FORM.fullmatch(inside)
        if form is None:
            raise QuoteError(f"{{{inside}}} is not a reference: write {{profile/claim}} or {{profile/claim.field}}")
        name, what = form[1], form[2] or "measured"
        if what not in FIELDS:
            raise QuoteError(f"{{{inside}}}: a claim has {', '.join(FIELDS)}, and no {what}")
        found.append((name, what))
    typed = _TYPED.search(_REFERENCE.sub("", text))
    if typed:
        raise QuoteError(f"{typed[0]!r} is typed: results are referred to, as {{profile/claim}}")
    return found


def quoted(text: str, rows: Mapping[str, ClaimRow]) -> str:
    """A sentence with its numbers. Raises QuoteError where one is not there."""

    def number(match: re.Match[str]) -> str:
        ((name, what),) = references(match[0])
        found = FIELDS[what](rows[name]) if name in rows else ""
        if not found:
            raise QuoteError(f"{name} has no {what}")
        return found

    return _REFERENCE.sub(number, text)


def plain(text: str) -> str:
    """``24.67 ± 0.15 %, n = 10`` as ``24.67 %``."""
    return _TWICE.sub(r"\1", _BESIDE.sub("", text).strip())


def _measured(row: ClaimRow) -> str:
    return plain(row.measured.text) if row.measured else ""


def _than(row: ClaimRow) -> str:
    return _ends([each.than for each in _points(row) if each.than])


def _ratio(row: ClaimRow) -> str:
    ratios = sorted(
        each.comparison.ratio
        for each in _points(row)
        if each.comparison is not None and each.comparison.ratio is not None
    )
    return " to ".join(dict.fromkeys(significant(each, 3) for each in (*ratios[:1], *ratios[-1:])))


def _control(row: ClaimRow) -> str:
    return plain(row.control.measured.text) if row.control and row.control.measured else ""


def _expected(row: ClaimRow) -> str:
    return row.expected.text.partition(" ± ")[0]


def _where(row: ClaimRow) -> str:
    return row.unknown.text if row.unknown else ""


def _points(row: ClaimRow) -> list[PointRow]:
    return row.measured.points if row.measured else []


def _ends(samples: list[SampleRow]) -> str:
    """``0.3 s to 12 s``: the least and the largest."""
    ordered = sorted(samples, key=lambda each: each.mean or 0.0)
    return " to ".join(dict.fromkeys(plain(each.text) for each in (*ordered[:1], *ordered[-1:])))


# measured: the claim's number; than: that of the other side; ratio of the two; control: the number with the control;
# expected: as the claim was written; where: what is said of the grid of what the paper leaves open.
FIELDS: dict[str, Callable[[ClaimRow], str]] = {
    "measured": _measured,
    "than": _than,
    "ratio": _ratio,
    "control": _control,
    "expected": _expected,
    "where": _where,
}
