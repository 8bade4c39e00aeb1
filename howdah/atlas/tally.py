# SPDX-License-Identifier: Apache-2.0
"""How many claims have which verdict, and why: the one table of verdicts by their causes."""

from __future__ import annotations

from collections.abc import Iterable, Mapping

from pydantic import Field

from howdah.atlas.cause import CLASSES, NOT_LISTED, Cause
from howdah.atlas.verdict import VERDICTS, word
from howdah.claim.finding import DEPENDS, DIFFERS, FAIL, PASS, UNSUPPORTED
from howdah.record.claims import ClaimRow
from howdah.record.model import FilePart

_BY_CONTROL = "a control shows the mechanism"
_ELSEWHERE = "holds elsewhere in what the paper leaves open"
_SOMEWHERE = "holds somewhere in what the paper leaves open, and no value of it decides"
_CONTRADICTION = "the paper contradicts itself"
_NO_MEASUREMENT = "nothing that can be measured here"
_ORDER = [
    _SOMEWHERE,
    _BY_CONTROL,
    _ELSEWHERE,
    *(each.word for each in CLASSES.values()),
    _CONTRADICTION,
    _NO_MEASUREMENT,
]


class ClaimTally(FilePart):
    """Claims of one verdict and one cause."""

    verdict: str
    word: str
    cause: str = Field(description="empty where the verdict needs none")
    claims: list[str] = Field(description="as profile/claim")
    number: int


def cause_of(row: ClaimRow, cause: Cause | None) -> str:
    """Why a claim of claims.json is not plainly reproduced, in a few words; empty where there is nothing to say."""
    verdict = row.verdict
    if verdict == FAIL:
        return (cause or NOT_LISTED).word
    if verdict == DIFFERS:
        return _BY_CONTROL if row.control is not None and row.control.verdict == PASS else _ELSEWHERE
    if verdict == DEPENDS:
        return _SOMEWHERE
    if verdict == UNSUPPORTED:
        return _CONTRADICTION if row.contradiction else _NO_MEASUREMENT
    return ""


def tally(rows: Iterable[tuple[str, ClaimRow]], causes: Mapping[str, Cause]) -> list[ClaimTally]:
    """Of claims by ``profile/claim``, in the order of the verdicts and of the causes."""
    found: dict[tuple[str, str], list[str]] = {}
    for name, row in rows:
        found.setdefault((row.verdict, cause_of(row, causes.get(name))), []).append(name)
    return [
        ClaimTally(verdict=verdict, word=word(verdict), cause=why, claims=names, number=len(names))
        for (verdict, why), names in sorted(found.items(), key=_place)
    ]


def _place(item: tuple[tuple[str, str], list[str]]) -> tuple[int, int]:
    (verdict, why), _ = item
    return (
        VERDICTS.index(verdict) if verdict in VERDICTS else len(VERDICTS),
        _ORDER.index(why) if why in _ORDER else len(_ORDER),
    )
