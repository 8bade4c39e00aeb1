# SPDX-License-Identifier: Apache-2.0
"""The content of an entry's page: claims in words, drawn figures, and their paths and runs."""

from __future__ import annotations

import os
import re
import shlex
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from markupsafe import Markup

from howdah.atlas.catalogue import Catalogue, Entry
from howdah.atlas.cause import NOT_LISTED, Cause
from howdah.atlas.chapter import Chapter, behind
from howdah.atlas.encoding import NOT_RUN
from howdah.atlas.published import Published
from howdah.atlas.verdict import count, entry_verdict, words_text
from howdah.build.cache import Progress
from howdah.claim.finding import FAIL
from howdah.record.claims import ClaimRow, ControlRow, ExpectedRow, SampleRow
from howdah.report.drawing import dumbbell
from howdah.report.origin import Fact
from howdah.report.pathfacts import first_point, path_facts

_PLOT = re.compile(r'<svg class="drawing chart (?:narrow)?".*?</svg>', re.DOTALL)
_WORDS = re.compile(r"<(title|desc|text)\b.*?</\1>| aria-label=\"[^\"]*\"", re.DOTALL)
Draw = Callable[[Any, Any], str]  # a figure of a profile and its experiment to inline SVG or a table


@dataclass(frozen=True)
class PointView:
    """One point of the axes over which a claim is judged."""

    at: str
    text: str
    verdict: str
    reverse: bool = False  # whether the reverse of the claim was measured


@dataclass(frozen=True)
class ControlView:
    """The claim on the runs of its control. ``found`` has both measured numbers there and their ratio."""

    what: str
    verdict: str
    found: str


@dataclass(frozen=True)
class UnknownView:
    """The claim over the grid of what the paper leaves open: where it holds, and every point."""

    text: str
    points: list[PointView]


def anchor_of(name: str) -> str:
    """Return the anchor of ``profile/claim`` on the pages of its entries."""
    return re.sub(r"[^a-z0-9-]+", "-", name.lower())


@dataclass(frozen=True)
class ClaimView:
    """One claim; ``data`` is its row of claims.json. ``cause`` is why it is not reproduced.

    The entry has the verdict of its *central* claim.
    """

    profile: str
    data: ClaimRow
    cause: Cause | None = None
    is_central: bool = False

    @property
    def id(self) -> str:
        return self.data.id

    @property
    def name(self) -> str:
        """The claim's name in ``causes.yaml``."""
        return f"{self.profile}/{self.id}"

    @property
    def anchor(self) -> str:
        return anchor_of(self.name)

    @property
    def verdict(self) -> str:
        return self.data.verdict

    @property
    def because(self) -> str:
        """Why it differs, as a sentence: shown only if the control proved it."""
        text = self.data.because.rstrip(".")
        proved = self.control is not None and self.control.verdict == "pass"
        return f"{text[:1].upper()}{text[1:]}." if text and self.verdict == "differs" and proved else ""

    @property
    def expected_text(self) -> str:
        return _text(self.data.expected)

    @property
    def measured_text(self) -> str:
        return _text(self.data.measured)

    @property
    def than_text(self) -> str:
        return _text(self.data.than, "")

    @property
    def both_text(self) -> str:
        """The measured number, and the one it is compared with, in one line."""
        return _both(self.data)

    @property
    def control(self) -> ControlView | None:
        control = self.data.control
        if control is None:
            return None
        found = "; ".join(filter(None, (_both(control, ""), control.why)))
        return ControlView(control.what.rstrip("."), control.verdict, found)

    @property
    def unknown(self) -> UnknownView | None:
        """Where it holds over what the paper leaves open; None if that was not examined."""
        found = self.data.unknown
        if found is None:
            return None
        points = [PointView(_at(each.at), each.text, each.verdict, bool(each.reverse)) for each in found.points]
        return UnknownView(found.text, points)

    @property
    def points(self) -> list[PointView]:
        measured = self.data.measured
        return [PointView(_at(each.at), _text(each), each.verdict) for each in (measured.points if measured else ())]


@dataclass(frozen=True)
class ChapterView:
    """An experiment of an entry; ``report`` is a link from the site, empty without a report."""

    name: str
    counts_text: str
    report: str
    command: str
    problem: str
    published: Published | None = None  # the published results that are shown, if no run was made here
    together: str = ""  # whether all claims hold at one point of what the paper leaves open


@dataclass(frozen=True)
class SetupView:
    name: str
    description: str
    facts: list[Fact]
    drawings: list[Markup]


@dataclass
class View:
    """The content of an entry's page."""

    entry: Entry
    verdict: str
    claims: list[ClaimView] = field(default_factory=list)
    figures: list[Markup] = field(default_factory=list)
    undrawn: list[str] = field(default_factory=list)  # titles of figures whose points are not published
    setups: list[SetupView] = field(default_factory=list)
    chapters: list[ChapterView] = field(default_factory=list)

    @property
    def missing(self) -> str:
        problems = [chapter.problem for chapter in self.chapters if chapter.problem]
        return problems[0] if problems else "its runs have not been made."

    @property
    def only_published(self) -> bool:
        """Whether there are claims, but no run here from which a figure could be drawn."""
        return bool(self.chapters) and all(chapter.published for chapter in self.chapters)

    @property
    def thumbnail(self) -> Markup:
        """The first plot of its figures without its text; empty for an entry without a plot."""
        for figure in self.figures:
            found = _PLOT.search(figure)
            if found:
                plot = _WORDS.sub("", found[0]).replace('role="img"', 'aria-hidden="true"', 1)
                return Markup(re.sub(' class="[^"]*"', ' class="chart"', plot, count=1))  # a class for any width
        return Markup("")

    @property
    def counts_text(self) -> str:
        """``5 reproduced, 1 not reproduced``."""
        return words_text(claim.verdict for claim in self.claims)


def _text(sample: SampleRow | ExpectedRow | None, nothing: str = "–") -> str:
    return (sample.text if sample is not None else "") or nothing


def _both(found: ClaimRow | ControlRow, nothing: str = "–") -> str:
    measured, than = _text(found.measured, nothing), _text(found.than, "")
    return f"{measured} against {than}" if than else measured


def _at(axes: Mapping[str, object]) -> str:
    return ", ".join(f"{name} {value}" for name, value in axes.items())


def views(
    catalogue: Catalogue,
    chapters: list[Chapter],
    site: Path,
    draw: Draw,
    *,
    quick: bool,
    tell: Progress | None = None,
) -> list[View]:
    """Return a view of every entry, from the files on disk. ``site`` is the directory of the pages, for links."""
    shown = {chapter.name: _chapter(chapter, site, quick=quick) for chapter in chapters}
    setups = {chapter.name: _setup(chapter) for chapter in chapters}
    found = []
    for number, entry in enumerate(catalogue.entries, 1):
        mine = behind(entry, chapters)
        of = {chapter.name: _claims(chapter, entry, catalogue.causes) for chapter in mine}
        claims = [claim for judged in of.values() for claim in judged]
        claims.sort(key=lambda claim: not claim.is_central)
        view = View(entry, "", claims)
        view.chapters = [shown[chapter.name] for chapter in mine]
        view.setups = [setup for chapter in mine if (setup := setups[chapter.name])]
        view.undrawn = [title for chapter in mine for title in _undrawn(chapter, entry)]
        view.figures = [Markup(figure) for chapter in mine for figure in _figures(chapter, entry, draw)]
        judged = {claim.name: claim.verdict for claim in claims}
        view.verdict = entry_verdict(entry.kind, [judged.get(name, NOT_RUN) for name in entry.section.central])
        found.append(view)
        if tell is not None:
            tell("pages of the site", number, len(catalogue.entries))
    return found


def _claims(chapter: Chapter, entry: Entry, causes: dict[str, Cause]) -> list[ClaimView]:
    found = []
    for claim in chapter.claims():
        if entry.id not in claim.entries:
            continue
        cause = causes.get(f"{chapter.name}/{claim.id}", NOT_LISTED) if claim.verdict == FAIL else None
        found.append(ClaimView(chapter.name, claim, cause, f"{chapter.name}/{claim.id}" in entry.section.central))
    return found


def _figures(chapter: Chapter, entry: Entry, draw: Draw) -> list[str]:
    mine = [figure for figure in chapter.profile.figures if entry.id in figure.entry]
    if chapter.shown() is not None:
        stored = chapter.stored()
        return [draw(figure, stored[figure.id]) for figure in mine if figure.id in stored]
    experiment = chapter.experiment()
    return [draw(figure, experiment) for figure in mine] if experiment is not None else []


def _undrawn(chapter: Chapter, entry: Entry) -> list[str]:
    """Return the titles of an entry's figures whose points are not published."""
    if chapter.shown() is None:
        return []
    stored = chapter.stored()
    return [figure.title for figure in chapter.profile.figures if entry.id in figure.entry and figure.id not in stored]


def _chapter(chapter: Chapter, site: Path, *, quick: bool) -> ChapterView:
    experiment = chapter.experiment()
    report = chapter.path / "report.html"
    link = ""
    if report.exists():
        link = Path(_relative(report, site)).as_posix()
    verdicts = count(run.verdict_name for run in experiment.runs) if experiment else {}
    if experiment and experiment.pending:
        verdicts["not run"] = len(experiment.pending)
    text = ", ".join(f"{number} {word}" for word, number in verdicts.items()) or "none"
    shown = chapter.shown()
    if shown is not None:
        text = shown.counts_text
    command = f"howdah run {shlex.quote(_relative(chapter.profile.path, Path.cwd()))}{' --quick' if quick else ''}"
    return ChapterView(chapter.name, text, link, command, " ".join(chapter.problems), shown, chapter.together())


def _setup(chapter: Chapter) -> SetupView | None:
    experiment = chapter.experiment()
    planned = [run for run in experiment.runs if run.plan] if experiment else []
    if not planned:
        return None
    drawings = [Markup(drawing) for drawing in dumbbell(first_point(planned))]
    return SetupView(chapter.name, chapter.profile.description, path_facts(planned), drawings)


def _relative(target: Path, start: Path) -> str:
    return os.path.relpath(target.resolve(), start.resolve())
