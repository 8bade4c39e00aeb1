# SPDX-License-Identifier: Apache-2.0
"""Findings: sentences that stand on published claims and fall with their verdicts (reports/atlas/findings). Their
numbers are references to claims that measured them: ``{profile/claim}``, ``{profile/claim.ratio}``."""

from __future__ import annotations

import re
from collections.abc import Callable, Collection, Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import Literal

from pydantic import Field

from howdah.atlas.source import Keys, section_of, yaml_of
from howdah.atlas.verdict import Word
from howdah.claim.finding import DEPENDS, DIFFERS, FAIL, PASS, UNSUPPORTED
from howdah.errors import ProfileError, did_you_mean
from howdah.number import significant
from howdah.profile.field import Section
from howdah.profile.source import Document
from howdah.record.claims import ClaimRow, PointRow, SampleRow

Status = Literal["holds", "cured", "bites", "open"]
Verdict = Literal["pass", "implemented", "differs", "depends", "fail", "unsupported"]

# All statuses, in the order of the page.
STATUSES: dict[Status, Word] = {
    "holds": Word("Still holds", "what the paper found is measured on this kernel, too"),
    "cured": Word("Cured or changed by a later kernel", "what the paper found is gone or another, by what is named"),
    "bites": Word("Still bites", "a problem that the paper found is a problem today"),
    "open": Word("Not settled", "it was not measured as the paper has it, or only with another TCP or setting"),
}
# A sentence of a status needs at least one claim with one of these verdicts.
_NEEDS: dict[Status, tuple[str, ...]] = {
    "holds": (PASS,),
    "bites": (PASS,),
    "cured": (FAIL, DIFFERS),
    "open": (FAIL, DEPENDS, DIFFERS, UNSUPPORTED),
}


class StatementSection(Section):
    """A sentence and the claims it stands on, as ``profile/claim``, with the verdict that each must have."""

    says: str
    stands_on: dict[str, Verdict] = Field(min_length=1)


class FindingSection(StatementSection):
    """A finding. ``by`` names what cured it."""

    status: Status
    by: str = ""


class PaperFindingsSection(Section):
    """The findings of one paper; ``learnt`` is the sentence on the index."""

    paper: str
    learnt: StatementSection
    findings: list[FindingSection]


@dataclass(frozen=True)
class Statement:
    """A sentence as read; ``place`` is its place in its file. ``status`` is None for the one sentence of a paper."""

    paper: str
    section: StatementSection
    place: str

    @property
    def status(self) -> Status | None:
        return self.section.status if isinstance(self.section, FindingSection) else None


@dataclass(frozen=True)
class Ground:
    """A claim that a sentence stands on; ``entries`` are its entries. ``outdated`` is that of its results."""

    name: str
    verdict: str
    says: str
    entries: list[str]
    outdated: str


@dataclass(frozen=True)
class SupportedSentence:
    """A sentence with its numbers, supported by its claims."""

    paper: str
    status: Status | None
    says: str
    by: str
    grounds: list[Ground]


@dataclass(frozen=True)
class Findings:
    """The findings for the pages. ``fallen`` says which sentences the published claims do not support, and why."""

    supported: list[SupportedSentence] = field(default_factory=list)
    fallen: list[str] = field(default_factory=list)
    kernel: str = ""

    def learnt(self, paper: str) -> SupportedSentence | None:
        return next((each for each in self.supported if each.paper == paper and each.status is None), None)

    def of(self, status: Status) -> list[SupportedSentence]:
        return [each for each in self.supported if each.status == status]

    def number(self, paper: str) -> int:
        return sum(each.paper == paper and each.status is not None for each in self.supported)


def read_findings(directory: Path, papers: Collection[str]) -> list[Statement]:
    """Return the sentences of all papers. Raise ProfileError with file and line."""
    found: list[Statement] = []
    seen: dict[str, str] = {}
    for file in sorted(directory.glob("*.yaml")):
        data, places = yaml_of(file)
        document = Document({}, places)
        section = section_of(PaperFindingsSection, data, document, ())
        place = document.place(("paper",))
        if section.paper not in papers:
            hint = did_you_mean(section.paper, papers, f"the papers are {', '.join(papers)}")
            raise ProfileError(f"there is no paper {section.paper!r}", where=place, hint=hint)
        if section.paper in seen:
            hint = f"first at {seen[section.paper]}"
            raise ProfileError(f"the findings of {section.paper} are defined twice", where=place, hint=hint)
        seen[section.paper] = place
        found.append(_statement(section.paper, section.learnt, document, ("learnt",)))
        for index, each in enumerate(section.findings):
            found.append(_finding(section.paper, each, document, ("findings", index)))
    return found


def _statement(paper: str, section: StatementSection, document: Document, path: Keys) -> Statement:
    place = document.place((*path, "says"))
    try:
        named = references(section.says)
    except QuoteError as error:
        raise ProfileError(str(error), where=place) from None
    for name, _ in named:
        if name not in section.stands_on:
            raise ProfileError(f"the sentence refers to {name}, and does not stand on it", where=place)
    return Statement(paper, section, place)


def _finding(paper: str, section: FindingSection, document: Document, path: Keys) -> Statement:
    needed = _NEEDS[section.status]
    if not set(needed) & set(section.stands_on.values()):
        what = f"a finding that is {section.status!r} stands on no claim that is {' or '.join(needed)}"
        raise ProfileError(what, where=document.place((*path, "status")))
    if bool(section.by) != (section.status == "cured"):
        what = "'by' says what has cured a finding" if section.by else "a finding that is 'cured' needs 'by': by what"
        raise ProfileError(what, where=document.place((*path, "status")))
    return _statement(paper, section, document, path)


def supported_findings(statements: list[Statement], rows: Mapping[str, ClaimRow], kernel: str) -> Findings:
    """Return the sentences that the published claims ``rows`` support, with their numbers, and why the others fall."""
    found = Findings(kernel=kernel)
    for each in statements:
        wrong = _wrong(each, rows)
        if not wrong:
            try:
                found.supported.append(_supported(each, rows))
            except QuoteError as error:
                wrong = [str(error)]
        found.fallen.extend(f"{each.place}: this sentence does not stand: {why}" for why in wrong)
    return found


def _wrong(statement: Statement, rows: Mapping[str, ClaimRow]) -> list[str]:
    wrong = []
    for name, verdict in statement.section.stands_on.items():
        if name not in rows:
            wrong.append(f"there is no published claim {name}")
        elif rows[name].verdict != verdict:
            wrong.append(f"{name} must be {verdict}, and is {rows[name].verdict}")
    return wrong


def _supported(statement: Statement, rows: Mapping[str, ClaimRow]) -> SupportedSentence:
    section = statement.section
    grounds = [_ground(name, rows[name]) for name in section.stands_on]
    by = section.by if isinstance(section, FindingSection) else ""
    return SupportedSentence(statement.paper, statement.status, quoted(section.says, rows), by, grounds)


def _ground(name: str, row: ClaimRow) -> Ground:
    return Ground(name, row.verdict, row.says, row.entries, row.outdated)


_REFERENCE = re.compile(r"\{([^{}]*)\}")
_FORM = re.compile(r"([a-z0-9-]+/[a-z0-9-]+)(?:\.([a-z]+))?")
# Parts of a sample's text besides its value: spread, number, axes and points.
_BESIDE = re.compile(
    r" ± [^ ,]+|, deterministic|, n = \d+|, rank correlation [-−\d.]+| at \d+ points| at [\w.]+ = .*"
    r"| \([^()]*\)| \[[^\[\]]*\]|^(?:means )?from "
)
_TWICE = re.compile(r"^(.+) to \1$")
_TYPED = re.compile(r"\d[\d.,]*\s*(?:%|times\b|BDPs?\b)")


class QuoteError(ValueError):
    """A malformed reference, or a number that is missing."""


def references(text: str) -> list[tuple[str, str]]:
    """Return the claims and fields that a sentence refers to. Raise QuoteError, also for a result that is typed."""
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
    """Return a sentence with its numbers. Raise QuoteError if one is missing."""

    def number(match: re.Match[str]) -> str:
        ((name, what),) = references(match[0])
        found = FIELDS[what](rows[name]) if name in rows else ""
        if not found:
            raise QuoteError(f"{name} has no {what}")
        return found

    return _REFERENCE.sub(number, text)


def plain(text: str) -> str:
    """Shorten ``24.67 ± 0.15 %, n = 10`` to ``24.67 %``."""
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
    """Return ``0.3 s to 12 s``: the least and the largest."""
    ordered = sorted(samples, key=lambda each: each.mean or 0.0)
    return " to ".join(dict.fromkeys(plain(each.text) for each in (*ordered[:1], *ordered[-1:])))


# measured: the claim's number; than: that of the other side; ratio of the two; control: the number with the control;
# expected: the claim's expectation; where: the result over the grid of what the paper leaves open.
FIELDS: dict[str, Callable[[ClaimRow], str]] = {
    "measured": _measured,
    "than": _than,
    "ratio": _ratio,
    "control": _control,
    "expected": _expected,
    "where": _where,
}
