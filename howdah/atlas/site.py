# SPDX-License-Identifier: Apache-2.0
"""The site: an index and a page for each entry; its files link to one another and to the experiments' reports."""

from __future__ import annotations

import re
from collections.abc import Sequence
from dataclasses import dataclass
from functools import cache
from pathlib import Path

from jinja2 import Environment
from markupsafe import Markup
from pydantic import Field

from howdah import __version__
from howdah.assets import Script
from howdah.atlas.catalogue import ATLAS, Catalogue
from howdah.atlas.cause import CLASSES, ClaimTally, cause_of, tally
from howdah.atlas.finding import STATUSES, Findings
from howdah.atlas.verdict import WORDS, claims_text, count, count_words, sentence, word
from howdah.atlas.view import ClaimView, View, anchor_of
from howdah.atlas.work import Record
from howdah.errors import HowdahError, explain
from howdah.number import counted, significant
from howdah.place import REPORTS
from howdah.record.directory import write_json
from howdah.record.model import FilePart
from howdah.record.provenance import machine, now, software
from howdah.record.run import HostMachine, Software
from howdah.report.origin import Fact
from howdah.report.page import write
from howdah.report.template import templates_of

_STYLES = ("tokens.css", "page.css", "table.css", "chart.css", "print.css")


@cache
def _style() -> str:
    files = [REPORTS / "css" / name for name in _STYLES]
    files.append(ATLAS / "css" / "atlas.css")
    return "\n".join(file.read_text(encoding="utf-8") for file in files if file.exists())


@cache
def _scripts() -> tuple[Script, ...]:
    files = (REPORTS / "js" / "theme.js", REPORTS / "js" / "scroll.js", ATLAS / "js" / "atlas.js")
    return tuple(Script(file.read_text(encoding="utf-8")) for file in files)


def _slug(word: str) -> str:
    return re.sub(r"[^a-z0-9]+", "-", word.lower())


@cache
def _environment() -> Environment:
    environment = templates_of(ATLAS / "templates")
    environment.filters["slug"] = _slug
    environment.filters["word"] = word
    environment.filters["anchor"] = anchor_of
    environment.filters["sentence"] = sentence
    environment.filters["counted"] = counted
    environment.globals.update(
        bar=bar,
        causes_of=causes_of,
        version=__version__,
        style=Markup(_style()),
        scripts=[Markup(script.text) for script in _scripts()],
        policy=" ".join(f"'{script.policy}'" for script in _scripts()),
    )
    return environment


def write_site(
    site: Path,
    catalogue: Catalogue,
    views: list[View],
    record: Record,
    problems: list[str],
    *,
    quick: bool,
    findings: Findings | None = None,
) -> Path:
    """Write index.html and the pages; return the index. Raise HowdahError if the directory cannot be written."""
    findings = findings or Findings()
    try:
        site.mkdir(parents=True, exist_ok=True)
    except OSError as error:
        raise HowdahError(f"the site cannot be written: {explain(error)}", where=str(site)) from error
    environment = _environment()
    made_by = _made_by()
    entry_page = environment.get_template("entry.html.j2")
    for place, view in enumerate(views):
        text = entry_page.render(
            view=view,
            previous=views[place - 1].entry if place else None,
            next=views[place + 1].entry if place + 1 < len(views) else None,
            inconsistencies=catalogue.inconsistencies_of(view.entry),
            provenance=made_by,
            findings=findings,
        )
        write(text, site / view.entry.page)
    pages = {entry.id: entry.page for entry in catalogue.entries}
    text = environment.get_template("findings.html.j2").render(
        findings=findings, statuses=list(STATUSES.items()), papers=catalogue.papers, pages=pages, provenance=made_by
    )
    write(text, site / "findings.html")
    index = environment.get_template("index.html.j2").render(
        headline=_headline(views, quick=quick),
        entries=catalogue.entries,
        papers=catalogue.papers,
        by_paper=[(paper, [view for view in views if view.entry.paper is paper]) for paper in catalogue.papers],
        verdicts=_badges(views),
        words=list(WORDS.items()),
        differing=with_verdict(views, "differs"),
        depending=with_verdict(views, "depends"),
        failing=with_verdict(views, "fail"),
        inconsistencies=catalogue.inconsistencies,
        causes=tally_of(views),
        classes=list(CLASSES.values()),
        all_claims=[claim for _, claim in _each_claim(views)],
        pages=pages,
        findings=findings,
        cost=[*cost(record, views, quick=quick), Fact("Software", made_by)],
        problems=problems,
    )
    return write(index, site / "index.html")


def _badges(views: list[View]) -> list[tuple[str, str, int]]:
    """Return, for each word among the entries, the state that decides its colour, the word and its count."""
    states = {word(view.verdict): view.verdict for view in views}
    return [(states[called], called, number) for called, number in count_words(view.verdict for view in views).items()]


@dataclass(frozen=True)
class BarPart:
    """Claims with one word: its width in percent, and the state that decides its colour."""

    state: str
    word: str
    number: int
    percent: float


def bar(claims: Sequence[ClaimView]) -> list[BarPart]:
    """Return the claims, grouped by words in their order, as parts of one bar."""
    states = {word(claim.verdict): claim.verdict for claim in claims}
    counts = count_words(claim.verdict for claim in claims)
    return [BarPart(states[each], each, number, 100 * number / len(claims)) for each, number in counts.items()]


def causes_of(view: View) -> list[str]:
    """Return why claims of an entry are not plainly reproduced, each once."""
    return [each for each in dict.fromkeys(cause_of(claim.data, claim.cause) for claim in view.claims) if each]


def _each_claim(views: list[View]) -> list[tuple[View, ClaimView]]:
    """Return each claim once, under the first of its entries."""
    found: dict[str, tuple[View, ClaimView]] = {}
    for view in views:
        for claim in view.claims:
            found.setdefault(claim.name, (view, claim))
    return list(found.values())


def tally_of(views: list[View]) -> list[ClaimTally]:
    """Return verdicts and causes of the shown claims, each once."""
    claims = [claim for _, claim in _each_claim(views)]
    causes = {claim.name: claim.cause for claim in claims if claim.cause is not None}
    return tally(((claim.name, claim.data) for claim in claims), causes)


def verdicts_of(views: list[View]) -> list[str]:
    """Return the verdicts of the shown claims, each once."""
    return [claim.verdict for _, claim in _each_claim(views)]


def with_verdict(views: list[View], verdict: str) -> list[tuple[View, ClaimView]]:
    """Return the claims with a verdict, each once, under the first of its entries."""
    return [(view, claim) for view, claim in _each_claim(views) if claim.verdict == verdict]


def _headline(views: list[View], *, quick: bool) -> str:
    verdicts = verdicts_of(views)
    what = "The quick atlas: fewer points and repetitions. " if quick else ""
    return f"{what}{claims_text(verdicts)}." if verdicts else f"{what}Nothing has been run yet."


def cost(record: Record, views: list[View], *, quick: bool) -> list[Fact]:
    """Return the cost of the runs, in words: of those made here, and of those whose published results are shown."""
    return [*(made_here(record, quick=quick) or [Fact("Runs", "none were made for this")]), *_published(views)]


def _published(views: list[View]) -> list[Fact]:
    found = {chapter.name: chapter.published for view in views for chapter in view.chapters if chapter.published}
    if not found:
        return []
    runs = sum(sum(one.runs.values()) for one in found.values())
    core_s, simulated_s = (sum(getattr(one, name) for one in found.values()) for name in ("core_s", "simulated_s"))
    days = sorted(time[:10] for one in found.values() for time in one.made)
    text = f"of {len(found)} profiles: {runs} runs, made {' to '.join(dict.fromkeys((days[0], days[-1])))}, "
    text += f"{_duration(core_s)} of one core, {_duration(simulated_s)} simulated"
    return [Fact("Published results", text)]


def made_here(record: Record, *, quick: bool) -> list[Fact]:
    """Return the cost of the runs of this machine. Empty if none were made."""
    sittings = [sitting for sitting in record.of(quick=quick) if sitting.made or sitting.failed]
    if not sittings:
        return []
    made = sum(sitting.made for sitting in sittings)
    times = f" in {len(sittings)} sittings" if len(sittings) > 1 else ""
    return [
        Fact("Atlas", "quick" if quick else "full"),
        Fact("Runs made", f"{made}{times}"),
        Fact("Wall time", _duration(record.wall_s(quick=quick))),
        Fact("Processor time", f"{_duration(record.core_s(quick=quick))} of one core"),
        Fact("Simulated", _duration(record.simulated_s(quick=quick))),
    ]


def _duration(seconds: float) -> str:
    whole = round(seconds)
    if whole < 120:
        return f"{significant(round(seconds, 1))} s"
    if whole < 7200:
        return f"{whole // 60} min {whole % 60} s"
    return f"{whole // 3600} h {whole % 3600 // 60} min"


def _made_by() -> str:
    mine = software()
    revision = (mine.revision or "")[:12]
    changed = ", with changes that are not committed" if mine.modified else ""
    return f"howdah {__version__}{f', revision {revision}' if revision else ''}{changed}"


FORMAT = 2


class AtlasClaim(FilePart):
    """A claim of claims.json, with its profile."""

    profile: str
    word: str
    central: bool
    cause: dict[str, str] | None = Field(description="why it is not reproduced: class, word, says")


class IndexedEntry(FilePart):
    id: str
    kind: str
    title: str
    paper: str
    where: str
    page: str
    verdict: str
    word: str
    reason: str | None
    profiles: list[str]
    published: list[str]
    claims: list[AtlasClaim]


class AtlasIndex(FilePart):
    """index.json of the site."""

    format: int
    created: str
    quick: bool
    howdah: Software
    host: HostMachine
    verdicts: dict[str, int]
    words: dict[str, dict[str, int]] = Field(description="entries and claims, counted by the words of the pages")
    claims: dict[str, int]
    causes: list[ClaimTally]
    wall_s: float
    core_s: float
    simulated_s: float
    entries: list[IndexedEntry]


def index_data(views: list[View], record: Record, *, quick: bool) -> AtlasIndex:
    return AtlasIndex(
        format=FORMAT,
        created=now(),
        quick=quick,
        howdah=software(),
        host=machine(),
        verdicts=count(view.verdict for view in views),
        words={
            "entries": count_words(view.verdict for view in views),
            "claims": count_words(verdicts_of(views)),
        },
        claims=count(verdicts_of(views)),
        causes=tally_of(views),
        wall_s=round(record.wall_s(quick=quick), 1),
        core_s=round(record.core_s(quick=quick), 1),
        simulated_s=round(record.simulated_s(quick=quick), 1),
        entries=[_entry(view) for view in views],
    )


def _entry(view: View) -> IndexedEntry:
    return IndexedEntry(
        id=view.entry.id,
        kind=view.entry.kind,
        title=view.entry.section.title,
        paper=view.entry.paper.key,
        where=view.entry.section.where,
        page=view.entry.page,
        verdict=view.verdict,
        word=word(view.verdict),
        reason=view.entry.section.reason or None,
        profiles=view.entry.section.profiles,
        published=[chapter.name for chapter in view.chapters if chapter.published],
        claims=[_claim(claim) for claim in view.claims],
    )


def _claim(claim: ClaimView) -> AtlasClaim:
    why = claim.cause
    return AtlasClaim(
        profile=claim.profile,
        word=word(claim.verdict),
        central=claim.is_central,
        cause={"class": why.key, "word": why.word, "says": why.says} if why else None,
        **claim.data.plain(),
    )


def write_index(site: Path, views: list[View], record: Record, *, quick: bool) -> AtlasIndex:
    data = index_data(views, record, quick=quick)
    write_json(site / "index.json", data.plain())
    return data
