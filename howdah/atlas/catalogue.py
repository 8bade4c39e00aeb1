# SPDX-License-Identifier: Apache-2.0
"""The entries of the atlas: figures, tables and claims of published papers, from ``reports/atlas``."""

from __future__ import annotations

import difflib
from dataclasses import dataclass
from pathlib import Path
from typing import Annotated, Any, Literal

from pydantic import BeforeValidator, Field

from howdah.atlas.cause import Cause, read_causes
from howdah.atlas.finding import Statement, read_findings
from howdah.atlas.source import items_of, section_of, yaml_of
from howdah.errors import ProfileError
from howdah.place import REPORTS
from howdah.profile.field import Section
from howdah.profile.source import Document

ATLAS = REPORTS / "atlas"
Kind = Literal["experiment", "definition", "trace"]
KINDS: tuple[Kind, ...] = ("experiment", "definition", "trace")


def _names(value: object) -> object:
    return [value] if isinstance(value, str) else value


class EntrySection(Section):
    """One entry of a file. ``reason`` of a definition or a trace says why nothing is measured.

    ``central`` are the claims, as ``profile/claim``, that express the entry; it has the worst of their verdicts.
    """

    id: str
    title: str
    where: str
    setup: str = ""
    says: str
    profiles: list[str] = Field(default_factory=list)
    central: Annotated[list[str], BeforeValidator(_names)] = Field(default_factory=list)
    differences: str = ""
    notes: str = ""
    reason: str = ""


class AtlasPaperSection(Section):
    """A paper; the ids of its entries begin with ``key``."""

    key: str
    title: str
    authors: str
    year: int | None = None
    note: str = ""


class InconsistencySection(Section):
    """A contradiction or wrong calculation in a paper: the print, the arithmetic, and how the atlas handles it."""

    title: str
    printed: str
    arithmetic: str
    handled: str
    entries: list[str]


@dataclass(frozen=True)
class Entry:
    """An entry with its kind and its paper; ``place`` is its place in its file."""

    section: EntrySection
    kind: Kind
    paper: AtlasPaperSection
    place: str

    @property
    def id(self) -> str:
        return self.section.id

    @property
    def page(self) -> str:
        """Name of its page on the site."""
        return f"{self.section.id.lower().replace('_', '-')}.html"


@dataclass(frozen=True)
class Catalogue:
    """All entries in the order of ``kinds.yaml``; papers in the order of ``papers.yaml``; causes by claim."""

    entries: list[Entry]
    papers: list[AtlasPaperSection]
    inconsistencies: list[InconsistencySection]
    causes: dict[str, Cause]
    findings: list[Statement]

    def of(self, paper: AtlasPaperSection) -> list[Entry]:
        return [entry for entry in self.entries if entry.paper is paper]

    def inconsistencies_of(self, entry: Entry) -> list[tuple[int, InconsistencySection]]:
        """Return the inconsistencies of an entry with their numbers, counted from 1."""
        return [(number, item) for number, item in enumerate(self.inconsistencies, 1) if entry.id in item.entries]


def read_catalogue(directory: Path = ATLAS) -> Catalogue:
    """Read kinds, papers, entries, inconsistencies, causes and findings, and check that they match.

    Raise ProfileError with file and line, which lists all missing entries.
    """
    kinds, kind_places = _kinds(directory / "kinds.yaml")
    papers = [section_of(AtlasPaperSection, *item) for item in items_of(directory / "papers.yaml")]
    found: dict[str, Entry] = {}
    for file in sorted((directory / "entries").glob("*.yaml")):
        for data, document, path in items_of(file):
            place = document.place((*path, "id"))
            section = section_of(EntrySection, data, document, path)
            if section.id not in kinds:
                near = difflib.get_close_matches(section.id, list(kinds), n=1)
                hint = f"did you mean {near[0]}?" if near else "every entry is named in kinds.yaml first"
                raise ProfileError(f"there is no entry {section.id!r}", where=place, hint=hint)
            if section.id in found:
                raise ProfileError(
                    f"the entry {section.id} is defined twice", where=place, hint=f"first at {found[section.id].place}"
                )
            found[section.id] = _entry(section, kinds[section.id], papers, place)
    missing = [name for name in kinds if name not in found]
    if missing:
        raise ProfileError(
            f"{len(missing)} entries are missing: {', '.join(missing)}",
            where=kind_places[missing[0]],
            hint=f"add them to a file of {directory / 'entries'}",
        )
    items = items_of(directory / "inconsistencies.yaml")
    inconsistencies = [_inconsistency(*item, known=found) for item in items]
    causes = read_causes(directory / "causes.yaml")
    findings = read_findings(directory / "findings", [paper.key for paper in papers])
    return Catalogue([found[name] for name in kinds], papers, inconsistencies, causes, findings)


def _kinds(file: Path) -> tuple[dict[str, Kind], dict[str, str]]:
    data, places = yaml_of(file)
    if not isinstance(data, dict):
        raise ProfileError("expected a mapping of entry ids to kinds", where=str(file))
    found: dict[str, Kind] = {}
    for name, word in data.items():
        kind = next((kind for kind in KINDS if kind == word), None)
        if kind is None:
            raise ProfileError(f"{name}: expected {', '.join(KINDS)}, not {word!r}", where=places[(name,)])
        found[name] = kind
    return found, {name: places[(name,)] for name in found}


def _entry(section: EntrySection, kind: Kind, papers: list[AtlasPaperSection], place: str) -> Entry:
    paper = next((paper for paper in papers if section.id.startswith(f"{paper.key}_")), None)
    if paper is None:
        raise ProfileError(f"{section.id} belongs to no paper of papers.yaml", where=place)
    if kind == "experiment" and not section.profiles:
        raise ProfileError(f"{section.id} is an experiment and names no profile", where=place)
    if kind != "experiment" and not section.reason:
        raise ProfileError(f"{section.id} is a {kind}: its reason must say why nothing is measured", where=place)
    return Entry(section, kind, paper, place)


def _inconsistency(
    data: Any, document: Document, path: tuple[str | int, ...], *, known: dict[str, Entry]
) -> InconsistencySection:
    section = section_of(InconsistencySection, data, document, path)
    for index, name in enumerate(section.entries):
        if name not in known:
            raise ProfileError(f"there is no entry {name!r}", where=document.place((*path, "entries", index)))
    return section
