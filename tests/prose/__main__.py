# SPDX-License-Identifier: Apache-2.0
"""``python -m tests.prose [PAGE …]``: print what the rules find. Without a page: all pages, and what programs say."""

from __future__ import annotations

import sys
from pathlib import Path

from tests.prose.rule import Finding, check
from tests.prose.source import PLACES, check_source

ROOT = Path(__file__).resolve().parents[2]
_PLACES = ("README.md", "CONTRIBUTING.md", "CHANGELOG.md", "docs/*.md", "docs/algorithms/*.md", "modules/README.md")
_MORE = ("tests/decision/README.md",)
# Written by `make references` from docstrings and descriptions in the code, and from the texts of the atlas.
GENERATED = ("docs/profile-reference.md", "docs/atlas-verdicts.md")


def pages() -> list[Path]:
    """Every page that is linted."""
    found = [page for place in (*_PLACES, *_MORE) for page in sorted(ROOT.glob(place))]
    return [page for page in found if _name(page) not in GENERATED]


def sources() -> list[Path]:
    """Every file whose texts a user reads in another place: on a terminal, on a page that it makes, in a profile."""
    return [file for place in PLACES for file in sorted(ROOT.glob(place))]


def _name(page: Path) -> str:
    page = page.resolve()
    return str(page.relative_to(ROOT)) if page.is_relative_to(ROOT) else str(page)


def _findings(file: Path) -> list[Finding]:
    if file.suffix == ".md" and _name(file) not in GENERATED:
        return check(file.read_text(encoding="utf-8"))
    return check_source(file)


def main(arguments: list[str]) -> int:
    number = 0
    for file in [Path(argument) for argument in arguments] or [*pages(), *sources()]:
        for finding in _findings(file):
            sys.stderr.write(f"{_name(file)}:{finding.line}: {finding.rule}: {finding.message}\n")
            number += 1
    if number:
        sys.stderr.write(f"{number} findings; the rules are in tests/prose\n")
    return 1 if number else 0


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
