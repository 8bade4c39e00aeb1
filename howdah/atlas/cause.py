# SPDX-License-Identifier: Apache-2.0
"""Why a claim is not reproduced: a class of causes, an explanation, and its evidence, from ``causes.yaml``; and the
number of claims with each verdict and cause."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from pathlib import Path

from pydantic import Field

from howdah.atlas.source import items_of, section_of
from howdah.atlas.verdict import VERDICTS, Word, word
from howdah.claim.finding import DEPENDS, DIFFERS, FAIL, PASS, UNSUPPORTED
from howdah.errors import ProfileError, did_you_mean
from howdah.profile.field import Section
from howdah.record.claims import ClaimRow
from howdah.record.model import FilePart

UNEXPLAINED = "unexplained"

# All classes of causes, in the order in which pages count them.
CLASSES: dict[str, Word] = {
    "kernel": Word("the kernel has changed", "a later Linux does it otherwise, by the mechanism that is named"),
    "host": Word(
        "the hosts of the time",
        "the paper's hosts had a processor that was too slow, coarse clocks or late interrupts; the hosts of these "
        "runs have none",
    ),
    "simulator": Word("the simulator's TCP", "the paper simulated it, and the TCP of its simulator does it"),
    "open": Word("left open in the paper", "it depends on a setting or a recording that the paper does not give"),
    "model": Word("our set-up", "what stands here for a part of the paper's set-up, or measures it, is another thing"),
    "print": Word("judged more closely than printed", "the paper has no number, or not one of this"),
    UNEXPLAINED: Word("unexplained", "nothing that was tried or is known explains it"),
}


class CauseSection(Section):
    """One cause of some claims, which ``claims`` has by profile, with its ``evidence``."""

    cause: str
    says: str
    evidence: str = ""
    claims: dict[str, list[str]]


@dataclass(frozen=True)
class Cause:
    """Why a claim is not reproduced; ``place`` is the place of the cause in its file."""

    key: str
    says: str
    evidence: str
    place: str

    @property
    def word(self) -> str:
        return CLASSES[self.key].word


NOT_LISTED = Cause(UNEXPLAINED, "", "", "")


def read_causes(file: Path) -> dict[str, Cause]:
    """Return the cause of each claim that has one, by ``profile/claim``. Raise ProfileError with file and line."""
    found: dict[str, Cause] = {}
    for data, document, path in items_of(file):
        section = section_of(CauseSection, data, document, path)
        if section.cause not in CLASSES:
            raise ProfileError(
                f"there is no class of causes {section.cause!r}",
                where=document.place((*path, "cause")),
                hint=did_you_mean(section.cause, CLASSES, f"the classes are {', '.join(CLASSES)}"),
            )
        if section.cause != UNEXPLAINED and not section.evidence:
            raise ProfileError(
                "a cause without evidence",
                where=document.place(path),
                hint=f"say in 'evidence' what shows it, or make it {UNEXPLAINED!r}",
            )
        for profile, claims in section.claims.items():
            for index, claim in enumerate(claims):
                place = document.place((*path, "claims", profile, index))
                name = f"{profile}/{claim}"
                if name in found:
                    hint = f"first at {found[name].place}"
                    raise ProfileError(f"the claim {name} has two causes", where=place, hint=hint)
                found[name] = Cause(section.cause, section.says, section.evidence, place)
    return found


def wrong_causes(causes: Mapping[str, Cause], rows: Mapping[str, ClaimRow]) -> list[str]:
    """Return the causes of claims that do not exist, or that are not *fail* in the published results ``rows``.

    Profiles without current published results are left out.
    """
    profiles = {name.partition("/")[0] for name in rows}
    found = []
    for name, cause in causes.items():
        if name.partition("/")[0] not in profiles:
            continue
        if name not in rows:
            found.append(f"{cause.place}: there is no published claim {name}")
        elif rows[name].verdict != FAIL:
            found.append(f"{cause.place}: {name} has a cause, and its verdict is {rows[name].verdict}, not {FAIL}")
    return found


_BY_CONTROL = "a control shows the mechanism"
_ELSEWHERE = "holds elsewhere in what the paper leaves open"
_SOMEWHERE = "holds somewhere in what the paper leaves open, and no value of it decides"
_CONTRADICTION = "the paper contradicts itself"
_NO_MEASUREMENT = "nothing that can be measured here"
_CLASS_WORDS = [each.word for each in CLASSES.values()]
_ORDER = [_SOMEWHERE, _BY_CONTROL, _ELSEWHERE, *_CLASS_WORDS, _CONTRADICTION, _NO_MEASUREMENT]


class ClaimTally(FilePart):
    """Claims of one verdict and one cause."""

    verdict: str
    word: str
    cause: str = Field(description="empty where the verdict needs none")
    claims: list[str] = Field(description="as profile/claim")
    number: int


def cause_of(row: ClaimRow, cause: Cause | None) -> str:
    """Return why a claim of claims.json is not plainly reproduced, in a few words; empty if that needs no reason."""
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
    """Count claims, given by ``profile/claim``, in the order of the verdicts and of the causes."""
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
