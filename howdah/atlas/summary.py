# SPDX-License-Identifier: Apache-2.0
"""summary.md: entries by verdict, what differs and why, what fails, and the time it took; and its ten lines for a
terminal."""

from __future__ import annotations

from pathlib import Path

from howdah.atlas.site import cost, made_here, tally_of, verdicts_of, with_verdict
from howdah.atlas.verdict import claims_text, count_words, sentence, word
from howdah.atlas.view import View
from howdah.atlas.work import Record

_HEADINGS = {
    "differs": "Claims that differ, and why",
    "depends": "Claims that depend on what a paper leaves open",
    "fail": "Claims that are not reproduced",
}


def summary(views: list[View], record: Record, problems: list[str], *, quick: bool) -> str:
    """The summary as Markdown that also reads as plain text."""
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


_MOST_PAPERS = 9  # each has a line; all claims have the tenth
_MOST_PROBLEMS = 3


def brief(views: list[View], record: Record, problems: list[str], page: Path, *, quick: bool) -> str:
    """All claims and those of each paper in ten lines at most, what was made here, what was not made, and the path."""
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
