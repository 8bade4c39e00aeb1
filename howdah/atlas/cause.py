# SPDX-License-Identifier: Apache-2.0
"""Why a claim is not reproduced: a class of causes, what is known, and what shows it, from ``causes.yaml``."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path

from howdah.atlas.source import items_of, section_of
from howdah.atlas.verdict import Word
from howdah.claim.finding import FAIL
from howdah.errors import ProfileError, nearest
from howdah.profile.field import Section
from howdah.record.claims import ClaimRow

UNEXPLAINED = "unexplained"

# The one table of them, in the order in which pages count them.
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
    """One cause of some claims: ``claims`` by their profile. What shows it is ``evidence``."""

    cause: str
    says: str
    evidence: str = ""
    claims: dict[str, list[str]]


@dataclass(frozen=True)
class Cause:
    """Why a claim is not reproduced; ``place`` is where its file has it."""

    key: str
    says: str
    evidence: str
    place: str

    @property
    def word(self) -> str:
        return CLASSES[self.key].word


NOT_LISTED = Cause(UNEXPLAINED, "", "", "")


def read_causes(file: Path) -> dict[str, Cause]:
    """The cause of each claim that has one, by ``profile/claim``. Raises ProfileError with file and line."""
    found: dict[str, Cause] = {}
    for data, document, path in items_of(file):
        section = section_of(CauseSection, data, document, path)
        if section.cause not in CLASSES:
            near = nearest(section.cause, list(CLASSES))
            raise ProfileError(
                f"there is no class of causes {section.cause!r}",
                where=document.place((*path, "cause")),
                hint=f"did you mean {near}?" if near else f"the classes are {', '.join(CLASSES)}",
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
    """Causes of claims that do not exist, or that are not *fail* in the published results ``rows``.

    A profile of which nothing is published as it is now is left out.
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
