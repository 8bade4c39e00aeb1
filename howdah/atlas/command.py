# SPDX-License-Identifier: Apache-2.0
"""``howdah atlas``: run every published experiment, judge every claim, write the site. And the shapes of its ``--json``
output.
"""

from __future__ import annotations

import argparse
from pathlib import Path

from pydantic import Field

from howdah.atlas.catalogue import Catalogue, Entry, read_catalogue
from howdah.atlas.cause import ClaimTally, tally, wrong_causes
from howdah.atlas.chapter import check, chosen, published_of, read_chapters
from howdah.atlas.finding import tell
from howdah.atlas.published import bring_up_to_date, kernel_of, rows_of
from howdah.atlas.site import AtlasIndex, write_index, write_site
from howdah.atlas.summary import Rows, brief, claims_of, summary, verdict_of
from howdah.atlas.verdict import claims_text, count, count_words, word, words_text
from howdah.atlas.view import views
from howdah.atlas.work import add, begin, conclude, make, publish_complete, read_sittings
from howdah.cluster.opened import executor_at
from howdah.command.answer import answer
from howdah.command.common import (
    add_cluster_options,
    add_jobs_option,
    add_json_option,
    add_runs_option,
    check_jobs,
    cores,
    workers_of,
)
from howdah.command.interruption import RUNS_KEPT
from howdah.command.shape import CommandAnswer
from howdah.errors import ExitCode, UsageError
from howdah.layout import DEFAULT_WIDTH, fitted, glossary, terminal_width, write_stdout
from howdah.number import counted
from howdah.place import PROFILES
from howdah.record.model import FilePart
from howdah.report.plot import draw
from howdah.work.display import Display


class AtlasEntry(FilePart):
    id: str
    kind: str
    paper: str
    where: str
    title: str
    profiles: list[str]
    central: list[str] = Field(description="its central claims, as profile/claim")
    verdict: str = Field(description="the worst of its central claims, as they are published")
    word: str
    claims: dict[str, int] = Field(description="its published claims by verdict")


class AtlasList(CommandAnswer, shape="atlas-list"):
    entries: list[AtlasEntry]
    claims: dict[str, int] = Field(description="all published claims by verdict")
    words: dict[str, int] = Field(description="the same by the words of the pages")
    causes: list[ClaimTally]


class Atlas(AtlasIndex, CommandAnswer, shape="atlas", version=2):
    site: str


RECORD = "atlas.json"
ANSWERS = (Atlas, AtlasList)  # shapes of the ``--json`` output


def add_parser(commands: argparse._SubParsersAction[argparse.ArgumentParser]) -> None:
    parser = commands.add_parser("atlas")
    parser.add_argument("--quick", action="store_true", help="fewer points and repetitions")
    parser.add_argument(
        "--only",
        action="append",
        default=[],
        metavar="NAME",
        help="only this entry, paper or profile; may be repeated (the site still shows all entries)",
    )
    parser.add_argument("--site", type=Path, metavar="DIR", help="where to write it (default: RUNS/atlas)")
    parser.add_argument(
        "--unknowns",
        action="store_true",
        help="run the whole grid of what the papers leave open (default: where a claim fails)",
    )
    parser.add_argument("--no-run", action="store_true", help="make no runs; judge and show the existing ones")
    parser.add_argument(
        "--publish",
        action="store_true",
        help="write complete results to reports/atlas/results, and bring the others there up to date",
    )
    parser.add_argument(
        "--list", action="store_true", help="list the entries with what is published of them, and do nothing"
    )
    parser.add_argument("--again", action="store_true", help="re-run finished runs")
    add_jobs_option(parser)
    add_cluster_options(parser)
    add_runs_option(parser)
    add_json_option(parser)
    parser.set_defaults(execute=execute, interrupted=RUNS_KEPT)


def execute(options: argparse.Namespace) -> int:
    check_jobs(options)
    place = workers_of(options)
    catalogue = read_catalogue()
    if options.list:
        rows = rows_of(published_of(read_chapters(PROFILES / "atlas", options.runs, quick=False)))
        if options.json:
            answer(_listed(catalogue, rows))
        else:
            _list(catalogue, rows, terminal_width() or DEFAULT_WIDTH)
        return 0
    if options.unknowns and options.quick:
        raise UsageError("the quick atlas has no grid of what is unknown", hint="Leave out --quick or --unknowns.")
    if options.publish and options.quick:
        raise UsageError("the quick atlas is not published: it leaves points and repetitions out")
    chapters = read_chapters(PROFILES / "atlas", options.runs, quick=options.quick, unknowns=options.unknowns)
    check(catalogue, chapters)
    wanted = chosen(catalogue, chapters, options.only)
    site = options.site or options.runs / "atlas"
    workers = options.jobs or cores()
    record_file = options.runs / RECORD
    with Display(quiet=options.json) as display:
        if options.no_run:
            record = read_sittings(record_file)
        else:
            sitting = begin(options.quick, workers)
            try:
                with executor_at(place, display.say, runs=options.runs, again=options.again) as executor:
                    make(wanted, workers, options.again, display, sitting, executor)
            finally:
                record = add(record_file, sitting)
        conclude(wanted, workers, display)
        if options.publish:
            found = publish_complete(wanted, display)
            display.say(f"published: {len(found)} of {len(wanted)} profiles")
            others = bring_up_to_date(chapter.profile for chapter in chapters)
            display.say(f"brought up to date: {counted(len(others), 'published result')}")
        shown = views(catalogue, chapters, site, draw, quick=options.quick, tell=display.build)
    problems = [f"{chapter.name}: {problem}" for chapter in chapters for problem in chapter.problems]
    # Findings stand on published results. The quick atlas makes other runs.
    whole = read_chapters(PROFILES / "atlas", options.runs, quick=False) if options.quick else chapters
    results = published_of(whole)
    findings = tell(catalogue.findings, rows_of(results), kernel_of(results))
    problems += [*wrong_causes(catalogue.causes, rows_of(results)), *findings.fallen]
    page = write_site(site, catalogue, shown, record, problems, quick=options.quick, findings=findings)
    data = write_index(site, shown, record, quick=options.quick)
    text = summary(shown, record, problems, quick=options.quick)
    (site / "summary.md").write_text(text, encoding="utf-8")
    if options.json:
        answer(Atlas.over(data, site=str(page)))
    else:
        write_stdout(fitted(brief(shown, record, problems, page, quick=options.quick)))
    return _exit_code(data.claims, problems)


def _exit_code(claims: dict[str, int], problems: list[str]) -> int:
    if problems:
        return ExitCode.RUN_FAILED
    if claims.get("invalid"):
        return ExitCode.INVALID
    return ExitCode.DIFFERS if claims.get("fail") else 0


def _listed(catalogue: Catalogue, rows: Rows) -> AtlasList:
    """Return the entries, and the verdicts and causes of all published claims."""
    verdicts = [row.verdict for row in rows.values()]
    return AtlasList(
        entries=[_row(entry, rows) for entry in catalogue.entries],
        claims=count(verdicts),
        words=count_words(verdicts),
        causes=tally(rows.items(), catalogue.causes),
    )


def _list(catalogue: Catalogue, rows: Rows, width: int) -> None:
    """Print every entry with its verdict and those of its claims, and all claims in the last line."""
    shown = []
    for entry in catalogue.entries:
        section = entry.section
        facts = f"{entry.kind}, {section.where}" + (f"; {', '.join(section.profiles)}" if section.profiles else "")
        claims = words_text(claims_of(entry, rows))
        found = f"{word(verdict_of(entry, rows))}" + (f"; claims: {claims}" if claims else "")
        shown.append((entry.id, f"{section.title} ({facts}): {found}"))
    verdicts = [row.verdict for row in rows.values()]
    write_stdout("\n".join(glossary(shown, width)) + "\n" + fitted(f"{claims_text(verdicts)}\n"))


def _row(entry: Entry, rows: Rows) -> AtlasEntry:
    section, verdict = entry.section, verdict_of(entry, rows)
    return AtlasEntry(
        id=entry.id,
        kind=entry.kind,
        paper=entry.paper.key,
        where=section.where,
        title=section.title,
        profiles=section.profiles,
        central=section.central,
        verdict=verdict,
        word=word(verdict),
        claims=count(claims_of(entry, rows)),
    )
