# SPDX-License-Identifier: Apache-2.0
"""Generates the list of figures in docs/figures.md from what ``howdah figure`` draws; ``--check`` only verifies it.

``python -m howdah.report.paper.reference [--check] [docs]``
"""

from __future__ import annotations

import sys

from howdah.generated import between, docs_of, keep_current
from howdah.report.paper.figures import NAMES
from howdah.report.paper.panels import DRAWN_KINDS, PREFIX

PAGE_NAME = "figures.md"
BEGIN = "<!-- Made by `make references` from howdah/report/paper: do not edit below. -->"
END = "<!-- Made by `make references`: end. -->"


def figure_list() -> str:
    """The list as a Markdown table."""
    rows = [f"| `{name}` | {words} |" for name, words in NAMES.items()]
    kinds = "<br>".join(f"{words} (`kind: {kind}`)" for kind, words in DRAWN_KINDS.items())
    rows.append(f"| `{PREFIX}ID` | {kinds} |")
    return "\n".join(["| figure | shows |", "|---|---|", *rows])


def page(text: str) -> str:
    """The page with the current list. Raises HowdahError if the page has no markers for it."""
    return between(text, BEGIN, END, figure_list(), PAGE_NAME)


def main(arguments: list[str]) -> int:
    path = docs_of(arguments) / PAGE_NAME
    return keep_current({path: page(path.read_text(encoding="utf-8"))}, arguments)


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
