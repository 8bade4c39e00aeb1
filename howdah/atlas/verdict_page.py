# SPDX-License-Identifier: Apache-2.0
"""``docs/atlas-verdicts.md``: the entries by their verdicts, and what is unexplained."""

from __future__ import annotations

import sys
from collections.abc import Mapping
from pathlib import Path

from howdah.atlas.catalogue import Catalogue, Entry, read_catalogue
from howdah.atlas.cause import UNEXPLAINED
from howdah.atlas.chapter import published_of, read_chapters
from howdah.atlas.encoding import NOT_RUN
from howdah.atlas.published import rows_of
from howdah.atlas.verdict import WORDS, claims_text, entry_verdict, word, words_text
from howdah.errors import HowdahError
from howdah.generated import keep_current
from howdah.number import counted
from howdah.place import DOCS, PROFILES
from howdah.record.claims import ClaimRow

PAGE_NAME = "atlas-verdicts.md"
BEGIN = "<!-- Made by `make references` from the published results: do not edit below. -->"
_NONE = "–"

Rows = Mapping[str, ClaimRow]  # published claims by profile/claim


def verdict_of(entry: Entry, rows: Rows) -> str:
    """The verdict of an entry by the published claims."""
    central = [rows[name].verdict if name in rows else NOT_RUN for name in entry.section.central]
    return entry_verdict(entry.kind, central)


def claims_of(entry: Entry, rows: Rows) -> list[str]:
    """The verdicts of the published claims of an entry."""
    return [row.verdict for row in rows.values() if entry.id in row.entries]


def verdict_table(catalogue: Catalogue, rows: Rows) -> str:
    """Everything below ``BEGIN``."""
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
    """The page as it should be, from its text as it is."""
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
