# SPDX-License-Identifier: Apache-2.0
"""summary.md: entries by verdict, claims that differ or fail and why, and the cost; its ten lines for a terminal; and
``docs/atlas-verdicts.md``: the entries by their verdicts, and the unexplained claims."""

from __future__ import annotations

import sys
from collections.abc import Mapping
from pathlib import Path

from howdah.atlas.catalogue import Catalogue, Entry, read_catalogue
from howdah.atlas.cause import UNEXPLAINED
from howdah.atlas.chapter import published_of, read_chapters
from howdah.atlas.encoding import NOT_RUN
from howdah.atlas.published import rows_of
from howdah.atlas.site import cost, made_here, tally_of, verdicts_of, with_verdict
from howdah.atlas.verdict import WORDS, claims_text, count_words, entry_verdict, sentence, word, words_text
from howdah.atlas.view import View
from howdah.atlas.work import Record
from howdah.errors import HowdahError
from howdah.generated import keep_current
from howdah.number import counted
from howdah.place import DOCS, PROFILES
from howdah.record.claims import ClaimRow

_HEADINGS = {
    "differs": "Claims that differ, and why",
    "depends": "Claims that depend on what a paper leaves open",
    "fail": "Claims that are not reproduced",
}


def summary(views: list[View], record: Record, problems: list[str], *, quick: bool) -> str:
    """Return the summary as Markdown that also reads as plain text."""
    lines = [f"# The {'quick ' if quick else ''}atlas: {len(views)} entries", ""]
    lines += _by_paper(views)
    lines += ["", f"{claims_text(verdicts_of(views))}.", ""]
    lines += [f"- {each.word}: {each.cause}: {len(each.claims)}" for each in tally_of(views) if each.cause]
    lines.append("")
    for verdict, heading in _HEADINGS.items():
        found = with_verdict(views, verdict)
        if found:
            lines += [f"## {heading}", ""]
        for view, claim in found:
            lines.append(
                f"- **{view.entry.id}**: {claim.data.says.rstrip('.')}. Expected {claim.expected_text}; measured "
                f"{claim.both_text}."
            )
            if claim.cause:
                lines.append(f"  {sentence(claim.cause.word)}. {claim.cause.says}".rstrip())
            if claim.unknown:
                lines.append(f"  Left open in the paper: it {claim.unknown.text}.")
            if verdict == "differs" and claim.control:
                lines.append(f"  With {claim.control.what}: {claim.control.found}. {claim.because}")
        if found:
            lines.append("")
    lines += [f"- {fact.name}: {fact.value}" for fact in cost(record, views, quick=quick)]
    if problems:
        lines += ["", "## Not made", "", *(f"- {problem}" for problem in problems)]
    return "\n".join(lines) + "\n"


_MOST_PAPERS = 9  # papers with a line each; the tenth line counts all claims
_MOST_PROBLEMS = 3


def brief(views: list[View], record: Record, problems: list[str], page: Path, *, quick: bool) -> str:
    """Return all claims and those of each paper in at most ten lines, then what was made here, problems, the path."""
    papers: dict[str, list[View]] = {view.entry.paper.key: [] for view in views}
    for view in views:
        papers[view.entry.paper.key].append(view)
    rows = list(papers.items())
    if len(rows) > _MOST_PAPERS:
        others = rows[_MOST_PAPERS - 1 :]
        rows[_MOST_PAPERS - 1 :] = [(f"{len(others)} others", [view for _, mine in others for view in mine])]
    width = max((len(name) for name, _ in rows), default=0)
    lines = [f"The {'quick ' if quick else ''}atlas: {len(views)} entries; {claims_text(verdicts_of(views))}."]
    lines += [f"  {name.ljust(width)}  {claims_text(verdicts_of(mine))}" for name, mine in rows]
    if made := made_here(record, quick=quick):
        lines.append("; ".join(f"{fact.name}: {fact.value}" for fact in made))
    lines += [f"not made: {problem}" for problem in problems[:_MOST_PROBLEMS]]
    if len(problems) > _MOST_PROBLEMS:
        lines.append(f"and {len(problems) - _MOST_PROBLEMS} more that were not made: summary.md has them")
    return "\n".join([*lines, f"site: {page}"]) + "\n"


def _by_paper(views: list[View]) -> list[str]:
    present = list(count_words(view.verdict for view in views))
    rows = [["paper", *present, "all"]]
    papers = dict.fromkeys(view.entry.paper.key for view in views)
    for paper in papers:
        mine = [word(view.verdict) for view in views if view.entry.paper.key == paper]
        rows.append([paper, *(str(mine.count(verdict) or "") for verdict in present), str(len(mine))])
    everything = [word(view.verdict) for view in views]
    rows.append(["all", *(str(everything.count(verdict)) for verdict in present), str(len(views))])
    widths = [max(len(row[column]) for row in rows) for column in range(len(rows[0]))]
    drawn = [
        "| " + " | ".join(cell.ljust(width) for cell, width in zip(row, widths, strict=True)) + " |" for row in rows
    ]
    return [drawn[0], "|" + "|".join("-" * (width + 2) for width in widths) + "|", *drawn[1:]]


PAGE_NAME = "atlas-verdicts.md"
BEGIN = "<!-- Made by `make references` from the published results: do not edit below. -->"
_NONE = "–"

Rows = Mapping[str, ClaimRow]  # published claims by profile/claim


def verdict_of(entry: Entry, rows: Rows) -> str:
    """Return the verdict of an entry by the published claims."""
    central = [rows[name].verdict if name in rows else NOT_RUN for name in entry.section.central]
    return entry_verdict(entry.kind, central)


def claims_of(entry: Entry, rows: Rows) -> list[str]:
    """Return the verdicts of the published claims of an entry."""
    return [row.verdict for row in rows.values() if entry.id in row.entries]


def verdict_table(catalogue: Catalogue, rows: Rows) -> str:
    """Return everything below ``BEGIN``."""
    verdicts = words_text(verdict_of(entry, rows) for entry in catalogue.entries)
    parts = [
        "## Every entry\n",
        f"{len(catalogue.entries)} entries: {verdicts}.",
        f"{claims_text([row.verdict for row in rows.values()])}.\n",
        *_entries(catalogue, rows),
        "\n## Unexplained\n",
        *_unexplained(catalogue),
    ]
    return "\n".join(parts) + "\n"


def _entries(catalogue: Catalogue, rows: Rows) -> list[str]:
    by_word: dict[str, list[str]] = {each.word: [] for each in WORDS.values()}
    for entry in catalogue.entries:
        by_word[word(verdict_of(entry, rows))].append(entry.id)
    return _head(["verdict", "entries"]) + [_row([each, ", ".join(ids)]) for each, ids in by_word.items() if ids]


def _unexplained(catalogue: Catalogue) -> list[str]:
    items: dict[str, list[str]] = {}
    for name, cause in catalogue.causes.items():
        if cause.key == UNEXPLAINED:
            items.setdefault(cause.says, []).append(f"`{name}`")
    number = sum(map(len, items.values()))
    lines = [f"{counted(number, 'claim')}, with the run that would decide each and what that needs.\n"]
    return (
        lines
        + _head(["claims", "what was tried, and what would decide"])
        + [_row([", ".join(names), says]) for says, names in items.items()]
    )


def _head(cells: list[str]) -> list[str]:
    return [_row(cells), "|" + "---|" * len(cells)]


def _row(cells: list[str]) -> str:
    return "| " + " | ".join(" ".join(cell.split()).replace("|", "\\|") or _NONE for cell in cells) + " |"


def page(text: str) -> str:
    """Return the current page, given its present text."""
    head, begin, _ = text.partition(BEGIN)
    if not begin:
        raise HowdahError(f"{PAGE_NAME} lacks the mark above its tables: {BEGIN}")
    rows = rows_of(published_of(read_chapters(PROFILES / "atlas", Path("runs"), quick=False)))
    return f"{head}{BEGIN}\n\n{verdict_table(read_catalogue(), rows)}"


def main(arguments: list[str]) -> int:
    path = DOCS / PAGE_NAME
    return keep_current({path: page(path.read_text(encoding="utf-8"))}, arguments)


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
